"""The functions and goals the language brings along, and what types they take.

A signature is a tuple of types, the result last. The same tables serve the arity check, type
inference and the reference in `docs/language.md`.
"""

from __future__ import annotations

from attrs import frozen

from streamlog.syntax.ast import EVERY, PAIRS, Type

Signature = tuple[Type, ...]

INT, FLOAT, STRING, BOOL = Type.INT, Type.FLOAT, Type.STRING, Type.BOOL
TIME, DURATION = Type.TIME, Type.DURATION


def _alike(types: tuple[Type, ...], arity: int) -> tuple[Signature, ...]:
    return tuple((t,) * arity for t in types)


# int and float mix; the result is a float.
_MIXED: tuple[Signature, ...] = ((INT, FLOAT, FLOAT), (FLOAT, INT, FLOAT), (FLOAT, FLOAT, FLOAT))
_NUMERIC: tuple[Signature, ...] = ((INT, INT, INT), *_MIXED)

OPERATORS: dict[str, tuple[Signature, ...]] = {
    "+": (
        *_NUMERIC,
        (TIME, DURATION, TIME),
        (DURATION, TIME, TIME),
        (DURATION, DURATION, DURATION),
    ),
    "-": (
        *_NUMERIC,
        (TIME, DURATION, TIME),
        (TIME, TIME, DURATION),
        (DURATION, DURATION, DURATION),
    ),
    "*": (*_NUMERIC, (DURATION, INT, DURATION), (INT, DURATION, DURATION)),
    "/": ((INT, INT, FLOAT), *_MIXED, (DURATION, DURATION, FLOAT)),
    "//": (*_NUMERIC, (DURATION, INT, DURATION), (DURATION, DURATION, INT)),
    "%": (*_NUMERIC, (DURATION, DURATION, DURATION)),
    "++": ((STRING, STRING, STRING),),
}
NEGATION: tuple[Signature, ...] = _alike((INT, FLOAT, DURATION), 2)
EQUALITY: tuple[Signature, ...] = _alike(tuple(Type), 2)
ORDER: tuple[Signature, ...] = (*EQUALITY, (INT, FLOAT), (FLOAT, INT))


# A comparison as a value, in `if`.
CONDITIONS: dict[str, tuple[Signature, ...]] = {
    **{op: tuple((*s, BOOL) for s in EQUALITY) for op in ("=", "!=")},
    **{op: tuple((*s, BOOL) for s in ORDER) for op in ("<", "<=", ">", ">=")},
}


@frozen
class Function:
    least: int
    most: int | None  # None: as many as one likes
    signatures: tuple[Signature, ...]  # of the least arity

    def for_arity(self, arity: int) -> tuple[Signature, ...]:
        """`max`, `min` and `in` repeat a type; `substr` may lack its length."""
        if self.most is None:
            return tuple((*(s[:1] * arity), s[-1]) for s in self.signatures)
        return tuple(s for s in self.signatures if len(s) == arity + 1)


_STEPPED: tuple[Signature, ...] = (
    (TIME, DURATION, TIME),
    (DURATION, DURATION, DURATION),
    (INT, INT, INT),
    (FLOAT, FLOAT, FLOAT),
)

FUNCTIONS: dict[str, Function] = {
    "max": Function(2, None, _alike(tuple(Type), 3)),
    "min": Function(2, None, _alike(tuple(Type), 3)),
    "abs": Function(1, 1, NEGATION),
    "floor": Function(2, 2, _STEPPED),
    "ceil": Function(2, 2, _STEPPED),
    "length": Function(1, 1, ((STRING, INT),)),
    "lower": Function(1, 1, ((STRING, STRING),)),
    "upper": Function(1, 1, ((STRING, STRING),)),
    "substr": Function(2, 3, ((STRING, INT, STRING), (STRING, INT, INT, STRING))),
}

_ZONED: tuple[Signature, ...] = ((TIME, INT), (TIME, STRING, INT))
_OF_NUMBERS: tuple[Signature, ...] = ((INT, FLOAT), (FLOAT, FLOAT))
FUNCTIONS |= {
    "if": Function(3, 3, tuple((BOOL, t, t, t) for t in Type)),
    "in": Function(2, None, tuple((t, t, BOOL) for t in Type)),
    "int": Function(1, 1, tuple((t, INT) for t in Type)),
    "float": Function(1, 1, ((INT, FLOAT), (FLOAT, FLOAT), (STRING, FLOAT))),
    "string": Function(1, 1, tuple((t, STRING) for t in (INT, FLOAT, STRING, BOOL))),
    "time": Function(1, 1, ((STRING, TIME), (INT, TIME))),
    "duration": Function(1, 1, ((STRING, DURATION), (INT, DURATION))),
    "round": Function(1, 2, ((FLOAT, INT), (FLOAT, INT, FLOAT))),
    "sqrt": Function(1, 1, _OF_NUMBERS),
    "exp": Function(1, 1, _OF_NUMBERS),
    "log": Function(1, 1, _OF_NUMBERS),
    "pow": Function(2, 2, ((INT, INT, FLOAT), *_MIXED)),
    "split": Function(3, 3, ((STRING, STRING, INT, STRING),)),
    "trim": Function(1, 1, ((STRING, STRING),)),
    "replace": Function(3, 3, ((STRING,) * 4,)),
    "regex_extract": Function(2, 3, ((STRING,) * 3, (STRING, STRING, INT, STRING))),
    "json": Function(2, 2, ((STRING,) * 3,)),
    "default": Function(2, 2, _alike(tuple(Type), 3)),
    "hash": Function(1, 1, ((STRING, INT),)),
    "format": Function(2, 3, ((TIME, STRING, STRING), (TIME, STRING, STRING, STRING))),
    **{part: Function(1, 2, _ZONED) for part in ("year", "month", "day", "hour", "minute")},
    "weekday": Function(1, 2, _ZONED),
    "date": Function(1, 2, ((TIME, STRING), (TIME, STRING, STRING))),
    "date_trunc": Function(2, 3, ((STRING, TIME, TIME), (STRING, TIME, STRING, TIME))),
}

# What no program can call: why parts of a rule fail, that a term has a value, values as JSON.
FAILURE, FITS, VALUES = "!failure", "!fits", "!values"
INTERNAL = "!"

# Goals that test what other goals have bound.
FILTERS = {"contains": 2, "starts_with": 2, "matches": 2}
FILTER_TYPES = (STRING, STRING)
TICK = "tick"
GOALS = {**FILTERS, TICK: 1, "lgr": 3, "between": 3}

AGGREGATE_SIGNATURES: dict[str, tuple[Signature, ...]] = {
    "count": tuple((t, INT) for t in Type),
    "count_distinct": tuple((t, INT) for t in Type),
    "sum": _alike((INT, FLOAT, DURATION), 2),
    "avg": ((INT, FLOAT), (FLOAT, FLOAT), (DURATION, DURATION)),
    "min": _alike(tuple(Type), 2),
    "max": _alike(tuple(Type), 2),
    "first": _alike(tuple(Type), 2),
    "last": _alike(tuple(Type), 2),
    "count_if": ((BOOL, INT),),
    "var": _OF_NUMBERS,
    "stddev": _OF_NUMBERS,
    "median": (*_OF_NUMBERS, (DURATION, DURATION)),
    "percentile": (*((n, FLOAT, FLOAT) for n in (INT, FLOAT)), (DURATION, FLOAT, DURATION)),
    "arg_min": tuple((t, by, t) for t in Type for by in Type),
    "arg_max": tuple((t, by, t) for t in Type for by in Type),
    "collect": tuple((t, STRING) for t in (STRING, INT, FLOAT, BOOL)),
}

# Types whose values are whole numbers: the ones a difference-bound matrix may speak about.
WHOLE = frozenset({INT, TIME, DURATION})

# What a timestamp may be: a time, or a plain integer as logical time.
TIMESTAMPS = frozenset({INT, TIME})


def is_built_in(goal: str) -> bool:
    """Whether a goal has this name that no file defines."""
    return goal in GOALS or goal == EVERY or goal.startswith(PAIRS)
