"""Micro-batches in one process: the CPU time of pushing so many events and evaluating them.

python -m benchmarks.batches
"""

from __future__ import annotations

import random
import time
from statistics import median, quantiles

from benchmarks.workloads import WORKLOADS
from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import Row

SECOND = 1_000_000
START = 1_793_491_200 * SECOND


def main() -> None:
    path = WORKLOADS["pc_alarm"].program
    program = compile_source(Source(str(path), path.read_text(encoding="utf-8")))
    for events, batches in ((10, 2_000), (1_000, 100), (100_000, 10)):
        engine, rng, at = Engine(program, Kernel, remember=False), random.Random(1), START
        took = []
        for _ in range(batches):
            rows: dict[str, list[Row]] = {"pre_alarm": [], "report": []}
            for _ in range(events):
                at += 3 * SECOND // 10
                rows[rng.choice(list(rows))].append((at, f"a{rng.randrange(1_000)}"))
            began = time.process_time()
            for stream, some in rows.items():
                engine.push(stream, some)
            engine.step()
            took.append((time.process_time() - began) * 1_000)
        most = quantiles(took, n=20)[-1]
        print(f"{events:,} events: {median(took):.2f} ms, 95 % within {most:.2f} ms")


if __name__ == "__main__":
    main()
