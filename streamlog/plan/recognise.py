"""Which recursion is path-shaped: from the rules of a component to what `plan.paths` knows."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.types import TypeTable
from streamlog.plan.branches import (
    Branch,
    UnlikeError,
    branches_of,
    check,
    cost_of,
    only_renewals,
    only_the_earliest,
)
from streamlog.plan.paths import Arc, Closure, Cost, Paths, Reach, Unlike
from streamlog.plan.steps import Component, Plan
from streamlog.syntax.ast import Atom, BinOp, Call, Const, Rule, Term, Type, Var


def recognise(
    component: Component, schema: Schema, types: TypeTable, *, renewed: bool = False
) -> Paths | Unlike | None:
    """What a component of a closed program is; None when it is not recursive at all.

    With `renewed`, a row for each instant at which the cost of a path gets better: see `Closure`.
    """
    if not component.is_recursive:
        return None
    if len(component.preds) > 1:
        names = " and ".join(f"`{p}`" for p in sorted(component.preds))
        return Unlike(f"{names} call each other")
    (pred,) = component.preds
    try:
        return _Recognition(pred, schema, types, renewed).paths()
    except UnlikeError as unlike:
        return Unlike(unlike.reason, unlike.rule)


def path_shaped(plan: Plan, schema: Schema, types: TypeTable) -> dict[str, Paths]:
    """The recursive predicates of a closed program that are paths in a graph."""
    found = recursions(plan, schema, types)
    return {pred: paths for pred, paths in found.items() if isinstance(paths, Paths)}


def recursions(plan: Plan, schema: Schema, types: TypeTable) -> dict[str, Paths | Unlike]:
    """The recursive predicates of a closed program: as paths in a graph, or why they are none."""
    found = {c.preds[0]: recognise(c, schema, types) for c in plan.components}
    return {pred: what for pred, what in found.items() if what is not None}


@frozen
class _Step:
    """A rule that adds an arc at the columns `end`."""

    rule: Rule
    carried: tuple[int, ...]
    end: tuple[int, ...]
    arc: Arc
    combine: str | None


class _Recognition:
    def __init__(self, pred: str, schema: Schema, types: TypeTable, renewed: bool) -> None:
        self.pred, self.schema, self.types, self.renewed = pred, schema, types, renewed
        made = branches_of(pred, schema)
        earliest = None if renewed else only_the_earliest(pred, schema, made)
        self.branches = only_renewals(pred, schema, made) if renewed else earliest or made
        found = (0, "min") if earliest else cost_of(pred, made)
        self.cost = found[0] if found else None
        self.best = found[1] if found else ""
        check(pred, self.branches)
        apart = {self.cost, 0 if renewed else None}
        self.columns = [i for i in range(schema[pred].arity) if i not in apart]
        self.base = [b for b in self.branches if not b.calls]

    def paths(self) -> Paths:
        steps = [self._step(b) for b in self.branches if len(b.calls) == 1 and b.goals]
        doubles = [self._double(b) for b in self.branches if len(b.calls) == 2]
        flips = [b for b in self.branches if len(b.calls) == 1 and not b.goals]
        combines = {s.combine for s in steps} | {c for _, _, c in doubles}
        rule = self.branches[-1].rule
        if len(combines) > 1:
            raise UnlikeError("its rules put costs together in different ways", rule)
        if not combines:
            raise UnlikeError(f"no rule adds anything to a row of `{self.pred}`", rule)
        (combine,) = combines
        ends = {source_target[:2] for source_target in doubles} or self._ends(steps)
        if len(ends) > 1:
            raise UnlikeError("its rules disagree about where a path begins and ends", rule)
        for source, target in ends:
            closure = self._closure(source, target, steps, doubles, flips, combine)
            if closure is not None:
                return closure
        if flips:
            raise UnlikeError("it turns paths round", flips[0].rule)
        if doubles:
            raise UnlikeError("it joins paths, and also adds arcs to them", steps[0].rule)
        if len({(s.carried, s.end) for s in steps}) > 1:
            raise UnlikeError("it grows at different ends", steps[-1].rule)
        arcs = tuple(dict.fromkeys(s.arc for s in steps))
        return Reach(
            self.pred,
            arcs,
            self._cost(combine, arcs),
            self._is_symmetric(arcs),
            not all(map(self._stays_at_its_instant, steps)),
            steps[0].carried,
            steps[0].end,
        )

    # ------------------------------------------------------------------------- the classes

    def _closure(
        self,
        source: tuple[int, ...],
        target: tuple[int, ...],
        steps: list[_Step],
        doubles: list[tuple[tuple[int, ...], tuple[int, ...], str | None]],
        flips: list[Branch],
        combine: str | None,
    ) -> Closure | None:
        """Whether the rules say what two joined paths would: a path and any row of the base."""
        is_float = self.cost is not None and self.types.column(self.pred, self.cost) is Type.FLOAT
        if is_float and combine == "+":
            if doubles:
                raise UnlikeError("floats added in another order may give another sum", None)
            return None  # a reach keeps the order
        arcs = self._base_arcs(source, target)
        added: dict[tuple[int, ...], set[Arc | None]] = {}
        for step in steps:
            added.setdefault(step.end, set()).add(self._from_to(step, source, target))
        known = set(arcs or ())
        if any(arc not in known for s in added.values() for arc in s):
            return None
        if not doubles and (arcs is None or known not in added.values()):
            return None
        symmetric = arcs is not None and self._is_symmetric(arcs)
        for flip in flips:
            if not (doubles or symmetric) or not self._turns(flip, source, target):
                return None
        return Closure(
            self.pred,
            arcs or (),
            self._cost(combine, arcs),
            symmetric or bool(flips),
            self.schema.is_temporal(self.pred) and (0, 0) not in zip(source, target, strict=True),
            source,
            target,
            bool(flips) and not symmetric,
            self.renewed,
        )

    def _cost(self, combine: str | None, arcs: tuple[Arc, ...] | None) -> Cost | None:
        if self.cost is None:
            return None
        ends = combine != "+" or (arcs is not None and all(self._is_worse(a) for a in arcs))
        return Cost(self.cost, self.best, combine, ends)

    def _is_worse(self, arc: Arc) -> bool:
        """Whether the arc is known never to make a cost better."""
        match arc.weight:
            case Const(value):
                limit: object = value
            case int(column):
                columns = self.schema[arc.pred].columns
                declared = columns[column] if columns else None
                found = declared and (declared.low if self.best == "min" else declared.high)
                limit = found.value if found else None
            case None:
                return False
        if not isinstance(limit, int | float):
            return False
        return limit >= 0 if self.best == "min" else limit <= 0

    def _stays_at_its_instant(self, step: _Step) -> bool:
        if not self.schema.is_temporal(self.pred):
            return True
        ends = tuple(zip(step.end, step.arc.tail, step.arc.head, strict=True))
        if self.schema.is_temporal(step.arc.pred):
            return (0, 0, 0) in ends
        return 0 in step.carried or any(e == 0 and t == h for e, t, h in ends)

    # --------------------------------------------------------------------- rules with an arc

    def _step(self, branch: Branch) -> _Step:
        path, arc = branch.calls[0], branch.goals[0]
        mine = branch.variables_of(path)
        shown = self._shown(branch)
        at = _places(arc)
        carried: list[int] = []
        end: list[int] = []
        for column in self.columns:
            old, new = mine[column], shown[column]
            if old == new and new.name not in at:
                carried.append(column)
            elif old.name in at and new.name in at:
                end.append(column)
            elif new.name not in at:
                raise UnlikeError(f"column {column + 1} takes its value from another", branch.rule)
            else:
                raise UnlikeError(
                    f"`{arc.pred}` does not begin at column {column + 1}, which it changes",
                    branch.rule,
                )
        if all(shown[c] == mine[c] for c in end):
            raise UnlikeError(f"`{arc.pred}` leads nowhere else", branch.rule)
        combine, weight = None, None
        if self.cost is not None:
            if mine[self.cost].name in at:
                raise UnlikeError("the cost decides which arcs there are", branch.rule)
            combine, other = _combined(branch, branch.head[self.cost], mine[self.cost])
            weight = at.get(other.name) if isinstance(other, Var) else other
            if other is not None and weight is None:
                raise UnlikeError("the weight is not a column of the arc", branch.rule)
        tail = tuple(at[mine[c].name] for c in end)
        head = tuple(at[shown[c].name] for c in end)
        made = Arc(arc.pred, tail, head, _where(arc), _same(arc), weight)
        return _Step(branch.rule, tuple(carried), tuple(end), made, combine)

    def _shown(self, branch: Branch) -> dict[int, Var]:
        """The head by column, without the cost."""
        result = {c: v for c in self.columns if isinstance(v := branch.head[c], Var)}
        for column in self.columns:
            if column == 0 and column not in result and self.schema.is_temporal(self.pred):
                raise UnlikeError("there is a path for each timestamp on the way", branch.rule)
            if column not in result:
                raise UnlikeError(f"column {column + 1} of the head is not a variable", branch.rule)
        return result

    def _ends(self, steps: list[_Step]) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Where a path begins and ends if the base has the same arcs as the first step."""
        step = steps[0]
        for branch in self.base:
            if [a.pred for a in branch.goals] != [step.arc.pred] or branch.rest:
                continue
            at = _places(branch.goals[0])
            begins = {
                at[v.name]: c
                for c in step.carried
                if isinstance(v := branch.head[c], Var) and v.name in at
            }
            source = [
                end if tail == head else begins.get(tail)
                for end, tail, head in zip(step.end, step.arc.tail, step.arc.head, strict=True)
            ]
            found = [c for c in source if c is not None]
            if len(found) == len(source) and set(step.carried) <= set(found):
                return {_in_order(tuple(found), step.end)}
        return set()

    def _from_to(self, step: _Step, source: tuple[int, ...], target: tuple[int, ...]) -> Arc | None:
        """The arc of a step as one of a closure; None if it does not go from end to end."""
        for here, there in ((target, source), (source, target)):
            if set(step.end) == set(here) and set(step.carried) == set(there) - set(here):
                order = [step.end.index(c) for c in here]
                tail = tuple(step.arc.tail[k] for k in order)
                head = tuple(step.arc.head[k] for k in order)
                arc = evolve(step.arc, tail=tail, head=head)
                return arc if here is target else arc.turned
        return None

    # ------------------------------------------------------------------------------- the base

    def _base_arcs(
        self, source: tuple[int, ...], target: tuple[int, ...]
    ) -> tuple[Arc, ...] | None:
        """The base as arcs, if each of its rules is one and no facts come from elsewhere."""
        if self.pred in self.schema.facts_of or self.schema[self.pred].kind is not Kind.DERIVED:
            return None
        arcs = [self._base_arc(b, source, target) for b in self.base]
        known = tuple(dict.fromkeys(a for a in arcs if a is not None))
        return known if all(arcs) else None

    def _base_arc(
        self, branch: Branch, source: tuple[int, ...], target: tuple[int, ...]
    ) -> Arc | None:
        if len(branch.goals) != 1 or branch.rest:
            return None
        arc = branch.goals[0]
        at = _places(arc)
        places: dict[int, int] = {}
        for column in self.columns:
            var = branch.head[column]
            if not isinstance(var, Var) or var.name not in at:
                return None
            places[column] = at[var.name]
        if len(set(places.values())) < len(places):
            return None
        weight: int | Const | None = None
        if self.cost is not None:
            match branch.head[self.cost]:
                case Var(name) if name in at:
                    weight = at[name]
                case Const() as weight:
                    pass
                case _:
                    return None
        tail = tuple(places[c] for c in source)
        head = tuple(places[c] for c in target)
        return Arc(arc.pred, tail, head, _where(arc), _same(arc), weight)

    def _is_symmetric(self, arcs: Iterable[Arc]) -> bool:
        arcs = set(arcs)
        return all(a.turned in arcs or self._leads_back(a) for a in arcs)

    def _leads_back(self, arc: Arc) -> bool:
        """Whether the rules of the arc's predicate stay the same when its ends are swapped."""
        swap = dict(zip((*arc.tail, *arc.head), (*arc.head, *arc.tail), strict=True))
        known = self.schema.predicates.get(arc.pred)
        if (
            known is None
            or known.kind is not Kind.DERIVED
            or arc.pred in self.schema.facts_of
            or arc.same
        ):
            return False
        if any(column in swap for column, _ in arc.where):
            return False
        shapes: set[tuple[Atom, tuple[int, ...]]] = set()
        for branch in branches_of(arc.pred, self.schema):
            if branch.calls or len(branch.goals) != 1 or branch.aggregates or branch.rest:
                return False
            (goal,) = branch.goals
            at = _places(goal)
            if not all(isinstance(v, Var) and v.name in at for v in branch.head):
                return False
            first = [
                v if isinstance(v, Const) else Var(str(at[v.name]), span=v.span)
                for v in goal.args
                if isinstance(v, Var | Const)
            ]
            places = tuple(at[v.name] for v in branch.head if isinstance(v, Var))
            shapes.add((evolve(goal, args=tuple(first)), places))
        turned = {
            (goal, tuple(places[swap.get(i, i)] for i in range(len(places))))
            for goal, places in shapes
        }
        return shapes == turned

    # ------------------------------------------------------------- rules without another goal

    def _double(self, branch: Branch) -> tuple[tuple[int, ...], tuple[int, ...], str | None]:
        """Two paths joined: `p(X, Z) <- p(X, Y), p(Y, Z)`."""
        if branch.goals:
            raise UnlikeError(
                f"two paths are joined, and `{branch.goals[0].pred}` with them", branch.rule
            )
        first, second = (branch.variables_of(a) for a in branch.calls)
        shown = self._shown(branch)
        if len(set(shown.values())) < len(shown):
            raise UnlikeError("two columns of the head are equal", branch.rule)
        within = [c for c in self.columns if first[c] == second[c] == shown[c]]
        rest = [c for c in self.columns if c not in within]
        source = [c for c in rest if first[c] == shown[c]]
        target = [c for c in rest if second[c] == shown[c]]
        middle = {first[c].name: c for c in target}
        met = [middle.get(second[c].name) for c in source]
        joined = [c for c in met if c is not None]
        if sorted(source + target) != rest or sorted(joined) != target or len(joined) < len(met):
            raise UnlikeError("two paths are joined, but not end to beginning", branch.rule)
        combine: str | None = None
        if self.cost is not None:
            combine, other = _combined(branch, branch.head[self.cost], first[self.cost])
            if other != second[self.cost]:
                raise UnlikeError("it does not put the costs of two paths together", branch.rule)
        return *_in_order((*within, *source), (*within, *joined)), combine

    def _turns(self, branch: Branch, source: tuple[int, ...], target: tuple[int, ...]) -> bool:
        """`p(X, Y) <- p(Y, X)`."""
        mine = branch.variables_of(branch.calls[0])
        swap = dict(zip((*source, *target), (*target, *source), strict=True))
        kept = self.cost is None or branch.head[self.cost] == mine[self.cost]
        return kept and all(branch.head[c] == mine[swap[c]] for c in self.columns)


def _in_order(
    source: tuple[int, ...], target: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A path and the path backwards are one: the end with the smaller columns comes first."""
    pairs = sorted(zip(source, target, strict=True))
    back = sorted(zip(target, source, strict=True))
    chosen = min(pairs, back)
    return tuple(s for s, _ in chosen), tuple(t for _, t in chosen)


def _combined(branch: Branch, cost: Term, mine: Var) -> tuple[str | None, Var | Const | None]:
    """How the head's cost is made of a call's, and the other part of it."""
    if cost == mine:
        return None, None
    match cost:
        case BinOp("+", left, right):
            op, parts = "+", (left, right)
        case Call("max" | "min" as op, (left, right)):
            parts = (left, right)
        case _:
            raise UnlikeError("the cost is not a sum of a cost and a weight", branch.rule)
    for one, other in (parts, parts[::-1]):
        if one == mine and isinstance(other, Var | Const) and other != mine:
            return op, other
    raise UnlikeError("the cost is not a sum of a cost and a weight", branch.rule)


def _places(goal: Atom) -> dict[str, int]:
    """Where each variable stands first."""
    return {v.name: i for i, v in reversed(list(enumerate(goal.args))) if isinstance(v, Var)}


def _where(goal: Atom) -> tuple[tuple[int, Const], ...]:
    return tuple((i, c) for i, c in enumerate(goal.args) if isinstance(c, Const))


def _same(goal: Atom) -> tuple[tuple[int, int], ...]:
    at = _places(goal)
    return tuple(
        (at[v.name], i) for i, v in enumerate(goal.args) if isinstance(v, Var) and at[v.name] != i
    )
