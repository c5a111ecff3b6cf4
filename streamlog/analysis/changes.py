"""How the contract and the meaning of a program differ from those of another version of it."""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, field, frozen

from streamlog.analysis.contract import Contract, Kept, PredicateContract, Released, covers
from streamlog.analysis.meaning import Meaning, meaning_of_queries, meanings
from streamlog.analysis.schema import Schema
from streamlog.analysis.types import TypeTable
from streamlog.syntax.ast import Rule
from streamlog.syntax.pretty import pretty


class What(enum.Enum):
    """In the order in which changes of one predicate are listed."""

    ADDED = "added"
    REMOVED = "removed"
    ANSWER = "an answer"  # or no longer one
    KIND = "kind"  # stream, table, derived; open or not; the class of its rules
    COLUMNS = "columns"
    DELAY = "delay"
    RELEASED = "released"
    KEPT = "kept"
    ARRIVAL = "arrival"  # how rows of an input are read, and what is promised of when they come
    MEANING = "meaning"
    ANNOTATIONS = "annotations"  # of its rules


class Effect(enum.Enum):
    WORSE = "worse"
    BETTER = "better"
    OTHER = "other"


@frozen
class Version:
    """What is compared of a program. `kept_names` are the names that the contract uses for columns
    that are kept, by predicate."""

    schema: Schema
    types: TypeTable
    contract: Contract
    kept_names: Mapping[str, tuple[str, ...]]
    meant: Mapping[str, Meaning] = field(init=False, repr=False)

    @meant.default
    def _meant(self) -> Mapping[str, Meaning]:
        return meanings(self.schema, self.types)

    @property
    def parts(self) -> tuple[str, ...]:
        """The predicates that were made from parts of rules, in the order of these."""
        made = (r.head.pred for r in self.schema.rules if r.is_auxiliary)
        return tuple(dict.fromkeys(made))

    @property
    def written(self) -> set[str]:
        return self.schema.predicates.keys() - {*self.parts}

    def columns(self, name: str) -> tuple[object, ...]:
        """Their types, and the names that an answer's have been given."""
        named = {o.columns for o in self.schema.outputs if o.name == name and o.columns}
        types = (self.types.column(name, p) for p in range(self.schema[name].arity))
        return named, *types

    def annotations(self, name: str) -> Counter[str]:
        """What is said of its rules, in whatever order these stand."""
        rules = self.schema.rules_of.get(name, ())
        return Counter(pretty(said) for rule in rules for said in rule.annotations)

    def kept(self, entry: PredicateContract) -> Kept:
        """What is kept, with the positions of columns in place of their names, which may come from
        variables. Columns that only the core of an open predicate has are alike here."""
        name = entry.predicate.name
        names = (self.schema.column_names if entry.is_open else self.kept_names)[name]
        place = {column: str(position) for position, column in enumerate(names)}
        columns = {place.get(c, "core") for c in entry.kept.columns}
        best = {evolve(e, column=place.get(e.column, "core")) for e in entry.kept.best}
        ordered = sorted(best, key=lambda e: (e.column, e.highest, e.count))
        return evolve(entry.kept, columns=tuple(sorted(columns)), best=tuple(ordered))


@frozen
class Change:
    """`old` and `new` are the predicate's entries in the contracts: None where it has none."""

    name: str
    what: What
    effect: Effect
    old: PredicateContract | None
    new: PredicateContract | None
    because: tuple[Rule, ...] = ()  # of the new version, or of the old one if it has none
    through: tuple[str, ...] = ()  # what it reads that means something else


def changes(old: Version, new: Version) -> tuple[Change, ...]:
    """By predicate, in the order of their names."""
    before = {p.predicate.name: p for p in old.contract.predicates}
    after = {p.predicate.name: p for p in new.contract.predicates}
    found: list[Change] = []
    for was, name in _pairs(old, new):
        found += _of_predicate(was, name, before.get(was), after.get(name), old, new)
    return tuple(sorted(found, key=lambda c: c.name))


def queries_changed(old: Version, new: Version) -> bool:
    return meaning_of_queries(old.schema, old.meant) != meaning_of_queries(new.schema, new.meant)


def _pairs(old: Version, new: Version) -> Iterator[tuple[str, str]]:
    """The names of predicates in both versions. The parts of rules have names that depend on the
    order of rules: they are known by what they mean, or else by their order."""
    yield from ((n, n) for n in (old.written | new.written))
    stems: dict[str, tuple[list[str], list[str]]] = {}
    for side, version in enumerate((old, new)):
        for name in version.parts:
            stem = re.sub(r"_\d+$", "", name)
            stems.setdefault(stem, ([], []))[side].append(name)
    for lefts, rights in stems.values():
        for left in tuple(lefts):
            same = (r for r in rights if new.meant[r].own == old.meant[left].own)
            if (right := next(same, None)) is not None:
                lefts.remove(left)
                rights.remove(right)
                yield left, right
        yield from zip(lefts, rights, strict=False)


def _of_predicate(
    was: str,
    name: str,
    before: PredicateContract | None,
    after: PredicateContract | None,
    old: Version,
    new: Version,
) -> Iterator[Change]:
    def change(
        what: What,
        effect: Effect = Effect.OTHER,
        because: Iterable[Rule | None] = (),
        through: tuple[str, ...] = (),
    ) -> Change:
        rules = tuple(dict.fromkeys(rule for rule in because if rule is not None))
        return Change(name, what, effect, before, after, rules, through)

    if before is None:
        yield change(What.ADDED, because=new.schema.rules_of.get(name, ()))
        return
    if after is None:
        effect = Effect.WORSE if name in old.contract.outputs else Effect.OTHER
        yield change(What.REMOVED, effect, old.schema.rules_of.get(name, ()))
        return
    answered, answers = was in old.contract.outputs, name in new.contract.outputs
    if answered != answers:
        yield change(What.ANSWER, Effect.WORSE if answered else Effect.OTHER)
    if _kind(before) != _kind(after):
        yield change(What.KIND)
    if old.columns(was) != new.columns(name):
        yield change(What.COLUMNS)
    delays = [{d.ways for d in entry.delays} for entry in (before, after)]
    if delays[0] != delays[1]:
        because = (d.because for d in after.delays if d.ways not in delays[0])
        yield change(What.DELAY, _later(before, after), because)
    if before.released != after.released:
        closes = after.released is Released.CLOSE
        because = (d.because for d in after.decided)
        yield change(What.RELEASED, Effect.WORSE if closes else Effect.BETTER, because)
    if old.kept(before) != new.kept(after):
        effect = _more(old.kept(before), new.kept(after), before.clock == after.clock)
        yield change(What.KEPT, effect, [after.kept.because])
    if _arrival(before) != _arrival(after):
        yield change(What.ARRIVAL)
    meant, means = old.meant[was], new.meant[name]
    if meant.fingerprint != means.fingerprint and name in new.written:
        if meant.own == means.own:
            changed = (
                n
                for n in means.reads
                if n not in old.meant or old.meant[n].fingerprint != new.meant[n].fingerprint
            )
            yield change(What.MEANING, through=tuple(changed))
        else:
            added = [r for text, r in means.rules.items() if text not in meant.rules]
            gone = [r for text, r in meant.rules.items() if text not in means.rules]
            yield change(What.MEANING, because=added or gone)
    if name in new.written and old.annotations(was) != new.annotations(name):
        yield change(What.ANNOTATIONS)


def _kind(entry: PredicateContract) -> tuple[object, ...]:
    return entry.predicate.kind, entry.is_open, entry.kind


def _later(before: PredicateContract, after: PredicateContract) -> Effect:
    """An answer is later if it waits for one stream for longer, or for one more."""
    if before.clock != after.clock:
        return Effect.OTHER
    if any(not any(d.is_within(old) for old in before.delays) for d in after.delays):
        return Effect.WORSE
    return Effect.BETTER


def _more(old: Kept, new: Kept, is_comparable: bool) -> Effect:
    if new.is_unbounded and not old.is_unbounded:
        return Effect.WORSE
    if old.is_unbounded and not new.is_unbounded:
        return Effect.BETTER
    if is_comparable and covers(new, old):
        return Effect.WORSE
    return Effect.BETTER if is_comparable and covers(old, new) else Effect.OTHER


def _arrival(entry: PredicateContract) -> tuple[object, ...]:
    """How rows of an input are read, and what is promised of when they come."""
    declaration = entry.predicate.declaration
    options = sorted(pretty(option) for option in declaration.options) if declaration else []
    return *options, *((c.name, c.form, c.path) for c in entry.predicate.columns)
