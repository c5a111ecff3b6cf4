"""One-time queries with a head: they group, rank and compute as rules do, over the rows at hand.

    ?impact(Source, avg(P), count()) <- news_impact(_, _, Source, _, P), P > 50.0
        limit 10 by avg(P) desc.

To such a rule every predicate is a table: nothing is awaited, and its head needs no timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from streamlog.analysis.builtins import TICK, is_built_in
from streamlog.compiler import Mode, Program, compile_module
from streamlog.diagnostics import Source, did_you_mean
from streamlog.rewrite.desugar import desugar
from streamlog.rewrite.names import free_name
from streamlog.runtime.executor import ExecutorFactory, Limits, Row
from streamlog.runtime.query import QueryError, Relation, in_order, raise_errors, refuse_clocks
from streamlog.syntax.ast import (
    Agg,
    Column,
    Function,
    Module,
    Output,
    PredName,
    Query,
    Rule,
    Statement,
    Table,
    Type,
)
from streamlog.syntax.parse import parse
from streamlog.syntax.walk import atoms, walk


@frozen
class Result:
    names: tuple[str, ...]
    types: tuple[Type | None, ...]
    rows: list[Row]


def one_time_rule(text: str) -> Rule | None:
    """The rule of a query such as `?top(S, sum(A)) <- sale(_, S, A).`"""
    module, wrong = parse(Source("<query>", text.strip().removeprefix("?").lstrip()))
    match module.statements:
        case (Rule() as rule,) if not wrong:
            return rule
        case _:
            return None


def answer_once(
    program: Program, rule: Rule, relation: Relation, executor: ExecutorFactory
) -> Result:
    if rule.head.pred in program.schema.predicates:
        message = f"`{rule.head.pred}` is a predicate of this program; choose another name"
        raise QueryError(message)
    refuse_clocks(rule.body)
    module = program.written or program.parsed
    body = Query(rule.body, span=rule.span)
    plain, wrong = desugar(Module((body,), span=rule.span), module.statements if module else ())
    raise_errors(wrong)
    (asked,) = (s for s in plain.statements if isinstance(s, Query))
    for part in walk((rule.head, *((rule.limit,) if rule.limit else ()))):
        if isinstance(part, Agg) and part.func in ("first", "last"):
            best = {"first": "arg_min", "last": "arg_max"}[part.func]
            message = f"`{part.func}` goes by the time of a stream; write `{best}(X, T)`"
            raise QueryError(message)
    # What a state is made of, where no rule of the program has asked for it.
    made_of: list[Rule] = [
        s
        for s in plain.statements
        if isinstance(s, Rule) and s.head.pred not in program.schema.predicates
    ]
    own = {r.head.pred for r in made_of}
    called = [a.pred for body in (asked.body, *(r.body for r in made_of)) for a in atoms(body)]
    if TICK in called:
        raise QueryError("`tick` is not a table; name the stream whose timestamps are meant")
    read = dict.fromkeys(p for p in called if not is_built_in(p) and p not in own)
    for pred in read:
        _check(program, pred)
    statements: list[Statement] = [_table(program, pred, rule) for pred in read]
    functions = (s for s in program.module.statements if isinstance(s, Function))
    name = PredName(rule.head.pred, span=rule.head.span)
    statements += [
        *functions,
        *made_of,
        Output((name,), span=rule.span),
        evolve(rule, body=asked.body),
    ]
    made = compile_module(Module(tuple(statements), span=rule.span), mode=Mode.BATCH)
    raise_errors(made.diagnostics)
    assert isinstance(made, Program)
    rows = {pred: list(relation(pred)) for pred in read}
    found = executor(made.closed, rows, Limits()).step({}, {}).get(name.name, [])
    types = tuple(made.types.column(name.name, i) for i in range(len(rule.head.args)))
    return Result(made.schema.column_names[name.name], types, _ordered(rule, found))


def _check(program: Program, pred: str) -> None:
    if pred in program.schema.predicates and not program.safety.is_open(pred):
        return
    if pred in program.schema.predicates:
        raise QueryError(f"`{pred}` has an open position, so its rows cannot be listed")
    near = did_you_mean(pred, program.schema.predicates)
    hint = f"; did you mean `{near}`?" if near else ""
    raise QueryError(f"there is no predicate `{pred}` in this program{hint}")


def _table(program: Program, pred: str, rule: Rule) -> Table:
    taken: set[str] = set()
    columns = tuple(
        Column(
            free_name(name, taken),
            program.types.column(pred, i),
            optional=(pred, i) in program.schema.optional,
            span=rule.span,
        )
        for i, name in enumerate(program.schema.column_names[pred])
    )
    return Table(pred, columns, (), span=rule.span)


def _ordered(rule: Rule, rows: Iterable[Row]) -> list[Row]:
    """As the limit ranks them, as far as what it ranks by is shown."""
    found: list[Row] = in_order(rows)
    for order in reversed(rule.limit.by if rule.limit else ()):
        for at, term in enumerate(rule.head.args):
            if term == order.term:
                found.sort(key=lambda row, at=at: row[at], reverse=order.descending)  # type: ignore[misc]
                break
    return found
