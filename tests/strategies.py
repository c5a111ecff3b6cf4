"""Random syntax trees: every shape that text can have, with names that invite confusion."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import strategies as st

from streamlog.diagnostics import Source, Span
from streamlog.syntax import ast
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import INT64_MAX, INT64_MIN, Type
from streamlog.syntax.data_path import DataPath
from streamlog.syntax.declare import STREAM_OPTIONS
from streamlog.syntax.nothing import NONE, Nothing
from streamlog.syntax.time_form import OF_TWO, TIME_UNITS, TimeForm

NOWHERE = Span(Source("generated", ""), 0, 0)

KEYWORDS = (
    "stream table output export extend use test from arrive late reject given advance end expect "
    "none arrives"
)
words = st.sampled_from(f"p q msg first last max count sum tick rejected slack {KEYWORDS}".split())
predicates = words | st.sampled_from(["m.p", "auth.net.max", "use.as", "end.end", "test.stream"])
columns = st.sampled_from(["T", "a", "b", "area", "Price", "from", "type", "time"])
functions = st.sampled_from(["f", "abs", "length", "floor", "stream", "lgr"])
paths = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
int64 = st.integers(INT64_MIN, INT64_MAX) | st.integers(-9, 9)
durations = st.builds(
    lambda n, unit: n * unit, st.integers(-50, 50), st.sampled_from([1, 1000, 10**6, 6 * 10**7])
) | st.integers(INT64_MIN, INT64_MAX)


def build(cls: Any, *args: Any, **kwargs: Any) -> st.SearchStrategy[Any]:
    return st.builds(cls, *args, **kwargs, span=st.just(NOWHERE))


def const(values: st.SearchStrategy[Any], type_: Type) -> st.SearchStrategy[ast.Const]:
    return build(ast.Const, values, st.just(type_))


variables = build(ast.Var, st.sampled_from(["X", "Y", "T", "T1", "_", "_x", "SL0401", "Ärger"]))
texts = (
    st.sampled_from(["red", "not", "true", "", "a b", "it's", 'say "x"', "100%", "a//b"]) | paths
)
numbers = (
    const(int64, Type.INT)
    | const(st.floats(allow_nan=False, allow_infinity=False), Type.FLOAT)
    | const(durations, Type.DURATION)
)
times = const(st.integers(FIRST_TIME, LAST_TIME), Type.TIME)
nothing = st.just(ast.Const(NONE, None, span=NOWHERE))
constants = numbers | times | const(texts, Type.STRING) | const(st.booleans(), Type.BOOL) | nothing


def _is_number(term: ast.Term) -> bool:
    return isinstance(term, ast.Const) and type(term.value) in (int, float)


def _starts_with_text(term: ast.Term) -> bool:
    while not isinstance(term, ast.Const):
        if isinstance(term, ast.BinOp):
            term = term.left
        elif isinstance(term, ast.Neg):
            term = term.operand
        else:
            return False
    return isinstance(term.value, str | bool | Nothing)


def _is_possible(term: ast.BinOp) -> bool:
    """`X % red` has no spelling: there `%` begins a comment."""
    return term.op not in ("%", "//") or not _starts_with_text(term.right)


# The first argument of `if`.
conditions = build(
    ast.BinOp, st.sampled_from(ast.COMPARISONS), variables | constants, variables | constants
)


ops = st.sampled_from(sorted(ast.PRECEDENCE))


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    args = st.lists(inner, max_size=3).map(tuple)
    two = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return (
        build(ast.Neg, inner.filter(lambda t: not _is_number(t)))
        | build(ast.BinOp, ops, inner, inner).filter(_is_possible)
        | build(ast.Call, functions, args)
        | build(ast.Call, st.sampled_from(["min", "max"]), two)
        | build(ast.Call, st.just("if"), st.tuples(conditions, inner, inner))
    )


terms = st.recursive(variables | constants, _compound, max_leaves=6)
aggregates = (
    build(ast.Agg, st.sampled_from([n for n, a in AGGREGATES.items() if a.takes == 1]), terms)
    | build(
        ast.Agg, st.sampled_from([n for n, a in AGGREGATES.items() if a.takes == 2]), terms, terms
    )
    | build(ast.Agg, st.just("count"), st.none())
)
atoms = build(ast.Atom, predicates, st.lists(terms, max_size=3).map(tuple))
computed = build(ast.BinOp, ops, aggregates, terms | aggregates).filter(_is_possible) | build(
    ast.Neg, aggregates
)
heads = build(ast.Atom, predicates, st.lists(terms | aggregates | computed, max_size=3).map(tuple))
comparisons = build(ast.Comparison, st.sampled_from(ast.COMPARISONS), terms, terms) | build(
    ast.Comparison,
    st.just("="),
    build(ast.Call, st.just("in"), st.lists(terms, min_size=2, max_size=4).map(tuple)),
    build(ast.Const, st.just(True), st.just(Type.BOOL)),
)


def _goals(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    body = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return build(ast.Not, body) | build(
        ast.Choice, st.lists(body, min_size=2, max_size=3).map(tuple)
    )


orders = build(ast.Order, terms | aggregates, st.booleans())
_some_terms = st.lists(terms, max_size=2).map(tuple)
_places = st.integers(1, 9)
limits = build(
    ast.Limit,
    _places,
    st.lists(orders, min_size=1, max_size=2).map(tuple),
    _some_terms,
    st.integers(0, 9),
)
literals = st.recursive(atoms | comparisons, _goals, max_leaves=5)
bodies = st.lists(literals, min_size=1, max_size=4).map(tuple)
names = build(ast.PredName, predicates)
relations = st.lists(comparisons, max_size=2).map(tuple)
_named = st.lists(columns, max_size=4, unique_by=str.casefold).map(tuple)
answers = names | build(ast.PredName, predicates, _named)

# ------------------------------------------------------------------------------- declarations


def _column(
    name: str,
    type_: Type | None,
    ends: tuple[int, int] | None,
    form: TimeForm | None,
    path: DataPath | None,
    optional: bool,
) -> ast.Column:
    if path is not None and path != DataPath((name,)):
        return evolve(_column(name, type_, ends, form, None, optional), path=path)
    if type_ is not None and optional:
        return evolve(_column(name, type_, ends, form, None, False), optional=True)
    if type_ is not Type.TIME:
        form = None
    if type_ in (None, Type.STRING, Type.BOOL) or ends is None:
        return ast.Column(name, type_, form=form, span=NOWHERE)
    value = float if type_ is Type.FLOAT else int
    low, high = (ast.Const(value(n), type_, span=NOWHERE) for n in sorted(ends))
    return ast.Column(name, type_, low, high, form, span=NOWHERE)


def _numbering(column: ast.Column) -> ast.Column:
    """Some have the number of a row."""
    plain = column.type is Type.INT and not column.optional and column.path is None
    return evolve(column, is_row=True) if plain and column.name in ("a", "b") else column


_ends = st.none() | st.tuples(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
_forms = (
    st.none()
    | st.builds(TimeForm, st.sampled_from(sorted(TIME_UNITS)))
    | st.builds(
        TimeForm,
        format=st.sampled_from(["%Y-%m-%d", "%d.%m.%y 100%%", '%j/%Y %I"%p', "%B %d %Y\t%z"]),
    )
    | st.builds(
        TimeForm,
        format=st.just("%d.%m.%Y %H:%M:%S.%f"),
        zone=st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"]),
        of_two=st.sampled_from(["", *OF_TWO]),
    )
)
_keys = st.lists(columns | st.text(min_size=1, max_size=3) | st.just("a.b"), max_size=2).map(tuple)
_list = ("a", "[items]")
_paths = (
    st.none()
    | st.builds(lambda key, keys: DataPath((key, *keys)), columns | st.text(min_size=1), _keys)
    | st.builds(lambda keys: DataPath((*_list, *keys), len(_list)), _keys)
)
column_lists = st.lists(
    st.builds(
        _column, columns, st.none() | st.sampled_from(Type), _ends, _forms, _paths, st.booleans()
    ),
    max_size=4,
    unique_by=lambda c: c.name,
).map(lambda found: tuple(map(_numbering, found)))


def _timed(found: tuple[ast.Column, ...]) -> tuple[ast.Column, ...]:
    """A stream's timestamp is not optional."""
    return (*(evolve(c, optional=False) for c in found[:1]), *found[1:])


_durations = const(st.integers(0, INT64_MAX), Type.DURATION)
_limits = _durations | const(st.integers(0, 99), Type.INT)
_from = build(ast.Option, st.just("from"), const(paths, Type.STRING))
_limited = [name for name in STREAM_OPTIONS[1:] if name != ast.ARRIVES_WITHIN]
_limit = build(ast.Option, st.sampled_from(_limited), _limits) | build(
    ast.Option, st.just(ast.ARRIVES_WITHIN), _durations
)


def _options(option: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(option, max_size=3, unique_by=lambda o: o.name).map(tuple)


_times = st.lists(columns, min_size=2, max_size=3, unique=True).map(
    lambda names: tuple(ast.Column(n, Type.TIME, span=NOWHERE) for n in names)
)
_timing = st.sampled_from(["slack", "horizon"])
_on_several = st.builds(
    lambda name, found, options, of_first, of_last: ast.Stream(
        name,
        found,
        options,
        progress=(
            ast.Timeline(found[0].name, of_first, span=NOWHERE),
            ast.Timeline(found[-1].name, of_last, span=NOWHERE),
        ),
        span=NOWHERE,
    ),
    words,
    _times,
    _options(_from),
    _options(build(ast.Option, _timing | st.just("idle"), _limits)),
    _options(build(ast.Option, _timing, _limits)),
)


def _stamped(name: str, found: tuple[ast.Column, ...], last: bool) -> ast.Stream:
    """A stream whose first or last column is the time of arrival."""
    at = len(found) - 1 if last else 0
    columns = (evolve(c, is_arrival=True) if i == at else c for i, c in enumerate(found))
    return ast.Stream(name, tuple(columns), (), span=NOWHERE)


_arriving = st.builds(_stamped, words, _times, st.booleans())

# -------------------------------------------------------------------------- tests and modules

steps = st.one_of(
    build(ast.Arrive, atoms, st.sampled_from(["accepted", "late", "rejected"])),
    build(ast.Given, names, paths),
    build(ast.Advance, terms),
    build(ast.Advance, terms, words | st.tuples(words, words).map(".".join)),
    build(ast.End),
    build(ast.Expect, st.lists(atoms, min_size=1, max_size=3).map(tuple)),
    build(ast.ExpectNone, names),
    build(ast.ExpectFrom, names, paths),
    build(ast.Rejected, st.sampled_from(["SL0401", "SL0101"])),
)
_rules = build(ast.Rule, heads, bodies, st.none() | limits)
statements = st.one_of(
    _rules,
    _rules,
    build(ast.Fact, atoms),
    build(ast.Query, bodies),
    build(ast.Stream, words, column_lists.map(_timed), _options(_from | _limit), relations),
    _on_several,
    _arriving,
    build(ast.Table, words, column_lists, _options(_from), relations),
    build(ast.Output, st.lists(answers, min_size=1, max_size=3).map(tuple)),
    build(ast.Use, paths, st.none() | words),
    build(ast.Export, st.lists(build(ast.PredName, words), min_size=1, max_size=3).map(tuple)),
    build(ast.Extend, st.lists(names, min_size=1, max_size=3).map(tuple)),
    build(
        ast.Function,
        words,
        st.lists(st.sampled_from(ast.Type), max_size=3).map(tuple),
        st.sampled_from(ast.Type),
        paths,
    ),
    build(ast.Test, paths, st.lists(steps, max_size=4).map(tuple)),
)
_annotations = st.lists(
    st.one_of(
        build(ast.Annotation, st.sampled_from(["id", "owner"]), st.tuples(paths)),
        build(ast.Annotation, st.just("severity"), st.sampled_from([("low",), ("high",)])),
        build(ast.Annotation, st.just("tags"), st.lists(paths, min_size=1, max_size=3).map(tuple)),
    ),
    max_size=3,
    unique_by=lambda annotation: annotation.name,
)
_blocks = statements.map(lambda one: (one,)) | st.builds(
    lambda above, rule: (*above, rule), _annotations, _rules
)
modules = build(ast.Module, st.lists(_blocks, max_size=4).map(lambda blocks: sum(blocks, start=())))
