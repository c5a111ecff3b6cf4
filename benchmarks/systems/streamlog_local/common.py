"""`streamlog run --engine local`, in this process."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.workloads import WORKLOADS
from streamlog.app.cli import main

ENGINE = "local"
warm_ups = 0


def by_rules(name: str, data: Path, out: Path, options: Sequence[str] = ()) -> None:
    workload = WORKLOADS[name]
    arguments = ["run", str(workload.program), "--engine", ENGINE, *options]
    for path in sorted(data.glob("*.csv")):
        arguments += ["--input", f"{path.stem}={path}"]
    if len(workload.outputs) == 1:
        out.unlink(missing_ok=True)
        arguments += ["--output", f"{workload.outputs[0]}={out}"]
    else:
        out.mkdir(exist_ok=True)
        for name in workload.outputs:
            arguments += ["--output", f"{name}={out / name}.csv"]
    code = main(arguments, standalone_mode=False)
    if code:
        raise SystemExit(code)
