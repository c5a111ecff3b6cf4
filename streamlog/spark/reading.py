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

from streamlog.compiler import Compilation, the
from streamlog.runtime.checkpoint import CheckpointError
from streamlog.spark.files import Files
from streamlog.spark.inputs import InputError, Inputs
from streamlog.spark.store import Commit, Store

_NOTHING = "-"  # a source that nothing has been read of
_FOLDER = re.compile(r"FileSource\[(.*)\]", re.DOTALL)
_ENTRY = re.compile(r'\{"logOffset":(\d+)\}')


class Reading:
    """The sources of a run's query. A query numbers them as they stand in it: those of the streams
    in the order of their names, then its own."""

    def __init__(self, store: Store, inputs: Inputs, program: Compilation) -> None:
        self._store, self._files = store, store.files
        self.streams = the(program.schema).streams
        self.tables = sorted(n for n in inputs.frames if n not in self.streams)
        self.sources: dict[str, range] = {}
        self.identities: dict[str, dict[str, str]] = {
            name: _content(inputs.frames[name]) for name in self.tables
        }
        leaves: list[Any] = []
        for name in sorted(n for n in inputs.frames if n in self.streams):
            if not inputs.frames[name].isStreaming:
                raise InputError(f"stream `{name}` needs a streaming DataFrame")
            mine = _sources(inputs.frames[name])
            self.sources[name] = range(len(leaves), len(leaves) + len(mine))
            self.identities[name] = _places(mine)
            leaves += mine
        # Where a source has its notes: one that is used twice has them once.
        unlike = [leaf for i, leaf in enumerate(leaves) if leaf not in leaves[:i]]
        self._notes = [f"spark/sources/{unlike.index(leaf)}" for leaf in leaves]

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
        done = self._files.numbers("spark/commits")
        if done and done[-1] > (-1 if last is None else last.batch):
            raise self._store.refused(f"'commits/{done[-1]}.json' is missing")
        if last is None or last.has_ended or not last.offsets:
            return
        if self.offsets(last.batch) != last.offsets:
            raise self._store.refused(f"'spark/offsets/{last.batch}' has changed")
        for name, known in last.inputs.items():
            self._verify_input(name, known)
        for offset, notes in zip(last.offsets, self._notes, strict=False):
            entry = _ENTRY.fullmatch(offset)
            if entry is not None and self._files.names(notes[: notes.rindex("/")]):
                self._verify_files(notes, int(entry[1]))

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
        names += (f"{notes}/{n}" for n in range(first, last + 1))
        for name in names:
            text = self._files.read(name)
            if text is None:
                raise self._store.refused(f"'{name}' is missing")
            try:
                yield from map(json.loads, text.splitlines()[1:])
            except ValueError:
                raise self._store.refused(f"'{name}' is damaged: it is no JSON") from None


def _sources(frame: DataFrame) -> list[Any]:
    """Where a streaming DataFrame's rows come from."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [leaves.apply(i) for i in range(leaves.size())]
    return [leaf for leaf in found if leaf.isStreaming()]


def _places(sources: list[Any]) -> dict[str, str]:
    """The folders among them; topics are compared by their connector."""
    found = (_FOLDER.fullmatch(str(leaf.toString())) for leaf in sources)
    return {place[1].rstrip("/"): "folder" for place in found if place}


def _content(frame: DataFrame) -> dict[str, str]:
    """Of a table that is read from files: each with what stands for its content."""
    spark = frame.sparkSession
    places = (unquote(urlsplit(p).path) if p.startswith("file:") else p for p in frame.inputFiles())
    return {place: Files(spark, place).fingerprint("") for place in places}
