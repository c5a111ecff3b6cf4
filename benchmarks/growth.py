"""How cost grows with the number of events: the exponent over three sizes.

    python -m benchmarks.growth [--events N] [--workload NAME]... [--system NAME]

Sizes are N, 2N and 4N. An exponent of 1 is linear cost; what a run costs before the first row makes
it smaller. Results go to `benchmarks/results/growth.md`, with a picture beside it.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from pathlib import Path

import click

from benchmarks.__main__ import HERE, SYSTEMS, measured, median
from benchmarks.environments import environment
from benchmarks.workloads import EVENTS, WORKLOADS

SIZES = (1, 2, 4)


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of a line through the points, both axes logarithmic."""
    x, y = ([math.log(value) for value in values] for values in (sizes, seconds))
    at, up = sum(x) / len(x), sum(y) / len(y)
    return sum((a - at) * (b - up) for a, b in zip(x, y, strict=True)) / sum(
        (a - at) ** 2 for a in x
    )


@click.command(help=__doc__)
@click.option("--events", default=500_000, show_default=True)
@click.option("--workload", "workloads", multiple=True, type=click.Choice(list(WORKLOADS)))
@click.option("--system", type=click.Choice(SYSTEMS), default="streamlog_local", show_default=True)
@click.option("--runs", default=3, show_default=True)
def main(events: int, workloads: tuple[str, ...], system: str, runs: int) -> None:
    linear = [name for name, w in WORKLOADS.items() if w.sizes is EVENTS]
    sizes = [events * factor for factor in SIZES]
    found: dict[str, list[float]] = {}
    lines = [f"| workload | {' | '.join(f'{n:,} events' for n in sizes)} | exponent |"]
    lines.append("|---" * (len(sizes) + 2) + "|")
    for name in workloads or linear:
        seconds: list[float] = []
        for size in sizes:
            with tempfile.TemporaryDirectory(prefix="streamlog-bench-") as folder:
                data = Path(folder, "data")
                data.mkdir()
                WORKLOADS[name].make(data, size)
                result = measured(system, WORKLOADS[name], data, Path(folder, "out.csv"), runs)
            if "error" in result:
                raise SystemExit(f"{name}, {size:,} events: {result['error']}")
            seconds.append(median(result))
        found[name] = seconds
        cells = [f"{s:.2f} s" for s in seconds]
        lines.append(f"| {name} | {' | '.join(cells)} | {exponent(sizes, seconds):.2f} |")
        click.echo(lines[-1], err=True)
    text = "\n".join(lines) + "\n"
    click.echo(text, nl=False)
    if not workloads:
        results = HERE / "results"
        (results / "growth.md").write_text(text)
        (results / "growth.json").write_text(json.dumps({"sizes": sizes, "seconds": found}) + "\n")
        plots = HERE / "plots"
        command = [environment(plots), str(plots / "growth.py"), str(results / "growth.json")]
        subprocess.run([*command, str(results / "growth.png")], check=True)


if __name__ == "__main__":
    main()
