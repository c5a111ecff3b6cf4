"""When `min` or `max` may recurse: taking the best early changes nothing in the end (PreM).

For `min` it is enough that a smaller cost of a recursive goal gives a smaller cost of the head,
and that no other literal can tell a cost from a smaller one except by refusing the larger. Then
only the best cost of each group matters, and the recursion over best costs has one least result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamlog.analysis.dependency import mark_of
from streamlog.analysis.monotone import Direction, better, direction, spread
from streamlog.analysis.safety import OpenPositions
from streamlog.analysis.schema import Schema
from streamlog.analysis.strata import Strata
from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import (
    Agg,
    Atom,
    Body,
    Choice,
    Comparison,
    Literal,
    Not,
    Rule,
    Term,
    Var,
    branches,
)
from streamlog.syntax.walk import variables


def check_extrema(
    schema: Schema, strata: Strata, open_positions: OpenPositions
) -> tuple[Diagnostic, ...]:
    """A finding for each recursion through min or max that is not premappable."""
    result: list[Diagnostic] = []
    for cycle in strata.extrema:
        knot = strata.knot[cycle[0].head]
        costs: dict[str, tuple[str, int]] = {}
        for name in sorted(knot):
            rules = schema.rules_of[name]
            found = _cost_of(rules)
            if found is None:
                rule = next((r for r in rules if _cost_of((r,)) is None), rules[0])
                result.append(
                    _refused(
                        cycle[0].head,
                        rule.head.span,
                        f"`{name}` takes part in the recursion without aggregating"
                        if mark_of(rule) is None
                        else f"`{name}` aggregates another way",
                        "let every rule of the recursion take the same `min` or `max`",
                    )
                )
            else:
                costs[name] = found
        if len(costs) == len(knot):
            for name in sorted(knot):
                for rule in schema.rules_of[name]:
                    for body in branches(rule.body):
                        result += _Check(schema, open_positions, costs, rule, body).findings()
    return tuple(result)


def _cost_of(rules: tuple[Rule, ...]) -> tuple[str, int] | None:
    """The function and position all the rules aggregate, when they agree."""
    found = {
        tuple((arg.func, i) for i, arg in enumerate(r.head.args) if isinstance(arg, Agg))
        for r in rules
    }
    match list(found):
        case [((func, position),)] if AGGREGATES[func].best:
            return func, position
        case _:
            return None


def _refused(head: str, span: Span, label: str, help_: str) -> Diagnostic:
    return finding(
        "SL0407",
        f"aggregating inside the recursion of `{head}` could give another result than "
        "aggregating at its end",
        span,
        label,
        help=help_,
    )


class _Check:
    def __init__(
        self,
        schema: Schema,
        open_positions: OpenPositions,
        costs: Mapping[str, tuple[str, int]],
        rule: Rule,
        body: Body,
    ) -> None:
        self.schema, self.open_positions = schema, open_positions
        self.costs, self.rule, self.body = costs, rule, body
        self.func, position = costs[rule.head.pred]
        aggregate = rule.head.args[position]
        assert isinstance(aggregate, Agg) and aggregate.arg is not None
        self.argument = aggregate.arg
        self.better = "smaller" if self.func == "min" else "larger"
        self.definitions: dict[str, Term] = {}
        for c in body:
            if isinstance(c, Comparison) and c.op == "=":
                for var, side in ((c.left, c.right), (c.right, c.left)):
                    if isinstance(var, Var):
                        self.definitions.setdefault(var.name, side)

    def findings(self) -> Iterator[Diagnostic]:
        recursive = [a for a in self.body if isinstance(a, Atom) and a.pred in self.costs]
        mixed = [a for a in recursive if self.costs[a.pred][0] != self.func]
        if mixed:
            yield self._no(mixed[0].span, f"`{mixed[0].pred}` aggregates another way")
            return
        inputs = {v.name for a in recursive for v in variables(a.args[self.costs[a.pred][1]])}
        if not inputs:
            return
        tainted = spread(inputs, self.definitions)
        if direction(self.argument, tainted) not in (0, 1):
            yield self._no(
                self.argument.span, f"a {self.better} cost may not lead to a {self.better} one"
            )
        for literal in self.body:
            yield from self._uses(literal, inputs, tainted, recursive)
        for arg in self.rule.head.args:
            if not isinstance(arg, Agg) and any(v.name in tainted for v in variables(arg)):
                yield self._no(arg.span, "a cost is outside the aggregate")

    def _no(self, span: Span, label: str) -> Diagnostic:
        limit = "<=" if self.func == "min" else ">="
        return _refused(
            self.rule.head.pred,
            span,
            label,
            f"a cost may be added to, and compared as in `D {limit} 100`; else compute all "
            f"costs without `{self.func}`, and take the `{self.func}` in a separate rule",
        )

    def _uses(
        self,
        literal: Literal,
        inputs: set[str],
        tainted: Mapping[str, Direction],
        recursive: list[Atom],
    ) -> Iterator[Diagnostic]:
        """Whether a literal can tell a cost from a better one."""
        match literal:
            case Atom() if literal in recursive:
                cost = self.costs[literal.pred][1]
                for position, arg in enumerate(literal.args):
                    if position != cost and any(v.name in tainted for v in variables(arg)):
                        yield self._no(arg.span, "a cost must equal another value here")
            case Atom(_, args):
                for arg in args:
                    if any(v.name in tainted for v in variables(arg)):
                        yield self._no(arg.span, "a cost must equal another value here")
            case Comparison("=", left, right):
                # A definition is fine; any other equation is a test.
                defines = any(
                    isinstance(var, Var)
                    and var.name not in inputs
                    and self.definitions[var.name] is side
                    for var, side in ((left, right), (right, left))
                )
                if not defines and any(v.name in tainted for v in variables(literal)):
                    yield self._no(literal.span, "a cost must equal another value here")
            case Comparison():
                wanted = -1 if self.func == "min" else 1
                if better(literal, tainted) not in (0, wanted):
                    yield self._no(literal.span, f"a {self.better} cost may fail here")
            case Not((Atom(pred, args) as atom,)):
                for position, arg in enumerate(args):
                    if not any(v.name in tainted for v in variables(arg)):
                        continue
                    is_open = position in self.open_positions.get(pred, frozenset())
                    moves = direction(arg, tainted)
                    if not is_open or not self._refuses_worse(pred, position, moves):
                        yield self._no(atom.span, f"a {self.better} cost may fail here")
            case Not(body):
                for inner in body:
                    if not self._holds_of_worse(inner, tainted):
                        yield self._no(inner.span, f"a {self.better} cost may fail here")
            case Choice():
                raise ValueError("bodies are desugared")

    def _refuses_worse(self, pred: str, position: int, moves: Direction) -> bool:
        """Whether a test that holds of a cost holds of every worse one."""
        return all(
            isinstance(var := rule.head.args[position], Var)
            and all(self._holds_of_worse(literal, {var.name: moves}) for literal in body)
            for rule in self.schema.rules_of[pred]
            for body in branches(rule.body)
        )

    def _holds_of_worse(self, literal: Literal, tainted: Mapping[str, Direction]) -> bool:
        """Whether a literal that holds of a cost holds of every worse one."""
        if not any(v.name in tainted for v in variables(literal)):
            return True
        worse = 1 if self.func == "min" else -1
        return isinstance(literal, Comparison) and better(literal, tainted) in (0, worse)
