"""The functions and goals the language brings along, and what types they take.

A signature is a tuple of types, the result last. The same tables serve the arity check, type
inference and the reference in `docs/language.md`.
"""

from __future__ import annotations

from attrs import frozen

from streamlog.syntax.ast import Type

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


@frozen
class Function:
    least: int
    most: int | None  # None: as many as one likes
    signatures: tuple[Signature, ...]  # of the least arity

    def for_arity(self, arity: int) -> tuple[Signature, ...]:
        """`max` and `min` repeat their type; `substr` may lack its length."""
        if self.most is None:
            return tuple((s[0],) * (arity + 1) for s in self.signatures)
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

# Goals that test what other goals have bound.
FILTERS = {"contains": 2, "starts_with": 2, "matches": 2}
FILTER_TYPES = (STRING, STRING)
TICK = "tick"
GOALS = {**FILTERS, TICK: 1, "lgr": 3}

AGGREGATE_SIGNATURES: dict[str, tuple[Signature, ...]] = {
    "count": tuple((t, INT) for t in Type),
    "count_distinct": tuple((t, INT) for t in Type),
    "sum": _alike((INT, FLOAT, DURATION), 2),
    "avg": ((INT, FLOAT), (FLOAT, FLOAT), (DURATION, DURATION)),
    "min": _alike(tuple(Type), 2),
    "max": _alike(tuple(Type), 2),
    "first": _alike(tuple(Type), 2),
    "last": _alike(tuple(Type), 2),
}

# Types whose values are whole numbers: the ones a difference-bound matrix may speak about.
WHOLE = frozenset({INT, TIME, DURATION})

# What a timestamp may be: a time, or a plain integer as logical time.
TIMESTAMPS = frozenset({INT, TIME})
