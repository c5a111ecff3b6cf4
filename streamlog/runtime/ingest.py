"""Rows in: each is checked against its predicate's columns, or rejected with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from attrs import evolve, field, frozen

from streamlog.analysis.column_relations import ColumnRelation
from streamlog.analysis.schema import Predicate
from streamlog.analysis.time.reach import Assumption
from streamlog.compiler import Program
from streamlog.runtime.executor import Row
from streamlog.runtime.nested import element_values, row_values
from streamlog.runtime.ranges import ranges_of, value_tests
from streamlog.runtime.time_forms import doubt, is_number, reader, scaled
from streamlog.runtime.values import (
    FROM_PYTHON,
    FROM_TEXT,
    USUAL_FIRST,
    USUAL_LAST,
    Converter,
    Unfit,
    shown,
    time_of,
    to_int,
    to_time,
    written,
)
from streamlog.syntax.ast import (
    Type,
    Value,
)
from streamlog.syntax.data_path import DataPath
from streamlog.syntax.nothing import NONE

RawRow: TypeAlias = Sequence[Any] | Mapping[str, Any]

T = TypeVar("T")

# In files and tables, a predicate without columns has one that is true.
HOLDS = "holds"
HOLDING: Row = (True,)
NOT_FALSE = f"column `{HOLDS}`: false is not a fact; a predicate that does not hold has no row"


def surface(
    names: Sequence[str], types: Sequence[T]
) -> tuple[tuple[str, ...], tuple[T | Type, ...]]:
    """The columns of a predicate as files and tables have them."""
    return (tuple(names), tuple(types)) if names else ((HOLDS,), (Type.BOOL,))


def positions_of(predicate: Predicate, arriving: bool) -> list[int]:
    """Which columns data have: rows that are `arriving` have no time of arrival yet."""
    missing = predicate.arrival if arriving else None
    return [i for i in range(predicate.arity) if i != missing]


def paths_of(program: Program, pred: str, *, arriving: bool = False) -> tuple[DataPath, ...]:
    """Where files and tables have the columns of a predicate: under their names, unless the
    declaration says otherwise."""
    predicate, all_names = program.schema[pred], program.schema.column_names[pred]
    held = positions_of(predicate, arriving)
    names, _ = surface([all_names[i] for i in held], ())
    columns = [predicate.columns[i] for i in held] if predicate.columns else []
    declared = {i: column.path for i, column in enumerate(columns) if column.path is not None}
    return tuple(declared.get(i) or DataPath((name,)) for i, name in enumerate(names))


@frozen
class Unreadable:
    """What a source hands over in place of a row that it could not read."""

    raw: object
    reason: str


# The columns of reports on rejected and late rows.
REPORT: tuple[str, ...] = ("stream", "where", "reason", "row")
# And of those on solutions of rules that cannot be computed.
SKIPPED: tuple[str, ...] = ("rule", "reason", "values")


@frozen
class Reject:
    """A row that is not believed: never lost, never fatal."""

    stream: str
    raw: object = field(eq=False)
    reason: str
    where: str = ""  # path:line, where the row came from a file

    def at(self, where: str) -> Reject:
        return evolve(self, where=where)

    @property
    def text(self) -> str:
        """The row as reports have it."""
        return ascii(self.raw)


Check: TypeAlias = Callable[[Any], "Row | Reject"]


class Checker:
    """The schema of one input. `row` takes Python values, `text` the fields of a text file.

    Both are generated once for the columns at hand: this is what every row pays. `settled` are the
    types of columns where each must have one, also where the program leaves it open. A clock that
    the program does not declare may always hold ints and times of the calendar. `answers`: the
    rows are written as answers are, whatever the declaration says of data. `arriving`: they have
    no time of arrival yet (`runtime.stamps`).
    """

    def __init__(
        self,
        program: Program,
        pred: str,
        settled: Sequence[Type] = (),
        *,
        answers: bool = False,
        arriving: bool = False,
    ) -> None:
        schema, types = program.schema, program.types
        predicate = schema[pred]
        held = positions_of(predicate, arriving)
        self.pred, self.temporal = pred, predicate.temporal and held[:1] == [0]
        inferred = [types.column(pred, i) for i in held]
        for i, type_ in enumerate(settled):
            if i or not self.temporal:
                inferred[i] = inferred[i] or type_
        self.names, self.types = surface([schema.column_names[pred][i] for i in held], inferred)
        named = tuple(DataPath((name,)) for name in self.names)
        self.paths = named if answers else paths_of(program, pred, arriving=arriving)
        self.has_list = any(path.to_list for path in self.paths)
        ranges = ranges_of(predicate, [types.column(pred, i) for i in range(predicate.arity)])
        self.ranges = {at: ranges[i] for at, i in enumerate(held) if i in ranges}
        self.assumed = tuple(a for a in program.assumptions if a.pred == pred)
        self.relations = predicate.relations
        if len(held) < predicate.arity and predicate.arrival is not None:
            others = (r for r in self.relations if predicate.arrival not in r.columns)
            self.relations = tuple(r.without(predicate.arrival) for r in others)
        optional = program.types.optional
        self.optional = {at for at, i in enumerate(held) if (pred, i) in optional}
        self.saw_time = False  # an undeclared clock turned out to be the calendar's
        # A number for each column that has one which is hardly of microseconds.
        self.odd: dict[int, int] = {}
        declared = () if answers else predicate.columns
        columns = [*enumerate(declared[i] for i in held if declared)]
        self.number = next((i for i, c in columns if c.is_row), None)
        self.forms = {i: column.form for i, column in columns if column.form is not None}
        self._whole = self._keeping if held else self._bare
        self.row: Check = self.row_of({})
        self.text: Check = self._whole(self._by_text())
        # For rows with values of the language, such as facts: a time is in microseconds.
        times = (i for i, type_ in enumerate(self.types) if type_ is Type.TIME)
        self.fact: Check = self.row_of(dict.fromkeys(times, "us"))

    def numbered(self, raw: Any, number: int | str) -> Any:
        """A record of a file, with its number in the column that has it."""
        if self.number is None:
            return raw
        if isinstance(raw, Mapping):
            return {**raw, self.names[self.number]: number}
        if isinstance(raw, list | tuple):
            return [*raw[: self.number], number, *raw[self.number :]]
        return raw

    def rows(self, raw: Any) -> Iterable[Row | Reject]:
        """The row in a record; if columns are in a list, those of its elements."""
        if not (self.has_list and isinstance(raw, Mapping)):
            return (self.row(raw),)
        return self._elements(raw)

    def _elements(self, raw: Mapping[str, Any]) -> Iterator[Row | Reject]:
        found = element_values(raw, self.names, self.paths, self.optional)
        try:
            for number, values in enumerate(found, 1):
                row = str(values) if isinstance(values, Unfit) else self.row(tuple(values))
                if isinstance(row, tuple):
                    yield row
                    continue
                reason = row if isinstance(row, str) else row.reason
                yield Reject(self.pred, raw, f"element {number}: {reason}")
        except Unfit as unfit:
            yield Reject(self.pred, raw, str(unfit))

    def row_of(self, units: Mapping[int, str]) -> Check:
        """As `row`, of a source that says itself in which units some columns have their times or
        durations."""
        return self._whole(self._by_python(units))

    @property
    def doubts(self) -> list[str]:
        """What to warn of."""
        return [doubt(self.pred, self.names[i], number) for i, number in sorted(self.odd.items())]

    def _converters(
        self, plain: Mapping[Type | None, Converter], units: Mapping[int, str]
    ) -> list[Converter]:
        made: list[Converter] = []
        for i, type_ in enumerate(self.types):
            convert = plain[type_]
            if i in units:
                convert = partial(_in_unit, units[i], convert)
            elif i in self.forms:
                convert = reader(self.forms[i])
            elif type_ is Type.TIME:
                convert = self._noticed(i, convert)
            elif i == 0 and type_ is None and self.temporal:
                convert = self._clock
            convert = self._ranged(i, convert)
            if i in self.optional:
                convert = _optional(convert, type_, plain is FROM_TEXT)
            made.append(convert)
        return made

    def _noticed(self, position: int, convert: Converter) -> Converter:
        """A time of which nobody says what its numbers count."""

        def noticed(value: Any) -> Value:
            time = convert(value)
            if not USUAL_FIRST <= time < USUAL_LAST:  # type: ignore[operator]  # a number
                self._notice(position, value, int(time))
            return time

        return noticed

    def _notice(self, position: int, value: object, time: int) -> None:
        if position not in self.odd and is_number(value):
            self.odd[position] = time

    def _bare(self, check: Check) -> Check:
        """Rows of a predicate without columns: none in Python, `holds` in files."""

        def bare(raw: Any) -> Row | Reject:
            if raw in ((), []):
                return ()
            row = check(raw)
            if isinstance(row, Reject):
                return row
            return () if row == HOLDING else Reject(self.pred, raw, NOT_FALSE)

        return bare

    def _keeping(self, check: Check) -> Check:
        """Refuses rows that break what is declared of columns together, and rows of a table that
        break what the compiler assumed of it."""
        if not self.assumed and not self.relations:
            return check

        def keeping(raw: Any) -> Row | Reject:
            row = check(raw)
            if isinstance(row, Reject):
                return row
            for relation in self.relations:
                if relation.is_broken_by(row):
                    return Reject(self.pred, raw, self.contradiction(relation, row))
            broken = next((a for a in self.assumed if a.is_broken_by(row)), None)
            return row if broken is None else Reject(self.pred, raw, self.refusal(broken))

        return keeping

    def contradiction(self, relation: ColumnRelation, row: Row) -> str:
        """Why a row that breaks a relation is refused."""
        values = (
            f"`{self.names[c]}` is {written(row[c], self.types[c])}"
            for c in sorted(relation.columns)
        )
        return f"breaks `where {relation.text}`: {' and '.join(values)}"

    def refusal(self, broken: Assumption) -> str:
        """Why a row that breaks an assumption is refused."""
        type_, name = self.types[broken.column], self.names[broken.column]
        low, high = (written(end, type_) for end in (broken.low, broken.high))
        facts = f"facts from {low} to {high}" if low != high else f"the fact {low}"
        line, _ = broken.rule.span.source.position(broken.rule.span.start)
        return (
            f"column `{name}`: the rule for `{broken.rule.head.pred}` in line {line} relies on "
            f"{facts} of the program; to allow others, declare the range of `{name}`"
        )

    # ------------------------------------------------------------------- the fast way

    def _by_python(self, units: Mapping[int, str]) -> Check:
        converters = self._converters(FROM_PYTHON, units)
        names = [f"c{i}" for i in range(len(self.types))]
        tests, made = [], list(names)
        space: dict[str, Any] = {"slow": partial(self._slowly_by_python, converters)}
        for i, type_ in enumerate(self.types):
            if i in self.forms or units.get(i, "us") != "us":
                made[i] = f"t{i}(c{i})"
                space[f"t{i}"] = converters[i]
            else:
                trusted = i in units
                found = value_tests(f"c{i}", type_, self.ranges.get(i, ()), i == 0, trusted)
                if i in self.optional:
                    made[i] = f"(NONE if c{i} is None else c{i})"
                    found = [f"(c{i} is None or c{i} is NONE or {' and '.join(found)})"]
                tests += found
        picked = _listed("raw" + "".join(f"[{key!r}]" for key in path.keys) for path in self.paths)
        result = "row" if made == names else _listed(made)
        body = f"""
def check(raw):
    row = raw
    if raw.__class__ is dict:
        try:
            row = {picked}
        except (KeyError, TypeError):
            return slow(raw)
    if row.__class__ is tuple and len(row) == {len(names)}:
        {_listed(names)} = row
        if {" and ".join(tests) or "True"}:
            {_unless_unfit(result) if made != names else f"return {result}"}
    return slow(raw)
"""
        return self._compiled("row", body, space)

    def _by_text(self) -> Check:
        converters = self._converters(FROM_TEXT, {})
        names = [f"c{i}" for i in range(len(self.types))]
        space: dict[str, Any] = {"slow": partial(self._slowly_by_text, converters)}
        made = []
        for i, (name, type_) in enumerate(zip(names, self.types, strict=True)):
            space[f"t{i}"] = converters[i]
            plain = type_ is Type.STRING and i not in self.ranges and i not in self.optional
            made.append(f"{name} if {name}.isascii() else t{i}({name})" if plain else "")
            others = self.forms.keys() | self.ranges.keys() | self.optional
            if type_ is Type.TIME and i not in others:
                # What is noticed of odd times costs the others nothing.
                space[f"t{i}"], space[f"odd{i}"] = time_of, converters[i]
                made[-1] = f"v{i} if {USUAL_FIRST} <= (v{i} := t{i}({name})) < {USUAL_LAST}"
                made[-1] += f" else odd{i}({name})"
            made[-1] = made[-1] or f"t{i}({name})"
        body = f"""
def check(raw):
    if raw.__class__ is list and len(raw) == {len(names)}:
        try:
            {_listed(names)} = raw
            return {_listed(made)}
        except (Unfit, TypeError, AttributeError):
            pass
    return slow(raw)
"""
        return self._compiled("text", body, space)

    def _compiled(self, kind: str, body: str, space: dict[str, Any]) -> Check:
        """Python source for the rows that are in order; `slow` takes the others."""
        space |= {"Unfit": Unfit, "NONE": NONE}
        exec(compile(body, f"<{kind} of {self.pred}>", "exec"), space)
        check: Check = space["check"]
        return check

    def _clock(self, value: Any) -> int:
        """A timestamp where the program does not say of what kind: an int, or the calendar's."""
        try:
            return to_int(value)
        except Unfit:
            if value is None or value == "" or isinstance(value, float | bool | int):
                raise
            time = time_of(value) if isinstance(value, str) else to_time(value)
            self.saw_time = True
            return time

    def _ranged(self, position: int, convert: Converter) -> Converter:
        ranges = self.ranges.get(position)
        if ranges is None:
            return convert
        type_ = self.types[position]

        def ranged(value: Any) -> Value:
            result = convert(value)
            for wanted in ranges:
                if not wanted.low <= result <= wanted.high:  # type: ignore[operator]  # numbers
                    raise Unfit(f"{written(result, type_)}{wanted.refusal}")
            return result

        return ranged

    # ------------------------------------------------------------------- the slow way

    def _slowly_by_python(self, converters: Sequence[Converter], raw: Any) -> Row | Reject:
        if isinstance(raw, Reject):
            return raw
        if isinstance(raw, Unreadable):
            return Reject(self.pred, raw.raw, raw.reason)
        if isinstance(raw, Mapping):
            try:
                values = row_values(raw, self.names, self.paths, self.optional)
            except Unfit as unfit:
                return Reject(self.pred, raw, str(unfit))
            return self._converted(raw, values, converters)
        if isinstance(raw, str | bytes) or not isinstance(raw, Sequence):
            return Reject(self.pred, raw, f"{shown(raw)} is not a row")
        return self._converted(raw, raw, converters)

    def _slowly_by_text(self, converters: Sequence[Converter], raw: Any) -> Row | Reject:
        if isinstance(raw, Unreadable):
            return Reject(self.pred, raw.raw, raw.reason)
        return self._converted(raw, raw, converters)

    def _converted(
        self, raw: object, values: Sequence[Any], converters: Sequence[Converter]
    ) -> Row | Reject:
        if len(values) != len(self.types):
            wanted, found = len(self.types), len(values)
            return Reject(self.pred, raw, f"{found} values where {wanted} are wanted")
        result = []
        for position, (value, convert) in enumerate(zip(values, converters, strict=True)):
            try:
                result.append(convert(value))
            except Unfit as unfit:
                return Reject(self.pred, raw, f"column `{self.names[position]}`: {unfit}")
        return tuple(result)


def _optional(convert: Converter, type_: Type | None, of_fields: bool) -> Converter:
    """What is missing is `none`. An empty field of a text file is; an empty text is a text."""
    is_text = type_ in (Type.STRING, None)

    def optional(value: Any) -> Value:
        if value is None or value is NONE:
            return NONE
        if isinstance(value, str):
            is_missing = not value and of_fields if is_text else not value.strip()
            return NONE if is_missing else convert(value)
        return convert(value)

    return optional


def _in_unit(unit: str, convert: Converter, value: Any) -> Value:
    return convert(scaled(value, unit) if value.__class__ is int else value)


def _listed(items: Iterable[str]) -> str:
    return f"({''.join(f'{item}, ' for item in items)})"


def _unless_unfit(result: str) -> str:
    return f"""try:
                return {result}
            except Unfit:
                pass"""
