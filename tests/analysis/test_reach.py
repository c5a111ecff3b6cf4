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
