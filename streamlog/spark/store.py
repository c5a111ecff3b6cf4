"""What a streaming run leaves behind after each micro-batch, whole or not at all.

    DIR/run.json             what it is of
        batches/17/          Parquet: all new rows and states of batch 17, by shelf
        merged/17-rows p/    rows of several batches, put together so that files stay few
        arrived/17/          the rows of batch 17, if they get times of arrival (`stamping`)
        commits/17.json      progress, figures, and which folders hold what is still needed
        pulse/17             asks for one more micro-batch, to see whether streams are silent
        lock                 who works here
        spark/               Structured Streaming's own

A batch counts when its commit is there. A commit names the folders of each shelf with the latest
time in each, so forgetting is the deletion of folders, and a shelf is read from few of them.

What was written at one time has a list of its files beside it, with sizes and checksums
(`_files.json`), and a commit has the lists' own checksums. A start compares everything that is
still needed, and refuses what is not as it was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from attrs import asdict, evolve, field, frozen
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Program
from streamlog.runtime.envelope import (
    CheckpointError,
    body_sha256,
    difference,
    fingerprint,
    opened,
    sealed,
)
from streamlog.spark import wire
from streamlog.spark.delivery import Delivered
from streamlog.spark.files import Files, Print

SHELF = "shelf"  # the column that rows are filed by
PULSE = "pulse"
_LIST = "_files.json"
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
    offsets: tuple[str, ...]  # up to where each of the query's sources has been read
    inputs: Mapping[str, Mapping[str, str]]  # by what they are known again
    delivered: Mapping[str, Delivered]  # by output
    lists: Mapping[str, str] = field(factory=dict)  # of files: their checksums, by folder

    @property
    def has_ended(self) -> bool:
        return all(ended for *_, ended in self.clocks.values())

    def to_json(self) -> str:
        return sealed(asdict(self))

    @staticmethod
    def from_json(text: str, where: str) -> Commit:
        body = opened(text, where)
        folders = {
            table: tuple(Folder(**f) for f in found) for table, found in body["folders"].items()
        }
        read = {
            "folders": folders,
            "clocks": {s: tuple(c) for s, c in body["clocks"].items()},
            "types": {p: tuple(t) for p, t in body["types"].items()},
            "offsets": tuple(body["offsets"]),
            "delivered": {n: Delivered.of(d) for n, d in body["delivered"].items()},
        }
        return Commit(**{**body, **read})


def _place(batch: int, shelf: str) -> str:
    return f"batches/{batch}/{SHELF}={shelf}"


def _whole(path: str) -> str:
    """What was written together with a folder, and has one list."""
    return "/".join(path.split("/")[:2])


def is_new(files: Files) -> bool:
    """Whether no run has ever been in a folder."""
    return not any(files.names(name) for name in ("run.json", "commits", "batches", "spark"))


class Store:
    """The checkpoint folder of a streaming run."""

    def __init__(
        self,
        spark: SparkSession,
        folder: str,
        program: Program,
        layout: Layout,
        kernels: int,
    ) -> None:
        """`kernels` is for a new run."""
        self.spark, self.files = spark, Files(spark, folder)
        self.kernels = self._claim(program, layout, kernels)
        self.last = self._newest()
        self._lists: dict[str, str] = {}
        if self.last is not None:
            self._lists |= self.last.lists
            self._verify(self.last)

    def _claim(self, program: Program, layout: Layout, kernels: int) -> int:
        """The folder is this program's: as its first run wrote it down, or from now on. Returns
        how many kernels it has: each has its own state, so a run keeps the number."""
        found = self.files.read("run.json")
        if found is None:
            if not is_new(self.files):
                raise self.refused("'run.json' is missing")
            mine = layout(kernels)
            body = {"program": fingerprint(program), "kernels": kernels, "layout": mine}
            self.files.write("run.json", sealed(body))
            return kernels
        known = opened(found, "run.json")
        if reason := difference(program, known["program"]):
            raise CheckpointError(
                f"'{self.files.root}' {reason}; start the changed program with a new folder"
            )
        number: int = known["kernels"]
        if known["layout"] != layout(number):
            raise CheckpointError(
                f"'{self.files.root}' was begun with another strategy, or by another streamlog; "
                "go on with the same, or start with a new folder"
            )
        return number

    def _newest(self) -> Commit | None:
        found = self.files.numbers("commits", ".json")
        done = self.files.numbers("spark/commits")  # ours was there before
        if done and (not found or found[-1] < done[-1]):
            raise self.refused(f"'commits/{done[-1]}.json' is missing")
        if not found:
            return None
        name = f"commits/{found[-1]}.json"
        return Commit.from_json(self.files.read(name) or "", name)

    def _verify(self, commit: Commit) -> None:
        """Everything that the next batch may read is as it was written."""
        needed = [f.path for folders in commit.folders.values() for f in folders]
        for whole in dict.fromkeys(map(_whole, needed)):
            name = f"{whole}/{_LIST}"
            text = self.files.read(name)
            if text is None:
                raise self.refused(f"'{name}' is missing")
            known = opened(text, name)
            if body_sha256(known) != commit.lists.get(whole):
                raise self.refused(f"'{name}' is not the one recorded in '{commit.batch}.json'")
            mine = tuple(f"{path}/" for path in needed if _whole(path) == whole)
            for file, print_ in known.items():
                if file.startswith(mine):
                    problem = self.files.problem(file, Print(**print_))
                    if problem is not None:
                        raise self.refused(problem)

    def refused(self, problem: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint '{self.files.root}' is not as it was left: {problem}; "
            "put it back, or start from the beginning with a new folder and new outputs"
        )

    # -------------------------------------------------------------------------- reading

    def table(self, spark: SparkSession, shelf: str, width: int) -> DataFrame | None:
        """What is still needed of a shelf."""
        folders = self.last.folders.get(shelf, ()) if self.last else ()
        return self._read(spark, [f.path for f in folders], width) if folders else None

    def written(self, spark: SparkSession, batch: int, shelf: str, width: int) -> DataFrame:
        """What a batch that does not count yet has put on a shelf."""
        return self._read(spark, [_place(batch, shelf)], width)

    def _read(self, spark: SparkSession, paths: Iterable[str], width: int) -> DataFrame:
        places = [self.files.path(path) for path in paths]
        return spark.read.schema(wire.schema(width)).parquet(*places)

    # -------------------------------------------------------------------------- writing

    def place_of(self, batch: int) -> str:
        return f"batches/{batch}"

    def list(self, whole: str) -> None:
        """Write down which files a folder has, so that each can be known again."""
        body = {name: asdict(known) for name, known in self.files.prints(whole).items()}
        self.files.write(f"{whole}/{_LIST}", sealed(body))
        self._lists[whole] = body_sha256(body)

    def pulse(self, batch: int) -> None:
        """Ask Spark for a micro-batch after this one, even if nothing comes."""
        self.files.write(f"{PULSE}/{batch}", "")

    def folder(self, batch: int, shelf: str, rows: int, latest: int | None) -> Folder:
        return Folder(_place(batch, shelf), rows, latest)

    def compact(
        self,
        spark: SparkSession,
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
        rows = needed(self._read(spark, [f.path for f in merged], width))
        path = f"merged/{batch}-{shelf}"
        counting = Observation()
        rows = rows.coalesce(1).observe(counting, F.count(F.lit(1)).alias("rows"))
        rows.write.mode("overwrite").parquet(self.files.path(path))
        self.list(path)
        latest = [f.latest for f in merged if f.latest is not None]
        together = Folder(path, int(counting.get["rows"]), max(latest) if latest else None)
        return (*folders[:start], together)

    def commit(self, commit: Commit) -> None:
        """From now on the batch counts. What only earlier ones needed goes."""
        needed = {_whole(f.path) for folders in commit.folders.values() for f in folders}
        self._lists = {whole: self._lists[whole] for whole in sorted(needed)}
        made = evolve(commit, lists=self._lists)
        self.files.write(f"commits/{commit.batch}.json", made.to_json())
        self.last = made  # whoever waits for it may stop us from here on
        for kind in ("batches", "merged"):
            for name in self.files.names(kind):
                if f"{kind}/{name}" not in needed:
                    self.files.delete(f"{kind}/{name}")
        for number in self.files.numbers("commits", ".json"):
            if number < commit.batch - 1:
                self.files.delete(f"commits/{number}.json")
        for number in self.files.numbers(PULSE):
            if number < commit.batch - 1:  # read by a batch that counts
                self.files.delete(f"{PULSE}/{number}")
