"""Lines of CSV and of JSON to fields, in SQL.

What comes out has a column for each of the predicate's: strings from CSV, variants from JSON. A
line that cannot be read is in the column `_corrupt`, with the reason in `_why`; it is checked
with the rest.

Where it differs from the local engine: a line has to stand for itself, so of a quoted field that
goes on in the next line both lines are rejected, unless the second is a row by itself; a line of
CSV with nothing but white space is passed over; and JSON that has a key twice, or NaN in it, is
malformed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from streamlog.spark.ingest import CORRUPT, WHY
from streamlog.spark.values import SPACES, let, short, text

BYTES = "ISO-8859-1"
LINE = "line"
_OPEN = "a quote is not closed, or not at the end of its field"
_HALF = (
    r"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)(?:\\\\)*\\u[dD][c-fC-F]"
)


def fields(
    lines: DataFrame, names: Sequence[str], picked: Sequence[int], width: int, delimiter: str
) -> DataFrame:
    """The fields at the places picked, under these names, of lines with `width` fields.

    `lines` has one column, `value`, with the bytes of the file. Most lines have no quotes, and
    are cut at their delimiters byte by byte; only the others are looked at as texts.
    """
    d = text(delimiter)
    rows = lines.selectExpr("IF(ENDSWITH(value, '\\r'), RTRIM('\\r', value), value) AS value")
    # What starts with a character beyond the blank is not blank.
    rows = rows.where(r"value >= '!' OR NOT value RLIKE r'\A[\x00-\x20]*\z'")
    plain = ["NOT CONTAINS(value, '\"')", f"SUBSTRING_INDEX(value, {d}, {width}) = value"]
    if width > 1:
        plain.append(f"SUBSTRING_INDEX(value, {d}, {width - 1}) <> value")
    # Bytes as characters: so those that are no UTF-8 come through.
    line = (
        f"CASE WHEN NOT ({' AND '.join(plain)}) THEN DECODE(CAST(value AS BINARY), '{BYTES}') END"
    )
    # A delimiter in front, so that each field has one.
    one = "\\t" if delimiter == "\t" else delimiter
    strict = r'"[^"]*+(?:""[^"]*+)*+"'
    well = rf"\A(?:{one}(?:{strict}(?={one}|\z)|(?!\")[^{one}]*+))*+\z".replace(r"\"", '"')
    each = rf"{one}({strict}|[^{one}]*+)"
    marked = f"CONCAT({d}, {LINE})"
    found = f"REGEXP_EXTRACT_ALL({marked}, r'{each}', 1)"
    found = f"CASE WHEN {LINE} IS NOT NULL AND {marked} RLIKE r'{well}' THEN {found} END"
    rows = rows.selectExpr("value", f"{line} AS {LINE}")
    rows = rows.selectExpr("value", LINE, f"{found} AS found")
    values = []
    for name, place in zip(names, picked, strict=True):
        part = f"found[{place}]"
        unquoted = f"REPLACE(SUBSTR({part}, 2, LENGTH({part}) - 2), '\"\"', '\"')"
        unquoted = f"IF(STARTSWITH({part}, '\"'), {unquoted}, {part})"
        field = (
            f"CASE WHEN {LINE} IS NULL THEN {_piece(place, width, d)}"
            f" WHEN SIZE(found) = {width} THEN {_encoded(unquoted)} END"
        )
        values.append(f"{field} AS `{name}`")
    bad = f"{LINE} IS NOT NULL AND (found IS NULL OR SIZE(found) <> {width})"
    count = f"CONCAT(SIZE(found), {text(f' values where {width} are wanted')})"
    return rows.selectExpr(
        *values,
        f"CASE WHEN {bad} THEN value END AS {CORRUPT}",
        f"CASE WHEN {bad} THEN IF(found IS NULL, {text(_OPEN)}, {count}) END AS {WHY}",
    )


def _piece(place: int, width: int, delimiter: str) -> str:
    """A field of a line without quotes."""
    if place == width - 1:
        return f"SUBSTRING_INDEX(value, {delimiter}, -1)" if place else "value"
    upto = f"SUBSTRING_INDEX(value, {delimiter}, {place + 1})"
    return f"SUBSTRING_INDEX({upto}, {delimiter}, -1)" if place else upto


def as_bytes(characters: str) -> str:
    """Bytes that were read as characters, as the text that they are; most are ASCII."""
    is_ascii = f"OCTET_LENGTH({characters}) = LENGTH({characters})"
    return f"IF({is_ascii}, {characters}, {_encoded(characters)})"


def _encoded(characters: str) -> str:
    return f"CAST(ENCODE({characters}, '{BYTES}') AS STRING)"


def objects(lines: DataFrame, names: Sequence[str]) -> DataFrame:
    """The values of JSON objects, or arrays, one in a line of the column `value`.

    A name may be written as the program does, or all in lower or upper case, or capitalised.
    """
    # The parser stops at the end of a value. What follows a line's own must be what stands here.
    parsed = "TRY_PARSE_JSON(CONCAT('[', value, ',\"\"]'))"
    sound = (
        "TRY_VARIANT_GET(v, '$[1]', 'string') = '' AND IS_VALID_UTF8(value)"
        f" AND NOT (CONTAINS(value, '\\\\u') AND value RLIKE r'{_HALF}')"
    )
    rows = lines.where(f"TRIM(BOTH {text(SPACES)} FROM value) <> ''")
    rows = rows.selectExpr("value", f"{parsed} AS v")
    rows = rows.selectExpr("value", f"CASE WHEN {sound} THEN VARIANT_GET(v, '$[0]') END AS v")
    values = []
    for place, name in enumerate(names):
        spellings = dict.fromkeys([name, name.lower(), name.upper(), name.capitalize()])
        paths = [*(f"$.{s}" for s in spellings), f"$[{place}]"]
        found = ", ".join(f"VARIANT_GET(v, {text(path)})" for path in paths)
        values.append(f"COALESCE({found}) AS v{place}")
    rows = rows.selectExpr("value", "v", *values)
    lacking = [f"v{i} IS NULL" for i in range(len(names))]
    bad = " OR ".join(["v IS NULL", *lacking, f"VARIANT_GET(v, '$[{len(names)}]') IS NOT NULL"])
    missing = " ".join(
        f"WHEN k LIKE 'OBJECT%' AND {test} THEN {text(f'column `{name}` is missing')}"
        for test, name in zip(lacking, names, strict=True)
    )
    count = "SIZE(TRY_VARIANT_GET(v, '$', 'array<variant>'))"
    why = let(
        "k",
        "SCHEMA_OF_VARIANT(v)",
        "CASE WHEN NOT IS_VALID_UTF8(value) THEN 'the line is not UTF-8'"
        f" WHEN k IS NULL AND value RLIKE r'{_HALF}' THEN 'a text has half a character'"
        f" WHEN k IS NULL THEN 'malformed JSON' {missing}"
        f" WHEN k LIKE 'ARRAY%'"
        f" THEN CONCAT({count}, {text(f' values where {len(names)} are wanted')})"
        f" ELSE CONCAT({short('TO_JSON(v)')}, ' is no row') END",
    )
    return rows.selectExpr(
        *(f"v{i} AS `{name}`" for i, name in enumerate(names)),
        f"CASE WHEN {bad} THEN value END AS {CORRUPT}",
        f"CASE WHEN {bad} THEN {why} END AS {WHY}",
    )
