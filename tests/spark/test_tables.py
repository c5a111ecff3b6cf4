"""Tables of PostgreSQL and of Delta Lake, the real ones, as inputs and outputs.

A session gets its packages when it starts, so these tests have a process of their own:
`pytest -n 0 -m tables tests/spark/test_tables.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from broker import jars
from click.testing import CliRunner, Result
from database import PASSWORD, Database, database
from pyspark.sql import SparkSession

from streamlog.app.cli import main
from streamlog.runtime.envelope import CheckpointError
from streamlog.runtime.sources import SourceError
from streamlog.spark.session import TINY, session
from streamlog.spark.tables import CONNECTORS, check_batches, clear, put, rows_of

pytestmark = pytest.mark.tables

# Delta's own dependencies are Spark's, apart from its storage.
DELTA = (CONNECTORS[0].package, "io.delta:delta-storage:4.2.0")
POSTGRES = (CONNECTORS[1].package,)

PROGRAM = """
stream pass(T: time, who: string).
table staff(who: string, floor: int, since: time, break: duration).
output seen(T, who, floor, for, break).
seen(T, W, F, T - S, B) <- pass(T, W), staff(W, F, S, B).
"""
STAFF = """
CREATE TABLE staff (floor int, who varchar(20), since timestamp, break bigint, more text);
INSERT INTO staff VALUES (3, 'ann', '2026-11-15 07:00', 60000000, ''),
                         (4, 'bob', '2026-11-15 07:30', 1, NULL), (5, NULL, now(), 0, '');
"""
PASSES = "T,who\n2026-11-15T08:00:00Z,ann\n2026-11-15T08:01:00Z,bob\n"
SEEN = [
    "2026-11-15 08:00:00+00|ann|3|3600000000|60000000",
    "2026-11-15 08:01:00+00|bob|4|1860000000|1",
]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    files = [*jars("delta-4.2.0", DELTA, alone=True), *jars("postgresql", POSTGRES, alone=True)]
    zone = {"spark.driver.extraJavaOptions": "-Xss16m -Duser.timezone=America/New_York"}
    settings = {**TINY, **CONNECTORS[0].settings, "spark.driver.memory": "2g", **zone}
    made = session("local[2]", {**settings, "spark.jars": ",".join(map(str, files))})
    yield made
    made.stop()


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    with database() as running:
        running.query(STAFF)
        yield running


def run(folder: Path, *args: object) -> Result:
    program = folder / "p.slog"
    program.write_text(PROGRAM.replace("for", "stayed").replace("break", "pause"))
    result = CliRunner().invoke(main, ["run", str(program), "--engine", "spark", *map(str, args)])
    assert PASSWORD not in result.output
    return result


def test_from_tables_to_a_table(spark: SparkSession, server: Database, tmp_path: Path) -> None:
    server.query("ALTER TABLE staff RENAME break TO pause")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text(PASSES)
    args = ["--input", f"pass={tmp_path / 'in'}", "--input", f"staff={server.table('staff')}"]
    for _ in range(2):  # what is there is replaced
        result = run(tmp_path, *args, "--output", f"seen={server.table('seen')}")
        assert result.exit_code == 0, result.output
        assert server.query('SELECT * FROM seen ORDER BY "T"') == SEEN
    assert "rejected staff: column `who`: a value is missing" in result.stderr
    more = ["--output", f"seen={server.table('live')}", "--checkpoint", tmp_path / "st"]
    assert run(tmp_path, *args, *more).exit_code == 0
    wanted = [f"{line}|0" for line in SEEN]
    assert server.query('SELECT * FROM live ORDER BY "T"') == wanted
    other = run(tmp_path, *args, *more[:2], "--checkpoint", tmp_path / "other")
    assert "has answers that are not of this run: those of batch 0" in other.stderr
    assert server.query("SELECT count(*) FROM live") == ["2"]


def test_what_a_database_refuses(spark: SparkSession, server: Database, tmp_path: Path) -> None:
    (tmp_path / "pass.csv").write_text(PASSES)
    given = ("--input", f"pass={tmp_path / 'pass.csv'}", "--format", "csv", "--input")
    for address, message in [
        (server.table("gone"), 'relation "gone" does not exist'),
        (f"{server.address}?table=staff&user=app&password=hunter2", "password authentication fail"),
        (server.address, "is written jdbc:…?table=name"),
    ]:
        result = run(tmp_path, *given, f"staff={address}")
        assert result.exit_code == 2, result.output
        assert message in result.stderr
        assert "hunter2" not in result.output
    stream = ("--input", f"pass={server.table('staff')}", "--empty", "staff", "--format", "csv")
    assert "cannot be followed" in run(tmp_path, *stream, "--follow").stderr
    local = run(tmp_path, *stream, "--engine", "local")
    assert "jdbc:postgresql" in local.stderr and "is for --engine spark" in local.stderr


@pytest.mark.parametrize("kind", ["delta", "jdbc"])
def test_a_batch_is_there_once(
    spark: SparkSession, server: Database, tmp_path: Path, kind: str
) -> None:
    address = server.table("batches") if kind == "jdbc" else f"delta:{tmp_path / 'd'}"
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "T long, x string")

    def found() -> list[tuple[object, ...]]:
        return sorted(map(tuple, rows_of(spark, address, stream=False).collect()))

    clear(spark, address, 0)
    check_batches(spark, address, -1)
    put(rows, address, 0)
    put(rows.where("T = 1"), address, 0)  # again, with other rows
    assert found() == [(1, "a", 0)]
    put(rows, address, 1)
    check_batches(spark, address, 1)
    with pytest.raises(CheckpointError, match="those of batch 1; give a new table"):
        check_batches(spark, address, 0)
    clear(spark, address, 1)
    assert found() == [(1, "a", 0)]
    with pytest.raises(SourceError, match="is an output of micro-batches, so complete data cannot"):
        put(rows, address, None)
    address = server.table("complete") if kind == "jdbc" else f"delta:{tmp_path / 'c'}"
    for _ in range(2):
        put(rows, address, None)
        assert found() == [(1, "a"), (2, "b")]
    with pytest.raises(SourceError, match="it has no column `batch`"):
        check_batches(spark, address, 0)
    named = rows.withColumnRenamed("x", "Batch")
    with pytest.raises(SourceError, match="has a column `batch` for the number"):
        put(named, address, 2)


def test_delta_from_stream_to_stream(spark: SparkSession, tmp_path: Path) -> None:
    staff = "VALUES ('ann', 3, TIMESTAMP '2026-11-15T07:00:00Z', 60000000L)"
    staff += " AS t(who, floor, since, pause)"
    spark.sql(f"SELECT * FROM {staff}").write.format("delta").save(str(tmp_path / "staff"))
    passes = "VALUES (TIMESTAMP '2026-11-15T08:00:00Z', 'ann') AS t(T, who)"
    add = spark.sql(f"SELECT * FROM {passes}").write.format("delta").mode("append")
    add.save(str(tmp_path / "pass"))
    args = ["--input", f"pass=delta:{tmp_path / 'pass'}"]
    args += ["--input", f"staff=delta:{tmp_path / 'staff'}"]
    result = run(tmp_path, *args, "--format", "csv")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (
        0,
        ["2026-11-15T08:00:00Z,ann,3,1h,1min"],
    ), result.output
    result = run(tmp_path, *args, "--output", f"seen=delta:{tmp_path / 'all'}")
    assert result.exit_code == 0, result.output
    more = ["--output", f"seen=delta:{tmp_path / 'out'}", "--checkpoint", tmp_path / "st"]
    result = run(tmp_path, *args, *more)
    assert result.exit_code == 0, result.output
    for name, width in (("all", 5), ("out", 6)):
        (row,) = rows_of(spark, f"delta:{tmp_path / name}", stream=False).collect()
        assert len(row) == width
        assert tuple(row)[1:4] == ("ann", 3, 3_600_000_000)
        assert (
            spark.read.format("delta")
            .load(str(tmp_path / name))
            .where("T = TIMESTAMP '2026-11-15T08:00:00Z'")
            .count()
            == 1
        )
    missing = run(tmp_path, "--input", f"pass=delta:{tmp_path / 'no'}", *args[2:])
    assert "it is not a Delta table" in missing.stderr
    meeting = run(tmp_path, *args, "--output", f"seen=delta:{tmp_path / 'pass'}")
    assert "where the input of `pass` is read" in meeting.stderr
