"""How long a recursion has gone on; what to say of a rule that does not end, or fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamlog.plan.steps import Component, RulePlan
from streamlog.runtime.executor import BEGIN
from streamlog.runtime.functions import EvaluationError
from streamlog.syntax.ast import Rule
from streamlog.syntax.pretty import pretty


class Rounds:
    """How many rounds a recursion has gone without time moving on."""

    def __init__(self) -> None:
        self.count = 0
        self._latest: Any = BEGIN

    def at(self, time: Any) -> None:
        self.count = 0 if time > self._latest else self.count + 1
        self._latest = max(self._latest, time)


def runaway(
    component: Component, rules: Sequence[RulePlan], why: str, rounds: Rounds, derived: int
) -> str:
    """What to say of a recursion that was stopped."""
    inside = (
        r for r in rules if any(p.start and p.start.pred in component.preds for p in r.pipelines)
    )
    rule = next(inside, rules[0]).rule
    return (
        f"stopped after {why}: the recursion of {' and '.join(component.preds)} does not "
        f"seem to end (round {rounds.count}, {derived} rows so far); look at the rule at "
        f"{place(rule)}: {in_a_line(rule)}"
    )


def explained(error: Exception, source: str, rules: Mapping[int, Rule]) -> EvaluationError:
    """The error with the rule whose generated code it came from; `rules` by line of `source`."""
    rule: Rule | None = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == source:
            rule = rules.get(trace.tb_lineno, rule)
        trace = trace.tb_next
    if rule is None and not isinstance(error, EvaluationError):
        raise error  # not the rules' fault
    what = str(error)
    if isinstance(error, ZeroDivisionError):
        what = "division by zero"
    elif isinstance(error, TypeError):
        what = f"values of different kinds meet ({error}): declare the types of the columns"
    where = f" in the rule at {place(rule)}: {in_a_line(rule)}" if rule else ""
    return EvaluationError(f"{what}{where}")


def in_a_line(rule: Rule) -> str:
    return " ".join(pretty(rule).split())


def place(rule: Rule) -> str:
    line, _ = rule.span.source.position(rule.span.start)
    return f"{rule.span.source.path}:{line}"
