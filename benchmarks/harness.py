"""Runs one workload on one system, in that system's environment, and prints what it took as JSON.

    python harness.py SYSTEM WORKLOAD DATA OUT RUNS

`systems/SYSTEM/WORKLOAD.py` has `run(data, out)`, which reads the CSV files in a folder and writes
the answers to a CSV file; `systems/SYSTEM/common.py`, if there is one, has `warm_ups`. Only the
standard library is used here.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from pathlib import Path


def main(system: str, workload: str, data: str, out: str, runs: str) -> None:
    sys.path[:0] = [str(Path(__file__).parent / "systems" / system), str(Path(__file__).parents[1])]
    try:
        warm_ups = importlib.import_module("common").warm_ups
    except ModuleNotFoundError as missing:
        if missing.name != "common":
            raise
        warm_ups = 0
    run = importlib.import_module(workload).run
    seconds = []
    for _ in range(warm_ups + int(runs)):
        started = time.perf_counter()
        run(Path(data), Path(out))
        seconds.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds[warm_ups:], "first": seconds[0], "mebibytes": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
