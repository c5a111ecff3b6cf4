"""Random programs that want a few rows by how many later ones exceed them (`plan.rewrites.ranks`),
often bent a little, so that rows must be counted after all."""

from __future__ import annotations

from random import Random

from oracle.programs import LAST_TIME, Case

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source

DECLARATIONS = """
stream s(T: int, k: string, v: int, w: string).
stream a(T: int, k: string).
""".strip()


def random_case(rng: Random) -> Case:
    while True:
        case = _case(rng)
        if compile_source(Source("random", case.text)).ok:
            return case


def _case(rng: Random) -> Case:
    bent = rng.random() < 0.3
    asking, source = rng.choice(["a", "a", "s"]), "s"
    lines = [DECLARATIONS]
    if rng.random() < 0.3:
        source = "d"
        lines.append("d(T, K, V, W) <- s(T, K, V, W), V != 2.")
    now = "a(T, K)"
    if asking == "s":
        now = "now(T, K)"
        lines.append("now(T, K) <- s(T, K, _, _).")
    key = rng.choice(["K", "K", "K", "_"] if bent else ["K"])
    window = rng.choice([[], ["T - 3 <= {}"], ["{} >= T - 3"], ["{} > T - 4"]])
    last = rng.choice(["{} < T", "{} <= T", "{} <= T - 2", "{} < T - 1"])
    order = rng.choice(["U <= V", "U <= V", "V > U", "U < V"])
    exceeds = rng.choice(["N < M", "M > N", "N > M", "N <= M" if bent else "N < M"])
    counting = [
        now,
        f"{source}(U, K, N, {rng.choice(['_', '_', 'W'])})",
        f"{source}(V, {key}, M, _)",
        *(w.format("U") for w in window),
        order,
        last.format("V"),
        exceeds,
    ]
    if bent and rng.random() < 0.3:
        counting.append(rng.choice(["M != 1", "N > 0", "V != 3"]))
    rng.shuffle(counting)
    number = rng.choice(["count(M)", "count(M)", "count()", "sum(M)" if bent else "count(M)"])
    lines.append(f"above(T, K, N, {number}) <- {', '.join(counting)}.")
    own = last if rng.random() < 0.9 else "{} <= T"
    for name in ("p", "q")[: rng.choice([1, 2, 2])]:
        few = ["above(T, K, N, C)", f"C {rng.choice(['<', '<', '<='])} {rng.randint(1, 4)}"]
        asked = rng.choice([few, few, ["not above(T, K, N, _)"], [f"{few[0]}", "3 > C"]])
        body = [now, f"{source}(U, K, N, W)", *(w.format("U") for w in window), own.format("U")]
        body += asked
        if rng.random() < 0.2:
            body.append(rng.choice(["W != x", "N != 1", f"not {source}(T, K, N, W)"]))
        if bent and rng.random() < 0.3:
            body.append(rng.choice(["s(T, _, N, _)", "C > 1" if "C" in str(asked) else "N > 1"]))
        head = rng.choice(
            ["T, K, N, W", "T, N", "T, U, K", "T, K, N, C" if few is asked else "T, N"]
        )
        rng.shuffle(body)
        lines.append(f"{name}({head}) <- {', '.join(body)}.")

    def time() -> int:
        return rng.randrange(LAST_TIME)

    rising = rng.random() < 0.4
    rows = sorted(
        (time(), rng.choice("kkl"), 0, rng.choice("xyz")) for _ in range(rng.randint(5, 14))
    )
    facts = {
        "s": [(t, k, n if rising else rng.randint(0, 4), w) for n, (t, k, _, w) in enumerate(rows)],
        "a": [(time(), rng.choice("kl")) for _ in range(rng.randint(4, 10))],
    }
    sets = {name: sorted(set(found)) for name, found in facts.items()}
    return Case("\n".join(lines) + "\n", sets, {})
