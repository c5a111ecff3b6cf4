"""The rows of a program's streams and tables, from DataFrames, files and the program itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce
from math import inf
from typing import Any
from uuid import uuid4

from attrs import evolve, field, frozen
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamlog.analysis.types import Given
from streamlog.compiler import Program
from streamlog.diagnostics import did_you_mean
from streamlog.runtime.columns import ColumnTypes, types_of_rows
from streamlog.runtime.executor import Row
from streamlog.runtime.ingest import REPORT, paths_of
from streamlog.runtime.missing_inputs import check_inputs
from streamlog.runtime.sources import declared_inputs
from streamlog.spark import wire
from streamlog.spark.ingest import (
    GOOD,
    ODD,
    PLACE,
    REASON,
    TEXT,
    certain,
    checked,
    data_types,
    doubt_of,
    uncertain,
    values,
)
from streamlog.spark.records import Records
from streamlog.spark.sources import read
from streamlog.syntax.ast import Type

REPORT_TYPES: tuple[Type, ...] = (Type.STRING,) * len(REPORT)


class InputError(Exception):
    """A DataFrame that the program has no use for."""


def check_given(program: Program, inputs: Collection[str], empty: Collection[str]) -> None:
    """That every DataFrame has a stream or table, and that none was forgotten."""
    known = program.schema.inputs
    for name in (*inputs, *empty):
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"; did you mean `{near}`?" if near else ""
            raise InputError(f"the program has no stream or table `{name}`{hint}")
    declared = (source.pred for source in declared_inputs(program))
    way_out = "pass a DataFrame for `{name}`, or name it in `empty`"
    check_inputs(program, {*inputs, *empty, *declared}, way_out)
    if both := sorted({*inputs} & {*empty}):
        raise InputError(f"`{both[0]}` has a DataFrame and is named in `empty`")


@frozen
class Count:
    """What became of an input's rows."""

    rows: int
    rejected: int
    late: int = 0


@frozen
class Apart:
    """The rows of an input of which SQL is not certain, read in Python and cached."""

    rows: DataFrame  # `ingest.uncertain`
    good: int
    bad: int
    certain: int  # how many others the input has
    odd: str | None  # about one of the good ones


@frozen
class Inputs:
    spark: SparkSession
    program: Program
    records: Mapping[str, Records]
    types: Given  # what the data tell of the columns' types
    _counted: dict[str, Observation] = field(factory=dict, repr=False)
    # The rows that only Python can read, once they have been read: `without_python`.
    apart: Mapping[str, Apart] | None = None

    @staticmethod
    def of(
        spark: SparkSession,
        program: Program,
        given: Mapping[str, DataFrame | Records],
        empty: Collection[str] = (),
    ) -> Inputs:
        """Files that the program names are read for inputs that are neither given nor empty."""
        found: dict[str, Records] = {}
        for name, rows in given.items():
            if isinstance(rows, DataFrame):
                paths = paths_of(program, name, arriving=rows.isStreaming)
                rows = Records.of(rows, paths, name)
            found[name] = rows
        for source in declared_inputs(program, header=True):
            if source.pred not in found and source.pred not in empty:
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
        read = values if self.apart is None else certain
        rows = read(self.records[name], self.program, name, types[name])
        self._counted[name] = Observation()
        counted = rows.observe(
            self._counted[name],
            F.count(F.lit(1)).alias("rows"),
            F.count_if(~F.col(GOOD)).alias("rejected"),
            F.min(F.when(F.col(GOOD), F.col(ODD))).alias(ODD),
        )
        names = wire.columns(types[name]).names
        good = counted.where(GOOD).select(*names)
        apart = self.apart.get(name) if self.apart is not None else None
        if apart is None or not apart.good:
            return good
        return good.unionAll(apart.rows.where(f"{REASON} IS NULL").select(*names))

    # ------------------------------------------------------- rows of which SQL is not certain

    def without_python(self) -> Inputs:
        """Only the rows of which SQL is certain, which are all of most inputs. What jobs make of
        them is right if `with_python` has no rows to add."""
        return evolve(self, counted={}, apart={})

    def with_python(self, types: ColumnTypes) -> Inputs:
        """The others too, which are read once, by one job, wherever jobs have met some or have
        not said that there were none."""
        counts = self._observed()
        doubtful = {
            name: records
            for name, records in self._complete(types).items()
            if name not in counts or counts[name].rejected
        }
        rows = {n: frame.persist() for n, frame in self._uncertain(types, doubtful).items()}
        read = [
            frame.select(F.lit(name).alias("name"), F.expr(f"{REASON} IS NULL").alias(GOOD), ODD)
            for name, frame in rows.items()
        ]
        groups = []
        if read:
            by_kind = reduce(DataFrame.unionAll, read).groupBy("name", GOOD)
            groups = by_kind.agg(F.count(F.lit(1)), F.min(ODD)).collect()
        numbers = {(name, good): n for name, good, n, _ in groups}
        odd = {name: found for name, good, _, found in groups if good}
        apart = {}
        for name, records in doubtful.items():
            if name in counts:
                number = counts[name].rows - counts[name].rejected
            else:
                all_rows = certain(records, self.program, name, types[name])
                number = all_rows.where(GOOD).count()
            good, bad = numbers.get((name, True), 0), numbers.get((name, False), 0)
            apart[name] = Apart(rows[name], good, bad, number, odd.get(name))
        return evolve(self, counted=dict(self._counted), apart=apart)

    @property
    def has_more(self) -> bool:
        """Whether there are good rows that only Python can read."""
        return any(apart.good for apart in (self.apart or {}).values())

    def release(self) -> None:
        for apart in (self.apart or {}).values():
            apart.rows.unpersist()

    def counts(self) -> Mapping[str, Count]:
        """Of the inputs that a job has read by now."""
        counts = dict(self._observed())
        for name, apart in (self.apart or {}).items():
            counts[name] = Count(apart.certain + apart.good + apart.bad, apart.bad)
        return counts

    def _observed(self) -> Mapping[str, Count]:
        seen = _observed(self.spark, self._counted)
        return {name: Count(int(f["rows"]), int(f["rejected"])) for name, f in seen.items()}

    def doubts(self) -> dict[str, str]:
        """What to warn of in the inputs that a job has read by now."""
        seen = _observed(self.spark, self._counted)
        odd = {name: figures[ODD] for name, figures in seen.items() if figures[ODD]}
        for name, apart in (self.apart or {}).items():
            if name not in odd and apart.odd:
                odd[name] = apart.odd
        return {name: doubt_of(self.program, name, found) for name, found in odd.items()}

    def checked(self, types: ColumnTypes) -> dict[str, DataFrame]:
        """The good rows of each input that is complete, and the program's own facts."""
        rows = {name: self._good(types, name) for name in self._complete(types)}
        for name, own in self.facts(types).items():
            rows[name] = rows[name].unionAll(own) if name in rows else own
        return rows

    def _complete(self, types: ColumnTypes) -> dict[str, Records]:
        """The inputs that rules read and that are not still coming."""
        streaming = self.streaming
        return {n: r for n, r in self.records.items() if n in types and n not in streaming}

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
        if self.apart is not None:
            return self._report({name: apart.rows for name, apart in self.apart.items()})
        return self._report(self._uncertain(types, self._complete(types)))

    def rejects_in(self, types: ColumnTypes, name: str, files: Sequence[str]) -> DataFrame:
        """The bad rows in some files of a stream."""
        anew = self.records[name].anew
        assert anew is not None
        return self._report(self._uncertain(types, {name: anew(self.spark, files)}))

    def _uncertain(self, types: ColumnTypes, inputs: Mapping[str, Records]) -> dict[str, DataFrame]:
        return {
            name: uncertain(self.spark, records, self.program, name, types[name])
            for name, records in inputs.items()
        }

    def _report(self, rows: Mapping[str, DataFrame]) -> DataFrame:
        bad = [
            frame.where(f"{REASON} IS NOT NULL").selectExpr(
                f"'{name}' AS c0", f"{PLACE} AS c1", f"{REASON} AS c2", f"{TEXT} AS c3"
            )
            for name, frame in rows.items()
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
_PATIENCE = 600_000  # milliseconds; then it is an error


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
        for name in schema.inputs
        if name in schema.facts_of
    }


def counted(rows: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """The rows, and how many the job that computes them has found."""
    counting = Observation()
    observed = rows.observe(counting, F.count(F.lit(1)).alias("rows"))
    spark = rows.sparkSession
    return observed, lambda: int(_observed(spark, {"": counting})[""]["rows"])


def _observed(
    spark: SparkSession, observations: Mapping[str, Observation]
) -> dict[str, dict[str, Any]]:
    """What was counted, of those whose rows a job has read. Figures come as events, some time
    after the end of the job: so all events are waited for first."""
    context: Any = spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty(_PATIENCE)
    figures = {}
    for name, observation in observations.items():
        handle: Any = observation._jo
        if handle.future().isCompleted():
            figures[name] = observation.get
    return figures
