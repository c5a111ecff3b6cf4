"""What the grammar makes of declarations and of the steps of a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from streamlog.diagnostics import Span, did_you_mean, finding
from streamlog.syntax import build, literals
from streamlog.syntax.ast import (
    ARRIVES_WITHIN,
    Advance,
    Arrive,
    Column,
    Const,
    End,
    Expect,
    ExpectFrom,
    ExpectNone,
    Export,
    Extend,
    Function,
    Given,
    Option,
    Output,
    PredName,
    Rejected,
    Stream,
    Table,
    Timeline,
    Type,
    Use,
)
from streamlog.syntax.data_paths import AS, Placed, check_lists, one_path
from streamlog.syntax.intervals import EndColumn
from streamlog.syntax.operands import Operand
from streamlog.syntax.time_forms import Form
from streamlog.syntax.timelines import (
    OF_A_TIMELINE,
    check_arrivals,
    check_timelines,
    of_its_own,
)
from streamlog.syntax.tokens import Refused, Tokens

TYPES = {t.value: t for t in Type}
STREAM_OPTIONS = ("from", "slack", "idle", "horizon", ARRIVES_WITHIN, "keep")
TABLE_OPTIONS = ("from",)
WHERE = "where"  # before the relations between columns
PROGRESS = "progress"  # before the timelines
_TAKES: dict[str, tuple[tuple[Type, ...], str]] = {
    "from": ((Type.STRING,), 'a path in quotes, as in `from "rows.csv"`'),
    ARRIVES_WITHIN: ((Type.DURATION,), "a duration, as in `arrives within 10s`"),
}
ROW, ARRIVAL = "row", "arrival"
_TYPE_SLIPS = {
    **dict.fromkeys(("integer", "long", "bigint", "number", "int64"), "int"),
    **dict.fromkeys(("double", "real", "decimal", "numeric", "float64"), "float"),
    **dict.fromkeys(("str", "text", "varchar", "symbol"), "string"),
    **dict.fromkeys(("timestamp", "datetime", "date"), "time"),
    **dict.fromkeys(("interval", "timedelta"), "duration"),
}


@frozen
class Optional:
    """The `?` behind a type."""

    at: int


def optional(tokens: Tokens, start: int, end: int) -> Optional:
    if tokens.text(start) != "?":  # `?-`, which begins a query
        help = "write a space after the `?`"
        raise _contradiction("a range begins too near", tokens.span(start, end), help=help)
    return Optional(start)


@frozen
class FromEngine:
    """The word behind the type of a column that the engine fills: `row` or `arrival`."""

    at: int


def given_by_engine(tokens: Tokens, start: int, end: int) -> FromEngine:
    if (word := tokens.text(start)) not in (ROW, ARRIVAL):
        help = (
            f"what may follow a type is `{ROW}`, for the number of a row in its file, or "
            f"`{ARRIVAL}`, for the time at which it arrived"
        )
        raise _contradiction(f"unknown word `{word}`", tokens.span(start, end), help=help)
    return FromEngine(start)


def column(tokens: Tokens, start: int, found: list[Any]) -> Column:
    placed = [x for x in found if isinstance(x, Placed)]
    words = [x.at for x in found if isinstance(x, FromEngine)]
    plain = _column(tokens, [x for x in found if not isinstance(x, Placed | FromEngine)])
    if words:
        span = plain.span.to(tokens.span(words[0], words[0] + 1))
        if tokens.text(words[0]) == ARRIVAL:
            if plain != Column(plain.name, Type.TIME, span=plain.span) or placed:
                message = "the time at which a row arrives is a plain `time`, given by the engine"
                help = f"write `{plain.name}: time {ARRIVAL}`"
                raise _contradiction(message, span, help=help)
            return evolve(plain, is_arrival=True, span=span)
        if plain.type is not Type.INT or plain.optional or placed:
            message = "the number of a row is an `int`, and not in the data"
            raise _contradiction(message, span, help=f"write `{plain.name}: int {ROW}`")
        return evolve(plain, is_row=True, span=span)
    if not placed:
        return plain
    span = plain.span.to(tokens.span(placed[-1].start, placed[-1].end))
    span = tokens.span(start, start + 1).to(plain.span if placed[-1].start == start else span)
    return evolve(plain, path=one_path(tokens, plain.name, placed), span=span)


def _column(tokens: Tokens, found: list[Any]) -> Column:
    start = found[0]
    name = tokens.text(start)
    if len(found) == 1:
        return Column(name, span=tokens.span(start, start + 1))
    at = found[1]
    if len(found) == 3 and isinstance(found[2], EndColumn):
        interval = (tokens.text(at), tokens.text(found[2].at))
        return Column(name, ends=interval, span=tokens.span(start, found[2].at + 1))
    type_ = _type(tokens, at)
    form = end = None
    optional = any(isinstance(x, Optional) for x in found)
    end_of_type = next((x.at for x in found if isinstance(x, Optional)), at) + 1
    found = [x for x in found if not isinstance(x, Optional)]
    if len(found) > 2 and isinstance(found[2], Form):
        form, end = found[2].form, found[2].end
        if type_ is not Type.TIME:
            place = tokens.span(at, end)
            message = f"a unit or a format is for a time; this column is of type {type_}"
            raise _contradiction(message, place)
    ends = found[3:] if form else found[2:]
    if not ends:
        last = max(end or 0, end_of_type)
        return Column(name, type_, form=form, optional=optional, span=tokens.span(start, last))
    low, high = map(_bound, ends)
    place = tokens.span(ends[0].start, ends[1].end)
    if low.type is not high.type or not (
        low.type is type_ or (type_ is Type.FLOAT and low.type is Type.INT)
    ):
        types = f"{low.type} to {high.type}" if low.type is not high.type else f"{low.type}"
        raise _contradiction(f"a range of {types} for a column of type {type_}", place)
    if low.value > high.value:  # type: ignore[operator]  # both are numbers
        raise _contradiction("this range is empty: its low end is above its high end", place)
    span = tokens.span(start, ends[1].end)
    return Column(name, type_, low, high, form, optional=optional, span=span)


def _type(tokens: Tokens, at: int) -> Type:
    word = tokens.text(at)
    if word in TYPES:
        return TYPES[word]
    guess = _TYPE_SLIPS.get(word.lower()) or did_you_mean(word.lower(), TYPES)
    if word.lower() in TYPES:
        guess = word.lower()
    help = f"did you mean `{guess}`?" if guess else f"the types are {', '.join(TYPES)}"
    raise _contradiction(f"unknown type `{word}`", tokens.span(at, at + 1), help=help)


def _bound(operand: Operand) -> Const:
    assert isinstance(operand.value, Const)
    return operand.value


def option(tokens: Tokens, start: int, found: list[Any]) -> Option:
    """Any word and value: `declaration` says which of them are wrong."""
    value = found[1].value
    span = tokens.span(start, found[1].end)
    name = " ".join(tokens.text(at) for at in range(start, found[0] + 1))
    if name not in STREAM_OPTIONS:
        guess = did_you_mean(name, STREAM_OPTIONS) or next(
            (o for o in STREAM_OPTIONS if name in o.split() or did_you_mean(name, o.split())), None
        )
        known = ", ".join(STREAM_OPTIONS)
        help = f"did you mean `{guess}`?" if guess else f"the options are {known}"
        place = tokens.span(start, found[0] + 1)
        raise _contradiction(f"unknown option `{name}`", place, help=help)
    wanted, example = _TAKES.get(
        name, ((Type.DURATION, Type.INT), f"a duration or an integer, as in `{name} 10s`")
    )
    quoted = name != "from" or tokens[found[1].end - 1] == "S"
    if not isinstance(value, Const) or value.type not in wanted or not quoted:
        place = tokens.span(found[1].start, found[1].end)
        raise _contradiction(f"`{name}` takes {example}", place)
    if type(value.value) is int and value.value < 0:
        place = tokens.span(found[1].start, found[1].end)
        raise _contradiction(f"`{name}` cannot be negative", place)
    return Option(name, value, span=span)


def timeline(tokens: Tokens, start: int, found: list[Any]) -> Timeline:
    span = tokens.span(found[0], found[0] + 1)
    options = tuple(found[1:])
    _check_twice(options)
    return Timeline(
        tokens.text(found[0]), options, span=span.to(options[-1].span) if options else span
    )


def declaration(tokens: Tokens, start: int, found: list[Any]) -> Stream | Table:
    kind, name = tokens.text(start), tokens.text(found[1])
    columns = tuple(x for x in found if isinstance(x, Column))
    # Behind the last timeline those of the stream may stand, too.
    timelines = tuple(x for x in found if isinstance(x, Timeline))
    own = (o for t in timelines for o in t.options if o.name not in OF_A_TIMELINE)
    options = (*(x for x in found if isinstance(x, Option)), *own)
    timelines = tuple(map(of_its_own, timelines))
    places: dict[str, Span] = {}
    for col in columns:
        if col.name != "_" and col.name in places:
            first = (places[col.name], "the first")
            raise _contradiction(f"two columns named `{col.name}`", col.span, "the second", first)
        places[col.name] = col.span
    check_lists(columns)
    _check_twice(options)
    span = tokens.span(start, found[-1] + 1)
    where = next((x.body(tokens) for x in found if isinstance(x, build.Goals)), ())
    if kind == "stream" and columns and columns[0].optional:
        message = "the timestamp of a stream cannot be missing"
        raise _contradiction(message, columns[0].span, help="drop the `?` after its type")
    check_arrivals(kind == "stream", columns, timelines, options)
    check_timelines(kind == "stream", timelines, columns, options)
    if kind == "stream":
        return Stream(name, columns, options, where, timelines, span=span)
    for opt in options:
        if opt.name not in TABLE_OPTIONS:
            raise _contradiction(
                f"a table has no `{opt.name}`",
                opt.span,
                related=(tokens.span(start, start + 2), "a table is not timestamped"),
                help="the only option of a table is `from`; for timestamped rows declare a stream",
            )
    return Table(name, columns, options, where, span=span)


def _check_twice(options: Sequence[Option]) -> None:
    places: dict[str, Span] = {}
    for opt in options:
        if opt.name in places:
            first = (places[opt.name], "first here")
            raise _contradiction(f"`{opt.name}` is given twice", opt.span, "again here", first)
        places[opt.name] = opt.span


def output(tokens: Tokens, start: int, found: list[Any]) -> Output | Export | Extend:
    *preds, end = found
    span, word = tokens.span(start, end + 1), tokens.text(start)
    if word == "output":
        return Output(tuple(preds), span=span)
    for pred in preds:
        if pred.columns:
            help = f"write `{word} {pred.name}.`"
            raise _contradiction(f"`{word}` names no columns", pred.span, help=help)
        if word == "export" and "." in pred.name:
            reason = "a file exports what it defines, not what it uses under an alias"
            raise _contradiction(reason, pred.span, help="let the other file export it")
    return (Export if word == "export" else Extend)(tuple(preds), span=span)


def answer(tokens: Tokens, start: int, found: list[Any]) -> PredName:
    """`p`, or `p(a, b)` with names for the columns."""
    if len(found) == 1:
        return _pred(tokens, found[0])
    at, *columns, end = found
    places: dict[str, Span] = {}
    for column in columns:
        name, span = tokens.text(column), tokens.span(column, column + 1)
        # Not every file format tells `Ab` from `AB`.
        if (first := places.setdefault(name.casefold(), span)) is not span:
            related = (first, "the first")
            raise _contradiction(f"two columns named `{name}`", span, "the second", related)
    names = tuple(tokens.text(column) for column in columns)
    return PredName(tokens.text(at), names, span=tokens.span(at, end + 1))


def use(tokens: Tokens, start: int, found: list[Any]) -> Use:
    path, *alias, end = found
    name = None
    if alias:
        word, at = alias
        if (said := tokens.text(word)) != AS:
            help = 'an alias is written `use "lib/auth.slog" as auth.`'
            raise tokens.refuse("SL0101", f"unknown word `{said}`", word, word + 1, help=help)
        name = tokens.text(at)
    return Use(_text(tokens, path), name, span=tokens.span(start, end + 1))


def function(tokens: Tokens, start: int, found: list[Any]) -> Function:
    name, *types, path, end = found
    *args, result = (_type(tokens, at) for at in types)
    span = tokens.span(start, end + 1)
    return Function(tokens.text(name), tuple(args), result, _text(tokens, path), span=span)


def test_name(tokens: Tokens, start: int, found: list[Any]) -> str:
    return _text(tokens, found[0])


# -------------------------------------------------------------------------------------- steps


def fact(tokens: Tokens, start: int, found: list[Any]) -> Arrive:
    return Arrive(found[0], span=tokens.span(start, found[-1] + 1))


def arrive(tokens: Tokens, start: int, found: list[Any]) -> Arrive:
    fate = "late" if tokens[start] == "a" else "rejected"
    return Arrive(found[0], fate, span=tokens.span(start, found[-1] + 1))


def given(tokens: Tokens, start: int, found: list[Any]) -> Given:
    span = tokens.span(start, found[-1] + 1)
    return Given(_pred(tokens, found[0]), _text(tokens, found[1]), span=span)


def advance(tokens: Tokens, start: int, found: list[Any]) -> Advance:
    time = build.expression(tokens, found[:-1])
    return Advance(time, span=tokens.span(start, found[-1] + 1))


def advance_one(tokens: Tokens, start: int, found: list[Any]) -> Advance:
    name, to, *time, end = found
    if tokens.text(to) != "to":
        raise tokens.refuse("SL0101", "expected `to`", to, to + 1, help="write `advance s to 5.`")
    span = tokens.span(start, end + 1)
    return Advance(build.expression(tokens, time), tokens.text(name), span=span)


def end(tokens: Tokens, start: int, found: list[Any]) -> End:
    return End(span=tokens.span(start, found[-1] + 1))


def expect(tokens: Tokens, start: int, found: list[Any]) -> Expect:
    return Expect(tuple(found[:-1]), span=tokens.span(start, found[-1] + 1))


def expect_none(tokens: Tokens, start: int, found: list[Any]) -> ExpectNone:
    return ExpectNone(_pred(tokens, found[0]), span=tokens.span(start, found[-1] + 1))


def expect_from(tokens: Tokens, start: int, found: list[Any]) -> ExpectFrom:
    span = tokens.span(start, found[-1] + 1)
    return ExpectFrom(_pred(tokens, found[0]), _text(tokens, found[1]), span=span)


def rejected(tokens: Tokens, start: int, found: list[Any]) -> Rejected:
    return Rejected(tokens.text(found[0]), span=tokens.span(start, found[-1] + 1))


def _pred(tokens: Tokens, at: int) -> PredName:
    return PredName(tokens.text(at), span=tokens.span(at, at + 1))


def _text(tokens: Tokens, at: int) -> str:
    return literals.unquoted(tokens.text(at), tokens.span(at, at + 1))


def _contradiction(
    message: str,
    span: Span,
    label: str = "",
    related: tuple[Span, str] | None = None,
    help: str = "",
) -> Refused:
    others = (related,) if related else ()
    return Refused(
        finding("SL0105", message, span, label, related=others, help=(help,) if help else ())
    )
