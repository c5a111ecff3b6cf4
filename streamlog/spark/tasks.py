"""Kernels inside Spark tasks: a part of the plan, one job, Arrow in and Arrow out.

The rows that a part reads and the state that its kernel left the last time go in together; what
comes out is the new answers and the new state. Where some argument is carried unchanged through
all of a part's rules (a pivot), its rows are dealt out by that argument's value to several
kernels, which never need to know of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamlog.compiler import Compilation, the
from streamlog.kernel import Kernel
from streamlog.plan.steps import Plan
from streamlog.runtime.executor import Limits, Row
from streamlog.spark import wire

if TYPE_CHECKING:
    from streamlog.analysis.schema import Schema

ANSWER, STATE = "answer ", "state "
BEGUN = "begun"  # a row for each kernel, so that it runs even if nothing has come


@frozen
class Job:
    """What the task of a part is told: the same for all its kernels."""

    program: Compilation  # only what a kernel reads
    progress: Mapping[str, int]
    spoken_of: int
    limits: Limits
    width: int


def shipped(program: Compilation, plan: Plan) -> Compilation:
    """As much of a program as a kernel needs, which can be sent to where it runs."""
    closed = the(program.closed)
    rest = Compilation(
        program.source,
        schema=closed.schema,
        types=closed.types,
        strata=closed.strata,
        contract=closed.contract,
    )
    return Compilation(program.source, plan=plan, closed=rest)


def width(plan: Plan) -> int:
    """The most values that a row in or out of a kernel of the plan can have."""
    carried = (len(r.carries) for r in plan.rules)
    # What an index stores: a key, a timestamp, and what is read of a row.
    stored = (2 * arity + 1 for arity in plan.arity.values())
    return max([2, *stored, *carried])


def run(rows: DataFrame, job: Job) -> DataFrame:
    """The answers and the states of a part's kernels, for rows in and states (`wire`)."""
    return rows.groupBy(wire.PART).applyInArrow(_task(job), schema=wire.schema(job.width))


def _task(job: Job) -> Callable[[pa.Table], pa.Table]:
    def task(table: pa.Table) -> pa.Table:
        part = table.column(wire.PART)[0].as_py()
        return wire.encode(_stepped(job, wire.decode(table)), part, job.width)

    return task


def _stepped(job: Job, tables: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    schema: Schema = the(the(job.program.closed).schema)
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
    kernel = Kernel(job.program, static, job.limits)
    if saved:
        kernel.load(_Complete(saved))
    answers = kernel.step(arrived, job.progress, job.spoken_of)
    result = {ANSWER + name: list(rows) for name, rows in answers.items()}
    return result | {STATE + name: rows for name, rows in kernel.save().items()}


def _time(row: Row) -> int:
    return int(row[0])


class _Complete(dict[str, list[Row]]):
    """A state, of which the empty tables are not sent."""

    def __missing__(self, name: str) -> list[Row]:
        return []


def seated(rows: DataFrame, kernels: int, pivot: int | None) -> DataFrame:
    """A relation's rows with the kernel they are for: by the value of the column that rows are
    dealt out by; for all of them, if there is no such column."""
    if kernels == 1:
        return rows
    if pivot is None:
        return rows.withColumn(wire.PART, F.explode(F.sequence(F.lit(0), F.lit(kernels - 1))))
    return rows.withColumn(wire.PART, F.pmod(F.xxhash64(f"c{pivot}"), F.lit(kernels)))
