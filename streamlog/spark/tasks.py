"""Kernels inside Spark tasks: a part of the plan, one job, Arrow in and Arrow out.

The rows that a part reads and the state that its kernel left the last time go in together; what
comes out is the new answers and the new state. Where a part has a pivot (`plan.pivot`) its rows
are partitioned among several kernels, each in a task of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Planned
from streamlog.kernel import Kernel
from streamlog.plan.pivot import Pivot, Seat, plan_of
from streamlog.plan.steps import Plan
from streamlog.runtime.errors import EvaluationError
from streamlog.runtime.executor import Limits, Row
from streamlog.runtime.memory import share
from streamlog.spark import wire
from streamlog.syntax.ast import Const, Fact

ANSWER, STATE = "answer ", "state "
BEGUN = "begun"  # a row for each kernel, so that it runs even if nothing has come


@frozen
class Job:
    """What the task of a part gets: the same for all its kernels."""

    program: Planned  # only what a kernel reads
    progress: Mapping[str, int]
    spoken_of: int
    limits: Limits
    width: int
    pivot: Pivot | None = None
    kernels: int = 1  # one, unless there is a pivot


def shipped(program: Planned, plan: Plan) -> Planned:
    """A program with the plan of a part, without what no kernel reads."""
    return evolve(program, plan=plan, times=(), cases=(), rules=(), diagnostics=())


def width(plan: Plan) -> int:
    """The most values that a row in or out of a kernel of the plan can have."""
    carried = (len(r.carries) for r in plan.rules)
    # What an index stores: a key, a timestamp, and what is read of a row.
    stored = (2 * arity + 1 for arity in plan.arity.values())
    return max([2, *stored, *carried])


def run(rows: DataFrame, job: Job) -> DataFrame:
    """The answers and the states of a part's kernels, for rows in and states (`wire`)."""
    if job.kernels > 1:
        # By a hash of their numbers two kernels might share a task.
        rows = rows.repartitionById(job.kernels, wire.PART)
    return rows.groupBy(wire.PART).applyInArrow(_task(job), schema=wire.schema(job.width))


def _task(job: Job) -> Callable[[pa.Table], pa.Table]:
    def task(table: pa.Table) -> pa.Table:
        part = table.column(wire.PART)[0].as_py()
        try:
            return wire.encode(stepped(job, part, wire.decode(table)), part, job.width)
        except EvaluationError as error:  # of which Spark sends the text
            raise EvaluationError(error.as_text()) from error

    return task


def stepped(job: Job, part: int, tables: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """One kernel's answers and state."""
    schema = job.program.schema
    saved = {
        name.removeprefix(STATE): list(rows)
        for name, rows in tables.items()
        if name.startswith(STATE)
    }
    arrived = {
        name: sorted(dict.fromkeys(rows), key=_time) if schema.is_temporal(name) else rows
        for name, rows in tables.items()
        if not name.startswith(STATE)
    }
    static = {n: rows for n, rows in arrived.items() if not schema.is_temporal(n)}
    limits = job.limits
    if limits.memory is None:
        limits = evolve(limits, memory=share(job.kernels))
    kernel = Kernel(_program(job, part), static, limits)
    if saved:
        kernel.load(_Complete(saved))
    answers = kernel.step(arrived, job.progress, job.spoken_of)
    result = {ANSWER + name: list(rows) for name, rows in answers.items()}
    return result | {STATE + name: rows for name, rows in kernel.save().items()}


def _program(job: Job, part: int) -> Planned:
    """Of a part's rules and facts, those that are for one of its kernels."""
    if job.pivot is None or job.kernels == 1:
        return job.program
    pivot, own, program = job.pivot, Seat(part, job.kernels), job.program

    def is_own(fact: Fact) -> bool:
        column = pivot.columns.get(fact.atom.pred)
        value = None if column is None else fact.atom.args[column]
        return not isinstance(value, Const) or own.has(value.value)

    schema = evolve(program.schema, facts=tuple(filter(is_own, program.schema.facts)))
    return evolve(program, schema=schema, plan=plan_of(program.plan, pivot, own))


def _time(row: Row) -> int:
    return int(row[0])


class _Complete(dict[str, list[Row]]):
    """A state, of which the empty tables are not sent."""

    def __missing__(self, name: str) -> list[Row]:
        return []


def seated(rows: DataFrame, job: Job, pred: str) -> DataFrame:
    """A relation's rows with the kernel they are for, as `plan.pivot.seat` says; those of a
    relation that is not partitioned are for all."""
    if job.pivot is None or job.kernels == 1:
        return rows
    column = job.pivot.columns.get(pred)
    if column is None:
        everyone = F.sequence(F.lit(0), F.lit(job.kernels - 1))
        return rows.withColumn(wire.PART, F.explode(everyone))
    text = F.coalesce(F.col(f"c{column}").cast("string"), F.lit("")).cast("binary")
    return rows.withColumn(wire.PART, F.pmod(F.crc32(text), F.lit(job.kernels)))
