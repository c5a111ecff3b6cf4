"""What `explain` prints about a program: one function a view, and the same as data."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich.text import Text

from streamlog.analysis.contract import Contract, Delay, Extreme, Keeps, Kept, PredicateContract
from streamlog.analysis.dependency import Graph
from streamlog.analysis.schema import Kind
from streamlog.analysis.sequential import Class
from streamlog.analysis.strata import Strata
from streamlog.app.graph import dot, mermaid
from streamlog.app.quantity import Clocks, quantity
from streamlog.app.show_relations import relations_that_mattered
from streamlog.app.snippet import wrap
from streamlog.app.tables import flat, plain_table
from streamlog.compiler import Mode, Program, focused
from streamlog.diagnostics import Source
from streamlog.plan.explain import explain
from streamlog.rewrite.bistate import Bistate
from streamlog.syntax.ast import Rule, Type
from streamlog.syntax.metadata import metadata
from streamlog.syntax.pretty import pretty

if TYPE_CHECKING:
    from streamlog.plan.explain_sql import Statement
    from streamlog.plan.sql import Context


END_OF_DATA = "end of data"


def place_of(rule: Rule | None, home: Source) -> str:
    """Where a rule stands, as briefly as can be."""
    if rule is None:
        return ""
    source = rule.span.source
    line = source.position(rule.span.start)[0]
    name = "" if source.path == home.path else f"{PurePath(source.path).name} "
    return f"{name}line {line}"


# -------------------------------------------------------------------------------- contract


def contract(contract: Contract, home: Source, width: int) -> Text:
    """The sentence for the program, and a row for each predicate."""
    table = plain_table("predicate", "class", "delay", "released", "kept", "because of")
    for p in contract.predicates:
        if p.is_open:  # true of infinitely many values: tested by its callers
            # Never stored; but what it is made of may be, in place of the facts behind it.
            kept = "" if p.kept.what is Keeps.NOTHING else kept_text(p)
            because = (place_of(p.kept.because, home) or "") if kept else ""
            table.add_row(
                p.predicate.name, class_text(p, contract), "", "when asked", kept, because
            )
            continue
        delay, delay_rules = delay_text(p), _delay_rules(p)
        rules = dict.fromkeys(
            place for rule in (*delay_rules, p.kept.because) if (place := place_of(rule, home))
        )
        released = p.released.value if p.released else ""
        name = Text(p.predicate.name, "bold" if p.predicate.name in contract.outputs else "")
        table.add_row(
            name, class_text(p, contract), delay, released, kept_text(p), "\n".join(rules)
        )
    sentence = "\n".join(wrap(summary(contract), width))
    return Text("\n\n").join([Text(sentence), flat(table, width)])


def summary(contract: Contract) -> str:
    """What to know first: does it block, how slow is the slowest answer, what grows forever."""
    if any(map(_waits_for_the_end, contract.predicates)):
        return "Blocking: for stored data only. Answers come when all data have been read."
    parts = ["Non-blocking."]
    answers = [p for p in contract.predicates if p.predicate.name in contract.outputs]
    slowest = max(answers, key=_by, default=None)
    if slowest and _by(slowest) > 0:
        late = quantity(_by(slowest), slowest.clock)
        parts.append(f"Slowest answer: {slowest.predicate.name}, {late} after its event.")
    elif slowest:
        parts.append("No answer waits for later events.")
    growing = [p for p in contract.predicates if p.kept.is_unbounded]
    if growing:
        named = "; ".join(f"{p.predicate.name}, {kept_text(p)}" for p in growing)
        parts.append(f"Unbounded state: {named}.")
    elif contract.kind is not Class.BLOCKING:
        parts.append("State is bounded.")
    return " ".join(parts)


def _waits_for_the_end(p: PredicateContract) -> bool:
    """Whether some stream must have ended before the predicate is complete."""
    return any(d.by is None for d in p.delays)


def _by(p: PredicateContract) -> int:
    return max((d.by for d in p.delays if d.by is not None), default=0)


def class_text(p: PredicateContract, contract: Contract) -> str:
    if p.kind is None:
        return str(p.predicate.kind.value) if p.predicate.view is None else "timeline"
    mine = [r for r in contract.rules if r.rule.head.pred == p.predicate.name]
    waits = max((r.waits for r in mine), default=0)
    words = f"waits {quantity(waits, p.clock)}" if p.kind is Class.WAITS else str(p.kind.value)
    return f"{words}, open" if p.is_open else words


def delay_text(p: PredicateContract) -> str:
    """One figure when all streams agree, else one a stream."""
    if p.predicate.kind is not Kind.DERIVED or not p.delays:
        return ""
    if _waits_for_the_end(p):
        return END_OF_DATA
    if len({d.by for d in p.delays}) == 1 and not any(d.instead for d in p.delays):
        return quantity(_by(p), p.clock)
    return "\n".join(ways_text(d, p.clock) for d in p.delays)


def ways_text(delay: Delay, clock: Type | None) -> str:
    """How far which timelines must have come, a line each."""
    return "\nor ".join(f"{name} {_distance(by, clock)}" for name, by in delay.ways)


def _distance(by: int | None, clock: Type | None) -> str:
    return END_OF_DATA if by is None else quantity(by, clock)


def _delay_rules(p: PredicateContract) -> list[Rule | None]:
    """The rules behind them."""
    if p.predicate.kind is not Kind.DERIVED:
        return []
    if _waits_for_the_end(p):
        return [d.because for d in p.delays if d.by is None]
    return [d.because for d in p.delays if d.by]


def kept_text(p: PredicateContract) -> str:
    match p.kept.what:
        case Keeps.SPAN:
            return quantity(p.kept.span, p.clock)
        case Keeps.PER_KEY:
            key = f" per {', '.join(p.kept.columns)}" if p.kept.columns else ""
            span = f"{quantity(p.kept.span, p.clock)}, and " if p.kept.span else ""
            return f"{span}{' and '.join(map(_which, p.kept.best)) or 'one row'}{key}"
        case Keeps.EVERYTHING:
            return "every fact"
        case Keeps.STATIC:
            return ""
        case other:
            return str(other.value)


def _which(extreme: Extreme) -> str:
    match extreme:
        case Extreme(_, highest, is_time=True, count=count):
            return f"the {_several(count)}{'latest' if highest else 'earliest'}"
        case Extreme(column, highest, count=count):
            return f"the {_several(count)}{'highest' if highest else 'lowest'} {column}"


def _several(count: int) -> str:
    return f"{count} " if count > 1 else ""


def contract_data(contract: Contract) -> dict[str, Any]:
    """Distances are in the unit of the clock: microseconds for `time`."""
    return {
        "class": contract.kind.value,
        "summary": summary(contract),
        "outputs": list(contract.outputs),
        "predicates": [predicate_data(p) for p in contract.predicates],
        "rules": [
            {
                **_rule_data(r.rule),
                "predicate": r.rule.head.pred,
                "class": r.kind.value,
                "waits": r.waits,
                "relaxed": r.relaxed,
                "metadata": dict(metadata(r.rule)),
            }
            for r in contract.rules
        ],
    }


def predicate_data(p: PredicateContract) -> dict[str, Any]:
    return {
        "name": p.predicate.name,
        "kind": p.predicate.kind.value,
        "class": p.kind.value if p.kind else None,
        "open": p.is_open,
        "clock": str(p.clock) if p.clock else None,
        "delays": [_delay_data(d) for d in p.delays],
        "at_end_of_data": _waits_for_the_end(p),
        "released": p.released.value if p.released else None,
        "kept": _kept_data(p.kept),
    }


def _delay_data(delay: Delay) -> dict[str, Any]:
    because = _rule_data(delay.because) if delay.because else None
    found: dict[str, Any] = {"stream": delay.stream, "by": delay.by, "because": because}
    if delay.instead:
        found["instead"] = [{"stream": stream, "by": by} for stream, by in delay.instead]
    return found


def _kept_data(kept: Kept) -> dict[str, Any]:
    return {
        "what": kept.what.value,
        "span": kept.span if kept.what in (Keeps.SPAN, Keeps.PER_KEY) else None,
        "columns": list(kept.columns),
        "best": [{"column": e.column, "highest": e.highest, "count": e.count} for e in kept.best],
        "because": _rule_data(kept.because) if kept.because else None,
    }


def _rule_data(rule: Rule) -> dict[str, Any]:
    source = rule.span.source
    return {"path": source.path, "line": source.position(rule.span.start)[0]}


# ---------------------------------------------------------------------------------- strata


def strata(graph: Graph, strata: Strata, clocks: Clocks, width: int) -> Text:
    """The order of evaluation: components, and inside one by clock and stratum."""
    table = plain_table("step", "predicate", "clock", "stratum", "stride")
    for row in strata_data(graph, strata):
        clock = clocks.get(row["predicate"])
        ahead = row["potential"]
        stride = row["stride"]
        table.add_row(
            str(row["step"]),
            row["predicate"],
            f"t + {quantity(ahead, clock)}" if ahead else "t",
            str(row["stratum"]),
            "unlimited" if stride is None else quantity(stride, clock),
        )
    return flat(table, width)


def strata_data(graph: Graph, strata: Strata) -> list[dict[str, Any]]:
    return [
        {
            "step": step,
            "predicate": name,
            "potential": strata.potential.get(name, 0),
            "stratum": strata.stratum.get(name, 0),
            "stride": strata.stride.get(step - 1),
        }
        for step, nodes in enumerate(graph.components, 1)
        for name in sorted(nodes, key=lambda n: (strata.stratum.get(n, 0), n))
    ]


# --------------------------------------------------------------------------------- bistate


def bistate(bistate: Bistate | None) -> str:
    """A program; its strata follow as comments."""
    if bistate is None:
        return (
            "% There is none: some answer rests on any later time, an aggregate ranges over an\n"
            "% open predicate at earlier times, or a rule has a limit."
        )
    strata = [
        f"% stratum {number}: {', '.join(names)}"
        for number, names in enumerate(bistate.strata)
        if names
    ]
    return pretty(bistate.module) + "\n" + "\n".join(strata)


def bistate_data(bistate: Bistate | None) -> dict[str, Any] | None:
    if bistate is None:
        return None
    return {"program": pretty(bistate.module), "strata": [list(s) for s in bistate.strata]}


# ----------------------------------------------------------------------- plans and queries


def plan(compilation: Program) -> str:
    """What `run` evaluates: the rules on which answers rest."""
    from streamlog.plan.recognise import path_shaped
    from streamlog.plan.strategies import in_words  # sqlglot takes its time

    closed = focused(compilation).closed
    paths = path_shaped(closed.plan, closed.schema, closed.types)
    on_spark = in_words(_context(compilation), closed.schema, paths)
    return explain(closed.plan, compilation.clocks, on_spark)


def queries(compilation: Program) -> tuple[Statement, ...]:
    """Over a slice of time, as a batch of a stream is; over stored data everything at once."""
    from streamlog.plan.explain_sql import statements

    return statements(_context(compilation))


def _context(compilation: Program) -> Context:
    from streamlog.plan.sql import Context

    closed = focused(compilation).closed
    sliced = compilation.mode is Mode.STREAM
    return Context(closed.plan, closed.types, closed.times, sliced=sliced)


# ------------------------------------------------------------------- by name, for `explain`


def view(compilation: Program, name: str, form: str | None, width: int) -> Text:
    """A view of an accepted program; `form` is that of a graph."""
    promised, graph = compilation.contract, compilation.graph
    match name:
        case "contract":
            table = contract(promised, compilation.source, width)
            lines = [
                f"In every fact of {pred}: {', '.join(words)}."
                for pred, words in relations_that_mattered(compilation).items()
            ]
            wrapped = "\n".join(line for text in lines for line in wrap(text, width))
            return Text("\n\n").join([table, Text(wrapped)]) if wrapped else table
        case "strata":
            return strata(graph, compilation.strata, compilation.clocks, width)
        case "bistate":
            return Text(bistate(compilation.bistate))
        case "plan":
            return Text(plan(compilation))
        case "sql":
            return Text("\n\n".join(s.text for s in queries(compilation)))
        case _:
            return Text(dot(graph, promised) if form == "dot" else mermaid(graph, promised))


def data(compilation: Program, name: str) -> Any:
    """The same as JSON."""
    match name:
        case "strata":
            return strata_data(compilation.graph, compilation.strata)
        case "bistate":
            return bistate_data(compilation.bistate)
        case "plan":
            return plan(compilation).split("\n")
        case "sql":
            return [
                {"predicate": s.pred, "rules": list(s.rules), "note": s.note, "sql": s.sql}
                for s in queries(compilation)
            ]
        case _:
            relations = relations_that_mattered(compilation)
            return {**contract_data(compilation.contract), "relations": relations}
