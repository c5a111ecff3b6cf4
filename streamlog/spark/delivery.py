"""New answers to their sinks, and what has been left in folders: a start looks whether it is there.

An answer in a folder is there exactly once, so the folder belongs to the run: files that another
run has left, or that somebody has taken away, would make a wrong whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import evolve, frozen
from pyspark.sql import DataFrame, SparkSession

from streamlog.runtime.data_files import PARQUET
from streamlog.runtime.envelope import CheckpointError
from streamlog.spark.files import Files
from streamlog.spark.sinks import Names, Types, shown, write
from streamlog.spark.tables import check_batches, clear, is_table
from streamlog.spark.topics import SCHEME

# A folder, or what is to be done with the new answers of a batch, given its number.
Take = Callable[[DataFrame, int], None]
# So many of the last batches are known by their sizes, the earlier ones by their number.
_RECENT = 100
_NONE: Mapping[str, Sequence[str]] = MappingProxyType({})


@frozen
class Relations:
    """A sink that takes relations as they are stored: c0, c1, …"""

    take: Take


Sink: TypeAlias = str | Take | Relations


@frozen
class Delivered:
    """What an output's folder has."""

    place: str
    earlier: int  # batches before those of `recent`
    recent: tuple[tuple[int, int], ...]  # batch and bytes

    @staticmethod
    def of(body: Mapping[str, Any]) -> Delivered:
        recent = tuple((batch, size) for batch, size in body["recent"])
        return Delivered(body["place"], body["earlier"], recent)

    def also(self, batch: int, size: int) -> Delivered:
        recent = (*self.recent, (batch, size))
        over = len(recent) - _RECENT
        if over > 0:
            return evolve(self, earlier=self.earlier + over, recent=recent[over:])
        return evolve(self, recent=recent)


class Delivery:
    """The sinks of a run."""

    def __init__(
        self,
        spark: SparkSession,
        sinks: Mapping[str, Sink],
        partitions: Mapping[str, Sequence[str]] = _NONE,
    ) -> None:
        """`partitions`: the columns by which an output's folder is partitioned."""
        self.sinks, self._partitions = sinks, partitions
        self._folders = {
            name: Files(spark, sink)
            for name, sink in sinks.items()
            if isinstance(sink, str) and not (sink.startswith(SCHEME) or is_table(sink))
        }
        self._spark = spark
        self._tables = {
            name: sink for name, sink in sinks.items() if isinstance(sink, str) and is_table(sink)
        }
        self._first = 0  # the batch that an earlier start may have tried
        self.delivered: dict[str, Delivered] = {
            name: Delivered(files.path(""), 0, ()) for name, files in self._folders.items()
        }

    def deliver(self, name: str, rows: DataFrame, names: Names, types: Types, batch: int) -> None:
        """New answers (a relation) to a sink, which overwrites what it has of this batch."""
        sink = self.sinks[name]
        if isinstance(sink, Relations):
            sink.take(rows, batch)
        elif callable(sink):
            sink(shown(rows, names, types), batch)
        else:
            kind = None if name in self._tables or Path(sink).suffix else PARQUET
            by = self._partitions.get(name, ())
            write(rows, names, types, sink, kind, batch, by)
            if name in self._folders:
                size = self._folders[name].size(_folder(batch))
                assert size is not None
                self.delivered[name] = self.delivered[name].also(batch, size)

    def nothing(self, name: str, batch: int) -> None:
        """A batch without answers; an attempt before a crash may have had some."""
        if name in self._folders:
            self._folders[name].delete(_folder(batch))
        if name in self._tables and batch == self._first:
            clear(self._spark, self._tables[name], batch)

    # ------------------------------------------------------------------------- at a start

    def begin(self, *, again: bool) -> None:
        """No batch counts yet; `again`: the first may have been tried."""
        for files in self._folders.values():
            _no_others(files, 0 if again else -1)
        for address in self._tables.values():
            check_batches(self._spark, address, 0 if again else -1)

    def go_on(self, known: Mapping[str, Delivered], batch: int) -> None:
        """Look whether what was delivered up to a batch is there, and nothing else."""
        for name, had in known.items():
            files = self._folders.get(name)
            if files is None or files.path("") != had.place:
                given = "not to a folder" if files is None else f"to '{files.root}'"
                raise CheckpointError(
                    f"the answers of `{name}` went to '{had.place}', and now {given}: "
                    "go on with the same, or start from the beginning with a new checkpoint"
                )
            problem = _problem(files, had, batch)
            if problem is not None:
                raise CheckpointError(
                    f"the answers of `{name}` are not as they were left: {problem}; "
                    "put them back, or start from the beginning with a new checkpoint and a new "
                    "folder for the answers"
                )
            _no_others(files, batch + 1)
            self.delivered[name] = had
        for name, files in self._folders.items():
            if name not in known:
                _no_others(files, -1)
        for address in self._tables.values():
            check_batches(self._spark, address, batch + 1)
        self._first = batch + 1


def _folder(batch: int) -> str:
    return f"batch={batch}"


def _batches(files: Files) -> list[int]:
    found = (n.removeprefix("batch=") for n in files.names("") if n.startswith("batch="))
    return sorted(int(n) for n in found if n.isdecimal())


def _problem(files: Files, had: Delivered, last: int) -> str | None:
    for batch, size in had.recent:
        name = f"{files.root.rstrip('/')}/{_folder(batch)}"
        found = files.size(_folder(batch))
        if found is None:
            return f"'{name}' is missing"
        if found != size:
            return f"'{name}' has {found:,} bytes, and had {size:,}"
    first = had.recent[0][0] if had.recent else last + 1
    earlier = sum(1 for batch in _batches(files) if batch < first)
    if earlier != had.earlier:
        return (
            f"'{files.root}' has {earlier:,} batches before {_folder(first)}, and had "
            f"{had.earlier:,}"
        )
    return None


def _no_others(files: Files, last: int) -> None:
    """Only batches up to the last can be of this run."""
    others = [batch for batch in _batches(files) if batch > last]
    if others:
        raise CheckpointError(
            f"'{files.root}' has answers that are not of this run: '{_folder(others[0])}'; "
            "give a new folder, or delete them"
        )
