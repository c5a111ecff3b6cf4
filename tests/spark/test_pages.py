"""Pages with Python or with Spark in them: every block prints what the page says.

All in the one session of these tests. Only what a page kills itself (demos/03_crash) has Java
processes of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pages import PAGES, ROOT, needs_spark, replay
from pyspark.sql import SparkSession


def alarms(spark: SparkSession, folder: Path) -> None:
    """A program and two folders of Parquet, of which the page only speaks."""
    demo = ROOT / "demos" / "01_first_alarm"
    shutil.copy(demo / "alarm.slog", folder)
    for name, target in (("pre_alarm", "pre"), ("report", "report")):
        rows = spark.read.option("header", True).csv(str(demo / f"{name}.csv"))
        rows.write.parquet(str(folder / target))


@contextmanager
def working_in(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Relative paths count from there for Spark too, as if it had been started there."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    system = hadoop.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
    before = system.getWorkingDirectory()
    system.setWorkingDirectory(hadoop.Path(str(folder)))
    try:
        yield
    finally:
        system.setWorkingDirectory(before)


GIVEN: dict[str, Callable[[SparkSession, Path], None]] = {"docs/operations.md": alarms}


@pytest.mark.parametrize(
    "page", [p for p in PAGES if needs_spark(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_page(
    page: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = GIVEN.get(str(page.relative_to(ROOT)))
    if given is not None:
        given(spark, tmp_path)
    with working_in(spark, tmp_path):
        replay(page, tmp_path, monkeypatch)
