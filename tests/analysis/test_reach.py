"""The time of rules whose comparisons fall into many cases."""

from __future__ import annotations

from itertools import combinations

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source


def test_a_contradiction_among_many_cases() -> None:
    """Without the contradiction there would be too many cases to look at."""
    times = ["T", *(f"T{number}" for number in range(1, 7))]
    body = [f"a({t})" for t in times] + ["T != T"]
    body += [f"{one} != {other}" for one, other in combinations(times, 2)]
    body += [f"{t} <= T + 9" for t in times[1:]]
    found = compile_source(Source("many", f"p(T) <- {', '.join(body)}.\n")).diagnostics
    assert [d.code for d in found] == ["SL0503"]


CHOICES = """
stream s(T: time, x: string).
p(T, X) <- s(T, X), s(T1, _), T1 in (T - 1s, T + 2s).
q(T, X) <- s(T, X), s(T1, _), T1 = if(X = a, T - 3s, T - 7s).
r(T, X) <- s(T, X), s(T1, _), s(T2, _), T1 >= T - 4s, T1 <= T, T2 = if(T1 < T, T1, T + 1s).
u(T, N) <- s(T, X), N = SUM, N > 3.
"""


def test_one_of_several_terms() -> None:
    """`in` and `if` bound a timestamp by the furthest of their terms."""
    points = " + ".join(f"if(X = k{n}, {n}, 0)" for n in range(12))
    text = CHOICES.replace("SUM", points)
    found = compile_source(Source("choices", text), until="contract")
    assert found.ok
    spans = {
        t.rule.head.pred: [(g.back, g.ahead) for g in t.goals if g.clock != "T"]
        for t in found.times
    }
    second = 1_000_000
    assert spans["p"] == [(-second, 2 * second)]
    assert spans["q"] == [(-7 * second, -3 * second)]
    assert spans["r"] == [(-4 * second, 0), (-4 * second, second)]
