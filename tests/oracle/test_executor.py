from __future__ import annotations

from oracle.executor import NaiveExecutor, marked_reach
from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.runtime.executor import END, Executor, Row


def compiled(text: str) -> Program:
    compilation = compile_source(Source("test", text), until="contract")
    assert compilation.ok, [d.message for d in compilation.diagnostics]
    return compilation


def reach(text: str, pred: str) -> dict[str, int | None]:
    compilation = compiled(text)
    graph = compilation.graph
    found = marked_reach(compilation.schema.timelines, graph.edges).get(pred, {})
    assert not any(others for _, others in found)
    return {stream: by for (stream, _), by in found.items()}


def test_what_has_no_marked_path_is_certain_at_once() -> None:
    text = "p(T) <- s(T), r(T1), T1 <= T + 5, T <= T1."
    assert reach(text, "p") == {}
    executor: Executor = NaiveExecutor(compiled(text), {})
    assert executor.step({"s": [(1,)], "r": [(3,)]}, {}) == {"p": [(1,)]}
    assert executor.step({}, {"s": END, "r": END}) == {}


def test_reach_is_the_longest_path_through_a_mark() -> None:
    text = """
    q(T) <- s(T), r(T + 2).
    p(T) <- s(T), not q(T + 3).
    n(T) <- s(T), not (r(T1), T1 < T).
    """
    assert reach(text, "p") == {"s": 3, "r": 5}
    assert reach(text, "q") == {}
    assert reach(text, "n") == {"r": -1}


def test_recursion_through_negation_adds_nothing() -> None:
    assert reach("p(T) <- s(T), not (p(T1), T1 < T).", "p") == {"s": -1}


def test_aggregate_waits_for_its_timestamp_to_close() -> None:
    executor = NaiveExecutor(compiled("p(T, count()) <- s(T, X)."), {})
    assert executor.step({"s": [(1, "a")]}, {"s": 1}) == {}
    assert executor.step({"s": [(1, "b"), (2, "a")]}, {"s": 2}) == {"p": [(1, 2)]}
    assert executor.step({}, {"s": END}) == {"p": [(2, 1)]}


def test_tables_and_static_answers() -> None:
    text = "table e(x: string). stream s(T: int, x: string). q(X) <- e(X), not f(X). f(b). \
p(T, X) <- s(T, X), q(X)."
    executor = NaiveExecutor(compiled(text), {"e": [("a",), ("b",)]})
    assert executor.step({}, {}) == {"q": [("a",)]}
    assert executor.step({"s": [(1, "a"), (1, "b")]}, {"s": 1}) == {"p": [(1, "a")]}


def test_restart_continues() -> None:
    compilation = compiled("p(T, X) <- s(T, X), not (s(T1, X), T1 < T). q(T, X) <- s(T, X).")
    rows: list[Row] = [(1, "a"), (2, "a"), (2, "b")]
    first = NaiveExecutor(compilation, {})
    assert first.step({"s": rows[:1]}, {"s": 1}) == {"p": [(1, "a")], "q": [(1, "a")]}
    second = NaiveExecutor(compilation, {})
    second.load(first.save())
    assert second.save() == first.save()
    assert second.step({"s": rows[1:]}, {"s": END}) == {
        "p": [(2, "b")],
        "q": [(2, "a"), (2, "b")],
    }
    assert second.holding() == {"s": rows}
