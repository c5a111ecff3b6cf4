"""Why a program cannot run: the offending rules, the cycle, and the smallest way out."""

from __future__ import annotations

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
    explained = {id(e.atom) for c in (*no_meaning, *strata.growing) for e in c}
    result += (_one_instant(cycle, clocks) for cycle in strata.at_one_instant)
    result += (_on_future(cycle, clocks) for cycle in strata.on_future)
    result += (_growing(cycle, clocks) for cycle in strata.growing)
    for time in times:
        for goal in time.goals:
            if goal.is_blocking and id(goal.atom) not in explained:
                result.append(_blocking(schema, time, goal, clocks))
    return tuple(result)


# --------------------------------------------------------------------------- blocking


def _blocking(schema: Schema, time: BranchTime, goal: Goal, clocks: Clocks) -> Diagnostic:
    rule, atom = time.rule, goal.atom
    head, then = pretty(rule.head.args[0]), pretty(atom.args[0])
    kind = "no " if goal.negated else "a "
    return finding(
        "SL0401",
        f"`{rule.head.pred}` would wait for ever: `{atom.pred}` may lie any time after it",
        atom.span,
        f"an answer at {head} waits for {kind}`{atom.pred}` at any later {_time(then)}",
        related=[(rule.head.span, f"the rule for `{rule.head.pred}`")],
        help=tuple(_unblock(schema, rule, goal, head, then, clocks)),
    )


def _time(then: str) -> str:
    return "time" if then == "_" else then


def _unblock(
    schema: Schema, rule: Rule, goal: Goal, head: str, then: str, clocks: Clocks
) -> Iterator[str]:
    atom = goal.atom
    wait = "5min" if clocks.get(rule.head.pred) is Type.TIME else "5"
    time = atom.args[0]
    predicate = schema.predicates.get(atom.pred)
    uses = [v for v in variables((rule.head, *rule.body)) if v == time]
    if predicate and predicate.kind is Kind.STREAM and len(uses) > 1:
        compared = any(
            time in set(variables(c)) for c in walk(rule.body) if isinstance(c, Comparison)
        )
        if not compared and not predicate.declaration:
            yield (
                f"`{then}` is read as the timestamp of `{atom.pred}`; if `{atom.pred}` has no "
                f"timestamps, declare it: `table {atom.pred}(…)`"
            )
    bound = "T1" if then == "_" else then
    yield f"bound it: add `{bound} <= {head} + {wait}` with the delay you can accept"
    if not goal.negated and isinstance(time, Var) and _is_bound(rule.head.args[0], rule):
        yield f"or let the answer carry the later timestamp: `{rule.head.pred}({bound}, …)`"
    yield "over stored data (`--batch`) the rule is fine: there the end of the data is known"


def _is_bound(term: Term, rule: Rule) -> bool:
    """Whether the head's timestamp is that of a goal."""
    return any(term == a.args[0] for a in atoms(rule.body) if a.args)


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
    when = shifted("T", edge.ahead, clock)
    if edge.ahead is not None and edge.back != edge.ahead:
        when = f"up to {when}"
    return f"`{edge.head}` at T needs {_marked(edge)}`{edge.goal}` at {when}"


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
        + f": {_around(cycle)}",
        span,
        label,
        related=related,
        help=_loosen(cycle, clocks) if temporal else "break the cycle: a table has no earlier time",
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
    time = pretty(edge.rule.head.args[0])
    rest = "".join(f", {pretty(a)}" for a in edge.atom.args[1:])
    earlier = f"{edge.atom.pred}({_fresh(edge.rule)}{rest})"
    return f"let it look at an earlier time: `{_goal(edge, earlier)}, {_fresh(edge.rule)} < {time}`"


def _goal(edge: Edge, text: str) -> str:
    return f"not {text}" if edge.mark is Mark.NEGATION else text


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
    (span, label), *related = _steps(cycle, clocks)
    return finding(
        "SL0403",
        f"each round of {_around(cycle)} looks further ahead{_by(cycle, clocks)}",
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
        return " without bound"
    total = sum(e.ahead or 0 for e in cycle)
    return f", by {amount(total, clocks.get(cycle[0].head))} in all"


def _on_future(cycle: Cycle, clocks: Clocks) -> Diagnostic:
    (span, label), *related = _steps(cycle, clocks)
    marked = next(e for e in cycle if e.mark)
    what = "negation" if marked.mark is Mark.NEGATION else "an aggregate"
    return finding(
        "SL0404",
        f"`{cycle[0].head}` depends through {what} on its own future: {_around(cycle)}",
        span,
        label,
        related=related,
        help="let the recursion look back instead of ahead; there is no first fact to start "
        "from, so the rules have no meaning even over stored data",
    )
