"""A standalone master and two workers: the answers are those of the local engine.

The program is demo 01, which runs as SQL, and the shortest paths of `rules/graph`, whose recursion
has a negation and a `min` in it, so that kernels do it inside tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from standalone import cluster, streamlog, submit

from streamlog.app import submit as entry
from streamlog.app.cli import main
from streamlog.spark.session import TINY

REPO = Path(__file__).parents[2]
DEMO = REPO / "demos" / "01_first_alarm"
PATHS = REPO / "rules" / "graph" / "shortest_paths.slog"
ROADS = "T,a,b,length\n1,a,b,5\n2,b,c,5\n3,a,c,7\n4,a,b,1\n5,c,d,2\n6,d,a,1\n"
OUTPUTS = ("pc_alarm", "distance")
SETTINGS = {
    **TINY,
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
CONF = [text for key, value in SETTINGS.items() for text in ("--conf", f"{key}={value}")]
LONG = 180  # seconds


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """The program and its inputs, a folder each."""
    program = tmp_path / "both.slog"
    program.write_text((DEMO / "alarm.slog").read_text() + PATHS.read_text())
    # One row of the demo is late in the local engine alone.
    pre_alarm = (DEMO / "pre_alarm.csv").read_text().splitlines(keepends=True)
    texts = {
        "pre_alarm": "".join(line for line in pre_alarm if "07:59" not in line),
        "report": (DEMO / "report.csv").read_text(),
        "road": ROADS,
    }
    args = [str(program), "--engine", "spark"]
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text(text)
        args += ["--input", f"{name}={tmp_path / name}"]
    return args


def outputs(folder: Path) -> list[str]:
    return [text for n in OUTPUTS for text in ("--output", f"{n}={folder / n}.jsonl")]


def written(folder: Path) -> dict[str, list[str]]:
    found = {}
    for name in OUTPUTS:
        out = folder / f"{name}.jsonl"
        files = out.rglob("*.jsonl") if out.is_dir() else [out]
        found[name] = sorted(x for f in files for x in f.read_text().splitlines())
    return found


def local(given: list[str], folder: Path) -> dict[str, list[str]]:
    folder.mkdir()
    args = [arg if "=" not in arg else f"{arg}/1.csv" for arg in given]
    result = CliRunner().invoke(main, ["run", *args, "--engine", "local", *outputs(folder)])
    assert result.exit_code == 0, result.output
    return written(folder)


def test_spark_submit(master: str, given: list[str], tmp_path: Path) -> None:
    done = submit(
        *("--master", master, *CONF, entry.__file__, "run", *given, *outputs(tmp_path)),
        timeout=LONG,
    )
    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == local(given, tmp_path / "local")
    # Spark's launcher puts standard error into standard output.
    assert "distance        19" in done.stdout and "Spark: " in done.stdout


def test_micro_batches_with_a_master(master: str, given: list[str], tmp_path: Path) -> None:
    done = streamlog(
        *("run", "--master", master, *CONF, *given, *outputs(tmp_path)),
        *("--checkpoint", f"file://{tmp_path / 'state'}"),
        timeout=LONG,
    )
    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == local(given, tmp_path / "local")
    assert "distance        19" in done.stderr


def test_what_spark_submit_has_decided(given: list[str]) -> None:
    done = submit(entry.__file__, "run", *given, "--packages", "a:b:1", timeout=LONG)
    assert done.returncode == 2
    assert "spark-submit has started Spark already; give it spark.jars.packages" in done.stdout
