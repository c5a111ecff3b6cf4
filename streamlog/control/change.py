"""From one version of a program to the next, with the state there is.

What means the same goes on as it is (`control.layers`). What is new or means something else is
worked out from the history that the state has: the rows that some rule still needs, those of
streams that declare `keep`, or those that a source was read for again. `control.warm` says from
when on that is the same as if the new version had run from the beginning.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import evolve, frozen

from streamlog.analysis.builtins import TICK
from streamlog.compiler import Planned
from streamlog.control.layers import (
    NEVER,
    Known,
    Layer,
    Layers,
    heads,
    narrowed,
    read_by,
    time_of,
)
from streamlog.control.warm import WHOLE, Warm, warm
from streamlog.kernel import Kernel
from streamlog.plan.steps import Index, Plan
from streamlog.runtime.executor import BEGIN, Limits, Row
from streamlog.runtime.frontier import Frontiers

_NOTHING: Mapping[str, Known] = {}
_NO_LOSS: Mapping[str, int] = {}


class Fate(enum.Enum):
    """What becomes of a predicate."""

    UNCHANGED = "unchanged"  # its state goes on
    RENAMED = "renamed"  # so does that of a predicate with another name
    REBUILT = "rebuilt"  # from the rows there are
    REPLAYED = "replayed"  # from its source
    REMOVED = "removed"


@frozen
class Entry:
    name: str
    fate: Fate
    is_output: bool
    is_new: bool = False
    warm: Warm = WHOLE  # from when on it is complete
    answers: int = BEGIN  # from when on answers are given
    answered: int = BEGIN  # of an output: before this the old version has answered


@frozen
class Change:
    layers: Layers
    entries: tuple[Entry, ...]


def change(
    old: Layers,
    new: Layer,
    outputs: Collection[str],
    tables: Mapping[str, Sequence[Row]],
    altered: Iterable[str] = (),
    more: Mapping[str, Known] = _NOTHING,
    limits: Limits | None = None,
    incomplete: Collection[str] = (),
    lost: Mapping[str, int] = _NO_LOSS,
) -> Change:
    """`outputs` are the answers of the new version, `altered` inputs whose rows are others than
    before, `more` what is known of streams besides. `incomplete` are outputs whose answers are
    given though they may be wrong, for what is not known of the past; `lost` are timelines of
    which nothing earlier than these times is known, or comes."""
    program, plan = new.program, new.program.plan
    schema, defined = program.schema, heads(plan)
    available = {layer.names[name]: layer for layer in reversed(old.layers) for name in layer.owned}
    known = {**old.known()}
    known.update((n, k) for n, k in more.items() if n not in known or k.since < known[n].since)
    altered = {*altered, *_altered(old.current.program, old.current.names, program, new.names)}
    touched = _resting_on(program, altered)

    def is_same(name: str) -> bool:
        return new.names[name] in available and name not in touched

    needed, waiting = set[str](), {n for n in outputs if n in defined}
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            if not (schema.is_temporal(name) and is_same(name)):
                waiting |= read_by(plan, {name}) & defined
    static = {name for name in needed if not schema.is_temporal(name)}
    same = {name for name in needed - static if is_same(name)}
    anew = frozenset(needed - static - same)

    since = _since(schema.timelines, schema.streams, known, altered, old)
    since.update((name, max(since[name], at)) for name, at in lost.items() if name in since)
    for name in same:
        since[name] = known[new.names[name]].since
    again = _again(program, anew, same, since)  # of the same, what is better worked out once more
    anew_or_again = frozenset({*anew, *again})
    found = _looked_up(new, anew_or_again, old, altered)
    at = warm(program, anew_or_again, since, _by_reader(program, anew_or_again, found))
    made = _made(new, anew_or_again, since, known, found, old, tables, limits)

    layers = _narrowed(old.layers, {new.names[name] for name in same})
    if anew:
        starts = {**since, **{name: found.at for name, found in at.items()}}
        starts = {name: start for name, start in starts.items() if start > BEGIN}
        layers.append(evolve(new, preds=anew, warm=starts))
    result = Layers(layers, tables, limits, current=new)
    for layer, kernel in zip(result.layers, result.kernels, strict=True):
        if layer.program is program:
            kernel.load(made.kernel.save())
        else:
            kernel.load(next(k.save() for p, k in _kernels(old) if p is layer.program))
    result.carry(old, _stepped(old, schema.timelines))
    result.released({new.names[n]: rows for n, rows in made.found.items() if n in anew})
    entries = []
    for name in sorted(needed):
        entry = _entry(
            name,
            new.names[name],
            name in outputs,
            at.get(name) if name in anew else None,
            old,
            more,
        )
        entries.append(entry)
        if name in incomplete and entry.fate in (Fate.REBUILT, Fate.REPLAYED):
            entry = entries[-1] = evolve(entry, answers=entry.answered)
        if name in static:
            result.static[name] = list(old.static.get(name, ()))
            result.due[name] = list(made.found.get(name, ()))
        elif name in outputs:
            _release(result, old, entry, made.found.get(name, ()) if name in anew else ())
    gone = old.current.program.contract.outputs
    entries += (Entry(n, Fate.REMOVED, True) for n in gone if n not in outputs)
    return Change(result, tuple(entries))


def _release(result: Layers, old: Layers, entry: Entry, rows: Iterable[Row]) -> None:
    """From when on an output is given, and what of it is known already."""
    name = entry.name
    if entry.answers > BEGIN:
        result.before[name] = entry.answers
    elif name in old.before:
        result.before[name] = old.before[name]
    if entry.fate is Fate.UNCHANGED and entry.answers == BEGIN:
        rows = old.due.get(name, ())
    result.due[name] = [row for row in rows if time_of(row) >= entry.answers]


def _entry(
    name: str,
    meaning: str,
    is_output: bool,
    at: Warm | None,
    old: Layers,
    more: Mapping[str, Known],
) -> Entry:
    before = old.current.names.get(name)
    was = is_output and name in old.current.outputs
    answered = old.answered(before) if was and before is not None else BEGIN
    if at is not None:
        fate = Fate.REPLAYED if more else Fate.REBUILT
        return Entry(name, fate, is_output, before is None, at, max(at.at, answered), answered)
    if before == meaning and (was or not is_output):
        return Entry(name, Fate.UNCHANGED, is_output)
    # What has been made until now was not given under this name, if at all.
    answered = max(answered, old.answered(meaning))
    fate = Fate.UNCHANGED if before == meaning else Fate.RENAMED
    return Entry(name, fate, is_output, before is None, Warm(answered), answered, answered)


def _altered(
    old: Planned, before: Mapping[str, str], new: Planned, after: Mapping[str, str]
) -> Iterable[str]:
    """The streams, and their views, that are no longer what they were."""
    for name in new.schema.timelines:
        stream = new.schema.stream_of(name)
        if name in before and (
            before[name] != after[name]
            or old.schema.stream_of(name) != stream
            or old.schema.elsewhere.get(name) != new.schema.elsewhere.get(name)
        ):
            yield name


def _resting_on(program: Planned, altered: set[str]) -> set[str]:
    """The predicates that rest on these inputs."""
    found = set(altered)
    while True:
        more = {
            name for name in heads(program.plan) - found if read_by(program.plan, {name}) & found
        }
        if not more:
            return found
        found |= more


def _since(
    timelines: Iterable[str],
    streams: Iterable[str],
    known: Mapping[str, Known],
    altered: set[str],
    old: Layers,
) -> dict[str, int]:
    """From when on all rows of the streams are known. What the old version did not read comes from
    its beginning."""
    before = old.current.program.schema.timelines
    found = {n: known[n].since if n in known else BEGIN for n in timelines if n in before}
    found |= {n: BEGIN for n in timelines if n not in before}
    found |= {n: old.after(n) for n in altered if n in found and n in before}
    found[TICK] = max((found[n] for n in streams), default=BEGIN)
    return found


def _again(
    program: Planned, anew: Iterable[str], same: set[str], since: Mapping[str, int]
) -> set[str]:
    """The unchanged predicates of which more of the past can be worked out than is in memory."""
    if not same:
        return set()
    schema, defined = program.schema, heads(program.plan)
    temporal = {name for name in defined if schema.is_temporal(name)}
    inputs = {n: at for n, at in since.items() if n not in temporal}
    at = warm(program, temporal, inputs)
    found, waiting = set[str](), read_by(program.plan, set(anew)) & same
    while waiting:
        name = waiting.pop()
        if name not in found and (name not in since or at[name].at < since[name]):
            found.add(name)
            waiting |= read_by(program.plan, {name}) & temporal
    return found


@frozen
class _Made:
    kernel: Kernel
    found: Mapping[str, list[Row]]


@frozen
class _Index:
    """An index that the old version has as well."""

    since: int  # from when on it has whatever is asked for
    kernel: Kernel


def _looked_up(
    new: Layer, preds: frozenset[str], old: Layers, altered: Collection[str]
) -> dict[Index, _Index]:
    """The indexes of the new version, of predicates that it does not work out, that are there."""
    program = new.program
    plan = narrowed(program, preds)
    frontiers = Frontiers(program.contract, program.schema)
    frontiers.move(_stepped(old, program.schema.timelines))
    found: dict[Index, _Index] = {}
    for index in plan.indexes:
        pred, readers = index.pred, plan.readers[index]
        is_given = program.schema.is_temporal(pred) and pred not in {*preds, *altered, TICK}
        if not is_given or 0 not in index.known(plan.arity[pred]) or pred in plan.improving:
            continue
        for layer, kernel in zip(old.layers, old.kernels, strict=True):
            mine = kernel.plan.readers.get(index, ())
            if not mine or layer.names.get(pred) != new.names[pred] or pred in layer.warm:
                continue
            if frontiers.elsewhere((*readers, *mine)) or pred in kernel.plan.improving:
                continue
            since = _reach(index, plan, frontiers, kernel, old.stepped)
            if index not in found or since < found[index].since:
                found[index] = _Index(since, kernel)
    return found


def _reach(
    index: Index, plan: Plan, frontiers: Frontiers, kernel: Kernel, progress: Mapping[str, int]
) -> int:
    """From when on an index of the old version has what the new one asks for."""
    asked, whole = kernel.past(progress).reach(index)
    before, now = kernel.plan.thinned.get(index), plan.thinned.get(index)
    if before is not None:
        is_enough = now is not None and {*now.sufficient} <= {*before.sufficient}
        if not is_enough or now is None or whole > frontiers.horizon(now.readers):
            return whole
    return BEGIN if asked <= frontiers.horizon(plan.readers[index]) else asked


def _by_reader(
    program: Planned, preds: frozenset[str], found: Mapping[Index, _Index]
) -> dict[tuple[str, str], int]:
    """By head and goal, from when on all that rules look up is there."""
    plan = narrowed(program, preds)
    since: dict[tuple[str, str], int] = {}
    for index, readers in plan.readers.items():
        for head in {reader.pred for reader in readers} - plan.closures.keys():
            key = head, index.pred
            begins = found[index].since if index in found else NEVER
            since[key] = max(since.get(key, BEGIN), begins)
    return since


def _made(
    new: Layer,
    preds: frozenset[str],
    since: Mapping[str, int],
    known: Mapping[str, Known],
    there: Mapping[Index, _Index],
    old: Layers,
    tables: Mapping[str, Sequence[Row]],
    limits: Limits | None,
) -> _Made:
    """A kernel that has seen the history there is, and what it found."""
    program = new.program
    plan = narrowed(program, preds | _static(program))
    kernel = Kernel(evolve(program, plan=plan), tables, limits)
    stepped = _stepped(old, program.schema.timelines)
    read = {p for c in plan.components for p in c.preds} - preds
    rows: dict[str, Sequence[Row]] = {}
    for name in read - {TICK}:
        if program.schema.is_temporal(name):
            key = name if name in program.schema.timelines else new.names[name]
            if key in known and known[key].since <= since.get(name, BEGIN):
                rows[name] = known[key].rows
    for index, held in there.items():
        if index not in kernel.plan.readers:  # a closure goes without
            continue
        begins = since.get(index.pred, BEGIN)  # those from then on come now
        before = [row for row in held.kernel.past(old.stepped).held(index) if time_of(row) < begins]
        kernel.past(stepped).preload(index, before)
    # `tick` sees the rows of all streams, and time goes as far as they do.
    for name in program.schema.streams:
        if name in known and known[name].since <= since[name]:
            rows.setdefault(name, known[name].rows)
    last = max((k.last for k in old.kernels), default=BEGIN)
    found = kernel.step(rows, stepped, last)
    return _Made(kernel, {name: list(some) for name, some in found.items()})


def _static(program: Planned) -> frozenset[str]:
    return frozenset(n for n in heads(program.plan) if not program.schema.is_temporal(n))


def _stepped(old: Layers, timelines: Iterable[str]) -> dict[str, int]:
    return {name: old.stepped.get(name, BEGIN) for name in timelines}


def _narrowed(layers: Sequence[Layer], wanted: set[str]) -> list[Layer]:
    """Of the layers, newest last, what these meanings rest on."""
    found: list[Layer] = []
    for layer in reversed(layers):
        preds, waiting = set[str](), {n for n in layer.owned if layer.names[n] in wanted}
        while waiting:
            name = waiting.pop()
            if name not in preds:
                preds.add(name)
                waiting |= read_by(layer.program.plan, {name}) & layer.owned
        if preds:
            made = evolve(layer, preds=frozenset(preds))
            wanted = wanted | {*made.given.values()}
            found.append(made)
    return found[::-1]


def _kernels(old: Layers) -> Iterable[tuple[Planned, Kernel]]:
    return [(layer.program, k) for layer, k in zip(old.layers, old.kernels, strict=True)]


__all__ = ["NEVER", "Change", "Entry", "Fate", "change"]
