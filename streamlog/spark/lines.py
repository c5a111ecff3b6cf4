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

# Bytes as characters: so bytes that are no UTF-8 are seen, and not replaced, by what reads CSV.
BYTES = "ISO-8859-1"
LINE = "line"
_OPEN = "a quote is not closed, or not at the end of its field"
_HALF = (
    r"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)(?:\\\\)*\\u[dD][c-fC-F]"
)


def fields(
    split: DataFrame, names: Sequence[str], picked: Sequence[int], width: int, delimiter: str
) -> DataFrame:
    """The fields at the places picked, under these names, of rows with `width` fields.

    `split` are lines that were split at every delimiter, quoted or not, and `_corrupt` where that
    made another number of columns. Most lines have no quotes, and are done.
    """
    pieces = [f"t{i}" for i in range(len(split.columns) - 1)]
    rows = split.toDF(*pieces, CORRUPT)
    whole = [f"COALESCE({piece}, '')" for piece in pieces]
    whole[-1] = f"IF(ENDSWITH({pieces[-1]}, '\\r'), {_chomped(pieces[-1])}, {whole[-1]})"
    rows = rows.selectExpr(CORRUPT, *(f"{w} AS {p}" for w, p in zip(whole, pieces, strict=True)))
    quoted = " OR ".join(f"CONTAINS({piece}, '\"')" for piece in pieces)
    if len(pieces) != width:
        quoted = "TRUE"  # the names have delimiters in quotes
    rebuilt = f"CONCAT_WS({text(delimiter)}, {', '.join(pieces)})"
    line = (
        f"CASE WHEN {CORRUPT} IS NOT NULL THEN {_chomped(CORRUPT)} WHEN {quoted} THEN {rebuilt} END"
    )
    # A delimiter in front, so that each field has one.
    d = "\\t" if delimiter == "\t" else delimiter
    strict = r'"[^"]*+(?:""[^"]*+)*+"'
    well = rf"\A(?:{d}(?:{strict}(?={d}|\z)|(?!\")[^{d}]*+))*+\z".replace(r"\"", '"')
    each = rf"{d}({strict}|[^{d}]*+)"
    marked = f"CONCAT({text(delimiter)}, {LINE})"
    found = f"REGEXP_EXTRACT_ALL({marked}, r'{each}', 1)"
    found = f"CASE WHEN {LINE} IS NOT NULL AND {marked} RLIKE r'{well}' THEN {found} END"
    rows = rows.selectExpr(*pieces, f"{line} AS {LINE}")
    rows = rows.selectExpr(*pieces, LINE, f"{found} AS found")
    values = []
    for name, place in zip(names, picked, strict=True):
        plain = pieces[place] if len(pieces) == width else "''"
        part = f"found[{place}]"
        unquoted = f"REPLACE(SUBSTR({part}, 2, LENGTH({part}) - 2), '\"\"', '\"')"
        unquoted = f"IF(STARTSWITH({part}, '\"'), {unquoted}, {part})"
        field = f"WHEN {LINE} IS NULL THEN {plain} WHEN SIZE(found) = {width} THEN {unquoted}"
        values.append(f"CASE {field} END AS `{name}`")
    bad = f"{LINE} IS NOT NULL AND (found IS NULL OR SIZE(found) <> {width})"
    count = f"CONCAT(SIZE(found), {text(f' values where {width} are wanted')})"
    rows = rows.selectExpr(
        *values,
        f"CASE WHEN {bad} THEN {_decoded(LINE)} END AS {CORRUPT}",
        f"CASE WHEN {bad} THEN IF(found IS NULL, {text(_OPEN)}, {count}) END AS {WHY}",
    )
    return rows.selectExpr(*(f"{_decoded(f'`{n}`')} AS `{n}`" for n in names), CORRUPT, WHY)


def _chomped(line: str) -> str:
    return f"RTRIM('\\r', {line})"


def _decoded(field: str) -> str:
    """Bytes that were read as characters, as the text that they are; most are ASCII."""
    other = f"CAST(ENCODE({field}, '{BYTES}') AS STRING)"
    return f"IF(OCTET_LENGTH({field}) = LENGTH({field}), {field}, {other})"


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
