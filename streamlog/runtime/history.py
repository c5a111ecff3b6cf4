"""Which history a query needs, and whether it is still there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter

from attrs import evolve

from streamlog.analysis.builtins import TICK
from streamlog.analysis.schema import Schema
from streamlog.compiler import Program
from streamlog.plan.order import range_join
from streamlog.runtime.executor import BEGIN, Row
from streamlog.runtime.progress import Progress
from streamlog.runtime.query import QueryError, evaluate
from streamlog.runtime.values import moment
from streamlog.syntax.ast import Atom, Body, Comparison, Const, Literal, Query, Type, branches
from streamlog.syntax.pretty import duration_text, time_text
from streamlog.syntax.walk import atoms


class History:
    """The rows of the streams that declare `keep`, as far back as they say.

    This is what an engine that forgets can answer queries from. What the executor holds for its
    rules is no substitute: it holds the rows that some rule may ask for, and those alone.
    """

    def __init__(self, program: Program) -> None:
        schema = program.schema
        options = {stream: schema[stream].option("keep") for stream in schema.streams}
        self.spans = {s: int(o.value.value) for s, o in options.items() if o is not None}
        self.rows: dict[str, list[Row]] = {stream: [] for stream in self.spans}

    def take(self, arrived: Mapping[str, Sequence[Row]], progress: Progress) -> None:
        """Rows come in the order of their times; the earliest go when their time is over."""
        for stream, span in self.spans.items():
            rows = self.rows[stream]
            rows += arrived.get(stream, ())
            if progress.timelines(stream)[1:]:  # in no order
                rows.sort(key=itemgetter(0))
            del rows[: bisect_right(rows, progress[stream].reached - span, key=itemgetter(0))]

    def require(self, program: Program, query: Query, progress: Progress) -> None:
        """Refuse a query that reads what is not kept, or may be gone.

        A query over a kept stream is fine if it says that it asks for what is later than `keep`
        before the time that any stream has reached.
        """
        schema = program.schema
        furthest = max((c.reached for c in progress.clocks.values()), default=BEGIN)
        for body in branches(query.body):
            for atom in atoms(body):
                predicate = schema.predicates.get(atom.pred)
                timed = atom.pred == TICK or (predicate is not None and predicate.temporal)
                if not timed or furthest == BEGIN:
                    continue
                span = self.spans.get(atom.pred)
                if span is None:
                    raise QueryError(_not_kept(atom.pred, atom.pred in schema.streams))
                since = _since(atom, body, schema)
                if since is None or since <= furthest - span:
                    clock = program.clocks.get(atom.pred)
                    raise QueryError(_gone(atom.pred, span, furthest - span, clock))


def _not_kept(pred: str, is_stream: bool) -> str:
    declare = "declare `keep` for it, or " if is_stream else ""
    return f"the facts of `{pred}` are not kept; {declare}run with an engine that remembers them"


def _gone(pred: str, span: int, horizon: int, clock: Type | None) -> str:
    is_time = clock is Type.TIME
    back = duration_text(span) if is_time else str(span)
    after = time_text(horizon) if is_time else moment(horizon, clock)
    return (
        f"`{pred}` is kept for {back}: what lies at or before {moment(horizon, clock)} may be "
        f"gone; ask for later facts, as in `T > {after}`"
    )


def _since(atom: Atom, body: Body, schema: Schema) -> int | None:
    """The earliest time that the query lets this goal have, if it sets one."""
    time = atom.args[0]
    if isinstance(time, Const):
        return time.value if isinstance(time.value, int) else None
    comparisons: list[Literal] = []
    for literal in body:
        if isinstance(literal, Comparison):
            ops = ("<=", ">=") if literal.op == "=" else (literal.op,)
            comparisons += (evolve(literal, op=op) for op in ops)
    join, _ = range_join(atom, comparisons, set(), schema)
    low = evaluate(join.low, {}) if join.low is not None else None
    return low if isinstance(low, int) else None
