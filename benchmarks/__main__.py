"""Workloads on streamlog and on what one would use instead, one process at a time.

    python -m benchmarks [--size small|medium|large] [--workload NAME]... [--system NAME]...

Every system reads the same CSV files and writes CSV; a figure is the median time of that, without
the start of Python or of the JVM. The answers of all systems are compared. A system other than
streamlog runs in a virtual environment made here from its `requirements.txt`. Results go to
`benchmarks/results/SIZE.json` and `SIZE.md`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import click

from benchmarks.workloads import EVENTS, WORKLOADS, Workload

HERE = Path(__file__).parent
SYSTEMS = sorted(path.name for path in (HERE / "systems").iterdir() if path.is_dir())
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "streamlog-bench"


def environment(system: str) -> str:
    """The Python of a system. Streamlog's is this one."""
    requirements = HERE / "systems" / system / "requirements.txt"
    if not requirements.exists():
        return sys.executable
    version = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = ENVIRONMENTS / f"{system}-{version}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        click.echo(f"installing {system}", err=True)
        venv.create(folder, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "-q", "-r", requirements]
        subprocess.run(command, check=True)
        (folder / "ready").touch()
    return str(python)


def digest(out: Path) -> tuple[int, int]:
    """How many answers there are, and a hash that does not depend on their order."""
    rows = total = 0
    for path in sorted(out.glob("part-*")) if out.is_dir() else [out]:
        with path.open("rb") as file:
            next(file, None)
            for line in file:
                row = line.strip().replace(b'"', b"")
                rows += 1
                total += int.from_bytes(hashlib.blake2b(row, digest_size=8).digest(), "big")
    return rows, total % 2**64


def measured(system: str, workload: Workload, data: Path, out: Path, runs: int) -> dict[str, Any]:
    command = [environment(system), str(HERE / "harness.py"), system, workload.name]
    done = subprocess.run(
        [*command, str(data), str(out), str(runs)], capture_output=True, text=True, cwd=data
    )
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    rows, total = digest(out)
    return {**figures, "answers": rows, "digest": f"{total:016x}"}


def table(results: dict[str, dict[str, Any]], systems: list[str]) -> str:
    """Seconds, and how many times as long as the fastest."""
    lines = [f"| workload | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for name, by_system in results.items():
        seconds = {s: median(r) for s, r in by_system.items() if "seconds" in r}
        best = min(seconds.values(), default=0)
        cells = []
        for system in systems:
            took = seconds.get(system)
            failed = "failed" if system in by_system else "–"
            cells.append(failed if took is None else f"{took:.2f} s ({took / best:.1f}×)")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def median(result: dict[str, Any]) -> float:
    return statistics.median(result["seconds"])


@click.command(help=__doc__)
@click.option("--size", type=click.Choice(list(EVENTS)), default="small", show_default=True)
@click.option("--workload", "workloads", multiple=True, type=click.Choice(list(WORKLOADS)))
@click.option("--system", "systems", multiple=True, type=click.Choice(SYSTEMS))
@click.option("--runs", default=3, show_default=True)
def main(size: str, workloads: tuple[str, ...], systems: tuple[str, ...], runs: int) -> None:
    chosen = list(systems or SYSTEMS)
    results: dict[str, dict[str, Any]] = {}
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
    if not (workloads or systems):
        folder = HERE / "results"
        machine = {"processor": platform.machine(), "cores": os.cpu_count()}
        found = {"size": size, "machine": machine, "python": platform.python_version()}
        text = json.dumps({**found, "results": results}, indent=1)
        (folder / f"{size}.json").write_text(text + "\n")
        (folder / f"{size}.md").write_text(table(results, chosen))
    click.echo(table(results, chosen), nl=False)
    if differences:
        raise SystemExit(f"the answers differ: {', '.join(differences)}")


if __name__ == "__main__":
    main()
