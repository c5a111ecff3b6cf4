"""How long a recursion has gone on; what to say of a rule that does not end, or fails."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from streamlog.analysis.types import TypeTable, settled
from streamlog.plan.python.terms import name
from streamlog.plan.steps import RulePlan
from streamlog.runtime.errors import EvaluationError, Pattern
from streamlog.runtime.executor import BEGIN, LimitError
from streamlog.runtime.functions import reason
from streamlog.runtime.memory import size
from streamlog.runtime.values import shown, written
from streamlog.syntax.ast import Agg, Atom, BinOp, Call, Const, Neg, Rule, Term, Value, Var
from streamlog.syntax.nothing import NONE
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import variables

WITH_RULE = " in the rule at "  # in the message of an error whose rule is known


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


def explained(
    error: Exception, source: str, text: str, rules: Mapping[int, Rule], types: TypeTable
) -> EvaluationError:
    """The error with the rule whose generated code it came from, and the values of the rule's
    variables there; `rules` by line of the `text` of `source`."""
    rule = _rule_of(error, source, rules)
    if rule is None:
        if isinstance(error, EvaluationError):
            return error
        raise error  # not the rules' fault
    values = _values_in(error, source, text, rules)
    named = [
        f"{variable} = {shown(written(value, settled(types.variable(rule, variable))))}"
        for variable, value in values.items()
    ]
    where = f"{WITH_RULE}{place(rule)}: {in_a_line(rule)}"
    with_values = f" (with {', '.join(named)})" if named else ""
    message = f"{reason(error)}{where}{with_values}"
    return EvaluationError(message, tuple(_goals(rule, values)))


def _goals(rule: Rule, values: Mapping[str, Value]) -> Iterator[Pattern]:
    def known(term: Term) -> Value | None:
        match term:
            case Const(value):
                return None if value is NONE else value
            case Var(variable):
                return values.get(variable)
            case Neg() | BinOp() | Call() | Agg():
                return None

    for goal in rule.body:
        if isinstance(goal, Atom):
            yield goal.pred, tuple(map(known, goal.args))


def _rule_of(error: BaseException, source: str, rules: Mapping[int, Rule]) -> Rule | None:
    rule: Rule | None = None
    for _, line in _generated(error, source):
        rule = rules.get(line, rule)
    return rule


def _values_in(
    error: BaseException, source: str, text: str, rules: Mapping[int, Rule]
) -> dict[str, Value]:
    """What the variables of a rule stood for when its generated code failed. Those that are set
    further below hold values of an earlier row."""
    lines = text.splitlines()
    found: dict[str, Value] = {}
    for frame, at in _generated(error, source):
        if (rule := rules.get(at)) is None:
            continue
        above: list[str] = []
        depth = _depth(lines[at - 1])
        for number in range(at - 1, 0, -1):
            if rules.get(number) is rule and _depth(lines[number - 1]) <= depth:
                depth = _depth(lines[number - 1])
                above.append(lines[number - 1])
        words = set(re.findall(r"\w+", "\n".join(above)))
        for var in variables(rule):
            if not var.is_anonymous and name(var) in words and name(var) in frame:
                found[var.name] = frame[name(var)]
    return found


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _generated(error: BaseException, source: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The local variables and the line of each call of generated code that has failed."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == source:
            yield trace.tb_frame.f_locals, trace.tb_lineno
        trace = trace.tb_next


def in_a_line(rule: Rule) -> str:
    return " ".join(pretty(rule).split())


def place(rule: Rule) -> str:
    return rule.span.place
