"""Where data have a column: `"event-time" as T`, `user: string at "meta.user"`, `in "items[]"`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from streamlog.diagnostics import Span, finding
from streamlog.syntax import literals
from streamlog.syntax.ast import Column
from streamlog.syntax.data_path import DataPath, path_text
from streamlog.syntax.tokens import Refused, Tokens

AS = "as"  # behind a name
PLACED = ("at", "in")  # before a path


@frozen
class Placed:
    path: DataPath
    start: int  # its tokens
    end: int


def data_name(tokens: Tokens, start: int, found: list[Any]) -> Placed:
    """`"event-time" as`: the very name, whatever is in it."""
    text, word = found
    if tokens.text(word) != AS:
        help = f"write `{tokens.text(text)} as` before the name of the column"
        message = f"unknown word `{tokens.text(word)}`"
        raise _refused(message, tokens.span(word, word + 1), help)
    return Placed(DataPath((_unquoted(tokens, text, "a name"),)), start, word + 1)


def path(tokens: Tokens, start: int, found: list[Any]) -> Placed:
    word, text = found
    span = tokens.span(text, text + 1)
    if (said := tokens.text(word)) not in PLACED:
        help = 'a path is written `at "meta.user"`, and one into a list `in "items[].sku"`'
        raise _refused(f"unknown word `{said}`", tokens.span(word, word + 1), help)
    try:
        path = DataPath.of(_unquoted(tokens, text, "a path"))
    except ValueError as error:
        help = "write it like `meta.user` or `items[].sku`; a name with a dot, in backticks"
        raise _refused(str(error), span, help) from None
    if (said == "in") != bool(path.to_list):
        place = tokens.span(start, text + 1)
        if path.to_list:
            reason = "`at` is for one value, and `[]` stands for all the elements of a list"
            raise _refused(reason, place, f'write `in "{path}"` for a row per element')
        reason = "`in` is for the elements of a list, and this path leads to one value"
        help = f'write `in "{path}[]"` for a row per element, or `at "{path}"`'
        raise _refused(reason, place, help)
    return Placed(path, start, text + 1)


def one_path(tokens: Tokens, column: str, placed: Sequence[Placed]) -> DataPath | None:
    """None: where a column is anyway."""
    if len(placed) > 1:
        first, second = (tokens.span(p.start, p.end) for p in placed)
        message = f"column `{column}` is in two places"
        raise _refused(message, second, "keep one of the two", (first, "the first"))
    (one,) = placed
    return None if one.path == DataPath((column,)) else one.path


def check_lists(columns: Iterable[Column]) -> None:
    """A row stands for one element of one list."""
    first: Column | None = None
    for column in columns:
        if column.path is None or not column.path.to_list:
            continue
        first = first or column
        assert first.path is not None
        if column.path.list_keys != first.path.list_keys:
            raise _refused(
                f"two lists, `{path_text(first.path.list_keys)}` and "
                f"`{path_text(column.path.list_keys)}`, in one declaration",
                column.span,
                "declare a second stream for the second list: a row has one element",
                (first.span, "the first list"),
            )


def _unquoted(tokens: Tokens, at: int, what: str) -> str:
    span = tokens.span(at, at + 1)
    text = literals.unquoted(tokens.text(at), span)
    if not text:
        raise _refused(f"{what} in data is not empty", span, "name the field that data have")
    return text


def _refused(
    message: str, span: Span, help: str, related: tuple[Span, str] | None = None
) -> Refused:
    others = (related,) if related else ()
    return Refused(finding("SL0105", message, span, related=others, help=(help,)))
