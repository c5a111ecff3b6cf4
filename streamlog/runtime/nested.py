"""Values in nested data: what the paths of columns lead to, in an object and in a schema."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from streamlog.runtime.values import Unfit, shown
from streamlog.syntax.data_path import DataPath, path_text

Values: TypeAlias = list[Any]


class Absent(Unfit):
    """A path that leads nowhere."""


def same_named(name: str, found: Sequence[str]) -> list[int]:
    """Where the columns of this name are; case matters only where it has to."""
    same = [i for i, f in enumerate(found) if f == name]
    return same or [i for i, f in enumerate(found) if f.casefold() == name.casefold()]


# ---------------------------------------------------------------------------------- in objects


def row_values(
    raw: Mapping[str, Any],
    names: Sequence[str],
    paths: Sequence[DataPath],
    optional: Collection[int],
) -> Values:
    """The values of the columns in an object. Of those in `optional`, None if there is none."""
    return [
        _of_column(name, raw, path.keys, i in optional)
        for i, (name, path) in enumerate(zip(names, paths, strict=True))
    ]


def element_values(
    raw: Mapping[str, Any],
    names: Sequence[str],
    paths: Sequence[DataPath],
    optional: Collection[int],
) -> Iterator[Values | Unfit]:
    """The same, for each element of the list in which some columns are."""
    place = next(i for i, path in enumerate(paths) if path.to_list)
    keys = paths[place].list_keys
    elements = _of_column(names[place], raw, keys, False)
    if elements is None:
        raise Unfit(missing_list(names, paths))
    if isinstance(elements, str | bytes) or not isinstance(elements, Sequence):
        raise Unfit(f"column `{names[place]}`: {shown(elements)} is not a list")
    for element in elements:
        try:
            yield [
                _of_column(name, element, path.inner, i in optional)
                if path.to_list
                else _of_column(name, raw, path.keys, i in optional)
                for i, (name, path) in enumerate(zip(names, paths, strict=True))
            ]
        except Unfit as unfit:
            yield unfit


def missing_list(names: Sequence[str], paths: Sequence[DataPath]) -> str:
    """Why a record without its list is rejected; nothing, where columns are in none."""
    listed = [name for name, path in zip(names, paths, strict=True) if path.to_list]
    return f"column `{listed[0]}`: a value is missing" if listed else ""


def _of_column(name: str, raw: Any, keys: tuple[str, ...], is_optional: bool) -> Any:
    try:
        return _at(raw, keys)
    except Absent as absent:
        if is_optional:
            return None
        more = "" if keys == (name,) else f": {absent}"
        raise Unfit(f"column `{name}` is missing{more}") from None
    except Unfit as unfit:
        raise Unfit(f"column `{name}`: {unfit}") from None


def _at(raw: Any, keys: tuple[str, ...]) -> Any:
    value = raw
    for number, key in enumerate(keys, 1):
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise Unfit(f"{shown(value)} is not an object with a `{key}`")
        if key not in value:
            known = [k for k in value if isinstance(k, str)]
            near = same_named(key, known)
            if len(near) != 1:
                raise Absent(f"there is no `{path_text(keys[:number])}`")
            key = known[near[0]]
        value = value[key]
    return value


# ----------------------------------------------------------------------------------- in schemas


@frozen
class Struct:
    """The fields of a file, or those in a field."""

    fields: tuple[tuple[str, Shape], ...]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.fields]


@frozen
class Listing:
    elements: Shape


Shape: TypeAlias = Struct | Listing | None  # None: a value


def steps(shape: Struct, path: DataPath) -> tuple[int, ...]:
    """Which field of which field it is that a path leads to."""
    found: list[int] = []
    here: Shape = shape
    for number, key in enumerate(path.keys, 1):
        said = path_text(path.keys[:number])
        if not isinstance(here, Struct):
            raise Unfit(f"no fields in `{path_text(path.keys[: number - 1])}`")
        same = same_named(key, here.names)
        if len(same) != 1:
            if same:
                raise Unfit(f"several columns `{said}`")
            raise Absent(f"no column `{said}`")
        found.append(same[0])
        here = here.fields[same[0]][1]
        if number == path.to_list:
            if not isinstance(here, Listing):
                raise Unfit(f"no list `{said}`")
            here = here.elements
    return tuple(found)
