"""How far Structured Streaming has read its sources, by its own notes in `spark/`.

    spark/offsets/17         up to where batch 17 reads each source, written before the batch starts
          commits/17         there when the batch is done
          sources/0/17       the files that a file source has found, with their times

A stream is silent in a batch if its sources have nothing new for it: then nothing was pending when
the batch was put together, which is after the batch before it. What others bring in the same batch
says nothing, since Spark asks one source after the other. Notes do not change when a batch is
repeated, so it is the same after a crash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame

from streamlog.compiler import Program
from streamlog.runtime.envelope import CheckpointError
from streamlog.spark.files import Files
from streamlog.spark.inputs import InputError, Inputs
from streamlog.spark.store import Commit, Store

_NOTHING = "-"  # a source that nothing has been read of
_FOLDER = re.compile(r"FileSource\[(.*)\]", re.DOTALL)
_ENTRY = re.compile(r'\{"logOffset":(\d+)\}')


class Reading:
    """The sources of a run's query. A query numbers them as they stand in it: those of the streams
    in the order of their names, then its own."""

    def __init__(self, store: Store, inputs: Inputs, program: Program) -> None:
        self._store, self._files = store, store.files
        self.streams = program.schema.streams
        self.tables = sorted(n for n in inputs.records if n not in self.streams)
        self.sources: dict[str, range] = {}
        self.identities: dict[str, dict[str, str]] = {
            name: _content(inputs.records[name].frame) for name in self.tables
        }
        leaves: list[Any] = []
        for name in sorted(n for n in inputs.records if n in self.streams):
            frame = inputs.records[name].frame
            if not frame.isStreaming:
                raise InputError(f"stream `{name}` needs a streaming DataFrame")
            mine = _sources(frame)
            self.sources[name] = range(len(leaves), len(leaves) + len(mine))
            self.identities[name] = _places(mine)
            leaves += mine
        # Where a folder has its notes, by source; a source that is used twice has them once. Behind
        # the streams' sources there may be the one for pulses.
        unlike = [leaf for i, leaf in enumerate(leaves) if leaf not in leaves[:i]]
        self._notes = {
            i: f"spark/sources/{unlike.index(leaf)}"
            for i, leaf in enumerate(leaves)
            if _place(leaf) is not None
        }
        if leaves:
            self._notes[len(leaves)] = f"spark/sources/{len(unlike)}"

    def offsets(self, batch: int) -> tuple[str, ...]:
        """Up to where a batch reads each source."""
        name = f"spark/offsets/{batch}"
        text = self._files.read(name)
        if text is None:
            raise self._store.refused(f"'{name}' is missing")
        version, _, *offsets = text.splitlines()
        if version != "v1":
            raise CheckpointError(f"'{name}' has a form that this streamlog cannot read: {version}")
        return tuple(offsets)

    def silent(self, offsets: tuple[str, ...], last: Commit | None) -> set[str]:
        """Streams whose sources have nothing new."""
        old = last.offsets if last is not None and last.offsets else (_NOTHING,) * len(offsets)
        return {
            stream
            for stream in self.streams
            if all(offsets[i] == old[i] for i in self.sources.get(stream, ()))
        }

    # ------------------------------------------------------------------------- at a start

    def verify(self, last: Commit | None) -> None:
        """Spark goes on where the last commit ends, with the inputs that it had."""
        if last is None or last.has_ended or not last.offsets:
            return
        if self.offsets(last.batch) != last.offsets:
            raise self._store.refused(f"'spark/offsets/{last.batch}' has changed")
        for name, known in last.inputs.items():
            self._verify_input(name, known)
        for source, notes in self._notes.items():
            if source < len(last.offsets):
                entry = _ENTRY.fullmatch(last.offsets[source])
                self._verify_files(notes, -1 if entry is None else int(entry[1]))
        self._verify_others(last)

    def _verify_others(self, last: Commit) -> None:
        """What Spark reads without saying which file it could not read."""
        lost = (f"spark/commits/{n}" for n in self._files.lost("spark/commits"))
        planned = {max(0, last.batch - 1), *self._files.numbers("spark/offsets")}
        done = self._files.numbers("spark/commits")
        names = ["spark/metadata", *(f"spark/commits/{n}" for n in done[-2:])]
        names += (f"spark/offsets/{n}" for n in sorted(planned) if n >= last.batch - 1)
        for name in (*lost, *names):
            text = self._files.read(name)
            if text is None:
                raise self._store.refused(f"'{name}' is missing")
            self._documents(name, text.removeprefix("v1\n"))

    def _documents(self, name: str, text: str) -> list[Any]:
        """JSON, a line each."""
        try:
            return [json.loads(line) for line in text.splitlines() if line != _NOTHING]
        except ValueError:
            raise self._store.refused(f"'{name}' is damaged: it is not JSON") from None

    def _verify_input(self, name: str, known: Mapping[str, str]) -> None:
        found = self.identities.get(name, {})
        if found == known:
            return
        changed = sorted(p for p in {*known, *found} if known.get(p) != found.get(p))
        kind = "stream" if name in self.streams else "table"
        what = f"'{changed[0]}' is new to it"
        if changed[0] in known:
            what = f"'{changed[0]}' {'has changed' if changed[0] in found else 'is not given'}"
        raise CheckpointError(
            f"{kind} `{name}` has another input than the run in '{self._files.root}' had: {what}; "
            "go on with the same, or start from the beginning with a new folder"
        )

    def _verify_files(self, notes: str, last: int) -> None:
        """Files that were read are still what they were. Those that are gone are nobody's loss."""
        folders: dict[str, Mapping[str, int]] = {}
        for entry in self._entries(notes, last):
            folder, _, name = str(entry["path"]).rpartition("/")
            if folder not in folders:
                place = unquote(urlsplit(folder).path) if folder.startswith("file:") else folder
                folders[folder] = Files(self._store.spark, place).times()
            at = folders[folder].get(unquote(name))
            if at is not None and at != entry["timestamp"]:
                raise CheckpointError(
                    f"'{unquote(str(entry['path']))}' has changed since it was read, which was "
                    "once: new rows belong into a new file. To read everything anew, start with a "
                    "new checkpoint and a new folder for the answers"
                )

    def _entries(self, notes: str, last: int) -> Iterator[Mapping[str, Any]]:
        compact = self._files.numbers(notes, ".compact")
        names = [f"{notes}/{compact[-1]}.compact"] if compact else []
        first = compact[-1] + 1 if compact else 0
        last = max([last, *self._files.numbers(notes)])
        names += (f"{notes}/{n}" for n in range(first, last + 1))
        for name in names:
            text = self._files.read(name)
            if text is None:
                raise self._store.refused(f"'{name}' is missing")
            yield from self._documents(name, text.removeprefix("v1\n"))


def _sources(frame: DataFrame) -> list[Any]:
    """Where a streaming DataFrame's rows come from."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [leaves.apply(i) for i in range(leaves.size())]
    return [leaf for leaf in found if leaf.isStreaming()]


def _place(source: Any) -> str | None:
    """Of a source that is a folder."""
    found = _FOLDER.fullmatch(str(source.toString()))
    return None if found is None else found[1].rstrip("/")


def _places(sources: list[Any]) -> dict[str, str]:
    """The folders among them; topics are compared by their connector."""
    found = map(_place, sources)
    return {place: "folder" for place in found if place is not None}


def _content(frame: DataFrame) -> dict[str, str]:
    """Of a table that is read from files: each with what stands for its content."""
    spark = frame.sparkSession
    places = (unquote(urlsplit(p).path) if p.startswith("file:") else p for p in frame.inputFiles())
    return {place: Files(spark, place).fingerprint("") for place in places}
