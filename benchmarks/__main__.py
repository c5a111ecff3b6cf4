"""Workloads on streamlog and on what one would use instead, one process at a time.

    python -m benchmarks [--size small|medium|large] [--workload NAME]... [--system NAME]...

Every system reads the same CSV files and writes CSV; a figure is the median time of that, without
the start of Python or of the JVM. The answers of all systems are compared. A system other than
streamlog runs in a virtual environment made here from its `requirements.txt`.

Results of all workloads on all systems go to `benchmarks/results`: SIZE.json, tables in SIZE.md, a
picture in SIZE.png. Those of the medium size go into docs/benchmarks.md, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click

from benchmarks import goals
from benchmarks.environments import environment
from benchmarks.workloads import EVENTS, WORKLOADS, Workload

HERE = Path(__file__).parent
SYSTEMS = sorted(path.name for path in (HERE / "systems").iterdir() if path.is_dir())
Results: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]
# Between these are the tables in the page.
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
PAGE = HERE.parent / "docs" / "benchmarks.md"
MOST_SECONDS = 1_800  # for all runs of a workload on a system


def digest(out: Path) -> tuple[int, int]:
    """How many answers there are, and a hash that does not depend on their order."""
    rows = total = 0
    files = (p for p in out.rglob("*.csv") if p.is_file() and p.name[0] not in "._")
    for path in sorted(files) if out.is_dir() else [out]:
        with path.open("rb") as file:
            next(file, None)
            for line in file:
                row = line.strip().replace(b'"', b"")
                rows += 1
                total += int.from_bytes(hashlib.blake2b(row, digest_size=8).digest(), "big")
    return rows, total % 2**64


def measured(system: str, workload: Workload, data: Path, out: Path, runs: int) -> dict[str, Any]:
    try:
        command = [environment(HERE / "systems" / system), str(HERE / "harness.py"), system]
        done = subprocess.run(
            [*command, workload.name, str(data), str(out), str(runs)],
            capture_output=True,
            text=True,
            cwd=data,
            timeout=MOST_SECONDS,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        return {"error": str(error).splitlines()[-1:]}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    rows, total = digest(out)
    return {**figures, "answers": rows, "digest": f"{total:016x}"}


def table(results: Results, systems: Sequence[str]) -> str:
    """Seconds, and how many times as long as the fastest."""
    lines = [f"| workload | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for name, by_system in results.items():
        seconds = medians(by_system)
        best = min(seconds.values(), default=0)
        cells = []
        for system in systems:
            took = seconds.get(system)
            failed = "failed" if system in by_system else "–"
            cells.append(failed if took is None else f"{took:.2f} s ({took / best:.1f}×)")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def medians(by_system: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    return {s: median(r) for s, r in by_system.items() if "seconds" in r}


def median(result: Mapping[str, Any]) -> float:
    return float(statistics.median(result["seconds"]))


def keep(size: str, results: Results, systems: Sequence[str]) -> None:
    """Write what has been measured so far."""
    folder = HERE / "results"
    machine = {"processor": platform.machine(), "cores": os.cpu_count()}
    found = {"size": size, "machine": machine, "python": platform.python_version()}
    text = json.dumps({**found, "results": results}, indent=1)
    (folder / f"{size}.json").write_text(text + "\n")
    seconds = {name: medians(by_system) for name, by_system in results.items()}
    tables = f"{table(results, systems)}\n{goals.table(seconds)}"
    (folder / f"{size}.md").write_text(tables)
    if size == "medium":
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{rest.partition(END)[2]}")


def draw(size: str) -> None:
    plots, folder = HERE / "plots", HERE / "results"
    command = [environment(plots), str(plots / "ratios.py"), str(folder / f"{size}.json")]
    subprocess.run([*command, str(folder / f"{size}.png")], check=True)


@click.command(help=__doc__)
@click.option("--size", type=click.Choice(list(EVENTS)), default="small", show_default=True)
@click.option("--workload", "workloads", multiple=True, type=click.Choice(list(WORKLOADS)))
@click.option("--system", "systems", multiple=True, type=click.Choice(SYSTEMS))
@click.option("--runs", default=3, show_default=True)
def main(size: str, workloads: tuple[str, ...], systems: tuple[str, ...], runs: int) -> None:
    chosen = list(systems or SYSTEMS)
    results: dict[str, dict[str, Any]] = {}
    is_all = not (workloads or systems)
    differences = []
    for name in workloads or WORKLOADS:
        workload = WORKLOADS[name]
        results[name] = {}
        with tempfile.TemporaryDirectory(prefix="streamlog-bench-") as folder:
            data = Path(folder, "data")
            data.mkdir()
            workload.make(data, workload.sizes[size])
            for system in chosen:
                if (HERE / "systems" / system / f"{name}.py").exists():
                    out = Path(folder, f"{system}.csv")
                    result = measured(system, workload, data, out, runs)
                    results[name][system] = result
                    took = f"{median(result):.2f} s" if "seconds" in result else result["error"]
                    click.echo(f"{name} {system}: {took}", err=True)
        digests = {(r["answers"], r["digest"]) for r in results[name].values() if "digest" in r}
        if len(digests) > 1:
            differences.append(name)
        if is_all:
            keep(size, results, chosen)
    if is_all:
        draw(size)
    click.echo(table(results, chosen), nl=False)
    if differences:
        raise SystemExit(f"the answers differ: {', '.join(differences)}")


if __name__ == "__main__":
    main()
