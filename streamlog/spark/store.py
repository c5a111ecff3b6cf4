"""What a streaming run leaves behind after each micro-batch, whole or not at all.

    DIR/run.json             what it is of
        batches/17/          Parquet: all new rows and states of batch 17, by table
        merged/17-rows p/    rows of several batches, put together so that files stay few
        commits/17.json      progress, figures, and which folders hold what is still needed
        spark/               Structured Streaming's own

A batch counts when its commit is there. A commit names the folders of each table with the latest
time in each, so forgetting is the deletion of folders, and a table is read from few of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Compilation
from streamlog.runtime.checkpoint import CheckpointError, fingerprint
from streamlog.spark import wire
from streamlog.spark.files import Files

FORMAT, VERSION = "streamlog run", 1
# So many folders a table may be in before they are put together.
_FOLDERS = 8


@frozen
class Folder:
    """Rows of one table."""

    path: str  # below the checkpoint
    rows: int
    latest: int | None  # the latest first value; None: rows of tables, which stay


@frozen
class Commit:
    """Where a run stands after a batch."""

    batch: int
    clocks: Mapping[str, tuple[int, int, int, bool]]  # progress, seen, reached, ended
    spoken_of: int
    figures: Mapping[str, Any]
    folders: Mapping[str, tuple[Folder, ...]]  # by table
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


class Store:
    """The checkpoint folder of a streaming run."""

    def __init__(self, spark: SparkSession, folder: str, program: Compilation) -> None:
        self.spark, self.files = spark, Files(spark, folder)
        self._claim(program)
        self.last = self._newest()

    def _claim(self, program: Compilation) -> None:
        """The folder is this program's: as its first run wrote it down, or from now on."""
        found = self.files.read("run.json")
        if found is None:
            body = {"program": fingerprint(program)}
            text = json.dumps(body, sort_keys=True)
            checksum = hashlib.sha256(text.encode()).hexdigest()
            document = {"format": FORMAT, "version": VERSION, "sha256": checksum, "body": body}
            self.files.write("run.json", json.dumps(document))
        elif _body(found, "run.json")["program"] != fingerprint(program):
            raise CheckpointError(
                f"'{self.files.root}' is of another program, or of an older form of this one; "
                "start the changed program with a new folder"
            )

    def _newest(self) -> Commit | None:
        found = [int(n.removesuffix(".json")) for n in self.files.names("commits")]
        if not found:
            return None
        name = f"commits/{max(found)}.json"
        return Commit.from_json(self.files.read(name) or "", name)

    # -------------------------------------------------------------------------- reading

    def table(self, table: str, width: int) -> DataFrame | None:
        """What is still needed of a table."""
        folders = self.last.folders.get(table, ()) if self.last else ()
        return self._read(folders, table, width)

    def _read(self, folders: Iterable[Folder], table: str, width: int) -> DataFrame | None:
        paths = [self.files.path(f.path) for f in folders]
        if not paths:
            return None
        fields = [f for f in wire.schema(width).fields if f.name != wire.TABLE]
        rows = self.spark.read.schema(type(wire.schema(width))(fields)).parquet(*paths)
        return rows.withColumn(wire.TABLE, F.lit(table))

    def tables(self, start: str) -> list[str]:
        return [t for t in self.last.folders if t.startswith(start)] if self.last else []

    # -------------------------------------------------------------------------- writing

    def path_of(self, batch: int) -> str:
        return self.files.path(f"batches/{batch}")

    def folder(self, batch: int, table: str, rows: int, latest: int | None) -> Folder:
        return Folder(f"batches/{batch}/{wire.TABLE}={table}", rows, latest)

    def compact(
        self, batch: int, table: str, folders: tuple[Folder, ...], width: int, since: int | None
    ) -> tuple[Folder, ...]:
        """Few folders of a table: the newest are put together while they are not much smaller
        than those before them, so that a row is copied a few times only."""
        if len(folders) <= _FOLDERS:
            return folders
        start = next(
            i for i, f in enumerate(folders) if f.rows <= 4 * sum(g.rows for g in folders[i + 1 :])
        )
        merged = folders[start:]
        rows = self._read(merged, table, width)
        assert rows is not None
        if since is not None:
            rows = rows.where(F.col("i0") >= since)
        path = f"merged/{batch}-{table}"
        rows.drop(wire.TABLE).coalesce(1).write.mode("overwrite").parquet(self.files.path(path))
        latest = [f.latest for f in merged if f.latest is not None]
        together = Folder(path, sum(f.rows for f in merged), max(latest) if latest else None)
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
