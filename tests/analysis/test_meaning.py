"""Fingerprints: what makes predicates mean the same, and what does not."""

from __future__ import annotations

import pytest

from streamlog.analysis.meaning import Meaning, meanings
from streamlog.compiler import Mode, Typed, compile_source
from streamlog.diagnostics import Source


def meant(text: str) -> dict[str, Meaning]:
    program = compile_source(Source("p.slog", text), mode=Mode.BATCH, until="types")
    assert isinstance(program, Typed) and program.ok, program.diagnostics
    return meanings(program.schema, program.types)


def same(one: str, other: str, pred: str = "p") -> bool:
    return meant(one)[pred].fingerprint == meant(other)[pred].fingerprint


RECURSION = """\
p(T) <- s(T).
p(T) <- q(T1), T1 = T - 1, not r(T).
q(T) <- p(T1), T1 = T - 2.
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p(T, X) <- q(T, X), X < 5.", "p(A, B) <- 5 > B, q(A, B)."),
        ("p(T, X) <- q(T, X), X = 5.", "p(A, B) <- 5 = B, q(A, B)."),
        ("p(T) <- q(T), r(T).\np(T) <- s(T).", "p(U) <- s(U). p(V) <- r(V), q(V)."),
        ("p(T) <- q(T), (r(T) ; s(T)).", "p(T) <- s(T), q(T).\np(U) <- q(U), r(U)."),
        ("p(T) <- q(T), not (r(T, X), s(T, X)).", "p(T) <- not (s(T, A), r(T, A)), q(T)."),
        # The variables of a negation are its own.
        ("p(T) <- q(T), not r(T, X), not s(T, X).", "p(T) <- q(T), not r(T, X), not s(T, Y)."),
        ("p(T) <- q(T, _), q(T, _), q(T, X), X > 1.", "p(T) <- q(T, X), X > 1, q(T, _), q(T, Y)."),
        ("p(T) <- e(T, X, Y), e(T, Y, X).", "p(T) <- e(T, B, A), e(T, A, B)."),
        ("p(T, count()) <- (q(T, X) ; r(T, X)).", "p(T, count()) <- (r(T, Y) ; q(T, Y))."),
        ("p(T) <- h(T). h(T) <- q(T), r(T).", "p(T) <- k(T). k(T) <- r(T), q(T)."),
        (RECURSION, RECURSION.replace("q(", "other(")),
        ("stream q(T: int) slack 5.\np(T) <- q(T).", "stream q(U: int) keep 9.\np(T) <- q(T)."),
        ("p(T) <- q(T, X), k(X). k(1). k(2).", "k(2). k(1). p(T) <- q(T, X), k(X)."),
        ("p(T, sum(X) / count()) <- q(T, X).", "p(U, sum(Y) / count()) <- q(U, Y)."),
    ],
)
def test_the_same(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p(T, X) <- q(T, X), X < 5.", "p(T, X) <- q(T, X), X > 5."),
        ("p(T, X) <- q(T, X), X < 5.", "p(T, X) <- q(T, X), X <= 5."),
        ("p(T, X) <- q(T, X), X < 5.", "p(T, X) <- q(T, X), X < 5.0."),
        ("p(T) <- q(T, X), r(T, X).", "p(T) <- q(T, X), r(T, Y)."),
        ("p(T) <- q(T, X), not r(T, X).", "p(T) <- q(T, X), not r(T, Y)."),
        ("p(T) <- e(T, X, Y), e(T, Y, X).", "p(T) <- e(T, X, Y), e(T, X, Y)."),
        ("p(T, count()) <- (q(T, X) ; r(T, X)).", "p(T, count()) <- (q(T, X) ; r(T, Y))."),
        ("p(T) <- h(T). h(T) <- q(T), r(T).", "p(T) <- h(T). h(T) <- q(T), s(T)."),
        ("p(T) <- q(T).", "p(T) <- r(T)."),
        ("stream q(T: int).\np(T) <- q(T).", "stream q(T: time).\np(T) <- q(T)."),
        ("p(T) <- q(T, X), k(X). k(1). k(2).", "k(2). k(3). p(T) <- q(T, X), k(X)."),
        (RECURSION, RECURSION.replace("T - 2", "T - 3")),
        (RECURSION, RECURSION + "q(T) <- s(T).\n"),
        ("p(T, X) <- q(T, X) limit 1 by X.", "p(T, X) <- q(T, X) limit 1 by X desc."),
        ("p(T, sum(X) / count()) <- q(T, X).", "p(T, sum(X) / sum(X)) <- q(T, X)."),
        ("p(T) <- q(T), tick(T).", "stream r(T: int). p(T) <- q(T), tick(T)."),
    ],
)
def test_something_else(one: str, other: str) -> None:
    assert not same(one, other)


def ring(names: list[str], odd: str = "") -> str:
    """Each reads the next; one of them may be another."""
    after = [*names[1:], names[0]]
    rules = (f"{a}(T) <- {b}(T1), T1 = T - 1, s(T).\n" for a, b in zip(names, after, strict=True))
    return "".join(rules) + (f"{odd}(T) <- r(T).\n" if odd else "")


def test_predicates_far_apart_in_a_recursion() -> None:
    names = [f"p{n}" for n in range(30)]
    one, other, moved = (meant(ring(names, odd)) for odd in ("p0", "p1", "p0"))
    assert one["p0"].fingerprint == moved["p0"].fingerprint == other["p1"].fingerprint
    assert one["p5"].fingerprint == other["p6"].fingerprint != other["p5"].fingerprint
    assert len({one[name].fingerprint for name in names}) == 30
    plain = meant(ring(names))
    assert len({plain[name].fingerprint for name in names}) == 1
    assert plain["p0"].fingerprint not in {one[name].fingerprint for name in names}
