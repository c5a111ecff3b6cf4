"""How long a recursion has gone on; what to say of a rule that does not end, or fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from streamlog.plan.steps import RulePlan
from streamlog.runtime.executor import BEGIN, LimitError
from streamlog.runtime.functions import EvaluationError, reason
from streamlog.runtime.memory import size
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


def cut_short(
    preds: Collection[str], rules: Sequence[RulePlan], limit: str, rounds: int, rows: int
) -> LimitError:
    """What to say of a recursion that was stopped: whether it would have ended is not known."""
    rule = _recursive(preds, rules)
    return LimitError(
        f"stopped after {limit}: the recursion of {' and '.join(preds)} had {rows:,} rows by then, "
        f"and found more in round {rounds:,}; if it should go on, raise the limit, and if it "
        f"should have ended, look at the rule at {place(rule)}: {in_a_line(rule)}"
    )


def rows_of(preds: Collection[str], rules: Sequence[RulePlan]) -> str:
    """What a recursion finds, and by which rule."""
    rule = _recursive(preds, rules)
    return (
        f"the rows of {' and '.join(preds)}, found by the rule at {place(rule)}: {in_a_line(rule)}"
    )


def _recursive(preds: Collection[str], rules: Sequence[RulePlan]) -> Rule:
    inside = (r for r in rules if any(p.start and p.start.pred in preds for p in r.pipelines))
    return next(inside, rules[0]).rule


def out_of_memory(
    error: MemoryError,
    source: str,
    rules: Mapping[int, Rule],
    memory: int | None,
    preds: Collection[str],
    of_preds: Sequence[RulePlan],
) -> LimitError:
    """The same of a step that needed more memory than it may take."""
    rule = _rule_of(error, source, rules)
    if rule is not None:
        where = f"the rule at {place(rule)}: {in_a_line(rule)}"
    else:
        where = rows_of(preds, of_preds) if of_preds else "the rows that came"
    allowed = "" if memory is None else f" (--max-memory is {size(memory)})"
    return LimitError(f"stopped for lack of memory{allowed}: more was needed for {where}")


def explained(error: Exception, source: str, rules: Mapping[int, Rule]) -> EvaluationError:
    """The error with the rule whose generated code it came from; `rules` by line of `source`."""
    rule = _rule_of(error, source, rules)
    if rule is None and not isinstance(error, EvaluationError):
        raise error  # not the rules' fault
    where = f" in the rule at {place(rule)}: {in_a_line(rule)}" if rule else ""
    return EvaluationError(f"{reason(error)}{where}")


def _rule_of(error: BaseException, source: str, rules: Mapping[int, Rule]) -> Rule | None:
    rule: Rule | None = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == source:
            rule = rules.get(trace.tb_lineno, rule)
        trace = trace.tb_next
    return rule


def in_a_line(rule: Rule) -> str:
    return " ".join(pretty(rule).split())


def place(rule: Rule) -> str:
    line, _ = rule.span.source.position(rule.span.start)
    return f"{rule.span.source.path}:{line}"
