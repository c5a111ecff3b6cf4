"""Whether the functions that a program calls exist, and are called with what they take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streamlog.analysis.builtins import FUNCTIONS, INTERNAL, Function
from streamlog.analysis.calendar import TRUNCATIONS
from streamlog.diagnostics import Diagnostic, Span, did_you_mean, finding
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import Agg, Call, Const, Query, Rule, Type
from streamlog.syntax.ast import Function as PythonFunction
from streamlog.syntax.time_forms import (
    KNOWN_DIRECTIVES,
    near_zone,
    unknown_directive,
    zone_of,
)
from streamlog.syntax.walk import walk

# What other languages call it.
_ELSEWHERE = {
    "average": "avg",
    "ceiling": "ceil",
    "coalesce": "default",
    "concat": "X ++ Y",
    "dayofweek": "weekday",
    "extract": "regex_extract",
    "iff": "if",
    "ifnull": "default",
    "isnull": "X = none",
    "len": "length",
    "ln": "log",
    "lcase": "lower",
    "mod": "X % Y",
    "nvl": "default",
    "power": "pow",
    "quantile": "percentile",
    "size": "length",
    "std": "stddev",
    "str": "string",
    "strip": "trim",
    "strlen": "length",
    "trunc": "date_trunc",
    "ucase": "upper",
    "upcase": "upper",
    "variance": "var",
    "when": "if",
}
# Where their arguments name a zone, a part of the calendar, and a format.
_PARTS = ("year", "month", "day", "hour", "minute", "weekday", "date")
_CALENDAR: dict[str, tuple[int | None, int | None, int | None]] = {
    **dict.fromkeys(_PARTS, (1, None, None)),
    "date_trunc": (2, 0, None),
    "format": (2, None, 1),
}


def signature(function: PythonFunction) -> Function:
    """What a Python function takes and gives."""
    arity = len(function.args)
    return Function(arity, arity, ((*function.args, function.result),))


def declared_functions(
    statements: Iterable[PythonFunction],
) -> tuple[dict[str, PythonFunction], list[Diagnostic]]:
    """The Python functions by name, and what is wrong with them."""
    found: dict[str, PythonFunction] = {}
    wrong: list[Diagnostic] = []
    for new in statements:
        if new.name in FUNCTIONS or new.name in AGGREGATES:
            help = f"use another name, such as `my_{new.name}`"
            message = f"`{new.name}` is built in and cannot be defined"
            wrong.append(finding("SL0206", message, new.span, help=help))
        elif (old := found.setdefault(new.name, new)) is not new:
            wrong.append(
                finding(
                    "SL0202",
                    f"`{new.name}` is declared twice",
                    new.span,
                    "declared again here",
                    related=[(old.span, "first declared here")],
                    help="keep one of the two declarations, or rename one of the functions",
                )
            )
    return found, wrong


def check_calls(
    statements: Iterable[Rule | Query], own: Mapping[str, PythonFunction]
) -> Iterator[Diagnostic]:
    """`own` are functions that the program declares."""
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, Call):
                yield from _check_call(node, own)
            elif isinstance(node, Agg) and node.func == "percentile":
                yield from _check_rank(node)


def functions_as_goals(
    asked: Mapping[str, Span], own: Mapping[str, PythonFunction]
) -> Iterator[Diagnostic]:
    """`asked` are predicates that nothing defines; one with a function's name is a slip."""
    for name, span in asked.items():
        if name in own:
            value = "true" if own[name].result is Type.BOOL else "…"
            yield finding(
                "SL0205",
                f"`{name}` is a function, not a predicate",
                span,
                related=[(own[name].span, "declared here")],
                help=f"compare its result: `{name}(…) = {value}`",
            )


def _check_call(call: Call, own: Mapping[str, PythonFunction]) -> Iterator[Diagnostic]:
    function = signature(own[call.name]) if call.name in own else FUNCTIONS.get(call.name)
    count = len(call.args)
    if call.name.startswith(INTERNAL):
        return
    if function is None:
        yield _no_function(call, own)
    elif count < function.least or (function.most is not None and count > function.most):
        wanted = f"{function.least}"
        if function.most is None:
            wanted += " or more"
        elif function.most > function.least:
            wanted += f" to {function.most}"
        yield finding("SL0205", f"`{call.name}` takes {wanted} arguments, not {count}", call.span)
    elif call.name not in own:
        yield from _check_calendar(call)


def _check_calendar(call: Call) -> Iterator[Diagnostic]:
    """The constants that name a zone, a part of the calendar or a format."""
    zone, unit, format_ = _CALENDAR.get(call.name, (None, None, None))
    for place, arg in enumerate(call.args):
        if not isinstance(arg, Const) or not isinstance(text := arg.value, str):
            continue
        message = help = ""
        if place == zone and zone_of(text) is None:
            message, help = f'there is no time zone "{text[:40]}"', near_zone(text)
        elif place == unit and text not in TRUNCATIONS:
            near = did_you_mean(text, TRUNCATIONS)
            message = f'"{text[:40]}" is not a part of the calendar'
            help = f'did you mean "{near}"?' if near else f"they are {', '.join(TRUNCATIONS)}"
        elif place == format_ and (unknown := unknown_directive(text)):
            message, help = f"`{unknown}` means nothing in the format of a time", KNOWN_DIRECTIVES
        if message:
            yield finding("SL0205", message, arg.span, help=help)


def _check_rank(percentile: Agg) -> Iterator[Diagnostic]:
    match percentile.by:
        case Const(int() | float() as rank) if not isinstance(rank, bool) and 0 <= rank <= 1:
            return
    assert percentile.by is not None
    message = "the rank of a percentile is not a number from 0 to 1"
    yield finding("SL0205", message, percentile.by.span, help=percentile.kind.usage)


def _no_function(call: Call, own: Mapping[str, PythonFunction]) -> Diagnostic:
    if call.name in AGGREGATES:
        wanted = "one term" if AGGREGATES[call.name].takes == 1 else "two terms"
        return finding(
            "SL0205",
            f"`{call.name}` is an aggregate, and takes {wanted}, not {len(call.args)}",
            call.span,
            help=AGGREGATES[call.name].usage
            or f"in a head, `{call.name}(X)` aggregates X over all solutions of the body; "
            "to compute with two values, use operators, as in `A + B`",
        )
    if "." in call.name:  # no function's name has a dot
        text = call.span.text
        return finding(
            "SL0205",
            f"`{text}` is not a term",
            call.span,
            help=(
                f"as a goal of its own, `{text}` is a predicate of the file used as "
                f"`{call.name.split('.')[0]}`",
                f'a text with a dot is written in quotes, "{call.name}"',
            ),
        )
    known = FUNCTIONS.keys() | own.keys()
    word = call.name.lower().removeprefix("to").strip("_")  # toString, to_int
    near = word if word in known else _ELSEWHERE.get(call.name.lower())
    near = near or did_you_mean(call.name, known | AGGREGATES.keys())
    help = [f"did you mean `{near}`?"] if near else []
    help.append(f"the functions are {', '.join(sorted(known))}")
    help.append(f"the aggregates, for heads, are {', '.join(sorted(AGGREGATES))}")
    if not near:
        help.append(f"a predicate is a goal of its own: `{call.name}(…)` cannot be part of a term")
    return finding("SL0205", f"there is no function `{call.name}`", call.span, help=tuple(help))
