"""The rows of a program's streams and tables, from DataFrames, files and the program itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from math import inf
from typing import Any
from uuid import uuid4

from attrs import field, frozen
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.analysis.builtins import TICK
from streamlog.analysis.schema import Kind
from streamlog.analysis.types import Given
from streamlog.compiler import Program
from streamlog.diagnostics import did_you_mean
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import REPORT, surface
from streamlog.runtime.sources import declared_inputs
from streamlog.spark import wire
from streamlog.spark.columns import ColumnTypes, types_of_rows
from streamlog.spark.ingest import (
    GOOD,
    PLACE,
    REASON,
    TEXT,
    checked,
    data_types,
    rejects,
    values,
)
from streamlog.spark.records import Records
from streamlog.spark.sources import read
from streamlog.syntax.ast import Type
from streamlog.syntax.walk import atoms

REPORT_TYPES: tuple[Type, ...] = (Type.STRING,) * len(REPORT)


class InputError(Exception):
    """A DataFrame that the program has no use for."""


@frozen
class Count:
    """What became of an input's rows."""

    rows: int
    rejected: int
    late: int = 0


@frozen
class Inputs:
    spark: SparkSession
    program: Program
    records: Mapping[str, Records]
    types: Given  # what the data tell of the columns' types
    _counted: dict[str, Observation] = field(factory=dict, repr=False)
    only_certain: bool = False  # without the rows that only Python can read

    @staticmethod
    def of(
        spark: SparkSession, program: Program, given: Mapping[str, DataFrame | Records]
    ) -> Inputs:
        """Files that the program names are read for inputs that are not given."""
        schema = program.schema
        known = [n for n, p in schema.predicates.items() if p.kind is not Kind.DERIVED]
        for name in given:
            if name not in known:
                near = did_you_mean(name, known)
                hint = f"; did you mean `{near}`?" if near else ""
                raise InputError(f"the program has no stream or table `{name}`{hint}")
        found: dict[str, Records] = {}
        for name, rows in given.items():
            names, _ = surface(schema.column_names[name], ())
            found[name] = rows if isinstance(rows, Records) else Records.of(rows, names, name)
        for source in declared_inputs(program, header=True):
            if source.pred not in found:
                found[source.pred] = read(spark, source.path, source.pred, program)
        types: dict[tuple[str, int], Type] = {}
        for name, records in found.items():
            told = data_types(records, program, name)
            types |= {(name, position): type_ for position, type_ in told.items()}
        types |= types_of_rows(_facts(program))
        return Inputs(spark, program, found, types)

    @property
    def streaming(self) -> list[str]:
        """Those that are still coming."""
        return [name for name, records in self.records.items() if records.frame.isStreaming]

    def validated(self, types: ColumnTypes, name: str) -> DataFrame:
        """The rows of an input with its columns, and a `reason` where they are bad."""
        return checked(self.records[name], self.program, name, types[name])

    def _good(self, types: ColumnTypes, name: str) -> DataFrame:
        """The good rows of an input, all of them counted by whichever job reads them first."""
        rows = values(
            self.records[name], self.program, name, types[name], only_certain=self.only_certain
        )
        self._counted[name] = Observation()
        counted = rows.observe(
            self._counted[name],
            F.count(F.lit(1)).alias("rows"),
            F.count_if(~F.col(GOOD)).alias("rejected"),
        )
        return counted.where(GOOD).select(*wire.columns(types[name]).names)

    def certain(self) -> Inputs:
        """The rows of which SQL is certain, which are all of most inputs: then no row has to go
        to Python. Where some are `left_out`, what was computed from the others is worth nothing."""
        return Inputs(self.spark, self.program, self.records, self.types, only_certain=True)

    @property
    def left_out(self) -> bool:
        """Whether rows that rules read may not be certain: jobs have met some, or have not said."""
        goals = {a.pred for rule in self.program.closed.schema.rules for a in atoms(rule.body)}
        counts = self.counts()
        return any(
            name not in counts or counts[name].rejected > 0
            for name in self._counted
            if name in goals or TICK in goals
        )

    def counts(self) -> Mapping[str, Count]:
        """Of the inputs that a job has read by now."""
        found = {name: _observed(seen) for name, seen in self._counted.items()}
        return {name: Count(**values) for name, values in found.items() if values}

    def checked(self, types: ColumnTypes) -> dict[str, DataFrame]:
        """The good rows of each input that is complete, and the program's own facts."""
        streaming = self.streaming
        rows = {
            name: self._good(types, name)
            for name in self.records
            if name in types and name not in streaming
        }
        for name, own in self.facts(types).items():
            rows[name] = rows[name].unionAll(own) if name in rows else own
        return rows

    def within(self, spark: SparkSession) -> Inputs:
        """The same as seen from another session, that of a streaming query."""
        if spark is self.spark:
            return self
        streaming = self.streaming
        records = {
            name: records if name in streaming else records.map(partial(_seen_from, spark))
            for name, records in self.records.items()
        }
        return Inputs(spark, self.program, records, self.types, self._counted)

    def tables(self, types: ColumnTypes) -> dict[str, DataFrame]:
        """The rows of tables, each once."""
        schema = self.program.schema
        return {
            name: rows.distinct()
            for name, rows in self.checked(types).items()
            if not schema.is_temporal(name)
        }

    def facts(self, types: ColumnTypes) -> dict[str, DataFrame]:
        """What the program's text says of its inputs."""
        return {
            name: self.spark.createDataFrame(
                wire.relation(facts, types[name]), schema=wire.columns(types[name])
            )
            for name, facts in _facts(self.program).items()
            if name in types
        }

    def rejects(self, types: ColumnTypes) -> DataFrame:
        """The bad rows of inputs that are complete, as a relation (`REPORT`)."""
        streaming = self.streaming
        complete = {n: r for n, r in self.records.items() if n in types and n not in streaming}
        return self._report(types, complete)

    def rejects_in(self, types: ColumnTypes, name: str, files: Sequence[str]) -> DataFrame:
        """The bad rows in some files of a stream."""
        anew = self.records[name].anew
        assert anew is not None
        return self._report(types, {name: anew(self.spark, files)})

    def _report(self, types: ColumnTypes, found: Mapping[str, Records]) -> DataFrame:
        bad = [
            rejects(self.spark, records, self.program, name, types[name]).selectExpr(
                f"'{name}' AS c0", f"{PLACE} AS c1", f"{REASON} AS c2", f"{TEXT} AS c3"
            )
            for name, records in found.items()
        ]
        nothing = self.spark.createDataFrame([], wire.columns(REPORT_TYPES))
        return reduce(DataFrame.unionAll, bad, nothing)

    def estimate(self) -> float:
        """How many rows there may be, by what Spark says of their size without a job; infinitely
        many where it cannot say, as of a DataFrame made of Python objects."""
        sizes = [_bytes(records.frame) for records in self.records.values()]
        if any(size >= _UNKNOWN for size in sizes):
            return inf
        facts = _facts(self.program)
        return sum(size // _BYTES_A_ROW for size in sizes) + sum(map(len, facts.values()))


def _seen_from(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The same rows in another session: views are known to one alone, global ones to all."""
    name = f"streamlog_{uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        return spark.table(f"{spark.conf.get('spark.sql.globalTempDatabase')}.{name}")
    finally:
        spark.catalog.dropGlobalTempView(name)


_BYTES_A_ROW = 32
_UNKNOWN = 2**62  # bytes; Spark's default for a size is the largest number there is
_PATIENCE = 2.0  # seconds


def _bytes(frame: DataFrame) -> int:
    """What its sources have: of what is computed from them Spark only guesses the size."""
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    sizes = (leaves.apply(i).stats().sizeInBytes() for i in range(leaves.size()))
    return sum(int(str(size)) for size in sizes)


def _facts(program: Program) -> dict[str, list[Row]]:
    """What the program's text says of its inputs."""
    schema = program.schema
    return {
        name: [fact.row for fact in schema.facts_of[name]]
        for name, p in schema.predicates.items()
        if p.kind is not Kind.DERIVED and name in schema.facts_of
    }


def counted(rows: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """The rows, and how many the job that computes them has found."""
    counting = Observation()
    observed = rows.observe(counting, F.count(F.lit(1)).alias("rows"))
    return observed, lambda: _observed(counting).get("rows", 0)


def _observed(observation: Observation) -> dict[str, int]:
    """What was counted, if a job has run over the rows: figures come a moment after its end."""
    handle: Any = observation._jo
    patience = time.monotonic() + _PATIENCE
    while not handle.future().isCompleted():
        if time.monotonic() > patience:
            return {}
        time.sleep(0.01)
    return {key: int(value) for key, value in observation.get.items()}
