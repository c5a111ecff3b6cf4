"""`streamlog run` on Spark."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from streamlog.app.cli import main
from streamlog.app.run_spark import SparkRun
from streamlog.runtime.replacing import Replacing
from streamlog.spark.inputs import Inputs

DEMO = Path(__file__).parents[2] / "demos" / "01_first_alarm" / "alarm.slog"


DIVIDING = """
stream s(T: int, n: int).
output p, q.
p(T, N) <- s(T, N).
q(T, 6 // N) <- s(T, N).
"""


def run(*args: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["run", *map(str, args), "--engine", "spark"])
    return result.exit_code, result.stdout, result.stderr


def test_the_first_demo() -> None:
    code, out, err = run(DEMO)
    assert code == 0
    assert out.startswith("pc_alarm: 5 answers\n")
    assert "2026-11-15T08:12:00Z   hall A\n" in out
    assert "/pre_alarm.csv:8: column `T`: 'soon' is not a valid time\n" in err
    assert re.search(r"^Spark: (1 job|[2-9] jobs), [\d.]+ s$", err, re.MULTILINE)


def test_only_what_answers_rest_on_is_evaluated(tmp_path: Path) -> None:
    program, rows = tmp_path / "a.slog", tmp_path / "s.csv"
    program.write_text(
        "stream s(T: int, x: string).\np(T, X) <- s(T, X), not (s(T1, X), T1 < T).\n"
        "unread(T, count()) <- s(T, _).\n?p(T, red).\n"
    )
    rows.write_text("T,x\n1,red\n2,blue\n3,red\n")
    code, out, err = run(program, "--input", f"s={rows}", "--format", "csv")
    assert (code, out) == (0, "T,X\n1,red\n")
    assert re.search(r"^p +sql", err, re.MULTILINE)
    assert "nothing reads `unread`" in err and not re.search(r"^unread ", err, re.MULTILINE)


def test_answers_in_a_file_are_those_of_the_local_engine(tmp_path: Path) -> None:
    spark, local = tmp_path / "spark.csv", tmp_path / "local.csv"
    clean = tmp_path / "pre.csv"
    lines = (DEMO.parent / "pre_alarm.csv").read_text().splitlines()
    clean.write_text("\n".join(x for x in lines if "07:59" not in x) + "\n")
    given = (DEMO, "--input", f"pre_alarm={clean}")
    assert run(*given, "--output", f"pc_alarm={spark}")[0] == 0
    args = [*map(str, given), "--output", f"pc_alarm={local}", "--engine", "local"]
    assert CliRunner().invoke(main, ["run", *args]).exit_code == 0
    assert sorted(spark.read_text().splitlines()) == sorted(local.read_text().splitlines())


def test_standard_input_and_output(tmp_path: Path) -> None:
    (tmp_path / "a.slog").write_text("stream s(T: int, x: string).\noutput p. p(T, X) <- s(T, X).")
    args = ["run", str(tmp_path / "a.slog"), "--engine", "spark", "--input", "s=jsonl:-"]
    data = '{"T": 2, "x": "b"}\nno\n{"T": 1, "x": "a"}\n'
    result = CliRunner().invoke(main, [*args, "--output", "p=-"], input=data)
    assert (result.exit_code, result.stdout) == (0, "T,X\n1,a\n2,b\n")
    assert "rejected s <stdin>:2: malformed JSON" in result.stderr
    result = CliRunner().invoke(main, [*args, "--output", "p=-", "--follow"], input=data)
    assert "--follow on Spark cannot read `s` from standard input" in result.stderr


def test_a_checkpointed_run_ends_and_is_not_repeated(tmp_path: Path) -> None:
    for name in ("pre_alarm", "report"):
        (tmp_path / name).mkdir()
        text = (DEMO.parent / f"{name}.csv").read_text()
        (tmp_path / name / "1.csv").write_text(text)
    inputs = [f"--input={name}={tmp_path / name}" for name in ("pre_alarm", "report")]
    out = tmp_path / "out"
    args = (DEMO, *inputs, "--output", f"pc_alarm={out}", "--checkpoint", tmp_path / "state")
    assert run(*args)[0] == 0
    files = sorted(out.rglob("part*"))
    assert files
    code, _, err = run(*args)
    assert code == 2 and "has ended" in err
    assert sorted(out.rglob("part*")) == files


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--output", "p=s.csv"), "where the input of `s` is read"),
        (("--output", "p=in/p.csv", "--input", "s=in"), "where the input of `s` is read"),
        (("--output", "p=file:///{}/s.csv"), "where the input of `s` is read"),
        (("--output", "p=o.csv", "--output", "q=./o.csv"), "both write to './o.csv'"),
        (("--output", "p=o.csv", "--rejects", "o.csv"), "both write to 'o.csv'"),
        (("--input", "s=s.csv", "--input", "s=t.csv"), "--input s is given twice"),
        (("--output", "p=o.txt"), "what kind of file is 'o.txt'?"),
        (("--output", "p=o", "--partition", "p=m"), "--partition: `p` has no column 'm'"),
        (("--output", "p=o.csv", "--partition", "p=T"), "it needs --output p=FOLDER"),
        (("--output", "p=o", "--partition", "p=T", "--partition", "p=N"), "a column that is not"),
        (("--output", "p=kafka://h:1/t", "--input", "s=kafka://h:1/t?x=1"), "where the input"),
    ],
)
def test_places_are_checked_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streamlog.app.run_spark.SparkRun._start_spark", None)
    (tmp_path / "in").mkdir()
    for name in ("s.csv", "o.csv", "in/a.csv"):
        (tmp_path / name).write_text("T,n\n1,2\n")
    (tmp_path / "a.slog").write_text(DIVIDING)
    args = tuple(arg.format(tmp_path) for arg in args)
    given = () if "--input" in args else ("--input", "s=s.csv")
    code, _, err = run("a.slog", *given, *args)
    assert code == 2
    assert message in " ".join(err.split())
    assert {p.read_text() for p in tmp_path.glob("**/*.csv")} == {"T,n\n1,2\n"}


def test_a_run_that_fails_leaves_all_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.slog").write_text(DIVIDING)
    (tmp_path / "p.csv").write_text("precious")
    args = ("a.slog", "--input", "s=s.csv", "--output", "p=p.csv", "--output", "q=q.csv")
    (tmp_path / "s.csv").write_text("T,n\n1,2\n2,0\n")
    code, _, err = run(*args)
    assert code == 1
    assert "(with T = 2, N = 0)\nstreamlog: `s` is row 2 of 's.csv'\n" in err
    (tmp_path / "s.csv").write_text("T,n\n1,2\nx,3\n")
    code, _, err = run(*args, "--strict", "--rejects", "bad.csv", "--late", "late.csv")
    assert code == 1
    assert err.endswith("streamlog: --strict: a row was rejected; no output was written\n")
    assert (tmp_path / "p.csv").read_text() == "precious"
    assert "is not a valid int" in (tmp_path / "bad.csv").read_text()
    assert (tmp_path / "late.csv").read_text() == "stream,where,reason,row\n"
    code, out, _ = run("a.slog", "--input", "s=s.csv", "--format", "csv", "--strict")
    assert (code, out) == (1, "")
    assert run(*args)[0] == 0
    assert (tmp_path / "p.csv").read_text() == "T,N\n1,2\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("a.slog", "bad.csv", "late.csv", "p.csv", "q.csv", "s.csv")
    ]


def test_strict_stops_micro_batches(tmp_path: Path) -> None:
    (tmp_path / "a.slog").write_text(DIVIDING)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "1.csv").write_text("T,n\n1,2\nx,3\n")
    args = [tmp_path / "a.slog", "--input", f"s={tmp_path / 's'}", "--format", "csv"]
    args += ["--checkpoint", tmp_path / "state"]
    for _ in range(2):
        code, _, err = run(*args, "--strict")
        assert code == 1
        assert err.endswith("streamlog: --strict: a row was rejected; stopped\n")
    assert run(*args)[0] == 0


def test_options_of_spark_are_refused_elsewhere() -> None:
    result = CliRunner().invoke(main, ["run", str(DEMO), "--engine", "local", "--master", "x"])
    assert result.exit_code == 2
    assert "--master is for --engine spark" in result.stderr


def test_a_session_on_spark() -> None:
    script = """.engine spark
first(T, X) <- msg(T, X), not earlier(T, X).
earlier(T, X) <- msg(T0, X), T0 < T.
msg(1, red). msg(2, red). msg(2, blue).
?first(T, X).
.engine
"""
    result = CliRunner().invoke(main, ["repl"], input=script)
    assert result.exit_code == 0, result.output
    assert "this session runs on the engine `spark`" in result.output
    assert "red" in result.output and "blue" in result.output


def test_rule_tests_on_spark() -> None:
    suite = DEMO.parents[2] / "rules" / "airport"
    result = CliRunner().invoke(main, ["test", str(suite), "--engine", "spark", "--no-shuffle"])
    assert result.exit_code == 0, result.output


def test_a_few_files_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Elsewhere than where Java was started: paths count from here.
    monkeypatch.chdir(tmp_path)
    for name in ("pre_alarm", "report"):
        Path(name).mkdir()
        head, *rows = (DEMO.parent / f"{name}.csv").read_text().splitlines()
        for number, half in enumerate((rows[:3], rows[3:])):
            file = Path(name) / f"{number}.csv"
            file.write_text("\n".join([head, *half]) + "\n")
            os.utime(file, (number, number))
    inputs = [f"--input={name}={name}" for name in ("pre_alarm", "report")]
    args = (DEMO, *inputs, "--checkpoint", "state", "--files-per-batch", 1)
    code, out, err = run(*args, "--format", "csv", "--late", "late")
    assert code == 0, err
    assert Path("state/spark").is_dir()
    # The row of 07:59 is in the second file, so it is late, as it is where rows come one by one.
    assert len(list((tmp_path / "late").rglob("part*"))) == 1
    assert "2026-11-15T08:12:00Z,hall A\n" in out and "07:59" not in out


def test_following_ends_quietly_by_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C comes while the command waits for Java, as it nearly always does."""
    for name in ("pre_alarm", "report"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text((DEMO.parent / f"{name}.csv").read_text())
    out = tmp_path / "out.csv"

    def interrupt() -> None:
        while not list(out.glob("batch=0/part.csv")):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    inputs = [f"--input={name}={tmp_path / name}" for name in ("pre_alarm", "report")]
    watch = threading.Thread(target=interrupt)
    watch.start()
    code, _, err = run(DEMO, *inputs, "--follow", "--output", f"pc_alarm={out}")
    watch.join()
    assert code == 0, err
    assert "Traceback" not in err and "pc_alarm         4" in err


def test_a_folder_that_is_empty_yet(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    args = (DEMO, f"--input=pre_alarm={tmp_path / 'in'}", f"--input=report={tmp_path / 'in'}")
    more = ("--checkpoint", tmp_path / "state", "--format", "csv")
    code, _, err = run(*args, *more)
    assert code == 2 and "say what kind of files will come, csv, jsonl or parquet (--kind)" in err
    assert run(*args, *more, "--kind", "csv")[0] == 0
    code, _, err = run(*args, "--kind", "csv")
    assert code == 2 and "--kind is for --follow and --checkpoint" in err


def test_paths_without_graphframes(tmp_path: Path) -> None:
    program = tmp_path / "reach.slog"
    program.write_text(
        "table arc(a: int, b: int).\noutput reach.\narc(1, 2). arc(2, 3).\n"
        "reach(X, Y) <- arc(X, Y).\nreach(X, Z) <- reach(X, Y), arc(Y, Z).\n"
    )
    code, out, err = run(program, "--strategy", "graph", "--format", "csv")
    assert code == 0
    assert out == "X,Y\n1,2\n1,3\n2,3\n"
    assert "--strategy graph: by kernel instead, with the same answers; " in err
    assert "--packages io.graphframes:graphframes-spark4_2.13:" in err


CHAIN = """
stream hop(T: int, a: int, b: int).
output reach.
reach(T, X, Y) <- hop(T, X, Y).
reach(T, X, Z) <- reach(T1, X, Y), hop(T2, Y, Z), lgr(T1, T2, T).
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "reach kernel recursive, about 3 rows: no more than 1,000,000"),
        (("--strategy", "fixpoint"), "reach fixpoint asked for"),
        (("--strategy", "kernel"), "reach kernel asked for"),
    ],
)
def test_the_report_says_how_rules_were_evaluated(
    options: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    program = tmp_path / "chain.slog"
    program.write_text(CHAIN + "hop(1, 1, 2). hop(2, 2, 3). hop(3, 3, 4).\n")
    code, _, err = run(program, *options)
    assert code == 0, err
    assert expected in " ".join(err.split())


def test_micro_batches_say_that_graphframes_is_not_for_them(tmp_path: Path) -> None:
    program = tmp_path / "chain.slog"
    program.write_text(CHAIN)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("T,a,b\n1,1,2\n2,2,3\n")
    args = ("--input", f"hop={tmp_path / 'in'}", "--checkpoint", tmp_path / "state")
    code, _, err = run(program, *args, "--strategy", "graph", "--format", "csv")
    assert code == 0, err
    assert "--strategy graph: by kernel instead, with the same answers; GraphFrames needs" in err
    assert "reach kernel recursive, batch by batch" in " ".join(err.split())


def test_nothing_but_messages_comes_from_java() -> None:
    """Java warns of an incubator module whenever Spark starts, and means nobody by it."""
    code = (
        "import streamlog.spark, sys\n"
        "spark = streamlog.spark.session('local[1]')\n"
        "spark._jvm.java.lang.System.err.println('a message')\n"
        "spark.stop()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "a message\n"


def test_a_package_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def java_ends(builder: object) -> SparkSession:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", java_ends)
    code, _, err = run(DEMO, "--packages", "org.example:none:1")
    assert code == 2
    assert "Spark did not start" in err and "was org.example:none:1 to be had?" in err


def test_rows_of_which_sql_is_not_certain_count_all_the_same(tmp_path: Path) -> None:
    """A row that only Python reads (' 0 ') is in a negation: without it there would be a division
    by zero."""
    program, rows, marks = (tmp_path / name for name in ("a.slog", "s.csv", "mark.csv"))
    program.write_text(
        "stream s(T: int, n: int).\nstream mark(T: int, n: int).\noutput p.\n"
        "p(T, 6 // N) <- s(T, N), not mark(T, N).\n"
    )
    rows.write_text("T,n\n1,0\n2,3\n")
    marks.write_text("T,n\n 1 , 0 \n")
    out = tmp_path / "out.csv"
    given = ("--input", f"s={rows}", "--input", f"mark={marks}", "--output", f"p={out}")
    code, _, err = run(program, *given)
    assert code == 0, err
    assert out.read_text().splitlines()[1:] == ["2,2"]
    assert re.search(r"^mark +1 +0 +0$", err, re.MULTILINE), err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.slog",
        "mark.csv",
        "out.csv",
        "s.csv",
    ]


def test_counts_that_have_not_come_are_no_proof_of_clean_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, rows = tmp_path / "a.slog", tmp_path / "s.csv"
    program.write_text("stream s(T: int, n: int).\noutput p.\np(T, N) <- s(T, N).\n")
    rows.write_text("T,n\n1,1\n2, 2 \nsoon,3\n")
    monkeypatch.setattr("streamlog.spark.inputs._observed", lambda spark, observations: {})
    code, out, err = run(program, "--input", f"s={rows}", "--format", "csv")
    assert (code, out) == (0, "T,N\n1,1\n2,2\n"), err
    assert re.search(r"^s +3 +0 +1$", err, re.MULTILINE), err
    assert f"{rows}:4: column `T`: 'soon'" in err


@pytest.mark.parametrize(("row", "evaluations"), [("3,3", 1), ("soon,3", 1), (" 3 ,3", 2)])
def test_a_run_is_repeated_only_if_python_finds_further_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, evaluations: int
) -> None:
    program, rows = tmp_path / "a.slog", tmp_path / "s.csv"
    program.write_text("stream s(T: int, n: int).\noutput p.\np(T, N) <- s(T, N).\n")
    rows.write_text(f"T,n\n1,1\n{row}\n")
    given = []
    once = SparkRun._evaluated

    def evaluated(self: SparkRun, inputs: Inputs, files: Replacing) -> Any:
        given.append(inputs)
        return once(self, inputs, files)

    monkeypatch.setattr(SparkRun, "_evaluated", evaluated)
    code, _, err = run(program, "--input", f"s={rows}")
    assert code == 0, err
    assert len(given) == evaluations
