"""A program over complete data: DataFrames in, DataFrames out.

Everything is there, so nothing is late and nothing waits. The answers are lazy: what is not asked
for is not computed, except that recursion over DataFrames runs when `run` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from attrs import field, frozen
from pyspark.sql import DataFrame, SparkSession

from streamlog import prepared
from streamlog.compiler import Planned, Program
from streamlog.plan.parts import Strategy, stages
from streamlog.plan.paths import Paths, Unlike
from streamlog.plan.pivot import how_many
from streamlog.plan.recognise import recursions
from streamlog.plan.strategies import NO_PATHS, Choice, choose
from streamlog.runtime.columns import ColumnTypes, column_types
from streamlog.runtime.errors import EvaluationError
from streamlog.runtime.evaluation import Moment, context
from streamlog.runtime.executor import BEGIN, END, Limits
from streamlog.runtime.frontier import Frontiers
from streamlog.runtime.ingest import REPORT, SKIPPED
from streamlog.runtime.python_functions import check_allowed
from streamlog.spark import wire
from streamlog.spark.evaluation import Batch, Evaluation, release
from streamlog.spark.failures import explained
from streamlog.spark.graph_calls import available
from streamlog.spark.inputs import Inputs, check_given
from streamlog.spark.session import Jobs, session, usable
from streamlog.spark.sinks import shown
from streamlog.spark.skipped import SKIPPED_TYPES, rules_of_errors, skipped


@frozen
class Metrics:
    """What a run has cost so far, besides the jobs of those who use its answers."""

    strategies: Mapping[str, Choice]  # by predicate
    no_graphs: str | None  # why GraphFrames cannot be used
    jobs: int  # that `run` itself has needed
    rounds: int  # of recursion over DataFrames


@frozen(slots=False)
class Answers(Mapping[str, DataFrame]):
    """The outputs by name, with the names and types of the program's columns.

    `relations` has every predicate as it is evaluated, with columns c0, c1, …
    """

    outputs: Mapping[str, DataFrame]
    relations: Mapping[str, DataFrame]
    types: ColumnTypes
    metrics: Metrics
    inputs: Inputs = field(repr=False)
    # After an error in an answer: the rule that it comes from, and for which values, if a rule is
    # to blame.
    blame: Callable[[], EvaluationError | None] = field(repr=False)
    _batch: Batch = field(repr=False)
    _rules: Mapping[str, str] = field(repr=False)  # by the predicate of its errors

    def __getitem__(self, name: str) -> DataFrame:
        return self.outputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    @property
    def rejects(self) -> DataFrame:
        """The bad rows: stream, where, reason, row."""
        return self.inputs.rejects(self.types).toDF(*REPORT)

    @property
    def late(self) -> DataFrame:
        """None: the data are complete."""
        return self.rejects.limit(0)

    @property
    def errors(self) -> DataFrame:
        """With `on_error="skip"`, what cannot be computed: rule, reason, values."""
        found = skipped({p: self.relations[p] for p in self._rules}, self._rules)
        if found is None:
            columns = wire.columns(SKIPPED_TYPES)
            found = self.inputs.spark.createDataFrame([], columns)
        return found.toDF(*SKIPPED)

    def release(self) -> None:
        """Free what was kept for answers that are read several times."""
        release(self._batch)


def run(
    program: Program,
    inputs: Mapping[str, DataFrame],
    *,
    strategy: Strategy | None = None,
    limits: Limits | None = None,
    spark: SparkSession | None = None,
    kernels: int | None = None,
    empty: Collection[str] = (),
    on_error: str = "stop",
    allow_python: bool = False,
) -> Answers:
    """Evaluate a compiled program over the rows of its streams and tables.

    Columns are matched by name, else by position. Files that the program names with `from` are
    read when no DataFrame is given; an input that has no rows must be named in `empty`, so that
    none is forgotten. `strategy` overrides the choice for recursive rules, `kernels`
    that of how many kernels share the rows of rules that have a pivot. With `on_error="skip"`
    what cannot be computed is left out, and is in `Answers.errors`; `allow_python` lets the program
    call the Python functions that it declares.
    """
    program = prepared(program, on_error, allow_python)
    check_given(program, inputs, empty)
    frames = list(inputs.values())
    spark = usable(frames[0].sparkSession) if frames and spark is None else spark or session()
    given = Inputs.of(spark, program, inputs, empty)
    return evaluate(program, given, strategy=strategy, limits=limits, kernels=kernels)


def evaluate(
    program: Program,
    given: Inputs,
    *,
    strategy: Strategy | None = None,
    limits: Limits | None = None,
    kernels: int | None = None,
) -> Answers:
    """`run`, for inputs that are known to be the program's."""
    check_allowed(program)
    spark, closed = given.spark, program.closed
    types = column_types(closed, given.types)
    rows = given.checked(types)
    for stream, views in closed.schema.views.items():
        if stream in rows:
            rows |= {name: wire.viewed(rows[stream], view) for name, view in views.items()}
    missing = available(spark)
    if limits is not None and (limits.rounds, limits.rows) != (None, Limits().rows):
        missing = missing or "GraphFrames keeps to no limit of rounds or rows"
    # The graph is always complete here.
    found: Mapping[str, Paths | Unlike] = NO_PATHS
    if missing is None:
        found = recursions(closed.plan, closed.schema, closed.types)
    size = given.estimate()
    chosen = choose(context(closed, types), strategy, size, found)
    order = stages(closed.plan, {p: c.strategy for p, c in chosen.items()})
    evaluation = Evaluation(
        spark,
        closed,
        types,
        order,
        limits=limits,
        kernels=kernels or how_many(size, spark.sparkContext.defaultParallelism),
        sliced=False,
        paths={pred: paths for pred, paths in found.items() if isinstance(paths, Paths)},
    )
    batch, most = Batch(), evaluation.limits.seconds
    with explained(), Jobs(spark, "streamlog: evaluate", most) as jobs:
        moment = _at_the_end(closed, evaluation, rows)
        blame = partial(evaluation.blame, batch, moment)
        with explained(blame):
            evaluation.evaluate(batch, rows, {}, moment)
    relations = {
        p: relation.new if relation.new is not None else evaluation.frame(p, [])
        for p, relation in batch.relations.items()
    }
    names = program.schema.column_names
    outputs = {p: shown(relations[p], names[p], types[p]) for p in program.contract.outputs}
    metrics = Metrics(chosen, missing, jobs.count, batch.rounds)
    rules = rules_of_errors(program)
    return Answers(outputs, relations, types, metrics, given, blame, batch, rules)


def _at_the_end(program: Planned, evaluation: Evaluation, rows: Mapping[str, DataFrame]) -> Moment:
    """All streams have ended. How far time was spoken of matters to timers alone."""
    streams = program.schema.timelines
    progress = dict.fromkeys(streams, END)
    now = Frontiers(program.contract, program.schema)
    now.move(progress)
    last = BEGIN
    if any(c.is_timer for c in program.plan.components):
        times = evaluation.times({s: rows[s] for s in streams if s in rows})
        latest = times.agg({"c0": "max"}).first()
        last = BEGIN if latest is None or latest[0] is None else int(latest[0])
    return Moment(None, now, progress, last)
