"""The queries of a program in DuckDB against the kernel's answers."""

from __future__ import annotations

from collections import Counter
from random import Random

import duckdb
from attrs import evolve
from kernel_checks import arrivals, tables
from oracle.programs import Case
from sqlglot import exp

from streamlog.analysis.builtins import TICK
from streamlog.compiler import Program
from streamlog.kernel import Kernel
from streamlog.plan.sql import (
    Context,
    Unsupported,
    Version,
    named,
    predicate_query,
    render,
    rule_query,
)
from streamlog.plan.sql.aggregates import EXACT_SUM
from streamlog.runtime.executor import END, Row
from streamlog.runtime.functions import EvaluationError, exact_sum
from streamlog.syntax.ast import Type

DELTA = "main"  # DuckDB's name for the place where tables are
FIRST, PAST = -(10**9), 10**9  # in microseconds too
_SQL_TYPES = {Type.FLOAT: "DOUBLE", Type.STRING: "VARCHAR", Type.BOOL: "BOOLEAN", None: "VARCHAR"}
_TYPES = {str: Type.STRING, bool: Type.BOOL, int: Type.INT, float: Type.FLOAT}


def everything(program: Program, case: Case) -> dict[str, set[Row]]:
    """The rows of every predicate of the plan: those that are given and the kernel's answers."""
    given = tables(program, case)
    facts = arrivals(program, case)
    answers = Kernel(program.closed, given).step(facts, dict.fromkeys(facts, END))
    assert program.closed.plan
    rows = {name: set() for name in program.closed.plan.arity}
    rows[TICK] = {(row[0],) for stream in facts.values() for row in stream}
    for part in (given, facts, answers):
        for name, found in part.items():
            rows.setdefault(name, set()).update(found)
    return rows


def context_of(program: Program, rows: dict[str, set[Row]]) -> Context:
    """Columns that inference does not know are what they hold."""
    assert program.closed.plan and program.closed and program.closed.types
    types = program.closed.types
    columns = {
        name: tuple(
            types.column(name, i) or next((_TYPES[type(r[i])] for r in rows[name]), None)
            for i in range(arity)
        )
        for name, arity in program.closed.plan.arity.items()
    }
    return Context(program.closed.plan, types, program.closed.times, column_types=columns)


def connected() -> duckdb.DuckDBPyConnection:
    """With the functions that queries call, beside DuckDB's own."""
    db = duckdb.connect(config={"threads": 1})
    db.create_function(EXACT_SUM, exact_sum, ["DOUBLE[]"], "DOUBLE")
    return db


def load(db: duckdb.DuckDBPyConnection, context: Context, rows: dict[str, set[Row]]) -> None:
    for name, arity in context.plan.arity.items():
        if not arity:  # a column that is true, as on Spark
            db.execute(
                f'CREATE OR REPLACE TABLE "{name}" AS SELECT TRUE AS c0 LIMIT {len(rows[name])}'
            )
            continue
        kinds = (_SQL_TYPES.get(context.column_of(name, i), "BIGINT") for i in range(arity))
        columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
        db.execute(f'CREATE OR REPLACE TABLE "{name}" ({columns})')
        if rows[name]:
            marks = f"({', '.join('?' * arity)})"
            values = [v for row in sorted(rows[name]) for v in row]
            db.execute(
                f'INSERT INTO "{name}" VALUES {", ".join([marks] * len(rows[name]))}', values
            )


def check(case: Case, program: Program, rng: Random, db: duckdb.DuckDBPyConnection) -> Counter[str]:
    """Counts of the predicates that were compared, and of those that have no query, by why."""
    try:
        rows = everything(program, case)
    except EvaluationError:
        return Counter(["an error"])
    context = context_of(program, rows)
    load(db, context, rows)
    done: Counter[str] = Counter()
    assert program.closed.plan and program.closed and program.closed.schema
    timers = {p for c in program.closed.plan.components if c.is_timer for p in c.preds}
    known = tables(program, case)
    for name in program.closed.schema.rules_of:
        if name in timers:
            continue
        try:
            query = predicate_query(name, context)
            whole = predicate_query(name, evolve(context, sliced=False))
        except Unsupported as reason:
            done[f"no query: {reason}"] += 1
            continue
        done["compared"] += 1
        done["with rows"] += bool(rows[name])
        given = set(known.get(name, ()))
        expected = Counter(rows[name] - given)

        def answer(
            text: str, parameters: dict[str, int] | None = None, of=given, name=name
        ) -> Counter[Row]:
            found = db.execute(text, parameters).fetchall()
            found = found if context.plan.arity[name] else [()] * len(found)
            return Counter(r for r in found if r not in of)

        assert answer(render(whole, "duckdb")) == expected, f"{name}, everything"
        if program.closed.schema.is_temporal(name):
            text = render(query, "duckdb")
            cut = rng.choice(sorted({r[0] for r in expected}) or [0]) + rng.choice([0, 0, 1, -2])
            for low, high in ((FIRST, cut), (cut, PAST)):
                found = answer(text, _only({"low": low, "high": high}, text))
                wanted = Counter(r for r in expected if low <= r[0] < high)
                assert found == wanted, f"{name} from {low} to {high}"
    done += _deltas(program, context, rng, db)
    return done


def _only(parameters: dict[str, int], text: str) -> dict[str, int]:
    """DuckDB refuses arguments that a query does not have."""
    return {name: value for name, value in parameters.items() if f"${name}" in text}


def _table(name: str, version: Version) -> exp.Table:
    """The delta is everything, under a name that can be told from the other."""
    return exp.table_(name, db=DELTA) if version is Version.DELTA else named(name)


def _deltas(
    program: Program, context: Context, rng: Random, db: duckdb.DuckDBPyConnection
) -> Counter[str]:
    """From whichever goal a conjunction starts, it finds the same, and it does start there."""
    done: Counter[str] = Counter()
    assert program.closed.plan
    total = evolve(context, sliced=False, table=_table)
    for rule in program.closed.plan.rules:
        if len(rule.pipelines) < 2:
            continue
        number = rng.randrange(len(rule.pipelines))
        try:
            queries = [rule_query(rule, total, delta=i) for i in (None, number)]
        except Unsupported:
            continue
        first, other = (set(db.execute(render(q, "duckdb")).fetchall()) for q in queries)
        assert first == other, f"conjunction {rule.number} from goal {number}"
        # Where a test is made of the rows themselves, they are read there too.
        assert any(t.db == DELTA for t in queries[1].find_all(exp.Table))
        done["deltas"] += 1
    return done
