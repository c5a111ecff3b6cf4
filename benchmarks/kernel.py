"""The kernel next to hand-written Python for the same rules, in one run.

    .venv/bin/python benchmarks/kernel.py [--events N] [WORKLOAD...]

For each workload: events, answers, seconds of the hand-written loop and of the kernel, and their
ratio; and the most rows that the kernel held. It gets its rows as the runtime would pass them
on, in steps of 10,000.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.runtime.executor import END

Rows = list[tuple]
STEP = 10_000
MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE


def kernel(text: str, streams: dict[str, Rows], answer: str) -> Rows:
    """All rows through the kernel, merged by time and cut into steps, progress following."""
    program = compile_source(Source("benchmark", text))
    assert program.ok, program.diagnostics
    engine = Kernel(program.closed, {})
    answers: Rows = []
    kernel.seconds = 0.0
    kernel.high = 0
    for arrived, progress in [*steps(streams), ({}, dict.fromkeys(streams, END))]:
        started = time.perf_counter()
        answers += engine.step(arrived, progress).get(answer, ())
        kernel.seconds += time.perf_counter() - started
        kernel.high = max(kernel.high, engine.size())
    return answers


def steps(streams: dict[str, Rows]) -> Iterator[tuple[dict[str, Rows], dict[str, int]]]:
    """Cut at the same times, so that no stream runs ahead."""
    times = sorted(row[0] for rows in streams.values() for row in rows)
    at = dict.fromkeys(streams, 0)
    for cut in [*times[STEP::STEP], times[-1] + 1]:
        arrived = {}
        for name, rows in streams.items():
            end = at[name]
            while end < len(rows) and rows[end][0] < cut:
                end += 1
            arrived[name] = rows[at[name] : end]
            at[name] = end
        yield arrived, dict.fromkeys(streams, cut)


# ------------------------------------------------------------------------------- workloads


def first(events: int) -> tuple[Callable[[], Rows], Callable[[], Rows]]:
    rng = random.Random(1)
    msg = [(t, rng.randrange(100_000)) for t in range(events)]

    def by_hand() -> Rows:
        seen: set[int] = set()
        out = []
        for t, x in msg:
            if x not in seen:
                seen.add(x)
                out.append((t, x))
        return out

    text = "first(T, X) <- msg(T, X), not previous(T, X). previous(T, X) <- msg(T0, X), T0 < T."
    return by_hand, lambda: kernel(text, {"msg": msg}, "first")


def pc_alarm(events: int) -> tuple[Callable[[], Rows], Callable[[], Rows]]:
    rng = random.Random(2)
    wait = 5 * MINUTE
    pre: Rows = []
    report: Rows = []
    for n in range(events):
        kind = pre if rng.random() < 0.7 else report
        kind.append((n * 30_000, f"area{rng.randrange(10_000)}"))  # 10,000 in five minutes

    merged = sorted([(t, 0, a) for t, a in pre] + [(t, 1, a) for t, a in report])

    def by_hand() -> Rows:
        waiting: deque[tuple[int, str]] = deque()
        reports: dict[str, deque[int]] = defaultdict(deque)
        out = []

        def decide(now: int) -> None:
            while waiting and waiting[0][0] + wait < now:
                t, area = waiting.popleft()
                known = reports[area]
                while known and known[0] < t:
                    known.popleft()
                if not known or known[0] > t + wait:
                    out.append((t, area))

        for t, kind, area in merged:
            decide(t)
            if kind == 0:
                waiting.append((t, area))
            else:
                reports[area].append(t)
        decide(END)
        return out

    text = (
        "stream pre_alarm(T: time, a: string). stream report(T: time, a: string)."
        "pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min)."
    )
    return by_hand, lambda: kernel(text, {"pre_alarm": pre, "report": report}, "pc_alarm")


def minpath(events: int) -> tuple[Callable[[], Rows], Callable[[], Rows]]:
    rng = random.Random(3)
    # As many arcs as keep the closure at some hundred thousand paths.
    arc = [
        (t, *sorted((rng.randrange(1000), rng.randrange(1000))), rng.randrange(1, 100))
        for t in range(min(events, 3000))
    ]

    def by_hand() -> Rows:
        """The same relation: at each arc, relax until nothing improves."""
        best: dict[int, dict[int, int]] = defaultdict(dict)
        into: dict[int, set[int]] = defaultdict(set)
        out = []
        for t, x, y, d in arc:
            found: dict[tuple[int, int], int] = {}
            work = [(x, y, d)]
            while work:
                a, b, c = work.pop()
                old = best[a].get(b)
                if old is not None and old <= c and (a, b) not in found:
                    continue
                if (a, b) in found and found[a, b] <= c:
                    continue
                if old is not None and old <= c:
                    continue
                found[a, b] = c
                best[a][b] = c
                into[b].add(a)
                work += [(a, z, c + e) for z, e in best[b].items()]
                work += [(w, b, best[w][a] + c) for w in into[a]]
            out += [(t, a, b, c) for (a, b), c in found.items()]
        return out

    text = (
        "minpath(T, X, Y, min<D>) <- arc(T, X, Y, D), not shorter(T, X, Y, D)."
        "minpath(T, X, Z, min<D>) <- minpath(T1, X, Y, D1), minpath(T2, Y, Z, D2),"
        "    lgr(T1, T2, T), not shorter(T, X, Z, D), D = D1 + D2."
        "shorter(T, X, Z, D) <- minpath(T1, X, Z, D1), D1 <= D, T1 < T."
    )
    return by_hand, lambda: kernel(text, {"arc": arc}, "minpath")


def windowed_sum(events: int) -> tuple[Callable[[], Rows], Callable[[], Rows]]:
    rng = random.Random(4)
    shops = 1000
    sale = [
        (n * 60_000_000, f"shop{rng.randrange(shops)}", rng.randrange(1, 100))
        for n in range(events)
    ]
    week = 7 * DAY

    def by_hand() -> Rows:
        window: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
        total: dict[str, int] = defaultdict(int)
        out = []
        for t, shop, amount in sale:
            held = window[shop]
            held.append((t, amount))
            total[shop] += amount
            while held[0][0] <= t - week:
                total[shop] -= held.popleft()[1]
            out.append((t, shop, total[shop]))
        return out

    text = (
        "stream sale(T: time, shop: string, amount: int)."
        "asked(T, S) <- sale(T, S, _)."
        "week(T, S, sum(A)) <- asked(T, S), sale(T0, S, A), T0 <= T, T0 > T - 1week."
    )
    return by_hand, lambda: kernel(text, {"sale": sale}, "week")


WORKLOADS = {f.__name__: f for f in (first, pc_alarm, minpath, windowed_sum)}


def measure(make: Callable[[int], tuple[Callable[[], Rows], Callable[[], Rows]]], n: int) -> str:
    by_hand, by_kernel = make(n)
    gc.collect()
    started = time.perf_counter()
    expected = by_hand()
    hand = time.perf_counter() - started
    gc.collect()
    found = by_kernel()
    assert sorted(found) == sorted(expected), "the answers differ"
    return (
        f"{make.__name__:14}{n:>10,}{len(found):>10,}{hand:>9.2f} s{kernel.seconds:>9.2f} s"
        f"{kernel.seconds / hand:>8.1f}{kernel.high:>10,}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    titles = f"{'workload':14}{'events':>10}{'answers':>10}{'by hand':>11}{'kernel':>11}"
    print(f"{titles}{'ratio':>8}{'held':>10}")
    for name in options.workloads:
        print(measure(WORKLOADS[name], options.events), flush=True)


if __name__ == "__main__":
    main()
