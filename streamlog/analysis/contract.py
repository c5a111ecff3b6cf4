"""The time contract: what the compiler promises about delay, release and memory."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import evolve, field, frozen

from streamlog.analysis.builtins import TICK
from streamlog.analysis.dependency import Edge, Graph
from streamlog.analysis.retention import Retention
from streamlog.analysis.safety import Safety
from streamlog.analysis.schema import Kind, Predicate, Schema
from streamlog.analysis.sequential import Class, RuleClass
from streamlog.syntax.ast import Atom, Rule, Type
from streamlog.syntax.walk import atoms

Waits: TypeAlias = tuple[tuple[str, int | None], ...]  # how far which timelines must come


@frozen
class Delay:
    """An answer at T is complete when the stream has passed T + `by`; None: has ended. Or when
    another of its timelines has passed T plus what `instead` says of it."""

    stream: str
    by: int | None
    because: Rule | None = field(eq=False, repr=False)
    instead: tuple[tuple[str, int], ...] = ()

    @property
    def ways(self) -> Waits:
        """Each is enough."""
        return ((self.stream, self.by), *self.instead)

    def is_within(self, other: Delay) -> bool:
        """Whether it is over whenever the other is."""
        mine = dict(self.ways)
        return all(stream in mine and _is_most(by, mine[stream]) for stream, by in other.ways)


def _is_most(by: int | None, other: int | None) -> bool:
    return by is None or (other is not None and other <= by)


class Released(enum.Enum):
    ARRIVAL = "on arrival"
    CLOSE = "on close"


class Keeps(enum.Enum):
    NOTHING = "nothing"  # nothing beyond the instant at hand
    SPAN = "span"  # as far back as `span` says
    PER_KEY = "per key"  # one row per value of some columns, forever, and what `span` says
    EVERYTHING = "everything"  # forever, with timestamps
    STATIC = "static"  # a table: not a matter of time


@frozen
class Extreme:
    """The rows with the highest or the lowest values of a column, which may be the timestamp."""

    column: str
    highest: bool
    is_time: bool
    count: int = 1  # of values


@frozen
class Kept:
    what: Keeps
    span: int = 0
    columns: tuple[str, ...] = ()
    best: tuple[Extreme, ...] = ()  # which row; several: one of each kind
    because: Rule | None = field(default=None, eq=False, repr=False)
    goal: Atom | None = field(default=None, eq=False, repr=False)  # of that rule

    @property
    def is_for_ever(self) -> bool:
        return self.what in (Keeps.PER_KEY, Keeps.EVERYTHING)

    @property
    def is_unbounded(self) -> bool:
        """Kept forever, and growing: a single row does not grow."""
        return self.what is Keeps.EVERYTHING or (self.what is Keeps.PER_KEY and self.columns != ())


@frozen
class PredicateContract:
    predicate: Predicate
    kind: Class | None  # None for inputs
    is_open: bool
    delays: tuple[Delay, ...]
    decided: tuple[Delay, ...]  # the same, as far as negations and aggregates wait for the streams
    released: Released | None
    kept: Kept
    clock: Type | None  # int, time, or not known


@frozen
class Contract:
    predicates: tuple[PredicateContract, ...]
    rules: tuple[RuleClass, ...]
    outputs: tuple[str, ...]

    @property
    def kind(self) -> Class:
        kinds = [r.kind for r in self.rules]
        return max(kinds, key=lambda k: k.rank, default=Class.STATIC)

    def __getitem__(self, name: str) -> PredicateContract:
        return next(p for p in self.predicates if p.predicate.name == name)


def contract(
    schema: Schema,
    safety: Safety,
    clocks: Mapping[str, Type | None],
    graph: Graph,
    rules: tuple[RuleClass, ...],
    retained: Iterable[Retention],
) -> Contract:
    delays, decided = _delays(schema, graph)
    kept = _kept(schema, safety, _lags(safety, graph, delays), retained)
    predicates = []
    for name, predicate in schema.predicates.items():
        kinds = [r.kind for r in rules if r.rule.head.pred == name]
        released = None
        if predicate.temporal and predicate.kind is Kind.DERIVED:
            waits = any(d.by is None or d.by >= 0 for d in decided.get(name, ()))
            released = Released.CLOSE if waits else Released.ARRIVAL
        predicates.append(
            PredicateContract(
                predicate,
                max(kinds, key=lambda k: k.rank, default=None),
                safety.is_open(name),
                delays.get(name, ()) if predicate.kind is Kind.DERIVED else (),
                decided.get(name, ()),
                released,
                kept[name],
                clocks.get(name),
            )
        )
    return Contract(tuple(predicates), rules, answers(schema, safety))


def answers(schema: Schema, safety: Safety) -> tuple[str, ...]:
    """The predicates whose facts are the program's answers.

    The declared outputs; without any, what the queries ask; without those, all that rules define.
    """
    if schema.outputs:
        return tuple(dict.fromkeys(o.name for o in schema.outputs))
    asked = {a.pred for q in schema.queries for a in atoms(q.body)}
    derived = [n for n, p in schema.predicates.items() if p.kind is Kind.DERIVED]
    auxiliary = {r.head.pred for r in schema.rules if r.is_auxiliary}
    wanted = asked or {*derived} - auxiliary
    return tuple(n for n in derived if n in wanted and not safety.is_open(n))


# ------------------------------------------------------------------------------- delay

_Far = tuple[int | None, Rule | None]  # how far, because of which rule
# A timeline, and how much further or less far others that do as well must have come.
_Aim = tuple[str, tuple[tuple[str, int], ...]]
_Reach = dict[_Aim, _Far]


_Delays = dict[str, tuple[Delay, ...]]  # by predicate


def _delays(schema: Schema, graph: Graph) -> tuple[_Delays, _Delays]:
    """Longest paths to each stream, and the longest among those with a marked edge.

    A path goes at most twice through a predicate, before and after its mark, so as many rounds
    are enough; what grows after them does so on a cycle that looks ahead. That, like an edge
    without bound, makes the path unbounded (None): such programs run over stored data only.
    """
    longest: dict[str, _Reach] = {}
    marked: dict[str, _Reach] = {}
    for nodes in graph.components:
        for node in nodes:
            is_stream = node in schema.predicates and schema[node].kind is Kind.STREAM
            longest[node] = {(node, ()): (0, None)} if is_stream else {}
            marked[node] = {}
        edges = [e for n in sorted(nodes) for e in graph.out[n]]
        enough = 2 * len(nodes) + 1
        for number in range(2 * enough):
            endless = number >= enough
            changed = False
            for edge in edges:
                for aim, reached in tuple(longest[edge.goal].items()):
                    aim, further = _aim(edge, aim), _through(edge, *reached)
                    changed |= _extend(longest[edge.head], aim, further, endless)
                    if edge.mark:
                        changed |= _extend(marked[edge.head], aim, further, endless)
                for aim, reached in tuple(marked[edge.goal].items()):
                    further = _through(edge, *reached)
                    changed |= _extend(marked[edge.head], aim, further, endless)
            if not changed:
                break
        else:  # a cycle adds to the path each time: only the end of the data stops it
            for reach in (r for n in nodes for r in (longest[n], marked[n])):
                reach.update({aim: (None, rule) for aim, (_, rule) in reach.items()})
    return _as_delays(longest), _as_delays(marked)


def _as_delays(reaches: Mapping[str, _Reach]) -> _Delays:
    return {
        name: _longest(_delay(aim, *far) for aim, far in reach.items())
        for name, reach in reaches.items()
        if name != TICK
    }


def _delay(aim: _Aim, by: int | None, rule: Rule | None) -> Delay:
    stream, others = aim
    instead = () if by is None else tuple((other, by + more) for other, more in others)
    return Delay(stream, by, rule, instead)


def _longest(delays: Iterable[Delay]) -> tuple[Delay, ...]:
    """Those that are not over whenever another is; of those that are alike the first."""
    kept: list[Delay] = []
    for delay in delays:
        if not any(delay.is_within(other) for other in kept):
            kept = [other for other in kept if not other.is_within(delay)]
            kept.append(delay)
    return tuple(sorted(kept, key=lambda d: (d.stream, d.instead)))


def _aim(edge: Edge, aim: _Aim) -> _Aim:
    """What an edge leads to when its goal leads there: of a stream, to its other timelines too."""
    if edge.instead and edge.ahead is not None:
        return aim[0], tuple((other, ahead - edge.ahead) for other, ahead in edge.instead)
    return aim


def _through(edge: Edge, by: int | None, because: Rule | None) -> _Far:
    """How far the head of an edge reaches when its goal reaches `by`, and the rule that waits."""
    if because is None or edge.ahead is None or edge.ahead > 0:
        because = edge.rule
    return None if by is None or edge.ahead is None else by + edge.ahead, because


def _extend(reach: _Reach, aim: _Aim, far: _Far, endless: bool) -> bool:
    by, because = far
    if aim in reach:
        old = reach[aim][0]
        if old is None or (by is not None and by <= old):
            return False
    reach[aim] = (None if endless else by, because)
    return True


# -------------------------------------------------------------------------------- kept


def _lags(
    safety: Safety, graph: Graph, delays: Mapping[str, tuple[Delay, ...]]
) -> dict[str, int | None]:
    """How far behind the streams' progress a predicate is still asked for.

    That is its delay; an open predicate, which is only ever tested, is asked for by its callers.
    """
    lags: dict[str, int | None] = {}
    callers: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        callers.setdefault(edge.goal, []).append(edge)
    for nodes in reversed(graph.components):
        for name in nodes:
            waits = [d.by for d in delays.get(name, ())]
            lags[name] = (
                None if None in waits else max((w for w in waits if w is not None), default=0)
            )
        tests = [n for n in sorted(nodes) if safety.is_open(n)]
        for number in range(2 * len(tests)):  # what still grows after a path through all never ends
            for edge in (e for name in tests for e in callers.get(name, ())):
                old, ask = lags[edge.goal], lags[edge.head]
                new = None if ask is None or edge.back is None else ask - edge.back
                if old is not None and (new is None or new > old):
                    lags[edge.goal] = new if number < len(tests) else None
    return lags


def _kept(
    schema: Schema,
    safety: Safety,
    lags: Mapping[str, int | None],
    retained: Iterable[Retention],
) -> dict[str, Kept]:
    """What future answers may still need of each predicate's facts.

    A fact of q at t serves answers up to t - back; all of those are given once progress has
    passed by the lag of the answer.
    """
    needs: dict[str, list[Kept]] = {}
    for name, predicate in schema.predicates.items():
        if predicate.temporal:
            needs[name] = [Kept(Keeps.NOTHING)]
            keep = predicate.option("keep")
            if keep is not None and isinstance(keep.value.value, int):
                needs[name] = [Kept(Keeps.SPAN, keep.value.value)]
        else:
            needs[name] = [Kept(Keeps.STATIC)]
    for goal in retained:
        name = goal.goal.pred
        if name in needs and not safety.is_open(name):
            needs[name] += _needs(goal, lags.get(goal.rule.head.pred, 0), schema)
    return {name: _joined(found) for name, found in needs.items()}


def _needs(retained: Retention, lag: int | None, schema: Schema) -> Iterator[Kept]:
    rule, goal, back = retained.rule, retained.goal, retained.back
    if lag is None:  # asked for at any earlier time
        yield Kept(Keeps.EVERYTHING, because=rule)
    elif back is not None:
        if lag > back:
            yield Kept(Keeps.SPAN, lag - back, because=rule, goal=goal)
    elif retained.sufficient is None:
        yield Kept(Keeps.EVERYTHING, because=rule, goal=goal)
    else:
        names = schema.column_names[goal.pred]
        for rows in retained.sufficient:
            columns = tuple(names[position] for position in rows.key)
            best: tuple[Extreme, ...] = ()
            if rows.best:
                column = rows.best.column
                extreme = Extreme(names[column], rows.best.highest, column == 0, rows.best.count)
                best = (extreme,)
            # A row becomes old when all later answers lie far enough behind it.
            span = max(0, lag - retained.old)
            yield Kept(Keeps.PER_KEY, span, columns, best, rule, goal)


_ORDER = (Keeps.STATIC, Keeps.NOTHING, Keeps.SPAN, Keeps.PER_KEY, Keeps.EVERYTHING)


def _joined(needs: Sequence[Kept]) -> Kept:
    """What satisfies all, in whatever order they come. A row per key forever and a span of rows
    with timestamps add up."""
    columns = tuple(dict.fromkeys(c for kept in needs for c in kept.columns))
    span = max(kept.span for kept in needs)

    def much(kept: Kept) -> tuple[int, bool]:
        return (_ORDER.index(kept.what), (kept.span, {*kept.columns}) == (span, {*columns}))

    largest = max(needs, key=much)
    if largest.what is not Keeps.PER_KEY:
        return largest if largest.what is Keeps.EVERYTHING else evolve(largest, span=span)
    keyed = [kept for kept in needs if kept.what is Keeps.PER_KEY]
    best = tuple(dict.fromkeys(extreme for kept in keyed for extreme in kept.best))
    for kept in keyed:
        others = (other for other in keyed if other.best)
        if not kept.best and not any({*kept.columns} <= {*other.columns} for other in others):
            best = ()  # any row will do, and those that are best do not have all keys
    return evolve(largest, span=span, columns=columns, best=best)


def covers(kept: Kept, other: Kept) -> bool:
    """Whether what is kept is all that `other` keeps, too."""
    both = _joined((kept, other))
    return (both.what, both.span, {*both.columns}, {*both.best}) == (
        kept.what,
        kept.span,
        {*kept.columns},
        {*kept.best},
    )


# ------------------------------------------------------------------- as executors keep it


Cores = Mapping[str, tuple[str, Mapping[str, str]]]


def as_executed(promised: Contract, executed: Contract, cores: Cores) -> Contract:
    """The contract with what is kept when the program runs: without its open predicates; and
    with the delays it has then, should they be longer (`is_as_soon`).

    There the core of an open predicate is kept in place of the facts that it is made of, which
    may be much less: one row says that a row of `sensr2` was missing, whenever that was. `cores`
    gives the open predicate of each core, and what its columns are called in that. Rules and goals
    are named as they were written.
    """
    written = {a.span: (r.rule, a) for r in promised.rules for a in atoms(r.rule.body)}
    kept = {
        p.predicate.name: [Kept(Keeps.NOTHING) if p.predicate.temporal else p.kept]
        for p in promised.predicates
    }
    for entry in executed.predicates:
        rule, goal = entry.kept.because, entry.kept.goal
        if goal is not None:
            rule, goal = written.get(goal.span, (rule, goal))
        name, columns = cores.get(entry.predicate.name, (entry.predicate.name, {}))
        if name in kept and entry.predicate.temporal:
            kept[name].append(evolve(_called(entry.kept, columns), because=rule, goal=goal))
    run = {p.predicate.name: p for p in executed.predicates}
    predicates = tuple(
        evolve(_later(p, run.get(p.predicate.name, p)), kept=_joined(kept[p.predicate.name]))
        for p in promised.predicates
    )
    return evolve(promised, predicates=predicates)


def _called(kept: Kept, names: Mapping[str, str]) -> Kept:
    """The same with other names for columns."""
    best = (evolve(e, column=names.get(e.column, e.column)) for e in kept.best)
    columns = (names.get(c, c) for c in kept.columns)
    return evolve(kept, columns=tuple(columns), best=tuple(best))


def is_as_soon(executed: Contract, promised: Contract) -> bool:
    """Whether no answer waits for longer than promised."""
    run = {p.predicate.name: p for p in executed.predicates}
    return all(_later(p, run.get(p.predicate.name, p)) == p for p in promised.predicates)


def _later(promised: PredicateContract, executed: PredicateContract) -> PredicateContract:
    """The promise, made later where it is kept later."""
    closes = Released.CLOSE in (promised.released, executed.released)
    return evolve(
        promised,
        delays=_longer(promised.delays, executed.delays),
        decided=_longer(promised.decided, executed.decided),
        released=Released.CLOSE if closes else promised.released,
    )


def _longer(promised: tuple[Delay, ...], executed: tuple[Delay, ...]) -> tuple[Delay, ...]:
    """By stream the longer of two delays."""
    return _longest((*promised, *executed))
