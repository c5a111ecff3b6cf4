"""What a streaming run leaves behind after each micro-batch, whole or not at all.

    DIR/run.json             what it is of
        batches/17/          Parquet: all new rows and states of batch 17, by shelf
        merged/17-rows p/    rows of several batches, put together so that files stay few
        commits/17.json      progress, figures, and which folders hold what is still needed
        spark/               Structured Streaming's own

A batch counts when its commit is there. A commit names the folders of each shelf with the latest
time in each, so forgetting is the deletion of folders, and a shelf is read from few of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from attrs import asdict, frozen
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Compilation
from streamlog.runtime.checkpoint import CheckpointError, fingerprint
from streamlog.spark import wire
from streamlog.spark.files import Files

SHELF = "shelf"  # the column that rows are filed by
FORMAT, VERSION = "streamlog run", 3
# For a number of kernels, what else a run's state is laid out by, as JSON.
Layout: TypeAlias = Callable[[int], Any]
# So many folders a shelf may be in before they are put together.
_FOLDERS = 8


@frozen
class Folder:
    """Rows of one shelf."""

    path: str  # below the checkpoint
    rows: int
    latest: int | None  # the latest time; None: rows without one, which stay


@frozen
class Commit:
    """Where a run stands after a batch."""

    batch: int
    clocks: Mapping[str, tuple[int, int, int, bool]]  # progress, seen, reached, ended
    spoken_of: int
    figures: Mapping[str, Any]
    folders: Mapping[str, tuple[Folder, ...]]  # by shelf
    types: Mapping[str, tuple[str, ...]]

    def to_json(self) -> str:
        body = asdict(self)
        text = json.dumps(body, sort_keys=True)
        checksum = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps(
            {"format": FORMAT, "version": VERSION, "sha256": checksum, "body": body}, indent=1
        )

    @staticmethod
    def from_json(text: str, where: str) -> Commit:
        body = _body(text, where)
        folders = {
            table: tuple(Folder(**f) for f in found) for table, found in body["folders"].items()
        }
        clocks = {s: tuple(c) for s, c in body["clocks"].items()}
        types = {p: tuple(t) for p, t in body["types"].items()}
        return Commit(**{**body, "folders": folders, "clocks": clocks, "types": types})


def _body(text: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise CheckpointError(f"'{where}' is damaged: it is no JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckpointError(f"'{where}' is nothing of a streamlog run")
    if document.get("version") != VERSION:
        raise CheckpointError(
            f"'{where}' has version {document.get('version')}; this streamlog reads {VERSION}"
        )
    body = document.get("body")
    text = json.dumps(body, sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != document.get("sha256"):
        raise CheckpointError(f"'{where}' is damaged: its checksum is wrong")
    assert isinstance(body, dict)
    return body


def _place(batch: int, shelf: str) -> str:
    return f"batches/{batch}/{SHELF}={shelf}"


class Store:
    """The checkpoint folder of a streaming run."""

    def __init__(
        self,
        spark: SparkSession,
        folder: str,
        program: Compilation,
        layout: Layout,
        kernels: int,
    ) -> None:
        """`kernels` is for a new run."""
        self.spark, self.files = spark, Files(spark, folder)
        self.kernels = self._claim(program, layout, kernels)
        self.last = self._newest()

    def _claim(self, program: Compilation, layout: Layout, kernels: int) -> int:
        """The folder is this program's: as its first run wrote it down, or from now on. Returns
        how many kernels it has: each has its own state, so a run keeps the number."""
        found = self.files.read("run.json")
        if found is None:
            mine = layout(kernels)
            body = {"program": fingerprint(program), "kernels": kernels, "layout": mine}
            text = json.dumps(body, sort_keys=True)
            checksum = hashlib.sha256(text.encode()).hexdigest()
            document = {"format": FORMAT, "version": VERSION, "sha256": checksum, "body": body}
            self.files.write("run.json", json.dumps(document))
            return kernels
        known = _body(found, "run.json")
        if known["program"] != fingerprint(program):
            raise CheckpointError(
                f"'{self.files.root}' is of another program, or of an older form of this one; "
                "start the changed program with a new folder"
            )
        number: int = known["kernels"]
        if known["layout"] != layout(number):
            raise CheckpointError(
                f"'{self.files.root}' was begun with another strategy, or by another streamlog; "
                "go on with the same, or start with a new folder"
            )
        return number

    def _newest(self) -> Commit | None:
        found = [int(n.removesuffix(".json")) for n in self.files.names("commits")]
        if not found:
            return None
        name = f"commits/{max(found)}.json"
        return Commit.from_json(self.files.read(name) or "", name)

    # -------------------------------------------------------------------------- reading

    def table(self, shelf: str, width: int) -> DataFrame | None:
        """What is still needed of a shelf."""
        folders = self.last.folders.get(shelf, ()) if self.last else ()
        return self._read([f.path for f in folders], width) if folders else None

    def written(self, batch: int, shelf: str, width: int) -> DataFrame:
        """What a batch that does not count yet has put on a shelf."""
        return self._read([_place(batch, shelf)], width)

    def _read(self, paths: Iterable[str], width: int) -> DataFrame:
        places = [self.files.path(path) for path in paths]
        return self.spark.read.schema(wire.schema(width)).parquet(*places)

    # -------------------------------------------------------------------------- writing

    def path_of(self, batch: int) -> str:
        return self.files.path(f"batches/{batch}")

    def folder(self, batch: int, shelf: str, rows: int, latest: int | None) -> Folder:
        return Folder(_place(batch, shelf), rows, latest)

    def compact(
        self,
        batch: int,
        shelf: str,
        folders: tuple[Folder, ...],
        width: int,
        needed: Callable[[DataFrame], DataFrame],
    ) -> tuple[Folder, ...]:
        """Few folders of a shelf: the newest are put together while they are not much smaller
        than those before them, so that a row is copied a few times only; and of these rows only
        what is `needed`."""
        if len(folders) <= _FOLDERS:
            return folders
        start = next(
            i for i, f in enumerate(folders) if f.rows <= 4 * sum(g.rows for g in folders[i + 1 :])
        )
        merged = folders[start:]
        rows = needed(self._read([f.path for f in merged], width))
        path = f"merged/{batch}-{shelf}"
        counting = Observation()
        rows = rows.coalesce(1).observe(counting, F.count(F.lit(1)).alias("rows"))
        rows.write.mode("overwrite").parquet(self.files.path(path))
        latest = [f.latest for f in merged if f.latest is not None]
        together = Folder(path, int(counting.get["rows"]), max(latest) if latest else None)
        return (*folders[:start], together)

    def commit(self, commit: Commit) -> None:
        """From now on the batch counts. What only earlier ones needed goes."""
        self.files.write(f"commits/{commit.batch}.json", commit.to_json())
        self.last = commit
        needed = {f.path for folders in commit.folders.values() for f in folders}
        for name in self.files.names("batches"):
            whole = f"batches/{name}"
            if not any(path.startswith(f"{whole}/") for path in needed):
                self.files.delete(whole)
        for name in self.files.names("merged"):
            if f"merged/{name}" not in needed:
                self.files.delete(f"merged/{name}")
        for name in self.files.names("commits"):
            if int(name.removesuffix(".json")) < commit.batch - 1:
                self.files.delete(f"commits/{name}")
