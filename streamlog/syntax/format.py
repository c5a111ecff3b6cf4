"""`streamlog fmt`: a file's statements in canonical form, with every comment kept.

A comment on a line of its own stays above what follows it; one behind something on its line stays
behind that. A statement with comments inside is written one item a line, so that each comment has
an item (a goal, a column, a step) to stand at. Where a line would get two, the first goes above.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from attrs import field, frozen

from streamlog.diagnostics import Source
from streamlog.syntax import ast
from streamlog.syntax.ast import Module
from streamlog.syntax.pretty import INDENT, Layout, layout
from streamlog.syntax.scan import Comment, Scan, scan

# After a type's name the scanner takes no `%` for an operator.
_SAFE_BEFORE_COMMENT = re.compile(r": [a-z]+$")


def format_source(source: Source, module: Module) -> str:
    """The whole file; `module` must be what `parse` made of it, without errors."""
    scanned = scan(source)
    ends = sorted([*scanned.ends, *(comment.span.end for comment in scanned.comments)])
    formatter = _Formatter(scanned, ends)
    notes = [formatter.note(comment) for comment in scanned.comments]
    lines = formatter.block(module.statements, notes)
    return "".join(line + "\n" for line in lines)


@frozen
class _Note:
    """A comment, and how it stands in the text."""

    start: int
    text: str
    behind: bool  # something comes before it on its line
    blank: bool  # an empty line comes before it

    @property
    def fits_behind(self) -> bool:
        return self.behind and "\n" not in self.text


@frozen
class _Written:
    """A statement's lines, the comments that go above it and the one that goes behind it."""

    above: list[_Note]
    lines: list[str]
    tail: list[_Note]


@frozen
class _Places:
    """Where the comments inside a statement go: at its first line, above an item, behind one."""

    lead: list[_Note] = field(factory=list)
    above: dict[int, list[_Note]] = field(factory=dict)
    behind: dict[int, list[_Note]] = field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lead or self.above or self.behind)


@frozen
class _Formatter:
    scan: Scan
    ends: list[int]  # of all tokens and comments

    def note(self, comment: Comment) -> _Note:
        breaks = self._breaks_before(comment.span.start)
        text = comment.text.replace("\r", "")
        return _Note(comment.span.start, text, breaks == 0, breaks > 1)

    def _breaks_before(self, start: int) -> int:
        """The line breaks since the token or comment before; one at the start of the text."""
        at = bisect_right(self.ends, start) - 1
        return self.scan.source.text.count("\n", self.ends[at], start) if at >= 0 else 1

    def block(self, nodes: Sequence[ast.Statement | ast.Step], notes: Sequence[_Note]) -> list[str]:
        """Statements or steps, one below the other, with all of the notes."""
        lines: list[str] = []
        at = 0
        for i, node in enumerate(nodes):
            start, end = node.span.start, node.span.end
            first = _skip(notes, at, start)
            _add_notes(lines, notes[at:first])
            inside = _skip(notes, first, end)
            following = (
                nodes[i + 1].span.start if i + 1 < len(nodes) else len(self.scan.source.text)
            )
            after = inside
            while after < len(notes) and notes[after].behind and notes[after].start < following:
                after += 1
            written = self._written(node, notes[first:inside])
            above, tail = _split_tail([*written.tail, *notes[inside:after]])
            if lines and self._breaks_before(start) > 1:
                lines.append("")
            lines.extend(note.text for note in (*written.above, *above))
            lines.extend(written.lines)
            lines[-1] += tail
            at = after
        _add_notes(lines, notes[at:])
        return lines

    def _written(self, node: ast.Statement | ast.Step, notes: Sequence[_Note]) -> _Written:
        if isinstance(node, ast.Test):
            return self._test(node, notes)
        shape = layout(node)
        above, tail, places = self._placed(node, shape, notes)
        if not places:
            return _Written(above, shape.text().split("\n"), tail)
        lead_above, lead_tail = _split_tail(places.lead)
        lines = shape.lines()
        written = [lines[0] + lead_tail]
        for i, (line, (text, _)) in enumerate(zip(lines[1:], shape.items, strict=False)):
            over, behind = _split_tail(places.behind.get(i, []))
            last_column = shape.closes_apart and i == len(shape.items) - 1
            if last_column and not _SAFE_BEFORE_COMMENT.search(text):
                over, behind = places.behind.get(i, []), ""
            written.extend(INDENT + note.text for note in (*places.above.get(i, []), *over))
            written.append(line + behind)
        written.extend(lines[1 + len(shape.items) :])
        return _Written([*above, *lead_above], written, tail)

    def _placed(
        self, node: ast.Statement | ast.Step, shape: Layout, notes: Sequence[_Note]
    ) -> tuple[list[_Note], list[_Note], _Places]:
        above: list[_Note] = []
        tail: list[_Note] = []
        places = _Places()
        starts = [span.start for _, span in shape.items]
        last = len(starts) - 1
        list_end = self._token_start(node, ")") if shape.closes_apart else node.span.end
        for note in notes:
            at = bisect_right(starts, note.start) - 1
            if last < 0 or note.start > list_end:
                (tail if note.behind else above).append(note)
            elif note.fits_behind:
                if at < 0:
                    places.lead.append(note)
                elif at == last and not shape.closes_apart:
                    tail.append(note)
                else:
                    places.behind.setdefault(at, []).append(note)
            else:
                within = at >= 0 and note.start < shape.items[at][1].end
                places.above.setdefault(at if within else min(at + 1, last), []).append(note)
        return above, tail, places

    def _test(self, test: ast.Test, notes: Sequence[_Note]) -> _Written:
        opening, closing = self._token_start(test, "{", first=True), self._token_start(test, "}")
        body = _skip(notes, 0, opening)
        first_step = test.steps[0].span.start if test.steps else closing
        while body < len(notes) and notes[body].fits_behind and notes[body].start < first_step:
            body += 1
        end = _skip(notes, body, closing)
        above, lead_tail = _split_tail(notes[:body])
        inner = [line and INDENT + line for line in self.block(test.steps, notes[body:end])]
        shape = layout(test)
        if not inner and not lead_tail:
            return _Written(above, [shape.lead + " {}"], list(notes[end:]))
        lines = [shape.lead + shape.close + lead_tail, *inner, "}"]
        return _Written(above, lines, list(notes[end:]))

    def _token_start(self, node: ast.Statement | ast.Step, kind: str, first: bool = False) -> int:
        """Where the statement's first or last token of a kind is."""
        begin = bisect_left(self.scan.starts, node.span.start)
        end = bisect_left(self.scan.starts, node.span.end)
        kinds = self.scan.kinds
        at = kinds.find(kind, begin, end) if first else kinds.rfind(kind, begin, end)
        return self.scan.starts[at]


def _skip(notes: Sequence[_Note], at: int, position: int) -> int:
    """The first note from `at` on that does not start before the position."""
    while at < len(notes) and notes[at].start < position:
        at += 1
    return at


def _add_notes(lines: list[str], notes: Iterable[_Note]) -> None:
    for note in notes:
        if note.behind and lines:
            lines[-1] += "  " + note.text
            continue
        if note.blank and lines:
            lines.append("")
        lines.append(note.text)


def _split_tail(notes: Sequence[_Note]) -> tuple[list[_Note], str]:
    """The notes that have to go above, and the text of the last one behind its line."""
    if notes and notes[-1].fits_behind:
        return list(notes[:-1]), "  " + notes[-1].text
    return list(notes), ""
