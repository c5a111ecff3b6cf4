"""The types of columns, where a column must have one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamlog.analysis.builtins import TICK, WHOLE
from streamlog.analysis.types import Given, TypeTable, infer, settled
from streamlog.compiler import Planned
from streamlog.runtime.executor import Row
from streamlog.runtime.functions import EvaluationError
from streamlog.syntax.ast import Type
from streamlog.syntax.nothing import NONE

ColumnTypes = Mapping[str, tuple[Type, ...]]

_OF_PYTHON = {bool: Type.BOOL, int: Type.INT, float: Type.FLOAT, str: Type.STRING}


class ColumnTypeError(EvaluationError):
    """The values of a column are of several types, or not of the type that the rules need."""


def column_types(program: Planned, given: Given) -> ColumnTypes:
    """The type of every column of the program that executors run, from what its text says and
    from what the data tell. A column that neither tells of has no values yet."""
    schema = program.schema
    types, mismatches = infer(schema, {**program.given, **_open(program.types, given)})
    if mismatches:
        raise ColumnTypeError(
            f"{mismatches[0].message}: declare the types of the columns, or change the data"
        )
    result: dict[str, tuple[Type, ...]] = {TICK: (Type.INT,)}
    for name in program.plan.arity:
        if name != TICK:
            possible = [types.columns.get((name, i)) for i in range(schema[name].arity)]
            result[name] = tuple(map(_one, possible))
    return result


def _open(types: TypeTable, given: Given) -> Given:
    """Of columns that the text leaves open. That a time is a whole number is nothing new."""
    possible = {key: types.columns.get(key, frozenset(Type)) for key in given}
    return {
        key: type_
        for key, type_ in given.items()
        if len(possible[key]) > 1 and not (type_ in WHOLE and possible[key] <= WHOLE)
    }


def _one(possible: frozenset[Type] | None) -> Type:
    """A type that holds every value there can be: where nothing is known there are none."""
    if not possible or possible == frozenset(Type):
        return Type.STRING
    return settled(possible) or (Type.INT if possible <= WHOLE else Type.STRING)


def types_of_rows(relations: Mapping[str, Iterable[Row]]) -> Given:
    """What Python's values tell. Times are whole numbers like others."""
    found: dict[tuple[str, int], set[type]] = {}
    for name, rows in relations.items():
        for row in rows:
            for position, value in enumerate(row):
                if value is not NONE:
                    found.setdefault((name, position), set()).add(type(value))
    for (name, position), kinds in found.items():
        if len(kinds) > 1:
            held = " and ".join(sorted(_OF_PYTHON[k].value for k in kinds))
            raise ColumnTypeError(
                f"column {position + 1} of `{name}` holds values of the types {held}: on Spark "
                "a column has one type"
            )
    return {key: _OF_PYTHON[kinds.pop()] for key, kinds in found.items()}
