"""Topics as inputs and outputs, against a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from broker import PARTS, Broker, jars
from click.testing import CliRunner
from pyspark.sql import SparkSession
from standalone import streamlog

from streamlog.app.cli import main
from streamlog.runtime.sources import SourceError
from streamlog.spark.session import TINY
from streamlog.spark.topics import CONNECTOR, Topic

ALARM = """
stream pre_alarm(T: time, area: string) slack 10s.
stream report(T: time, area: string) slack 10s.
output pc_alarm.
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""
AGAIN = """
stream alarm(T: time, A: string).
output again.
again(T, A) <- alarm(T, A).
"""
LONG = 180  # seconds


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("kafka")).running() as running:
        yield running


def test_from_topics_to_a_topic_and_back(broker: Broker, tmp_path: Path) -> None:
    files = ",".join(map(str, jars("kafka-connector", PARTS, alone=True)))
    conf = [f"--conf={key}={value}" for key, value in {**TINY, "spark.jars": files}.items()]
    spark = ("--engine", "spark", "--master", "local[2]", *conf)
    broker.produce(
        "pre",
        [
            '{"T": "2026-11-15T08:00:00Z", "area": "gate 1"}',
            '{"area": "gate 2", "T": "2026-11-15T08:01:00Z"}',
            "no JSON",
        ],
    )
    broker.produce("report", ['{"T": "2026-11-15T08:03:00Z", "area": "gate 1"}'])
    (tmp_path / "alarm.slog").write_text(ALARM)
    (tmp_path / "again.slog").write_text(AGAIN)
    topic = f"kafka://{broker.address}"
    done = streamlog(
        *("run", tmp_path / "alarm.slog", *spark),
        *("--input", f"pre_alarm={topic}/pre", "--input", f"report={topic}/report"),
        *("--output", f"pc_alarm={topic}/alarms", "--checkpoint", tmp_path / "state"),
        timeout=LONG,
    )
    assert done.returncode == 0, done.stderr
    assert "pre_alarm      3      0          1" in done.stderr
    done = streamlog(
        *("run", tmp_path / "again.slog", *spark, "--input", f"alarm={topic}/alarms"),
        *("--output", f"again={tmp_path / 'again.csv'}"),
        timeout=LONG,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.csv").read_text() == "T,A\n2026-11-15T08:01:00Z,gate 2\n"


def test_without_the_connector(spark: SparkSession, tmp_path: Path) -> None:
    """The session of the tests has none, and is taken as it is."""
    program = tmp_path / "again.slog"
    program.write_text(AGAIN)
    for more in ([], ["--checkpoint", str(tmp_path / "state")]):
        args = [str(program), "--engine", "spark", "--input", "alarm=kafka://127.0.0.1:1/alarms"]
        args += ["--output", f"again={tmp_path / 'out'}.csv", *more]
        result = CliRunner().invoke(main, ["run", *args])
        assert result.exit_code == 2, result.output
        assert f"no connector to Kafka: start it with --packages {CONNECTOR}" in result.stderr


def test_what_an_address_says() -> None:
    found = Topic.of("kafka://a:1,b:2/t?startingOffsets=latest&kafka.security.protocol=SSL")
    assert found.name == "t"
    assert found.options == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "startingOffsets": "latest",
        "kafka.security.protocol": "SSL",
    }
    with pytest.raises(SourceError, match=r"not 'kafka://a:1\?…'$"):
        Topic.of("kafka://a:1?kafka.ssl.key.password=hunter2")
