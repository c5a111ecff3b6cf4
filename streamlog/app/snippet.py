"""Source lines with marks under them, laid out in terminal cells.

    3 | p(T, X) <- q(T, X), not p(T, X).
      | -------             ^^^^^^^^^^^ which needs the head again
      | |
      | the head

Only places are worked out here; `render` adds the words around it and the colours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from attrs import field, frozen
from rich.cells import cell_len

from streamlog.diagnostics import Label, Source

TAB = 4
CUT = "…"
# A label's text moves left rather than be squeezed into fewer cells than this.
ROOMY = 24

# Styles, by the part they play; `render` gives them colours.
SOURCE, GUTTER, PRIMARY, SECONDARY = "source", "gutter", "primary", "secondary"


def visible(text: str) -> str:
    """The text without anything that could steer a terminal or reorder what it shows."""
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    if char < " ":
        return chr(0x2400 + ord(char))  # the pictures of the control characters
    if char == "\x7f":
        return "␡"
    hidden = unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
    return "\N{REPLACEMENT CHARACTER}" if hidden or char in _BIDI else char


_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells where words allow it; an indented line stays indented."""
    lines = []
    for paragraph in text.split("\n"):
        body = paragraph.lstrip(" ")
        indent = paragraph[: len(paragraph) - len(body)]
        line = indent
        for word in body.split(" "):
            longer = f"{line} {word}" if line != indent else indent + word
            if cell_len(longer) > width and line != indent:
                lines.append(line)
                longer = indent + word
            line = longer
        lines.append(line.rstrip())
    return lines


# ------------------------------------------------------------------------- a line as shown


@frozen
class Shown:
    """A line, or the part of it that is shown, and the cell at which each character begins."""

    text: str
    first: int  # the index in the line of the first character shown
    cells: tuple[int, ...]

    def cell(self, index: int) -> int:
        return self.cells[min(max(index - self.first, 0), len(self.cells) - 1)]


def _show(line: str, first: int, last: int) -> Shown:
    before, after = CUT if first else "", CUT if last < len(line) else ""
    pieces, cells, at = [before], [], cell_len(before)
    for char in line[first:last]:
        cells.append(at)
        piece = " " * (TAB - at % TAB) if char == "\t" else _visible(char)
        pieces.append(piece)
        at += cell_len(piece)
    return Shown("".join((*pieces, after)), first, (*cells, at))


def _cost(char: str) -> int:
    """Cells at most. At least one, or a line of combining characters would be shown whole."""
    return TAB if char == "\t" else max(cell_len(_visible(char)), 1)


def _cut(line: str, start: int, end: int, room: int) -> Shown:
    """As much of the line as there is room for, with `start:end` about in the middle."""
    first, last = start, start
    left = room - 2 * cell_len(CUT)
    while last < min(end, len(line)) and (left := left - _cost(line[last])) >= 0:
        last += 1
    more = True
    while more and left > 0:
        more = False
        if first > 0 and (left := left - _cost(line[first - 1])) >= 0:
            first, more = first - 1, True
        if last < len(line) and (left := left - _cost(line[last])) >= 0:
            last, more = last + 1, True
    return _show(line, first, last)


# ---------------------------------------------------------------------------------- marks


@frozen
class Mark:
    """A label in lines and columns, both inclusive at the start; columns count from zero."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    primary: bool

    @property
    def style(self) -> str:
        return PRIMARY if self.primary else SECONDARY

    @property
    def sign(self) -> str:
        return "^" if self.primary else "-"


def mark(label: Label, primary: bool) -> Mark:
    span = label.span
    line, column = span.source.position(span.start)
    # The last visible character counts: a span that ends with its line does not touch the next.
    end = span.start + len(span.text.rstrip())
    width = end > span.start
    end_line, end_column = span.source.position(end - width)
    return Mark(line, column - 1, end_line, end_column - 1 + width, visible(label.text), primary)


@frozen
class Row:
    """A printed row: what stands in the gutter, and pieces at cells to the right of it."""

    gutter: str = ""
    pieces: tuple[tuple[int, str, str], ...] = field(default=())

    def runs(self) -> Iterator[tuple[str, str]]:
        """The text from left to right with its styles; later pieces lie above earlier ones."""
        cells: dict[int, tuple[str, str]] = {}
        for start, text, style in self.pieces:
            at = last = start
            for char in text:
                if (size := cell_len(char)) == 0 and at > start:  # joins the character before
                    cells[last] = (cells[last][0] + char, style)
                    continue
                cells[at] = (char, style)
                for covered in range(at + 1, at + size):
                    cells[covered] = ("", style)
                last, at = at, at + size
        padded = (cells.get(cell, (" ", SOURCE)) for cell in range(max(cells, default=-1) + 1))
        for style, chars in groupby(padded, key=lambda item: item[1]):
            yield "".join(char for char, _ in chars), style


# ----------------------------------------------------------------------------- the snippet


def snippet(source: Source, marks: Sequence[Mark], width: int) -> list[Row]:
    """The marked lines of one source; lines between them that carry no mark are left out."""
    lanes = _lanes(marks)
    margin = 2 * (max(lanes.values()) + 1) if lanes else 0
    room = max(width - margin, ROOMY)
    rows: list[Row] = []
    active: dict[int, str] = {}  # lane → the style of the label that runs in it
    previous = None
    for number in _lines_shown(marks):
        if previous is not None and number > previous + 1:
            rows.append(Row("...", _bars(active)))
        previous = number
        line = source.line(number)
        here = [m for m in marks if m.line == m.end_line == number]
        starts = [m for m in lanes if m.line == number]
        ends = [m for m in lanes if m.end_line == number]
        points = [(m.column, m.end_column) for m in here]
        points += [(m.column, m.column + 1) for m in starts]
        points += [(m.end_column - 1, m.end_column) for m in ends]
        views = _views(line, points, room)
        for place, view in enumerate(views):
            bars = _bars(active)
            # A label that takes up its first line whole begins in the margin, without a row.
            if place == len(views) - 1:
                for m in [m for m in starts if not line[: m.column].strip()]:
                    bars += ((2 * lanes[m], "/", m.style),)
                    active[lanes[m]] = m.style
                    starts.remove(m)
            rows.append(Row(str(number), (*bars, (margin, view.text, SOURCE))))
            inside = [m for m in here if _view_of(views, m.column) is view]
            for pieces in _under(view, inside, room):
                shifted = ((margin + at, text, style) for at, text, style in pieces)
                rows.append(Row("", (*_bars(active), *shifted)))
        for m in starts:
            at = margin + _view_of(views, m.column).cell(m.column)
            rows.append(Row("", (*_rule(lanes[m], at, m), *_bars(active))))
            active[lanes[m]] = m.style
        for m in ends:
            at = margin + _view_of(views, m.end_column - 1).cell(m.end_column - 1)
            text = wrap(m.text, max(width - at - 2, ROOMY))
            said = tuple((at + 2, t, m.style) for t in text)
            rows.append(Row("", (*_rule(lanes[m], at, m), *_bars(active), *said[:1])))
            del active[lanes[m]]
            rows += [Row("", (*_bars(active), t)) for t in said[1:]]
    return rows


def _lanes(marks: Iterable[Mark]) -> dict[Mark, int]:
    """A lane of the margin for each label of several lines; overlapping ones get different ones."""
    lanes: dict[Mark, int] = {}
    several = {m for m in marks if m.end_line > m.line}
    order = sorted(several, key=lambda m: (m.line, -m.end_line, m.column, m.text, m.primary))
    for m in order:
        taken = {lane for other, lane in lanes.items() if other.end_line >= m.line}
        lanes[m] = next(lane for lane in range(len(lanes) + 1) if lane not in taken)
    return lanes


def _lines_shown(marks: Iterable[Mark]) -> list[int]:
    wanted = {n for m in marks for n in (m.line, m.end_line)}
    # A row of dots is no shorter than the one line it would stand for.
    return sorted(wanted | {n + 1 for n in wanted if n + 2 in wanted})


def _bars(active: dict[int, str]) -> tuple[tuple[int, str, str], ...]:
    return tuple((2 * lane, "|", style) for lane, style in sorted(active.items()))


def _rule(lane: int, at: int, m: Mark) -> tuple[tuple[int, str, str], ...]:
    """The line from a lane of the margin to a character."""
    start = 2 * lane + 1
    return ((start, "_" * (at - start), m.style), (at, m.sign, m.style))


def _views(line: str, points: Sequence[tuple[int, int]], room: int) -> list[Shown]:
    """The line; or, when it is too long, one part of it for each group of marks that fits."""
    if len(line) <= TAB * room:
        whole = _show(line, 0, len(line))
        if cell_len(whole.text) <= room:
            return [whole]
    groups: list[tuple[int, int]] = []
    # Marks wider than the room count by their beginning only.
    for start, end in sorted((s, min(e, s + room // 2)) for s, e in points) or [(0, 0)]:
        if groups and _fits(line, groups[-1][0], end, room):
            groups[-1] = (groups[-1][0], max(end, groups[-1][1]))
        else:
            groups.append((start, end))
    return [_cut(line, start, end, room) for start, end in groups]


def _fits(line: str, start: int, end: int, room: int) -> bool:
    room -= 2 * cell_len(CUT)
    return end - start <= room and sum(map(_cost, line[start:end])) <= room


def _view_of(views: Sequence[Shown], column: int) -> Shown:
    """The part that shows a column; of overlapping parts the first that has it."""
    inside = (v for v in views if v.first <= column < v.first + len(v.cells))
    return next(inside, views[-1])


Pieces = list[tuple[int, str, str]]


def _under(view: Shown, marks: Sequence[Mark], room: int) -> Iterator[Pieces]:
    """The rows below a line: the carets, then the texts that had no place beside them."""
    placed = []
    for m in marks:
        start = view.cell(m.column)
        placed.append((start, max(view.cell(m.end_column), start + 1), m))
    if not placed:
        return
    others = {c for start, end, m in placed if not m.primary for c in range(start, end)}

    def height(place: tuple[int, int, Mark]) -> tuple[bool, int, bool]:
        """The shorter mark lies above the longer one, but the primary is never hidden."""
        start, end, m = place
        return m.primary and others >= set(range(start, end)), start - end, m.primary

    by_length = sorted(placed, key=height)
    carets = [(start, m.sign * (end - start), m.style) for start, end, m in by_length]
    beside = max(placed, key=lambda p: (p[1], p[0], p[2].primary))
    if beside[2].text and beside[1] + 1 + cell_len(beside[2].text) <= room:
        carets.append((beside[1] + 1, beside[2].text, beside[2].style))
        placed.remove(beside)
    yield carets
    below = sorted((p for p in placed if p[2].text), key=lambda p: (p[0], p[2].text))
    if below:
        yield [(start, "|", m.style) for start, _, m in below]
    while below:
        start, _, m = below.pop()
        pipes = [(s, "|", other.style) for s, _, other in below if s < start]
        left = pipes[-1][0] + 2 if pipes else 0
        yield from ([*pipes, p] for p in _hung(m, start, left, room))


def _hung(m: Mark, start: int, left: int, room: int) -> Pieces:
    """A text below its mark: from there to the right, or else against the right edge."""
    size = cell_len(m.text)
    if size > room - start and room - start < ROOMY:
        start = max(left, room - size) if room - left >= ROOMY else max(0, room - size)
    return [(start, line, m.style) for line in wrap(m.text, max(room - start, ROOMY))]
