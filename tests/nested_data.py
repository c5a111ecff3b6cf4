"""Random declarations with paths, random data for them, and what the data mean, said naively."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen
from strategies import NOWHERE

from streamlog.syntax.ast import Column, Module, Stream, Type
from streamlog.syntax.data_path import DataPath
from streamlog.syntax.nothing import NONE
from streamlog.syntax.pretty import pretty

KEYS = ["meta", "user", "event-time", "a.b", "é", "x y", "`q`", "it's", "T", "Ab", "where"]
TYPES = (Type.TIME, Type.STRING, Type.INT)
ARROW = {Type.TIME: pa.int64(), Type.STRING: pa.string(), Type.INT: pa.int64()}


@frozen
class Case:
    paths: tuple[DataPath, ...]
    types: tuple[Type, ...]
    optional: tuple[bool, ...]

    @property
    def text(self) -> str:
        names = ("T", "b", "c", "d")
        columns = tuple(
            Column(
                name,
                type_,
                path=None if path == DataPath((name,)) else path,
                optional=optional,
                span=NOWHERE,
            )
            for name, type_, path, optional in zip(
                names, self.types, self.paths, self.optional, strict=False
            )
        )
        declaration = pretty(Module((Stream("s", columns, (), span=NOWHERE),), span=NOWHERE))
        args = ", ".join("TBCD"[: len(columns)])
        return f"{declaration}output p.\np({args}) <- s({args}).\n"

    def object(self, values: Sequence[Any]) -> dict[str, Any]:
        """A record with these values, those of lists as one list of elements."""
        made: dict[str, Any] = {}
        for path, value in zip(self.paths, values, strict=True):
            if not path.to_list:
                put(made, path.keys, value)
                continue
            elements = found(made, path.list_keys) or [{} for _ in value]
            if path.inner:
                for element, one in zip(elements, value, strict=True):
                    put(element, path.inner, one)
            else:
                elements = list(value)
            put(made, path.list_keys, elements)
        return made

    def schema(self) -> pa.Schema:
        return pa.schema(list(_struct(list(zip(self.paths, self.types, strict=True)))))

    def meaning(self, record: Any) -> list[tuple[Any, ...]]:
        """The good rows of a record."""
        lists = [path for path in self.paths if path.to_list]
        if not lists:
            rows = [[found(record, path.keys) for path in self.paths]]
        else:
            elements = found(record, lists[0].list_keys)
            rows = [
                [
                    found(element, path.inner) if path.to_list else found(record, path.keys)
                    for path in self.paths
                ]
                for element in (elements if isinstance(elements, list) else [])
            ]
        kinds = {Type.STRING: str, Type.INT: int, Type.TIME: int}
        filled = [
            [NONE if v is None and o else v for v, o in zip(row, self.optional, strict=True)]
            for row in rows
        ]
        return [
            tuple(row)
            for row in filled
            if all(v is NONE or type(v) is kinds[t] for v, t in zip(row, self.types, strict=True))
        ]


def _struct(columns: list[tuple[DataPath, Type]]) -> list[pa.Field]:
    fields = []
    for name in dict.fromkeys(path.keys[0] for path, _ in columns):
        here = [(path, type_) for path, type_ in columns if path.keys[0] == name]
        inner = [
            (DataPath(path.keys[1:], max(path.to_list - 1, 0)), type_)
            for path, type_ in here
            if len(path.keys) > 1
        ]
        held = pa.struct(_struct(inner)) if inner else ARROW[here[0][1]]
        fields.append(pa.field(name, pa.list_(held) if here[0][0].to_list == 1 else held))
    return fields


def put(made: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        made = made.setdefault(key, {})
    made[keys[-1]] = value


def found(record: Any, keys: Sequence[str]) -> Any:
    """What is there; None if it is missing, and something odd if that is not an object."""
    for key in keys:
        if record is None:
            return None
        if not isinstance(record, dict):
            return Ellipsis
        record = record.get(key)
    return record


def case(rng: random.Random) -> Case:
    """Paths that can be in one record: none goes through the value of another."""
    width = rng.randint(2, 4)
    types = (Type.TIME, *(rng.choice(TYPES[1:]) for _ in range(width - 1)))
    list_keys = tuple(rng.sample(KEYS, rng.randint(1, 2))) if rng.random() < 0.5 else ()
    while True:
        paths = []
        for _ in range(width):
            keys = tuple(rng.choice(KEYS) for _ in range(rng.randint(1, 3)))
            in_list = list_keys and rng.random() < 0.5
            inner = (*list_keys, *keys[: rng.randint(0, 2)])
            paths.append(DataPath(inner, len(list_keys)) if in_list else DataPath(keys))
        ways = [(*p.list_keys, "[]", *p.inner) if p.to_list else p.keys for p in paths]
        is_through = any(a != b and a == b[: len(a)] for a in ways for b in ways)
        lists = {p.list_keys for p in paths if p.to_list}
        plain = [p.keys for p in paths if not p.to_list]
        kinds = {*zip(ways, types, strict=True)}
        is_through |= len(kinds) > len({*ways})  # in Parquet a column has one type
        if not is_through and not any(k[: len(x)] == x for k in plain for x in lists):
            optional = (False, *(rng.random() < 0.4 for _ in types[1:]))
            return Case(tuple(paths), types, optional)


def records(case: Case, rng: random.Random, number: int, *, typed: bool) -> list[Any]:
    """Good ones and bad ones; `typed`: all are of the case's schema, though values are missing."""
    made = []
    for _ in range(number):
        size = rng.randint(0, 3)
        values = [
            [value(t, rng, typed) for _ in range(size)] if p.to_list else value(t, rng, typed)
            for p, t in zip(case.paths, case.types, strict=True)
        ]
        record = case.object(values)
        if rng.random() < 0.3:
            spoil(record, rng, typed)
        made.append(record)
    return made


def value(type_: Type, rng: random.Random, typed: bool) -> Any:
    if rng.random() < 0.1:
        return None if typed else rng.choice([None, 1.5, True, {}, [], "é", -3])
    if type_ is Type.STRING:
        return rng.choice(["a", "", "é", "x,y"])
    return rng.randint(10**15, 10**15 + 3) if type_ is Type.TIME else rng.randint(-2, 2)


def spoil(record: Any, rng: random.Random, typed: bool) -> None:
    """Some part of it is missing, or is something else."""
    while isinstance(record, dict) and record:
        key = rng.choice(list(record))
        if isinstance(record[key], list) and record[key] and rng.random() < 0.7:
            at = rng.randrange(len(record[key]))
            if rng.random() < 0.5 and isinstance(record[key][at], dict):
                record = record[key][at]
                continue
            record[key][at] = None
        elif isinstance(record[key], dict) and rng.random() < 0.6:
            record = record[key]
            continue
        elif typed or rng.random() < 0.5:
            record[key] = None
        elif rng.random() < 0.5:
            del record[key]
        else:
            record[key] = rng.choice([5, "x", [], {}, [1], {"user": 1}])
        return


def write(case: Case, made: Sequence[Any], path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(made), schema=case.schema()), path)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in made))
    return path
