"""Draws how many times as long as the fastest each system takes.

python ratios.py RESULTS.json PICTURE.png
"""

import json
import statistics
import sys
from pathlib import Path

from matplotlib import pyplot


def main(results: str, picture: str) -> None:
    found = json.loads(Path(results).read_text())["results"]
    systems = sorted({system for by_system in found.values() for system in by_system})
    figure, axes = pyplot.subplots(figsize=(9, 1.4 + 0.42 * len(found)), layout="constrained")
    for number, system in enumerate(systems):
        points = []
        for row, by_system in enumerate(found.values()):
            seconds = {
                s: statistics.median(r["seconds"]) for s, r in by_system.items() if "seconds" in r
            }
            if system in seconds:
                points.append((seconds[system] / min(seconds.values()), row))
        marker = "D" if system.startswith("streamlog") else "o"
        axes.plot(*zip(*points, strict=True), marker, color=f"C{number}", label=system, alpha=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_xlabel("times as long as the fastest")
    axes.grid(axis="x", which="both", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=len(systems), fontsize=8)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
