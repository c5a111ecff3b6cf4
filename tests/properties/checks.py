"""What must be true of every compiled program, whatever it says. Each check tells what is wrong.

The figures of the compiler are compared with ground instances (`oracle.ground`). *Exact* programs
speak about differences of timestamps only, so that a head in the middle of a wide range stands
for all heads and every bound must be attained; of the others the bounds must only be safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from itertools import islice, pairwise
from random import Random

from attrs import frozen
from oracle.ground import (
    HEAD,
    Assigner,
    GroundProgram,
    Node,
    Site,
    assigner,
    marked_cycle,
)

from streamlog.analysis.builtins import TICK
from streamlog.analysis.contract import Keeps, Released
from streamlog.analysis.dependency import Edge, Mark
from streamlog.analysis.schema import Kind
from streamlog.analysis.time import reach
from streamlog.analysis.time.reach import BranchTime, Goal
from streamlog.analysis.versions import Version, VersionedAtom, VersionedBody, VersionedNot
from streamlog.compiler import PASSES, Mode, Program, compile_source
from streamlog.diagnostics import Source
from streamlog.syntax.ast import Atom, Body, Call, Comparison, Const, Not, Var
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, variables, walk

# The executors' plans are not about time; what they make of a program is tested elsewhere.
LAST_PASS = next(one.name for one, after in pairwise(PASSES) if after.name == "plan")
NARROW = 9  # the last timestamp of the range on which all ground facts are made


@frozen(slots=False)
class Checked:
    """A program as compiled for a stream, and as ground facts."""

    stream: Program

    @cached_property
    def batch(self) -> Program:
        return compile_source(self.stream.source, mode=Mode.BATCH, until="strata")

    @cached_property
    def ground(self) -> GroundProgram:
        schema = self.stream.schema
        return GroundProgram(self.stream.module, schema.is_temporal, schema.streams)

    @cached_property
    def edges(self) -> dict[Node, list[tuple[Node, str | None]]]:
        return self.ground.edges(range(NARROW + 1))

    @cached_property
    def improving(self) -> frozenset[str]:
        """The predicates in which `min` or `max` recurses, and may."""
        strata = self.stream.strata
        return frozenset(n for c in strata.extrema for n in strata.knot[c[0].head])

    @cached_property
    def goals(self) -> dict[tuple[int, int], Goal]:
        return {(id(t.body), id(g.atom)): g for t in self.stream.times for g in t.goals}

    def goal(self, site: Site) -> Goal | None:
        return self.goals.get((id(site.branch), id(site.atom)))

    @cached_property
    def is_exact(self) -> bool:
        return all(_is_exact(site) for site in self.ground.sites)

    @cached_property
    def windows(self) -> dict[Site, int]:
        """How far timestamps lie apart at most in a tight instance of a rule."""
        return {site: _window(site) for site in self.ground.sites}

    @cached_property
    def offsets(self) -> dict[Site, frozenset[int]]:
        return {s: frozenset(s.offsets(self.windows[s])) for s in self.ground.sites}

    @cached_property
    def wider(self) -> dict[Site, frozenset[int]]:
        return {s: frozenset(s.offsets(self.windows[s] + 2)) for s in self.ground.sites}

    def is_unbounded(self, site: Site, pick: Callable[[frozenset[int]], int]) -> bool:
        """Whether a wider range has a larger (or smaller) offset."""
        return pick(self.wider[site]) != pick(self.offsets[site])

    @cached_property
    def reach(self) -> dict[str, dict[tuple[str, bool], frozenset[int]]]:
        """From each predicate: where (stream, through a mark) its paths end, relative to it."""
        return _reach(self)


def _is_exact(site: Site) -> bool:
    head = site.rule.head.args[0]
    if isinstance(head, Const) or isinstance(site.atom.args[0], Const):
        return False
    # Of `in` and `if` the ends count, not the gaps between.
    if any(
        isinstance(n, Call) and n.name in ("floor", "ceil", "in", "if") for n in walk(site.rule)
    ):
        return False
    times = site.times | {v.name for v in variables(head)}
    return all(_is_about_differences(c, times) for c in site.comparisons)


def _is_about_differences(comparison: Comparison, times: frozenset[str] | set[str]) -> bool:
    names = [v.name for v in variables(comparison)]
    inner = [n for n in walk(comparison) if isinstance(n, Call)]
    return any(n not in times for n in names) or len(names) > 1 or bool(inner)


def _window(site: Site) -> int:
    numbers = [
        abs(int(n.value))
        for c in (*site.comparisons, site.rule.head)
        for n in walk(c)
        if isinstance(n, Const) and isinstance(n.value, int | float)
    ]
    values = (v for _, rows in site.values for row in rows for v in row)
    numbers += [abs(v) for v in values if isinstance(v, int)]
    return sum(numbers) + len(site.times) + 2


def _reach(checked: Checked) -> dict[str, dict[tuple[str, bool], frozenset[int]]]:
    """Paths of ground facts, as bit sets of the times at which they arrive."""
    schema = checked.stream.schema
    steps = [(s.head, s.goal, s.mark is not None, checked.offsets[s]) for s in checked.ground.sites]
    steps += [(TICK, stream, False, frozenset({0})) for stream in schema.streams]
    room = 4 * max(checked.windows.values(), default=1)
    full = (1 << (2 * room + 1)) - 1
    result = {}
    for start, predicate in schema.predicates.items():
        if predicate.kind is not Kind.DERIVED or not predicate.temporal:
            continue
        at: dict[tuple[str, bool], int] = {(start, False): 1 << room}
        queue = [(start, False)]
        while queue:
            node = queue.pop()
            name, marked = node
            for head, goal, mark, offsets in steps:
                if head != name:
                    continue
                new = 0
                for offset in offsets:
                    new |= at[node] << offset if offset >= 0 else at[node] >> -offset
                new &= full
                to = (goal, marked or mark)
                if new | at.get(to, 0) != at.get(to, 0):
                    at[to] = at.get(to, 0) | new
                    queue.append(to)
        result[start] = {
            (name, marked): frozenset(t - room for t in range(2 * room + 1) if bits >> t & 1)
            for (name, marked), bits in at.items()
            if bits and name in schema.streams
        }
    return result


# ---------------------------------------------------------------------------- the checks


def every_problem(checked: Checked) -> Iterator[str]:
    """Everything the checks find. A program must at least have got through the time pass."""
    stream = checked.stream
    yield from bounds(checked)
    if stream.strata is None:
        return
    yield from no_marked_cycle(checked)
    yield from a_refusal_has_a_cycle(checked)
    yield from stride(checked)
    if stream.ok:
        yield from order(checked)
        yield from delays(checked)
        yield from kept(checked)
        yield from cases(checked)
        yield from bistate_is_a_program(checked)


def no_marked_cycle(checked: Checked) -> Iterator[str]:
    """Accepted in a stream, or over stored data: no fact rests on its own absence."""
    accepted = checked.stream if checked.stream.ok else checked.batch
    if accepted.ok and (cycle := marked_cycle(checked.edges, checked.improving)):
        yield f"accepted ({accepted.mode.value}), but there is the ground cycle {cycle}"


def a_refusal_has_a_cycle(checked: Checked) -> Iterator[str]:
    codes = {d.code for d in checked.stream.diagnostics}
    if "SL0402" in codes and checked.is_exact:
        wide = 2 * max(checked.windows.values())
        if not any(
            marked_cycle(checked.ground.edges(range(n + 1)), checked.improving)
            for n in (NARROW, wide, 3 * wide)
        ):
            yield "refused with SL0402, but there is no ground cycle through a marked edge"


def bounds(checked: Checked) -> Iterator[str]:
    """Every ground dependency lies within the look-back and look-ahead of its goal."""
    narrow = range(NARROW + 1)
    for site in checked.ground.sites:
        where = f"{pretty(site.atom)} in {pretty(site.rule)}"
        goal = checked.goal(site)
        pairs = site.pairs(narrow)
        if goal is None:
            if pairs or (checked.is_exact and checked.offsets[site]):
                yield f"{where} is said to be impossible, but {pairs or checked.offsets[site]}"
            continue
        if (goal.negated, goal.depth) != (site.depth > 0, site.depth):
            yield f"{where} stands in {site.depth} negations, not {goal.depth}"
        for h, g in sorted(pairs):
            if not (_least(goal) <= g - h <= _most(goal)):
                yield f"{where}: {g} - {h} lies outside {goal.back}..{goal.ahead}"
                break
        if checked.is_exact:
            yield from _attained(checked, site, goal, where)


def _least(goal: Goal) -> float:
    return float("-inf") if goal.back is None else goal.back


def _most(goal: Goal) -> float:
    return float("inf") if goal.ahead is None else goal.ahead


def _attained(checked: Checked, site: Site, goal: Goal, where: str) -> Iterator[str]:
    found = checked.offsets[site]
    if not found:
        yield f"{where} is possible at {goal.back}..{goal.ahead}, they say, but it is not"
        return
    if not (_least(goal) <= min(found) and max(found) <= _most(goal)):
        yield f"{where}: {min(found)}..{max(found)} lies outside {goal.back}..{goal.ahead}"
    pick: Callable[[frozenset[int]], int]
    for said, pick in ((goal.ahead, max), (goal.back, min)):
        if said is None and not checked.is_unbounded(site, pick):
            yield f"{where} has the bound {pick(found)}, not none"
        elif said is not None and said != pick(found):
            yield f"{where} has the bound {pick(found)}, not {said}"


def order(checked: Checked) -> Iterator[str]:
    """Component, clock and stratum put every fact after what it depends on."""
    graph, strata = checked.stream.graph, checked.stream.strata
    for (head, t), goals in checked.edges.items():
        for (goal, u), mark in goals:
            if TICK in (head, goal) and TICK not in graph.component_of:
                continue  # the rule that asks for it can never fire
            one, other = graph.component_of[head], graph.component_of[goal]
            if other < one:
                continue
            late = t + strata.potential[head], strata.stratum[head]
            early = u + strata.potential[goal], strata.stratum[goal]
            improving = mark == "extremum" and {head, goal} <= checked.improving
            if other > one or early > late or (early == late and mark and not improving):
                yield f"{head}({t}) at {one}, {late} needs {goal}({u}) at {other}, {early}"
                return


def delays(checked: Checked) -> Iterator[str]:
    promised = checked.stream.contract
    for entry in promised.predicates:
        name = entry.predicate.name
        if entry.predicate.kind is not Kind.DERIVED or not entry.predicate.temporal:
            continue
        said = {d.stream: d.by for d in entry.delays}
        if checked.is_exact:
            found = checked.reach[name]
            ends: dict[str, list[int]] = {}
            for (stream, _), times in found.items():
                ends.setdefault(stream, []).append(max(times))
            longest = {stream: max(times) for stream, times in ends.items()}
            if said != longest:
                yield f"{name} waits {longest}, not {said}"
            closes = any(m and max(times) >= 0 for (_, m), times in found.items())
            if closes != (entry.released is Released.CLOSE):
                yield f"{name} is released {entry.released}, paths end at {found}"
        else:
            yield from _safe_delays(checked, name, said, entry.released)


def _safe_delays(
    checked: Checked, name: str, said: Mapping[str, int], released: Released | None
) -> Iterator[str]:
    for start in (t for n, t in checked.edges if n == name):
        queue = [((name, start), False)]
        seen = set(queue)
        for (node, t), marked in queue:
            if node in checked.stream.schema.streams:
                if node not in said or t - start > said[node]:
                    yield f"{name}({start}) needs {node}({t}), beyond {said}"
                    return
                if marked and t >= start and released is Released.ARRIVAL:
                    yield f"{name}({start}) is not certain before {node}({t})"
                    return
            for goal, mark in checked.edges.get((node, t), ()):
                step = (goal, marked or mark is not None)
                if step not in seen:
                    seen.add(step)
                    queue.append(step)


def kept(checked: Checked) -> Iterator[str]:
    """An answer that is not complete yet may need a fact as old as this."""
    if not checked.is_exact:
        return
    promised, safety = checked.stream.contract, checked.stream.safety
    if any(safety.open.values()):
        # Executors keep the cores of open predicates; here we look at the rules as written.
        promised = compile_source(checked.stream.source, until="contract").contract
    lags = {
        name: max((max(times) for times in reach.values()), default=0)
        for name, reach in checked.reach.items()
    }
    lag: dict[str, float] = {n: float(by) for n, by in lags.items()}
    sites = [s for s in checked.ground.sites if checked.offsets[s]]
    for round_ in range(2 * len(lag) + 2):  # an open predicate is asked for by its callers
        for s in sites:
            ask = lag[s.head] - _oldest(checked, s)
            if safety.is_open(s.goal) and ask > lag[s.goal]:
                lag[s.goal] = ask if round_ <= len(lag) else float("inf")
    for entry in promised.predicates:
        name = entry.predicate.name
        if not entry.predicate.temporal or entry.is_open:
            continue
        needs = [lag[s.head] - _oldest(checked, s) for s in sites if s.goal == name]
        spans = [n for n in needs if n != float("inf")]
        span = max((0, *(int(n) for n in spans)))
        expected = Keeps.SPAN if span > 0 else Keeps.NOTHING
        if len(spans) < len(needs):
            if not entry.kept.is_for_ever:
                yield f"{name} keeps {entry.kept}, but is needed forever"
            elif entry.kept.what is Keeps.PER_KEY and entry.kept.span < span:
                yield f"{name} keeps {entry.kept}, but its timestamps are needed for {span}"
        elif (entry.kept.what, entry.kept.span) != (expected, span):
            yield f"{name} keeps {entry.kept}, not {expected} {span}"


def _oldest(checked: Checked, site: Site) -> float:
    if checked.is_unbounded(site, min):
        return float("-inf")
    return min(checked.offsets[site])


def stride(checked: Checked) -> Iterator[str]:
    """The definition itself: the least -weight / marks over all simple cycles."""
    graph, strata = checked.stream.graph, checked.stream.strata
    broken = {e.head for c in (*strata.growing, *strata.on_future) for e in c}
    forbidden = {e for c in (*strata.extrema, *strata.at_one_instant) for e in c}
    improving = {e for e in forbidden if e.mark is Mark.EXTREMUM}
    for number, nodes in enumerate(graph.components):
        if nodes & broken:
            continue
        internal = [e for n in sorted(nodes) for e in graph.out[n] if e.goal in nodes]
        ratios = [
            Fraction(-sum(e.ahead or 0 for e in cycle), marks)
            for cycle in _simple_cycles(sorted(nodes), internal)
            if (marks := sum(1 for e in cycle if e.mark and e not in improving))
        ]
        expected = max(1, int(min(ratios) // 1)) if ratios else None
        if strata.stride[number] != expected:
            yield f"stride of {sorted(nodes)} is {expected}, not {strata.stride[number]}"


def _simple_cycles(nodes: list[str], edges: list[Edge]) -> Iterator[tuple[Edge, ...]]:
    for first, start in enumerate(nodes):
        allowed = set(nodes[first:])
        stack: list[tuple[Edge, ...]] = [(e,) for e in edges if e.head == start]
        while stack:
            path = stack.pop()
            goal = path[-1].goal
            if goal == start:
                yield path
            elif goal in allowed and all(e.head != goal for e in path):
                stack += ((*path, e) for e in edges if e.head == goal)


def bistate_is_a_program(checked: Checked) -> Iterator[str]:
    made = checked.stream.bistate
    if made is None:
        has_limit = any(rule.limit for rule in checked.stream.schema.rules)
        if not checked.stream.open_rules and not has_limit:
            yield "there is no bistate program"
        return
    text = pretty(made.module)
    again = compile_source(Source("bistate", text), until=LAST_PASS)
    for diagnostic in again.diagnostics:
        if diagnostic.is_error:
            yield f"bistate: {diagnostic.code} {diagnostic.message} in\n{text}"
            return


# -------------------------------------------------------------------------- new and old

MIDDLE, SAMPLE = 12, 40


def cases(checked: Checked) -> Iterator[str]:
    """Each ground instance is in exactly one case, and what a case leaves out is implied."""
    stream = checked.stream
    by_time: dict[int, list[VersionedBody]] = {}
    needs: dict[int, frozenset[str]] = {}
    for case in stream.cases:
        by_time.setdefault(id(case.time), []).append(case.body)
        needs[id(case.body)] = case.needs
    for time in stream.times:
        found = by_time.get(id(time), [])
        yield from _Cases(checked, time, needs).problems(found)


class _Cases:
    def __init__(
        self, checked: Checked, time: BranchTime, needs: Mapping[int, frozenset[str]]
    ) -> None:
        self.checked, self.time, self.needs = checked, time, needs
        self.potential = checked.stream.strata.potential
        self.is_temporal = checked.stream.schema.is_temporal
        self.random = Random(pretty(time.rule))
        self.over = range(2 * MIDDLE + 1)
        self.order = self.random.sample(self.over, len(self.over))
        self.made: dict[tuple[object, ...], Assigner] = {}

    def problems(self, found: list[VersionedBody]) -> Iterator[str]:
        head = self.time.rule.head.args[0]
        given, body = {HEAD: MIDDLE, reach.HEAD: MIDDLE}, self.time.body
        if isinstance(head, Var):
            given[head.name] = MIDDLE
        else:
            stamp = Var(HEAD, span=head.span)
            body = (*body, Comparison("=", stamp, head, span=head.span))
        for problem in islice(self._level(body, found, given, frozenset(), True), 1):
            yield f"{problem} in {pretty(self.time.rule)}"

    def _level(
        self,
        body: Body,
        found: list[VersionedBody],
        given: dict[str, int],
        needs: frozenset[str],
        is_top: bool,
    ) -> Iterator[str]:
        goals = [a for a in body if isinstance(a, Atom)]
        timed = [a for a in goals if self.is_temporal(a.pred)]
        names = {a.args[0].name for a in timed if isinstance(a.args[0], Var)}
        values = [v for a in goals if a not in timed for v in self.checked.ground.values(a)]
        comparisons = [c for c in body if isinstance(c, Comparison)]

        def satisfying(some: list[Comparison], known: dict[str, int]) -> Iterator[dict[str, int]]:
            key = (id(body), *map(id, some), frozenset(known))
            if key not in self.made:
                free = [v for v in values if not set(v[0]) & known.keys()]
                self.made[key] = assigner(some, names - known.keys(), free, known)
            return self.made[key](known, self.over, self.order)

        for instance in islice(satisfying(comparisons, given), SAMPLE):
            matching = [v for v in found if self._holds(v, instance, satisfying)]
            if len(matching) != 1:
                yield f"{instance} is in {len(matching)} cases"
                return
            inner = self.needs[id(matching[0])] if is_top else needs
            for literal in body:
                if isinstance(literal, Not):
                    bodies = _same_negation(literal, matching[0])
                    yield from self._level(literal.body, bodies, instance, inner, False)
        for version in found:
            inner = self.needs[id(version)] if is_top else needs
            yield from self._implied(version, given, comparisons, inner, satisfying)

    def _clock(self, atom: Atom, version: Version | None, at: int) -> bool:
        """Whether a goal at a time is new, or old, as the version says."""
        shift = self.potential[self.time.rule.head.pred] - self.potential.get(atom.pred, 0)
        now = MIDDLE + shift
        return version is None or (at == now if version is Version.NEW else at < now)

    def _holds(
        self,
        version: VersionedBody,
        instance: dict[str, int],
        satisfying: Callable[[list[Comparison], dict[str, int]], Iterator[dict[str, int]]],
    ) -> bool:
        rest = [c for c in version if isinstance(c, Comparison)]
        return all(
            self._clock(v.atom, v.version, _at(v.atom, instance))
            for v in version
            if isinstance(v, VersionedAtom) and v.version
        ) and any(satisfying(rest, instance))

    def _implied(
        self,
        version: VersionedBody,
        given: dict[str, int],
        comparisons: list[Comparison],
        needs: frozenset[str],
        satisfying: Callable[[list[Comparison], dict[str, int]], Iterator[dict[str, int]]],
    ) -> Iterator[str]:
        """Facts that the case cannot tell apart must all do for the rule as it was written."""
        goals = [v for v in version if isinstance(v, VersionedAtom) and v.version]
        rest = [c for c in version if isinstance(c, Comparison)]
        for _ in range(SAMPLE // 4):
            at: dict[str, list[int]] = {n: [t] for n, t in given.items()}
            known = {n: t for n, t in given.items() if n in needs or n in (HEAD, reach.HEAD)}
            possible = True
            for goal in goals:
                head = self.time.rule.head.pred
                shift = self.potential[head] - self.potential.get(goal.atom.pred, 0)
                stamp = goal.atom.args[0]
                name = stamp.name if isinstance(stamp, Var) else None
                if isinstance(stamp, Const):
                    time = int(stamp.value)
                elif goal.version is Version.NEW:
                    time = MIDDLE + shift
                elif name in known:
                    time = known[name]
                else:
                    time = MIDDLE + shift - self.random.randint(1, 6)
                possible &= self._clock(goal.atom, goal.version, time)
                if name is not None:
                    if name in needs:
                        possible &= known.setdefault(name, time) == time
                    at.setdefault(name, []).append(time)
            if not possible or not any(satisfying(rest, known)):
                continue
            if any(len(set(times)) > 1 for times in at.values()):
                yield f"a case joins {at} as one timestamp"
                return
            exact = {n: times[0] for n, times in at.items()}
            outside = any(not 0 <= t <= 2 * MIDDLE for t in exact.values())
            if not outside and not any(satisfying(comparisons, exact)):
                yield f"a case allows {exact}, which the comparisons do not"
                return


def _at(atom: Atom, instance: dict[str, int]) -> int:
    stamp = atom.args[0]
    return instance[stamp.name] if isinstance(stamp, Var) else int(stamp.value)


def _same_negation(negation: Not, version: VersionedBody) -> list[VersionedBody]:
    """What a case has made of a negation: nothing when it cannot be."""
    wanted = {id(a) for a in atoms(negation.body)}
    for literal in version:
        if isinstance(literal, VersionedNot):
            inside = {id(a) for body in literal.bodies for a in _atoms(body)}
            if inside & wanted:
                return list(literal.bodies)
    return []


def _atoms(body: VersionedBody) -> Iterator[Atom]:
    for literal in body:
        if isinstance(literal, VersionedAtom):
            yield literal.atom
        elif isinstance(literal, VersionedNot):
            for inner in literal.bodies:
                yield from _atoms(inner)
