"""Files as lines, which DuckDB reads from Arrow's batches: what is a line, and what a file's bytes
are, is as `runtime.sources` has it, and no line is a Python object."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedIOBase

import pyarrow as pa
import pyarrow.compute as pc

from streamlog.runtime.data_files import Unzipped, is_compressed, readable
from streamlog.runtime.sources import ERRORS, Input

SCHEMA = pa.schema([("line", pa.string()), ("is_plain", pa.bool_())])
_BLOCK = 1 << 22
_SPECIAL = (b'"', b"\r", b"\0")
# How a line begins that is not for DuckDB to judge, each of its bytes a character.
_APART = "\0"


def batches(source: Input) -> Iterator[pa.RecordBatch]:
    """All lines of a file, without what ends them; and whether it is certain that nothing is in
    them which CSV treats in a special way."""
    with readable(source.path), source.path.open("rb") as plain:
        file = Unzipped(plain) if is_compressed(source.path) else plain
        for block, is_ended in _blocks(file):
            texts = _texts(block) if is_ended else pa.array([_apart(block)], pa.string())
            is_plain = is_ended and not any(some in block for some in _SPECIAL)
            flags = pa.repeat(is_plain, len(texts))
            yield pa.record_batch([texts, flags], SCHEMA)


def first(source: Input, most: int) -> list[str]:
    """The first lines of a file."""
    batch = next(batches(source), None)
    found: list[str] = [] if batch is None else batch.column(0).slice(0, most).to_pylist()
    return found


def _blocks(file: BufferedIOBase) -> Iterator[tuple[bytes, bool]]:
    """Whole lines, some megabytes at a time, without the end of the last; or what comes after all
    of them, and has no end."""
    ahead: list[bytes] = []
    block = file.read(_BLOCK).removeprefix(codecs.BOM_UTF8)
    while block:
        end = block.rfind(b"\n")
        if end >= 0:
            yield b"".join([*ahead, block[:end]]), True
            ahead = []
        ahead.append(block[end + 1 :])
        block = file.read(_BLOCK)
    if last := b"".join(ahead):
        yield last, False


def _texts(block: bytes) -> pa.Array:
    lines = pc.split_pattern(pa.array([block], pa.large_binary()), b"\n").flatten()
    if b"\0" not in block:
        try:
            return lines.cast(pa.string())
        except pa.ArrowInvalid:
            pass  # some are not UTF-8
    return pa.array(map(_text, lines.to_pylist()), pa.string())


def _text(line: bytes) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return _apart(line + b"\n")
    return _apart(line + b"\n") if "\0" in text else text


def _apart(line: bytes) -> str:
    return _APART + line.decode("latin-1")


def as_read(line: str) -> str:
    """A line as the runtime reads it, with its end."""
    if not line.startswith(_APART):
        return line + "\n"
    return line.removeprefix(_APART).encode("latin-1").decode(errors=ERRORS)


def following(source: Input, numbers: Iterable[int], most: int) -> Mapping[int, list[str]]:
    """After each line of these numbers, which count from 1, the next ones, as the runtime reads
    them."""
    result: dict[int, list[str]] = {number: [] for number in numbers}
    before = 0
    for batch in batches(source):
        size = batch.num_rows
        for number, found in result.items():
            first = max(number + len(found), before)
            wanted = min(number + most, before + size) - first
            if wanted > 0 and first < before + size:
                some = batch.column(0).slice(first - before, wanted).to_pylist()
                found += map(as_read, some)
        before += size
    return result
