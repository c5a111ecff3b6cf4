"""Lines of CSV and of JSON: most are taken apart in SQL, the others read by `runtime.sources`.

Where CSV differs from the local engine: a line has to stand for itself, so of a quoted field that
goes on in the next line both lines are rejected, unless the second is a row by itself; and a line
with nothing but white space is passed over, as Spark's own reader does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StringType, VariantType

from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import Checker, Reject
from streamlog.runtime.sources import Layout, json_rows, records
from streamlog.spark.records import RECORD, SOUND, Checked
from streamlog.spark.values import text
from streamlog.syntax.data_path import DataPath

LINE = "value"  # the column of lines, as Spark's own reader calls it: texts, or whatever bytes
_RECORD = f"CAST({LINE} AS BINARY) AS {RECORD}"
_END = "the end of a line"
_WORD, _UNSPEAKABLE = re.compile(r"\w+"), frozenset("\"'?\\[]")
_BLANK = "".join(map(chr, range(33)))


def _texts(lines: pa.Array) -> list[str]:
    return [line.decode(errors="surrogateescape") for line in lines.to_pylist()]


@frozen
class CsvLines:
    layout: Layout
    delimiter: str

    @property
    def held(self) -> tuple[DataType, ...]:
        return (StringType(),) * len(self.layout.picked)

    @property
    def units(self) -> Mapping[int, str]:
        return {}

    def is_missing(self, field: str) -> str:
        return f"{field} = ''"

    @property
    def has_list(self) -> bool:
        return False

    def split(self, lines: DataFrame) -> DataFrame:
        """At the delimiters, where there are no quotes and as many fields as there should be."""
        line = F.expr(f"IF(ENDSWITH({LINE}, '\\r'), RTRIM('\\r', {LINE}), {LINE})")
        rows = lines.selectExpr("*", _RECORD).withColumn(LINE, line)
        d, width = text(self.delimiter), self.layout.width
        plain = [f"NOT CONTAINS({LINE}, '\"')", f"SUBSTRING_INDEX({LINE}, {d}, {width}) = {LINE}"]
        all_fields = f"SUBSTRING_INDEX({LINE}, {d}, {width - 1}) <> {LINE}"
        plain.append(all_fields if width > 1 else f"TRIM({LINE}) <> ''")
        fields = [f"{self._field(place)} AS x{i}" for i, place in enumerate(self.layout.picked)]
        return rows.selectExpr("*", f"{' AND '.join(plain)} AS {SOUND}", *fields)

    def _field(self, place: int) -> str:
        d, last = text(self.delimiter), self.layout.width - 1
        if place == last:
            return f"SUBSTRING_INDEX({LINE}, {d}, -1)"
        upto = f"SUBSTRING_INDEX({LINE}, {d}, {place + 1})"
        return f"SUBSTRING_INDEX({upto}, {d}, -1)" if place else upto

    def read(self, lines: pa.Array, checker: Checker) -> Checked:
        check = self.layout.check(checker)

        def read(line: str) -> Iterable[Row | Reject]:
            if not line.strip(_BLANK):
                return ()
            _, fields = next(records([line], self.delimiter))
            row = check(fields)
            is_row = row.__class__ is tuple or not self.layout.is_repeated(fields, checker)
            return (row,) if is_row else ()

        return map(read, _texts(lines))


@frozen
class JsonLines:
    """An object in each line, or each message, under the very names of the columns; other rows
    that `runtime.ingest` takes are left to it, and so are lists."""

    paths: Sequence[DataPath]

    @property
    def held(self) -> tuple[DataType, ...]:
        return (VariantType(),) * len(self.paths)

    def is_missing(self, field: str) -> str:
        return f"IS_VARIANT_NULL({field})"

    @property
    def has_list(self) -> bool:
        return any(path.to_list for path in self.paths)

    @property
    def units(self) -> Mapping[int, str]:
        return {}

    def split(self, lines: DataFrame) -> DataFrame:
        # The parser stops at the end of a value. What follows a line's own must be what stands
        # here. Half characters, which it would take for whole ones, begin with these letters.
        parsed = f"TRY_PARSE_JSON(CONCAT('[', {LINE}, ',\"{_END}\"]'))"
        odd = (_END, "\\ud", "\\uD")
        sound = [f"NOT CONTAINS({LINE}, {text(part)})" for part in odd]
        sound += [f"IS_VALID_UTF8({LINE})", f"TRY_VARIANT_GET(v, '$[1]', 'string') = '{_END}'"]
        sound += ["FALSE"] if self.has_list else []
        fields = [f"{_field(path)} AS x{i}" for i, path in enumerate(self.paths)]
        rows = lines.selectExpr("*", _RECORD, f"{parsed} AS v")
        return rows.selectExpr("*", f"{' AND '.join(sound)} AS {SOUND}", *fields)

    def read(self, lines: pa.Array, checker: Checker) -> Checked:
        return (json_rows(line, checker) for line in _texts(lines))


def _field(path: DataPath) -> str:
    """Where SQL has a path for it, which has no names with quotes."""
    if path.to_list or any(_UNSPEAKABLE & {*key} for key in path.keys):
        return "CAST(NULL AS VARIANT)"
    keys = (f".{key}" if _WORD.fullmatch(key) else f'["{key}"]' for key in path.keys)
    return f"VARIANT_GET(v, {text('$[0]' + ''.join(keys))})"
