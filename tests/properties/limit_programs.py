"""Random programs whose limits range over rows of the past, of which only a few are kept
(`analysis.sufficient_rows`) and found (`plan.rewrites.latest_few`); often bent a little, so that
others are wanted too."""

from __future__ import annotations

from random import Random

from oracle.programs import LAST_TIME, Case

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source

DECLARATIONS = """
stream s(T: int, k: string, v: int, w: string).
stream a(T: int, k: string).
table t(w: string, n: int).
""".strip()


def random_case(rng: Random) -> Case:
    while True:
        case = _case(rng)
        if compile_source(Source("random", case.text)).ok:
            return case


def _case(rng: Random) -> Case:
    lines, source = [DECLARATIONS], "s"
    if rng.random() < 0.3:
        source = "d"
        lines.append("d(T, K, V, W) <- s(T, K, V, W), V != 2.")
    lines.append("e(T, K) <- a(T, K), not (s(T1, K, _, _), T < T1, T1 <= T + 2).")
    for name in ("p", "q")[: rng.choice([1, 1, 2])]:
        lines.append(_rule(name, source, rng))
    if rng.random() < 0.2:
        lines.append("r(T, count()) <- p(T, _), a(T, _).")

    def time() -> int:
        return rng.randrange(LAST_TIME)

    many = rng.random() < 0.5  # at one instant
    times = [time() for _ in range(3)] if many else range(LAST_TIME)
    facts = {
        "s": {
            (rng.choice(times), rng.choice("kkl"), rng.randint(0, 4), rng.choice("xyz"))
            for _ in range(rng.randint(4, 16))
        },
        "a": {(time(), rng.choice("kl")) for _ in range(rng.randint(3, 10))},
    }
    rows = {name: sorted(found) for name, found in facts.items()}
    tables = {"t": sorted({(rng.choice("xyz"), rng.randint(0, 2)) for _ in range(3)})}
    return Case("\n".join(lines) + "\n", rows, tables)


def _rule(name: str, source: str, rng: Random) -> str:
    ask = rng.choice(
        ["a(T, K)", "e(T, K)", "a(T, J)", "e(T, _)", "s(T, K, _, _)", "s(T, K, X, _)", "tick(T)"]
    )
    last = rng.choice(["U <= T", "U <= T", "U < T", "T >= U + 2", "U <= T + 2", "U + 1 = T"])
    body = [ask, f"{source}(U, K, V, W)", last]
    if rng.random() < 0.2:
        body.append(rng.choice(["U >= T - 5", "T - U < 4"]))
    if rng.random() < 0.4:
        bent = [
            "V > 1",
            "t(W, N)",
            "not t(W, _)",
            "V != T",
            "not a(T, W)",
            "W in (x, y)",
            "U % 2 = 0",
        ]
        body.append(
            rng.choice([*bent, f"not {source}(T, K, V, W)", "V = Z + 1", "(V > 2 ; W = x)"])
        )
    head = rng.choice(["W", "V", "U", "U, V, W", "K, W", "V + 1", "U - T, K"])
    by = rng.choice(["U", "U", "U", "V", "W", "T - U", "V + U", "-V"])
    by += rng.choice(["", " desc", " desc"])
    by += rng.choice(["", ", V", ", W desc", ", U"])
    per = rng.choice(["", " per K", " per K", " per W", " per K, V"])
    offset = rng.choice(["", "", " offset 1", " offset 2"])
    rng.shuffle(body)
    return f"{name}(T, {head}) <- {', '.join(body)} limit {rng.randint(1, 3)}{offset} by {by}{per}."
