"""Why a program cannot run: the offending rules, the cycle, and the smallest way out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from streamlog.analysis.dependency import Edge, Mark
from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.strata import Cycle, Strata
from streamlog.analysis.time.offsets import amount, shifted
from streamlog.analysis.time.reach import BranchTime, Goal
from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.syntax.ast import Comparison, Rule, Term, Type, Var
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, variables, walk

Clocks = Mapping[str, Type | None]

# The codes that say "not over a stream": over stored data such programs have a meaning.
STREAM_ONLY = frozenset({"SL0401", "SL0403"})


def refusals(
    schema: Schema, times: Iterable[BranchTime], strata: Strata, clocks: Clocks
) -> tuple[Diagnostic, ...]:
    result: list[Diagnostic] = []
    no_meaning = (*strata.at_one_instant, *strata.on_future)
    explained = {e.atom.span for c in (*no_meaning, *strata.growing) for e in c if e.atom}
    result += (_one_instant(cycle, clocks) for cycle in strata.at_one_instant)
    result += (_on_future(cycle, clocks) for cycle in strata.on_future)
    result += (_growing(cycle, clocks) for cycle in strata.growing)
    for time in times:
        blocking = [g for g in time.goals if g.is_blocking and g.atom.span not in explained]
        if blocking:
            # A goal that reads a state is several.
            one = {g.atom.span: g for g in reversed(blocking)}
            result += map(_Blocking(schema, time, clocks).diagnostic, reversed(one.values()))
    return tuple(result)


# --------------------------------------------------------------------------- blocking


class _Blocking:
    """A conjunction that would wait for some of its goals for ever."""

    def __init__(self, schema: Schema, time: BranchTime, clocks: Clocks) -> None:
        self.schema, self.time, self.clocks = schema, time, clocks
        self.head = pretty(time.rule.head.args[0])
        self.wait = "5min" if clocks.get(time.rule.head.pred) is Type.TIME else "5"
        self.uses = Counter(variables((time.rule.head, *time.body)))
        self.bounds: dict[Term, list[Comparison]] = defaultdict(list)  # by variable
        for literal in walk(time.body):
            if isinstance(literal, Comparison):
                for var in {*variables(literal)}:
                    self.bounds[var].append(literal)

    def diagnostic(self, goal: Goal) -> Diagnostic:
        rule, atom = self.time.rule, goal.atom
        if goal.negated:
            why = f"any later `{atom.pred}` would make an answer at {self.head} false"
        else:
            why = f"any later `{atom.pred}` can still give an answer at {self.head}"
        return finding(
            "SL0401",
            f"`{rule.head.pred}` would wait forever: `{atom.pred}` may lie any time after it",
            atom.span,
            why,
            related=[(rule.head.args[0].span, f"the time of `{rule.head.pred}`")],
            help=tuple(self._ways_out(goal)),
        )

    def _ways_out(self, goal: Goal) -> Iterator[str]:
        rule, atom = self.time.rule, goal.atom
        head, stamp = self.head, atom.args[0]
        then = pretty(stamp)
        compared = stamp in self.bounds
        predicate = self.schema.predicates.get(atom.pred)
        undeclared = predicate and predicate.kind is Kind.STREAM and not predicate.declaration
        is_joined = isinstance(stamp, Var) and self.uses[stamp] > 1
        if undeclared and is_joined and not compared:
            yield (
                f"`{then}` is read as the timestamp of `{atom.pred}`; if `{atom.pred}` has no "
                f"timestamps, declare it: `table {atom.pred}(…)`"
            )
        yield from self._unknown_offsets(stamp)
        inside = " inside the negation" if goal.negated else ""
        if compared:
            yield (
                f"bound it: add `{then} <= {head} + {self.wait}`{inside} with the delay you can "
                "accept"
            )
        else:
            named = ""
            if then == "_":
                then = _fresh(rule)
                named = f"write `{then}` for `_` and "
            yield (
                f"say when: {named}add `{then} <= {head}`{inside} for what came before, or "
                f"`{then} <= {head} + {self.wait}` to wait that long"
            )
        if _can_carry(self.time, goal):
            later = ", ".join((then, *map(pretty, rule.head.args[1:])))
            yield f"or let the answer carry the later timestamp: `{rule.head.pred}({later})`"
        yield "over stored data (`--batch`) the rule is fine: there the end of the data is known"

    def _unknown_offsets(self, stamp: Term) -> Iterator[str]:
        """What bounds the goal, but with values the compiler does not know."""
        names = {v.name for c in self.bounds.get(stamp, ()) for v in variables(c)}
        names -= self.time.terms.ranges.keys()
        if not names:
            return
        for atom in atoms(self.time.body):
            if atom.pred not in self.schema.predicates or self.schema.is_temporal(atom.pred):
                continue
            for column, arg in zip(self.schema.column_names[atom.pred], atom.args, strict=True):
                if isinstance(arg, Var) and arg.name in names:
                    kind, least = ("duration", "0s") if self.wait == "5min" else ("int", "0")
                    yield (
                        f"`{arg.name}` may be any value: declare the range of that column of "
                        f"`{atom.pred}`, as in `{column}: {kind} {least}..{self.wait}`"
                    )


def _can_carry(time: BranchTime, goal: Goal) -> bool:
    """Whether with this goal's timestamp in its head the rule would wait for nothing later."""
    rule = time.rule
    if goal.negated or not isinstance(goal.atom.args[0], Var):
        return False
    return any(rule.head.args[0] == a.args[0] for a in atoms(rule.body) if a.args) and all(
        m.most(other.clock, goal.clock) is not None for m in time.matrices for other in time.goals
    )


# ----------------------------------------------------------------------------- cycles


def _steps(cycle: Cycle, clocks: Clocks) -> Iterator[tuple[Span, str]]:
    """A label for each edge: what the rule there says."""
    for edge in cycle:
        if edge.atom is not None:
            yield edge.atom.span, _step(edge, clocks)


def _step(edge: Edge, clocks: Clocks) -> str:
    clock = clocks.get(edge.head, clocks.get(edge.goal))
    if clock is None and edge.head not in clocks:  # no timestamps at all
        return f"`{edge.head}` needs {_marked(edge)}`{edge.goal}`"
    when = "up to" if edge.ahead is not None and edge.back != edge.ahead else "at"
    offset = shifted("T", edge.ahead, clock)
    return f"`{edge.head}` at T needs {_marked(edge)}`{edge.goal}` {when} {offset}"


def _marked(edge: Edge) -> str:
    match edge.mark:
        case Mark.NEGATION:
            return "no "
        case Mark.AGGREGATE | Mark.EXTREMUM:
            return "all of "
        case None:
            return ""


def _around(cycle: Cycle) -> str:
    names = dict.fromkeys(e.head for e in cycle)
    return " → ".join(f"`{n}`" for n in (*names, cycle[0].head))


def _via(cycle: Cycle) -> str:
    """The way round, when it leads through more than one predicate."""
    return f": {_around(cycle)}" if len({e.head for e in cycle}) > 1 else ""


def _one_instant(cycle: Cycle, clocks: Clocks) -> Diagnostic:
    steps = list(_steps(cycle, clocks))
    marked = next(e for e in cycle if e.mark)
    what = "negation" if marked.mark is Mark.NEGATION else "an aggregate"
    temporal = marked.head in clocks
    (span, label), *related = steps
    return finding(
        "SL0402",
        f"`{cycle[0].head}` depends on itself through {what}"
        + (" at one and the same timestamp" if temporal else "")
        + _via(cycle),
        span,
        label,
        related=related,
        help=_loosen(cycle, clocks)
        if temporal
        else "break the cycle, or give the facts timestamps and let it look at earlier ones",
    )


def _loosen(cycle: Cycle, clocks: Clocks) -> str:
    """The smallest change that makes one edge of the cycle look back."""
    for edge in sorted(cycle, key=lambda e: e.mark is None):
        if edge.rule is None or edge.atom is None:
            continue
        for node in walk(edge.rule.body):
            if isinstance(node, Comparison) and (fix := _stricter(node, edge)):
                return f"`{pretty(node)}` here: write `{fix}`"
    edge = next(e for e in cycle if e.mark)
    if edge.rule is None or edge.atom is None:
        return "let one of them look at an earlier timestamp"
    head, fresh = pretty(edge.rule.head.args[0]), _fresh(edge.rule)
    args = ", ".join((fresh, *map(pretty, edge.atom.args[1:])))
    before = shifted(head, edge.ahead, clocks.get(edge.head))
    earlier = f"{edge.atom.pred}({args}), {fresh} < {before}"
    if edge.mark is Mark.NEGATION:
        earlier = f"not ({earlier})"
    return f"let it look at an earlier time: `{earlier}`"


def _fresh(rule: Rule) -> str:
    used = {v.name for v in variables(rule)}
    return next(n for n in ("T0", "T1", "T2", "Earlier", "Earlier_") if n not in used)


def _stricter(comparison: Comparison, edge: Edge) -> str | None:
    """`T1 <= T` between the goal's and the head's timestamps, made strict."""
    assert edge.rule is not None and edge.atom is not None
    goal, head = edge.atom.args[0], edge.rule.head.args[0]
    strict = {"<=": "<", ">=": ">"}.get(comparison.op)
    if strict is None:
        return None
    sides: tuple[Term, Term] = (comparison.left, comparison.right)
    if sides in ((goal, head), (head, goal)):
        return f"{pretty(sides[0])} {strict} {pretty(sides[1])}"
    return None


def _growing(cycle: Cycle, clocks: Clocks) -> Diagnostic:
    first = min(range(len(cycle)), key=lambda i: a.span.start if (a := cycle[i].atom) else 0)
    cycle = cycle[first:] + cycle[:first]  # any edge may come first: read from the top
    (span, label), *related = _steps(cycle, clocks)
    return finding(
        "SL0403",
        f"`{cycle[0].head}` needs itself ever further ahead{_by(cycle, clocks)}{_via(cycle)}",
        span,
        label,
        related=related,
        help=(
            "a recursion may look ahead only as far as another of its goals looks back: let the "
            "offsets round the cycle add up to 0 or less",
            "over stored data (`--batch`) the recursion is fine: there the data end",
        ),
    )


def _by(cycle: Cycle, clocks: Clocks) -> str:
    if any(e.ahead is None for e in cycle):
        return ", without bound"
    total = sum(e.ahead or 0 for e in cycle)
    return f", by {amount(total, clocks.get(cycle[0].head))} each round"


def _on_future(cycle: Cycle, clocks: Clocks) -> Diagnostic:
    (span, label), *related = _steps(cycle, clocks)
    marked = next(e for e in cycle if e.mark)
    what = "negation" if marked.mark is Mark.NEGATION else "an aggregate"
    return finding(
        "SL0404",
        f"`{cycle[0].head}` depends through {what} on its own future{_via(cycle)}",
        span,
        label,
        related=related,
        help=(
            "let the recursion look back instead of ahead",
            "refused over stored data too: each answer rests on a later one, and there need be "
            "no last one to begin with",
        ),
    )
