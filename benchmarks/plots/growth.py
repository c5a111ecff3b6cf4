"""Draws cost against size.

python growth.py GROWTH.json PICTURE.png
"""

import json
import sys
from pathlib import Path

from matplotlib import pyplot


def main(results: str, picture: str) -> None:
    found = json.loads(Path(results).read_text())
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name, seconds in found["seconds"].items():
        axes.loglog(found["sizes"], seconds, "o-", label=name, base=2)
    axes.set_xlabel("events")
    axes.set_ylabel("seconds")
    axes.grid(which="both", alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(picture, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
