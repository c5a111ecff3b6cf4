"""The time contract: what the compiler promises about delay, release and memory."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from streamlog.analysis.builtins import TICK
from streamlog.analysis.dependency import Edge, Graph
from streamlog.analysis.safety import Safety
from streamlog.analysis.schema import Kind, Predicate, Schema
from streamlog.analysis.sequential import Class, RuleClass
from streamlog.analysis.versions import Case, Version
from streamlog.syntax.ast import Atom, Rule, Type, Var
from streamlog.syntax.walk import variables


@frozen
class Delay:
    """An answer at T is complete when the stream has passed T + `by`."""

    stream: str
    by: int
    because: Rule | None = field(eq=False, repr=False)


class Released(enum.Enum):
    ARRIVAL = "on arrival"
    CLOSE = "on close"


class Keeps(enum.Enum):
    NOTHING = "nothing"  # nothing beyond the instant at hand
    SPAN = "span"  # as far back as `span` says
    PER_KEY = "per key"  # one row per value of some columns, for ever
    EVERYTHING = "everything"  # for ever, with timestamps
    STATIC = "static"  # a table: not a matter of time


@frozen
class Kept:
    what: Keeps
    span: int = 0
    columns: tuple[str, ...] = ()
    because: Rule | None = field(default=None, eq=False, repr=False)

    @property
    def is_unbounded(self) -> bool:
        return self.what in (Keeps.PER_KEY, Keeps.EVERYTHING)


@frozen
class PredicateContract:
    predicate: Predicate
    kind: Class | None  # None for inputs
    is_open: bool
    delays: tuple[Delay, ...]
    released: Released | None
    kept: Kept
    clock: Type | None  # int, time, or not known

    @property
    def slowest(self) -> Delay | None:
        return max(self.delays, key=lambda d: d.by, default=None)


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
    cases: Iterable[Case],
) -> Contract:
    delays, certain = _delays(schema, graph)
    kept = _kept(schema, safety, _lags(safety, graph, delays), tuple(cases))
    predicates = []
    for name, predicate in schema.predicates.items():
        kinds = [r.kind for r in rules if r.rule.head.pred == name]
        released = None
        if predicate.temporal and predicate.kind is Kind.DERIVED:
            waits = any(by is None or by >= 0 for by in certain.get(name, {}).values())
            released = Released.CLOSE if waits else Released.ARRIVAL
        predicates.append(
            PredicateContract(
                predicate,
                max(kinds, key=lambda k: k.rank, default=None),
                safety.is_open(name),
                delays.get(name, ()) if predicate.kind is Kind.DERIVED else (),
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
    asked = {a.pred for q in schema.queries for a in q.body if isinstance(a, Atom)}
    derived = [n for n, p in schema.predicates.items() if p.kind is Kind.DERIVED]
    return tuple(n for n in derived if (not asked or n in asked) and not safety.is_open(n))


# ------------------------------------------------------------------------------- delay

_Reach = dict[str, tuple[int | None, Rule | None]]  # stream: how far, because of which rule


def _delays(
    schema: Schema, graph: Graph
) -> tuple[dict[str, tuple[Delay, ...]], dict[str, dict[str, int | None]]]:
    """Longest paths to each stream, and the longest among those with a marked edge.

    Cycles never add to a path, so as many rounds as a component has predicates are enough. An
    unbounded edge makes the path unbounded (None); such programs run over stored data only.
    """
    longest: dict[str, _Reach] = {}
    marked: dict[str, _Reach] = {}
    for nodes in graph.components:
        for node in nodes:
            is_stream = node in schema.predicates and schema[node].kind is Kind.STREAM
            longest[node] = {node: (0, None)} if is_stream else {}
            marked[node] = {}
        edges = [e for n in sorted(nodes) for e in graph.out[n]]
        for _ in range(len(nodes) + 1):
            changed = False
            for edge in edges:
                for stream, (by, _) in tuple(longest[edge.goal].items()):
                    far = None if by is None or edge.ahead is None else by + edge.ahead
                    changed |= _further(longest[edge.head], stream, far, edge.rule)
                    if edge.mark:
                        changed |= _further(marked[edge.head], stream, far, edge.rule)
                for stream, (by, _) in tuple(marked[edge.goal].items()):
                    far = None if by is None or edge.ahead is None else by + edge.ahead
                    changed |= _further(marked[edge.head], stream, far, edge.rule)
            if not changed:
                break
    delays = {
        name: tuple(
            Delay(stream, by, rule)
            for stream, (by, rule) in sorted(reach.items())
            if by is not None
        )
        for name, reach in longest.items()
        if name != TICK
    }
    return delays, {n: {s: by for s, (by, _) in reach.items()} for n, reach in marked.items()}


def _further(reach: _Reach, stream: str, by: int | None, because: Rule | None) -> bool:
    if stream in reach:
        old = reach[stream][0]
        if old is None or (by is not None and by <= old):
            return False
    reach[stream] = (by, because)
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
        for name in sorted(nodes, key=safety.is_open):
            lag: int | None = max((d.by for d in delays.get(name, ())), default=0)
            if safety.is_open(name):
                for edge in callers.get(name, ()):
                    ask = lags.get(edge.head, 0)
                    if ask is None or edge.back is None or lag is None:
                        lag = None
                    else:
                        lag = max(lag, ask - edge.back)
            lags[name] = lag
    return lags


def _kept(
    schema: Schema,
    safety: Safety,
    lags: Mapping[str, int | None],
    cases: tuple[Case, ...],
) -> dict[str, Kept]:
    """What future answers may still need of each predicate's facts.

    A fact of q at t serves answers up to t - back; all of those are given once progress has
    passed by the lag of the answer. A goal without look-back needs a row per key when the
    bistate rule reads no timestamp, else everything.
    """
    kept: dict[str, Kept] = {}
    for name, predicate in schema.predicates.items():
        if predicate.temporal:
            kept[name] = Kept(Keeps.NOTHING)
            keep = predicate.option("keep")
            if keep is not None and isinstance(keep.value.value, int):
                kept[name] = Kept(Keeps.SPAN, keep.value.value)
        else:
            kept[name] = Kept(Keeps.STATIC)
    for case in cases:
        rule = case.time.rule
        lag = lags.get(rule.head.pred, 0)
        back = {id(g.atom): g.back for g in case.time.goals}
        for goal in case.atoms:
            name = goal.atom.pred
            if goal.version is None or name not in kept or safety.is_open(name):
                continue
            need = _need(case, goal.atom, goal.version, back[id(goal.atom)], lag, schema)
            kept[name] = _more(kept[name], need)
    return kept


def _need(
    case: Case, atom: Atom, version: Version, back: int | None, lag: int | None, schema: Schema
) -> Kept:
    rule = case.time.rule
    if back is not None and lag is not None:
        span = lag - back
        return Kept(Keeps.SPAN, span, because=rule) if span > 0 else Kept(Keeps.NOTHING)
    if version is Version.NEW:
        return Kept(Keeps.NOTHING)
    if case.needs_time_of(atom):
        return Kept(Keeps.EVERYTHING, because=rule)
    return Kept(Keeps.PER_KEY, columns=_key(case, atom, schema), because=rule)


def _key(case: Case, atom: Atom, schema: Schema) -> tuple[str, ...]:
    """The columns of a goal that the rest of its rule looks at."""
    names = [v.name for v in variables((case.time.rule.head, *case.time.body))]
    columns = schema.column_names[atom.pred]
    return tuple(
        columns[position]
        for position, arg in enumerate(atom.args)
        if position > 0 and isinstance(arg, Var) and names.count(arg.name) > 1
    )


def _more(one: Kept, other: Kept) -> Kept:
    order = (Keeps.STATIC, Keeps.NOTHING, Keeps.SPAN, Keeps.PER_KEY, Keeps.EVERYTHING)
    if one.what is other.what is Keeps.PER_KEY:
        if set(other.columns) <= set(one.columns):
            return one
        columns = dict.fromkeys(one.columns + other.columns)
        return Kept(Keeps.PER_KEY, 0, tuple(columns), other.because)
    if one.what is other.what:
        return other if other.span > one.span else one
    return max(one, other, key=lambda k: order.index(k.what))
