"""`streamlog run`: files in, answers out, and resuming after an interruption."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

PROGRAM = """
stream pre_alarm(T: time, area: string) from "data/pre.csv" slack 10s.
stream report(T: time, area: string) from "data/report.jsonl" slack 10s idle 30s.
table zone(area: string, z: int) from "data/zone.csv".
output pc_alarm.
pc_alarm(T, A, Z) <- pre_alarm(T, A), zone(A, Z), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""
PRE = """T,area
2026-11-15T08:00:00Z,gate1
2026-11-15T08:01:30Z,gate2
2026-11-15T08:04:00Z,gate3
"""
REPORT = """{"T": "2026-11-15T08:03:10Z", "area": "gate1"}
{"T": "2026-11-15T08:09:30Z", "area": "gate3"}
"""
ZONE = "area,z\ngate1,1\ngate2,2\ngate3,3\n"
TABLE = """\
pc_alarm: 2 answers
T                      A       Z
────────────────────────────────
2026-11-15T08:01:30Z   gate2   2
2026-11-15T08:04:00Z   gate3   3
"""


@pytest.fixture
def airport(write):
    write("data/pre.csv", PRE)
    write("data/report.jsonl", REPORT)
    write("data/zone.csv", ZONE)
    return write("airport.slog", PROGRAM)


def test_answers_as_a_table(run, airport) -> None:
    result = run("run", "airport.slog")
    assert (result.exit_code, result.stdout) == (0, TABLE)


def test_the_closing_table(run, airport) -> None:
    lines = run("run", "airport.slog").stderr.splitlines()
    assert lines[0].split() == ["input", "rows", "late", "rejected", "duplicates"]
    assert [line.split() for line in lines[2:5]] == [
        ["pre_alarm", "3", "0", "0", "0"],
        ["report", "2", "0", "0", "0"],
        ["zone", "3", "0", "0", "0"],
    ]
    assert lines[7].split() == ["pc_alarm", "2"]
    assert lines[8].startswith("state: ")
    assert all(len(line) <= 80 for line in lines)


def test_answers_as_json_and_csv(run, airport) -> None:
    found = [
        json.loads(x)
        for x in run("run", "airport.slog", "--format", "json").stdout.split("\n")
        if x
    ]
    assert found[0] == {"predicate": "pc_alarm", "T": "2026-11-15T08:01:30Z", "A": "gate2", "Z": 2}
    assert run("run", "airport.slog", "--format", "csv").stdout == (
        "T,A,Z\n2026-11-15T08:01:30Z,gate2,2\n2026-11-15T08:04:00Z,gate3,3\n"
    )


def test_several_outputs(run, write) -> None:
    write("a.slog", "output p, q.\np(T, X) <- s(T, X).\nq(T) <- s(T, _).\ns(1, a). s(2, b).")
    assert run("run", "a.slog", "--format", "csv").stdout == "p,1,a\np,2,b\nq,1\nq,2\n"
    assert run("run", "a.slog").stdout == (
        "p: 2 answers\nT   X\n─────\n1   a\n2   b\n\nq: 2 answers\nT\n─\n1\n2\n"
    )


def test_no_answers(run, write) -> None:
    write("a.slog", "output p.\np(T, X) <- s(T, X), T > 5.\ns(1, a).")
    assert run("run", "a.slog").stdout == "p: no answers\n"
    assert run("run", "a.slog", "--format", "csv").stdout == "T,X\n"
    assert run("run", "a.slog", "--format", "json").stdout == ""


def test_a_query_asks_for_a_part(run, write) -> None:
    write("a.slog", "p(T, X) <- s(T, X).\n?p(T, red).\ns(1, red). s(2, blue). s(3, red).")
    assert run("run", "a.slog", "--format", "csv").stdout == "T,X\n1,red\n3,red\n"


@pytest.mark.parametrize("every", [1, 2, 10_000])
def test_steps_do_not_matter(run, airport, every: int) -> None:
    result = run("run", "airport.slog", "--every", str(every))
    assert (result.exit_code, result.stdout) == (0, TABLE)


def test_inputs_by_option_go_before_those_of_the_program(run, airport, write) -> None:
    write("other.csv", f"{PRE}2026-11-15T09:00:00Z,gate1\n")
    result = run("run", "airport.slog", "--input", "pre_alarm=other.csv", "--format", "csv")
    assert result.stdout.splitlines()[-1] == "2026-11-15T09:00:00Z,gate1,1"
    both = run(
        "run", "airport.slog", "--input", "pre_alarm=other.csv", "--input", "pre_alarm=data/pre.csv"
    )
    assert both.exit_code == 0
    assert ["pre_alarm", "7", "0", "0", "3"] in [line.split() for line in both.stderr.splitlines()]


def test_no_header(run, write) -> None:
    write("a.slog", "stream s(T: int, x: string).\noutput p.\np(T, X) <- s(T, X).")
    write("s.csv", "1,a\n2,b\n")
    result = run("run", "a.slog", "--input", "s=s.csv", "--no-header", "--format", "csv")
    assert result.stdout == "T,X\n1,a\n2,b\n"


def test_files_are_merged_by_time(run, write) -> None:
    write(
        "a.slog", "stream a(T: int).\nstream b(T: int) idle 3.\noutput p.\np(T) <- (a(T) ; b(T))."
    )
    write("a.csv", "T\n" + "".join(f"{t}\n" for t in range(0, 100, 2)))
    write("b.csv", "T\n" + "".join(f"{t}\n" for t in range(1, 100, 2)))
    result = run("run", "a.slog", "--input", "a=a.csv", "--input", "b=b.csv", "--format", "csv")
    assert result.stdout.split() == ["T", *map(str, range(100))]


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_outputs_to_files(run, airport, tmp_path: Path, name: str) -> None:
    result = run("run", "airport.slog", "--output", f"pc_alarm={name}")
    assert (result.exit_code, result.stdout) == (0, "")
    text = (tmp_path / name).read_bytes()
    if name == "out.csv":
        assert text.decode().splitlines()[1] == "2026-11-15T08:01:30Z,gate2,2"
    elif name == "out.jsonl":
        assert json.loads(text.splitlines()[0])["A"] == "gate2"
    else:
        assert pq.read_table(tmp_path / name).column("Z").to_pylist() == [2, 3]


def test_bad_and_late_rows_are_printed_and_kept(run, airport, write, tmp_path: Path) -> None:
    write("data/pre.csv", f"{PRE}soon,gate1\n2026-11-15T08:00:00Z,gate9\n" + "x,y\n" * 9)
    args = ("run", "airport.slog", "--rejects", "rejects.csv", "--late", "late.jsonl")
    result = run(*args)
    assert (result.exit_code, result.stdout) == (0, TABLE)
    assert (
        "rejected pre_alarm data/pre.csv:5: column `T`: 'soon' is not a valid time\n"
        in result.stderr
    )
    assert result.stderr.count("rejected pre_alarm") == 5
    assert "\n6 more rows rejected or late\n" in result.stderr
    rejects = (tmp_path / "rejects.csv").read_text().splitlines()
    assert rejects[0] == "stream,where,reason,row"
    assert len(rejects) == 11
    late = json.loads((tmp_path / "late.jsonl").read_text())
    assert late["reason"] == (
        "2026-11-15T08:00:00Z is earlier than 2026-11-15T08:03:50Z, which `pre_alarm` has passed"
    )
    assert late["row"] == '["2026-11-15T08:00:00Z", "gate9"]'


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_strict_fails_because_of_a_bad_row(run, airport, write, form: str) -> None:
    bad = write("data/pre.csv", f"{PRE}soon,gate1\n")
    result = run("run", "airport.slog", "--strict", "--every", "1", "--format", form)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "rejected pre_alarm data/pre.csv:5: " in result.stderr
    assert result.stderr.endswith(
        "streamlog: --strict: a row was rejected; no output was written\n"
    )
    assert run("run", "airport.slog").exit_code == 0
    bad.write_text(PRE)
    strict, lenient = (run("run", "airport.slog", "--format", form, *o) for o in (["--strict"], []))
    assert (strict.exit_code, strict.stdout) == (0, lenient.stdout)


def test_strict_replaces_no_output(run, airport, write, tmp_path: Path) -> None:
    write("data/pre.csv", f"{PRE}soon,gate1\n")
    out = write("out.csv", "precious")
    args = ("--output", "pc_alarm=out.csv", "--rejects", "bad.csv", "--late", "late.csv")
    assert run("run", "airport.slog", "--strict", *args).exit_code == 1
    assert out.read_text() == "precious"
    assert "soon" in (tmp_path / "bad.csv").read_text()
    assert (tmp_path / "late.csv").read_text() == "stream,where,reason,row\n"


def test_strict_stops_a_checkpointed_run_after_the_batch(run, airport, write) -> None:
    """What it has read counts, the rejected row too: with --strict it does not go on."""
    write("data/pre.csv", PRE.replace("T,area\n", "T,area\nsoon,gate1\n"))
    args = ("--checkpoint", "state", "--output", "pc_alarm=out.csv", "--rejects", "bad.csv")
    command = ("run", "airport.slog", "--every", "1", *args)
    for _ in range(2):
        result = run(*command, "--strict")
        assert result.exit_code == 1
        assert "streamlog: --strict: a row was rejected; stopped\n" in result.stderr
        assert Path("bad.csv").read_text().count("soon") == 2  # the reason and the row
    assert run(*command).exit_code == 0
    assert len(Path("out.csv").read_text().splitlines()) == 3
    assert Path("bad.csv").read_text().count("soon") == 2


def test_a_profile_has_what_each_rule_took(run, airport) -> None:
    lines = run("run", "airport.slog", "--profile").stderr.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("rule"))
    assert lines[at].split() == ["rule", "seconds", "rows", "in", "rows", "out", "rounds"]
    rows = (line.split() for line in lines[at + 2 : -1])
    costs = {" ".join(words[:-4]): words[-4:] for words in rows}
    assert costs["pc_alarm, rule at airport.slog:6"][1:] == ["3", "2", "1"]
    assert costs["storing report"][1:] == ["2", "0", "1"]
    seconds = [float(took) for took, *_ in costs.values()]
    assert seconds == sorted(seconds, reverse=True)
    assert "rounds" not in run("run", "airport.slog").stderr


def test_a_profile_counts_the_paths_of_a_closure(run, write) -> None:
    text = "reach(X, Y) <- arc(X, Y). reach(X, Z) <- reach(X, Y), reach(Y, Z). output reach."
    write("paths.slog", f"table arc(a: int, b: int). {text} arc(1, 2). arc(2, 3). arc(3, 4).")
    found = run("run", "paths.slog", "--profile").stderr
    (line,) = (x.split() for x in found.splitlines() if x.startswith("paths of reach"))
    assert line[4:6] == ["3", "6"]


def test_the_kind_of_engine_decides_which_options_there_are(run, airport) -> None:
    for engine, option in (
        ("spark", "--every=10000"),
        ("spark", "--profile"),
        ("local", "--files-per-batch=1"),
    ):
        result = run("run", "airport.slog", "--engine", engine, option)
        assert result.exit_code == 2
        other = {"spark": "local", "local": "spark"}[engine]
        assert f"{option.split('=')[0]} is for --engine {other}" in result.stderr


def test_outputs_may_be_named_like_options(run, write) -> None:
    write(
        "a.slog",
        "stream s(T: int, x: string).\noutput late, rejects.\nlate(T, X) <- s(T, X).\n"
        "rejects(T) <- s(T, _).",
    )
    write("s.csv", "T,x\n5,a\n1,b\nsoon,c\n")
    args = ("--input", "s=s.csv", "--output", "late=l.csv", "--output", "rejects=r.csv")
    assert run("run", "a.slog", *args).exit_code == 0
    assert run("run", "a.slog", *args, "--late", "L.csv", "--rejects", "R.csv").exit_code == 0
    assert Path("l.csv").read_text() == "T,X\n5,a\n"
    assert Path("r.csv").read_text() == "T\n5\n"
    assert "is earlier than" in Path("L.csv").read_text()
    assert "soon" in Path("R.csv").read_text()


def test_batch(run, write) -> None:
    write("a.slog", "output p.\np(T, X) <- s(T, X), not (s(T1, X), T1 > T).\ns(1, a). s(2, a).")
    refused = run("run", "a.slog")
    assert refused.exit_code == 1
    assert "error[SL0401]" in refused.stderr
    assert run("run", "--batch", "a.slog", "--format", "csv").stdout == "T,X\n2,a\n"


def test_a_program_from_standard_input(run, airport) -> None:
    result = run("run", "-", input=PROGRAM)
    assert (result.exit_code, result.stdout) == (0, TABLE)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.slog"], "Path 'missing.slog' does not exist"),
        (["airport.slog", "--input", "report"], "--input takes NAME=PATH, not 'report'"),
        (["airport.slog", "--input", "repot=x.csv"], "did you mean 'report'?"),
        (
            ["airport.slog", "--input", "pc_alarm=x.csv"],
            "the program has no input 'pc_alarm'",
        ),
        (["airport.slog", "--input", "report=x.csv"], "there is no file 'x.csv' for `report`"),
        (
            ["airport.slog", "--input", "report=airport.slog"],
            "what kind of file is 'airport.slog'?",
        ),
        (["airport.slog", "--input", "report=data/zone.csv"], "has no column `T`"),
        (["airport.slog", "--output", "zone=x.csv"], "the program has no output 'zone'"),
        (
            ["airport.slog", "--output", "pc_alarm=no/x.csv"],
            "cannot be written: there is no folder 'no'",
        ),
        (["airport.slog", "--engine", "abacus"], "'abacus' is not"),
        (["airport.slog", "--every", "0"], "0 is not in the range"),
        (["airport.slog", "--checkpoint", "st"], "--checkpoint needs --output pc_alarm=PATH"),
    ],
)
def test_misuse(run, airport, args: list[str], message: str) -> None:
    result = run("run", *args)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_paths_of_the_program_stay_below_it(run, write, tmp_path: Path) -> None:
    write("data.csv", "T\n1\n")
    write("sub/a.slog", 'stream s(T: int) from "../data.csv".\noutput p.\np(T) <- s(T).')
    result = run("run", "sub/a.slog")
    assert result.exit_code == 2
    assert "lies outside the folder of this program" in result.stderr


def test_an_evaluation_that_cannot_go_on(run, write) -> None:
    write("a.slog", "output p.\np(T, Y) <- s(T, X), Y = 1 // X.\ns(1, 0).")
    result = run("run", "a.slog")
    assert result.exit_code == 1
    assert "internal error" not in result.stderr


def test_control_characters_do_not_reach_the_terminal(run, write) -> None:
    write("a.slog", "stream s(T: int, x: string).\noutput p.\np(T, X) <- s(T, X).")
    write("s.csv", "T,x\n1,\x1b[31mred\n\x1b[2J,bad\n")
    result = run("run", "a.slog", "--input", "s=s.csv")
    assert "\x1b" not in result.stdout + result.stderr


# ------------------------------------------------------------------------------ checkpoints


def test_a_finished_run_has_nothing_to_add(run, airport, tmp_path: Path) -> None:
    args = ("run", "airport.slog", "--checkpoint", "state", "--output", "pc_alarm=out.csv")
    assert run(*args).exit_code == 0
    before = (tmp_path / "out.csv").read_bytes()
    again = run(*args)
    assert again.exit_code == 0
    assert "has finished: there is nothing to do" in again.stderr
    assert (tmp_path / "out.csv").read_bytes() == before


def test_other_files_do_not_fit_a_checkpoint(run, airport) -> None:
    args = ("run", "airport.slog", "--checkpoint", "state", "--format", "csv")
    assert run(*args).exit_code == 0
    result = run(*args, "--output", "pc_alarm=out.csv")
    assert result.exit_code == 2
    assert "was made with other outputs" in " ".join(result.stderr.split())


def test_another_program_does_not_fit_a_checkpoint(run, airport, write) -> None:
    args = ("run", "airport.slog", "--checkpoint", "state", "--format", "csv")
    assert run(*args).exit_code == 0
    write("airport.slog", PROGRAM.replace("5min", "6min"))
    result = run(*args)
    assert result.exit_code == 2
    assert "is of another program" in result.stderr


KILLS = int(os.environ.get("STREAMLOG_KILLS", "3"))  # 20 in the nightly run


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_killed_at_any_moment_it_goes_on(airport, write, tmp_path: Path, suffix: str) -> None:
    """Kill -9 at random moments; the outputs together are those of an undisturbed run."""
    rng = random.Random(7)
    write("data/zone.csv", "area,z\n" + "".join(f"g{i},{i}\n" for i in range(50)))
    # Out of order by up to a second less than the slack, with repetitions and bad rows.
    times = sorted(rng.randrange(4_000) for _ in range(12_000))
    pre = [f"{(1794729600 + t - rng.randrange(9)) * 10**6},g{rng.randrange(50)}" for t in times]
    pre[500:500] = ["soon,g1"] * 20
    write("data/pre.csv", "T,area\n" + "\n".join(pre) + "\n")
    times = sorted(rng.randrange(4_000) for _ in range(2_000))
    write(
        "data/report.jsonl",
        "".join(
            json.dumps({"T": (1794729600 + t) * 10**6, "area": f"g{rng.randrange(50)}"}) + "\n"
            for t in times
        ),
    )

    def start(name: str, *more: str) -> subprocess.Popen[bytes]:
        command = [
            *(sys.executable, "-m", "streamlog.app.cli", "run", "airport.slog", "--every", "500"),
            *("--output", f"pc_alarm={name}.{suffix}", "--rejects", f"{name}-rejects.csv", *more),
        ]
        return subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    began = time.monotonic()
    whole = start("whole", "--checkpoint", "whole-state")
    _, told = whole.communicate()
    assert whole.returncode == 0, told.decode()
    seconds = time.monotonic() - began
    kills = rounds = 0
    while kills < KILLS or not rounds:
        rounds += 1
        name, going_on = f"cut{rounds}", True
        while going_on:
            process = start(name, "--checkpoint", f"{name}-state")
            # The last run of all is left alone.
            patience = rng.uniform(0.2, 1.0) * seconds if kills < KILLS else None
            try:
                _, told = process.communicate(timeout=patience)
                assert process.returncode == 0, told.decode()
                going_on = False
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
        rejects = (tmp_path / f"{name}-rejects.csv").read_text()
        assert rejects == (tmp_path / "whole-rejects.csv").read_text()
        assert rejects.count("\n") == 21
        assert rows(tmp_path / f"{name}.{suffix}") == rows(tmp_path / f"whole.{suffix}")


def rows(path: Path) -> list[object]:
    """Sorted, repetitions kept: nothing may be there twice."""
    if path.suffix == ".parquet":
        return sorted(zip(*pq.read_table(path).to_pydict().values(), strict=True))
    return sorted(path.read_text().splitlines())


def test_the_row_that_makes_a_rule_fail(run, write) -> None:
    path = write(
        "share.slog", "stream s(T: int, x: int, y: int).\noutput p.\np(T, X // Y) <- s(T, X, Y).\n"
    )
    rows = write("s.csv", "T,x,y\n1,4,2\nsoon,1,1\n2,4,0\n")
    result = run("run", "--engine", "local", str(path), "--input", f"s={rows}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "p(T, X // Y) <- s(T, X, Y). (with T = 2, X = 4, Y = 0)\n" in result.stderr
    assert f"streamlog: `s` is row 3 of '{rows}'\n" in result.stderr
