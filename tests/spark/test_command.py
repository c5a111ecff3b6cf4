"""`streamlog run` on Spark."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from streamlog.app.cli import main

DEMO = Path(__file__).parents[2] / "demos" / "01_first_alarm" / "alarm.slog"


def run(*args: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["run", *map(str, args), "--engine", "spark"])
    return result.exit_code, result.stdout, result.stderr


def test_the_first_demo() -> None:
    code, out, err = run(DEMO)
    assert code == 0
    assert out.startswith("pc_alarm: 5 answers\n")
    assert "2026-11-15T08:12:00Z   hall A\n" in out
    assert "rejected pre_alarm: column `T`: 'soon' is no time\n" in err
    assert "Spark: " in err and " jobs" in err


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
