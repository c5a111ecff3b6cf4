"""The dependencies of a program as a graph: `explain --graph mermaid|dot`."""

from __future__ import annotations

from streamlog.analysis.contract import Contract
from streamlog.analysis.dependency import Edge, Graph
from streamlog.analysis.schema import Kind
from streamlog.app.quantity import Clocks, quantity
from streamlog.syntax.ast import Type


def _clocks(contract: Contract) -> Clocks:
    return {p.predicate.name: p.clock for p in contract.predicates}


def mermaid(graph: Graph, contract: Contract) -> str:
    """From inputs to answers; dotted arrows go through negation or an aggregate."""
    lines = ["flowchart LR"]
    shapes = {Kind.STREAM: '[/"{}"/]', Kind.TABLE: '[("{}")]', Kind.DERIVED: '["{}"]'}
    ids = {name: f"n{i}" for i, name in enumerate(graph.nodes)}
    kinds = {p.predicate.name: p.predicate.kind for p in contract.predicates}
    for name in graph.nodes:
        shape = '(["{}"])' if name in contract.outputs else shapes[kinds.get(name, Kind.DERIVED)]
        lines.append(f"    {ids[name]}{shape.format(name)}")
    for head, goal, label, marked in arrows(graph, _clocks(contract)):
        arrow = "-.->" if marked else "-->"
        text = f'|"{label}"|' if label else ""
        lines.append(f"    {ids[goal]} {arrow}{text} {ids[head]}")
    return "\n".join(lines)


def dot(graph: Graph, contract: Contract) -> str:
    """The same for Graphviz."""
    lines = ["digraph program {", "    rankdir=LR;"]
    shapes = {Kind.STREAM: "cds", Kind.TABLE: "cylinder", Kind.DERIVED: "box"}
    kinds = {p.predicate.name: p.predicate.kind for p in contract.predicates}
    for name in graph.nodes:
        twice = " peripheries=2" if name in contract.outputs else ""
        lines.append(f'    "{name}" [shape={shapes[kinds.get(name, Kind.DERIVED)]}{twice}];')
    for head, goal, label, marked in arrows(graph, _clocks(contract)):
        style = " style=dashed" if marked else ""
        lines.append(f'    "{goal}" -> "{head}" [label="{label}"{style}];')
    return "\n".join((*lines, "}"))


def arrows(graph: Graph, clocks: Clocks) -> list[tuple[str, str, str, bool]]:
    """Head, goal, how far away in time, and whether it is marked; in a fixed order."""
    found = set()
    for edge in graph.edges:
        words = [edge.mark.value if edge.mark else "", _away(edge, clocks.get(edge.head))]
        found.add((edge.head, edge.goal, " ".join(filter(None, words)), edge.mark is not None))
    return sorted(found)


def _away(edge: Edge, clock: Type | None) -> str:
    """Where the goal lies as seen from the head."""
    back, ahead = edge.back, edge.ahead
    if back is None:
        return "at any time" if ahead is None else f"up to {quantity(ahead, clock)}"
    if ahead is None:
        return f"from {quantity(back, clock)} on"
    if back == ahead:
        return quantity(back, clock) if back else ""
    return f"{quantity(back, clock)} to {quantity(ahead, clock)}"
