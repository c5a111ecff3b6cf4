"""What holds for every tree and every text."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import modules

from streamlog.diagnostics import Source
from streamlog.syntax import ast
from streamlog.syntax.format import format_source
from streamlog.syntax.parse import parse
from streamlog.syntax.pretty import pretty
from streamlog.syntax.scan import ANNOTATION, scan
from streamlog.syntax.walk import children, map_terms, transform, walk

PROGRAM = """\
% The running example.
stream pre_alarm(T: time, area: string) slack 10s.
stream report(T: time, area: string, level: int -5..5) slack 10s idle 30s.
table adjacent(a: string, b: string) from "adjacent.csv".
output pc_alarm.

pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A, _), T <= T1, T1 <= T + 5min).
vol(T, S, sum(C), min<D>) <- trade(T, S, C, D), (C > 3 ; D != "x" ++ S), X = C % 2 * -(D - 1.5e3).
?pc_alarm(@2026-11-15T08:00:00Z, gate1).
test "it is raised" {
    pre_alarm(@2026-11-15T08:00:00Z, gate1).  /* first */
    advance @2026-11-15.  expect none pc_alarm.
    end.
}
"""


def read(text: str) -> ast.Module:
    module, found = parse(Source("t.slog", text))
    assert found == ()
    return module


def formatted(text: str) -> str:
    source = Source("t.slog", text)
    return format_source(source, read(text))


def comments(text: str) -> Counter[str]:
    return Counter(comment.text for comment in scan(Source("t.slog", text)).comments)


@given(modules)
@settings(max_examples=300, deadline=None)
def test_what_is_printed_reads_back(module: ast.Module) -> None:
    assert read(pretty(module)) == module


@given(modules)
@settings(max_examples=150, deadline=None)
def test_formatting_keeps_the_meaning_and_is_done_once(module: ast.Module) -> None:
    once = formatted(pretty(module))
    assert read(once) == module
    assert formatted(once) == once


def _no_percent(term: ast.Term) -> ast.Term:
    """A comment beside `%` or `//` makes that one a comment too."""
    if isinstance(term, ast.BinOp) and term.op in ("%", "//"):
        return ast.BinOp("*", term.left, term.right, span=term.span)
    return term


@given(modules, st.data())
@settings(max_examples=300, deadline=None)
def test_formatting_keeps_every_comment(module: ast.Module, data: st.DataObject) -> None:
    module = map_terms(module, _no_percent)
    text = pretty(module)
    scanned = scan(Source("t.slog", text))
    # An annotation is one line.
    annotations = [(a, b) for a, b in scanned.statements if scanned.kinds[a] == ANNOTATION]
    inside = {at for first, stop in annotations for at in range(first, stop - 1)}
    ends = [end for at, end in enumerate(scanned.ends) if at not in inside]
    places = data.draw(st.lists(st.sampled_from([0, *ends]), max_size=6))
    spellings = st.sampled_from(
        ["%% note {} x\n", "// note {} x\n", "/* note {} */", "/* note\n {} */", "\n% note {}\n\n"]
    )
    for number, place in enumerate(sorted(places, reverse=True)):
        note = data.draw(spellings).format(number)
        text = f"{text[:place]} {note} {text[place:]}"
    once = formatted(text)
    assert read(once) == read(text) == module
    assert comments(once) == comments(text)
    assert formatted(once) == once


_PIECES = [
    *"().,;:{}<>=!~?%/@'\"\\-_*#&|\n ",
    "<-",
    ":-",
    "not ",
    "5min",
    "X",
    "p(X)",
    "m.p",
    "//",
    "/*",
    "*/",
]


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_any_text_ends_in_a_tree_and_diagnostics(data: st.DataObject) -> None:
    text = PROGRAM
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 6))
        text = text[:start] + data.draw(st.sampled_from(["", *_PIECES])) + text[start + length :]
    source = Source("t.slog", text)
    module, found = parse(source)
    for diagnostic in found:
        assert all(label.span.source is source for label in diagnostic.labels)
    if not found:
        assert read(pretty(module)) == module
        once = format_source(source, module)
        assert read(once) == module
        assert comments(once) == comments(text)
        assert formatted(once) == once


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_arbitrary_text_never_fails(text: str) -> None:
    module, found = parse(Source("t.slog", text))
    assert isinstance(module, ast.Module)
    assert all(d.span.end <= len(text) for d in found)


@given(modules)
@settings(max_examples=100, deadline=None)
def test_children_lie_inside_their_parents(module: ast.Module) -> None:
    for node in walk(read(pretty(module))):
        for child in children(node):
            assert node.span.start <= child.span.start <= child.span.end <= node.span.end
        if isinstance(node, ast.Var):
            assert node.span.text == node.name


@given(modules)
@settings(max_examples=100, deadline=None)
def test_an_idle_transformation_returns_the_same_object(module: ast.Module) -> None:
    assert transform(module, lambda node: node) is module
