"""Random programs over a stream with two timelines, which its declaration relates, against brute
force: what is refused, what an answer waits for, when it is released, and what goals retain. In
half of them the second column is a time of arrival.

    STREAMLOG_TIMELINES=2000 pytest tests/properties/test_several_timelines.py

All is found out from ground instances of the rules as they are written, before any goal is put on
a timeline.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from random import Random

import pytest
from attrs import evolve, frozen
from oracle.ground import GroundProgram, Site

from streamlog.analysis.contract import Contract, Keeps, PredicateContract, Released
from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.syntax.ast import Atom, BinOp, Comparison, Const, Term, Type

PROGRAMS = int(os.environ.get("STREAMLOG_TIMELINES", "200"))
SEED = int(os.environ.get("STREAMLOG_SEED", "0"))
SHARE = 50
COLUMNS = ("A", "S")  # of the stream `s`: its timelines are `s` and `s.S`
TIMELINES = ("s", "s.S")
FAR = 14  # beyond every bound that such a program can have


# --------------------------------------------------------------------------------- programs


@frozen
class Related:
    """`left op right + by` between the columns."""

    left: int
    op: str
    right: int
    by: int


def has_two(pred: str) -> bool:
    """Whether a predicate has two times."""
    return pred[0] in "sq"


class Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.by_clock = rng.random() < 0.5
        self.related = tuple(
            Related(left, op, 1 - left, by)
            for left in (0, 1)
            if rng.random() < 0.55
            for op, by in [rng.choice([("<=", 0), ("<=", 1), ("<=", 2), ("<", 1)])]
        )
        self.derived: list[str] = []

    def number(self, value: int) -> str:
        return f"{value}us" if self.by_clock else str(value)

    def offset(self, least: int = -2, most: int = 2) -> str:
        value = self.rng.randint(least, most)
        return f" {'+' if value > 0 else '-'} {self.number(abs(value))}" if value else ""

    def text(self) -> str:
        kind = "time" if self.by_clock else "int"
        arrival = " arrival" if self.by_clock else ""
        clauses = ", ".join(
            f"{COLUMNS[r.left]} {r.op} {COLUMNS[r.right]} + {self.number(r.by)}"
            for r in self.related
        )
        where = f" where {clauses}" if clauses else ""
        lines = [
            f"stream s(A: {kind}, S: {kind}{arrival}, x: string) progress A, S{where}.",
            f"stream r(T: {kind}, x: string).",
        ]
        for number in range(self.rng.randint(1, 3)):
            name, counts = f"{self.rng.choice('ppq')}{number}", self.rng.random() < 0.2
            lines += (self.rule(name, counts) for _ in range(self.rng.choice([1, 1, 2])))
            self.derived.append(name)
        return "\n".join(lines) + "\n"

    def rule(self, name: str, counts: bool) -> str:
        rng = self.rng
        names: list[str] = []
        body = [self.goal(names, "T", first=True)]
        if rng.random() < 0.5:
            old = list(names)
            body.append(self.goal(names, "T"))
            body += self.near([n for n in names if n not in old], old)
        head = rng.choice([name for name in names if name[0] != "U"])
        if rng.random() < 0.6:
            inner: list[str] = []
            goals = [self.goal(inner, "N")]
            body.append(f"not ({', '.join(goals + self.near(inner, names))})")
        head += self.offset() if rng.random() < 0.2 else ""
        if has_two(name):
            head += f", {rng.choice(names)}"
        return f"{name}({head}, {'max(X)' if counts else 'X'}) <- {', '.join(body)}."

    def goal(self, names: list[str], prefix: str, *, first: bool = False) -> str:
        rng = self.rng
        pred = rng.choice(["s", "s", "r", *self.derived[-2:]])
        new = [f"{prefix}{len(names) + n}" for n in range(2 if has_two(pred) else 1)]
        if pred[0] == "q":  # its second time is not a timestamp, and so not one for a head
            new[1] = f"U{new[1]}"
        names += new
        return f"{pred}({', '.join(new)}, {'X' if first else '_'})"

    def near(self, new: list[str], old: list[str]) -> list[str]:
        """Comparisons of a goal's times with those of others; some bounds are missing."""
        rng = self.rng
        found = []
        for _ in range(rng.choice([1, 2, 2, 3])):
            one, other = rng.choice(new), rng.choice(old)
            found.append(f"{one} {rng.choice(['<=', '<', '>=', '>', '='])} {other}{self.offset()}")
        return found


# ------------------------------------------------------------------------------ brute force


@frozen
class Leaf:
    """What a fact at 0 rests on: rows of a stream up to these times, by timeline."""

    ways: Mapping[str, int]  # without those that have no bound
    marked: bool

    def is_over(self, progress: Mapping[str, int]) -> bool:
        return any(progress[timeline] > by for timeline, by in self.ways.items())


class Brute:
    def __init__(self, maker: Maker, text: str) -> None:
        written = compile_source(Source("random.slog", text), until="safety")
        self.schema = written.schema
        self.related = maker.related

        # What is known of the two times of a predicate: declared, or what its rules leave possible.
        related = {"s": maker.related}

        def known(atom: Atom) -> tuple[tuple[Term, ...], tuple[Comparison, ...]]:
            if not has_two(atom.pred):
                return (), ()
            found = related.get(atom.pred, ())
            return atom.args[1:2], tuple(self.compared(r, atom) for r in found)

        def sites() -> tuple[Site, ...]:
            schema = self.schema
            made = GroundProgram(written.module, schema.is_temporal, schema.streams, known)
            return tuple(site for site in made.sites if site.offsets(FAR))

        for pred in self.schema.rules_of:
            if has_two(pred):
                related[pred] = tuple(self.inferred(s for s in sites() if s.head == pred))
        self.sites = sites()
        firing = {site.head for site in self.sites if site.depth == 0}
        # A goal that reads what can never hold is not bounded, for all that the compiler knows.
        self.has_meaning = firing >= {*self.schema.rules_of}

    def inferred(self, sites: Iterable[Site]) -> Iterator[Related]:
        """How far the second time of a head lies from the first."""
        heads = [evolve(site, atom=site.rule.head) for site in sites if site.depth == 0]
        spans = [self.span(head, 1) for head in heads]
        if not spans:
            return
        backs, aheads = zip(*spans, strict=True)
        if None not in backs:
            yield Related(0, "<=", 1, -min(backs))
        if None not in aheads:
            yield Related(1, "<=", 0, max(aheads))

    def compared(self, related: Related, atom: Atom) -> Comparison:
        span = atom.span
        by = Const(related.by, Type.INT, span=span)
        right = BinOp("+", atom.args[related.right], by, span=span)
        return Comparison(related.op, atom.args[related.left], right, span=span)

    @cache  # noqa: B019  (it lives as long as its program)
    def span(self, site: Site, column: int) -> tuple[int | None, int | None]:
        """How far back and ahead of the head the goal's time in a column can lie."""
        near, far = (site.offsets(window, column) for window in (FAR, FAR + 3))
        back = None if min(far) < min(near) else min(near)
        return back, None if max(far) > max(near) else max(near)

    def columns(self, pred: str) -> Iterator[tuple[str, int]]:
        names = TIMELINES if pred == "s" else (pred,)
        return ((name, column) for column, name in enumerate(names))

    @cache  # noqa: B019
    def leaves(self, pred: str) -> tuple[Leaf, ...]:
        """No rule here is recursive."""
        found: list[Leaf] = []
        for site in self.sites:
            if site.head != pred:
                continue
            marked = site.mark is not None
            if site.goal in self.schema.streams:
                ahead = {t: self.span(site, c)[1] for t, c in self.columns(site.goal)}
                bounded = {t: by for t, by in ahead.items() if by is not None}
                found.append(Leaf(bounded, marked))
                continue
            ahead_of_goal = self.span(site, 0)[1]
            for leaf in self.leaves(site.goal):
                ways = {} if ahead_of_goal is None else leaf.ways
                ways = {t: by + (ahead_of_goal or 0) for t, by in ways.items()}
                found.append(Leaf(ways, marked or leaf.marked))
        return tuple(found)


def problems(program: Program, brute: Brute) -> Iterator[str]:
    derived = list(brute.schema.rules_of)
    refused = [p for p in derived if any(not leaf.ways for leaf in brute.leaves(p))]
    codes = {d.code for d in program.diagnostics if d.is_error}
    if codes - {"SL0401"}:
        yield f"there is an error that nothing here explains: {codes}"
    if bool(codes) != bool(refused):
        yield f"refused with {codes or 'nothing'}, but without bound are {refused or 'none'}"
    if codes or refused:
        return
    for pred in derived:
        yield from delays(program.contract, brute, pred)
    yield from retained(program, brute)


def delays(contract: Contract, brute: Brute, pred: str) -> Iterator[str]:
    """Whatever the progress of each timeline: an answer is complete when the contract says so."""
    entry, leaves = contract[pred], brute.leaves(pred)
    said = [Leaf({t: by for t, by in d.ways if by is not None}, False) for d in entry.delays]
    values: dict[str, set[int]] = {t: {-99} for t in (*TIMELINES, "r")}
    for leaf in (*leaves, *said):
        for timeline, by in leaf.ways.items():
            values[timeline] |= {by, by + 1}
    for times in product(*map(sorted, values.values())):
        progress = dict(zip(values, times, strict=True))
        if all(d.is_over(progress) for d in said) != all(f.is_over(progress) for f in leaves):
            yield f"{pred} waits for {leaves}, not for {entry.delays}, at {progress}"
            return
    marked = [leaf for leaf in leaves if leaf.marked]
    if entry.released is Released.ARRIVAL:
        if late := [leaf for leaf in marked if min(leaf.ways.values()) >= 0]:
            yield f"{pred} is released on arrival, but rests on {late}"
    elif not any(max(leaf.ways.values()) >= 0 for leaf in marked):
        yield f"{pred} is released on close, but nothing later is left out: {marked}"


def retained(program: Program, brute: Brute) -> Iterator[str]:
    """Rows that are older than this, on any of the timelines, are not asked for any more."""
    found = {r.goal.span: r for r in program.retained.values()}
    spans: dict[str, list[float]] = {}
    for site in brute.sites:
        mine = found[site.atom.span]
        back = {t: brute.span(site, c)[0] for t, c in brute.columns(site.goal)}
        chosen = mine.goal.pred
        order = program.schema[chosen].view.order if program.schema[chosen].view else (0, 1)
        said = {chosen: mine.back}
        for column, by in mine.elsewhere:
            said[TIMELINES[order[column]]] = by
        for timeline in back.keys() - said.keys():
            said[timeline] = None
        if said != back:
            yield f"{site.atom} in {site.rule.span.text} looks back {back}, not {said}"
        lag = max((d.by or 0 for d in program.contract[site.head].delays), default=0)
        need = back[chosen]
        spans.setdefault(chosen, []).append(float("inf") if need is None else lag - need)
    for pred, needs in spans.items():
        kept = program.contract[pred].kept
        if max(needs) == float("inf"):
            if not kept.is_for_ever:
                yield f"{pred} keeps {kept}, but is needed forever"
        elif (kept.what is Keeps.SPAN, kept.span) != (max(needs) > 0, max(0, *needs, 0)):
            yield f"{pred} keeps {kept}, not {max(needs)}"


def compiled(text: str) -> Program:
    return compile_source(Source("random.slog", text), until="contract")


def random_program(rng: Random) -> tuple[str, Brute]:
    while True:
        maker = Maker(rng)
        text = maker.text()
        brute = Brute(maker, text)
        if brute.has_meaning:
            return text, brute


@pytest.mark.parametrize("first", range(0, PROGRAMS, SHARE))
def test_random_programs(first: int) -> None:
    verdicts: Counter[str] = Counter()
    for number in range(first, first + SHARE):
        text, brute = random_program(Random(f"{SEED}/{number}"))
        program = compiled(text)
        verdicts["accepted"] += program.ok
        if program.ok:
            several = (d for p in program.contract.predicates for d in p.delays if d.instead)
            verdicts["either"] += any(several)
            verdicts["elsewhere"] += any(r.elsewhere for r in program.retained.values())
        assert [*problems(program, brute)] == [], f"seed {SEED}, program {number}:\n{text}"
    assert min(verdicts.values()) >= SHARE / 10, verdicts
    assert verdicts["accepted"] <= SHARE * 0.9, verdicts


def test_wrong_figures_are_noticed() -> None:
    maker = Maker(Random("0"))
    maker.related = (Related(0, "<=", 1, 0), Related(1, "<=", 0, 2))
    text = (
        "stream s(A: int, S: int, x: string) progress A, S where A <= S + 0, S <= A + 2.\n"
        "stream r(T: int, x: string).\n"
        "p(T, X) <- r(T, X), not (s(A, S, _), S >= T - 1, S <= T + 3).\n"
    )
    sound, brute = compiled(text), Brute(maker, text)
    assert sound.ok
    assert [*problems(sound, brute)] == []
    (entry,) = (p for p in sound.contract.predicates if p.predicate.name == "p")
    (delay,) = (d for d in entry.delays if d.instead)
    assert {*delay.ways} == {("s", 3), ("s.S", 3)}
    for wrong in (evolve(delay, by=2), evolve(delay, by=4), evolve(delay, instead=())):
        others = tuple(wrong if d == delay else d for d in entry.delays)
        assert said_of(sound, brute, evolve(entry, delays=others))
    assert said_of(sound, brute, evolve(entry, released=Released.ARRIVAL))
    for number, retention in sound.retained.items():
        for wrong in ({"back": 7}, {"elsewhere": ((1, 7),)}):
            found = {**sound.retained, number: evolve(retention, **wrong)}
            assert [*problems(evolve(sound, retained=found), brute)], wrong
    refused = compiled(text.replace(", S <= T + 3", ""))
    assert [*problems(refused, brute)]
    unbounded = Brute(maker, text.replace(", S <= T + 3", ""))
    assert [*problems(sound, unbounded)]


def said_of(program: Program, brute: Brute, entry: PredicateContract) -> list[str]:
    name = entry.predicate.name
    entries = (entry if p.predicate.name == name else p for p in program.contract.predicates)
    contract = evolve(program.contract, predicates=tuple(entries))
    return [*problems(evolve(program, contract=contract), brute)]
