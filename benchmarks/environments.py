"""Virtual environments for what streamlog is compared with, made once and kept."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

import click

ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "streamlog-bench"


def environment(folder: Path) -> str:
    """The Python of a system, which only one process makes. Streamlog's is this one."""
    requirements, system = folder / "requirements.txt", folder.name
    if not requirements.exists():
        return sys.executable
    version = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    made = ENVIRONMENTS / f"{system}-{version}"
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "ready").exists():
            click.echo(f"installing {system}", err=True)
            venv.create(made, with_pip=True, clear=True)
            command = [_python(made), "-m", "pip", "install", "-q", "-r", str(requirements)]
            subprocess.run(command, check=True)
            (made / "ready").touch()
        return _python(made)


def _python(made: Path) -> str:
    """The Python of an environment; without a `pyvenv.cfg` it would be that of the machine."""
    python = str(made / "bin" / "python")
    command = [python, "-I", "-c", "import sys; print(sys.prefix)"]
    prefix = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if Path(prefix).resolve() != made.resolve():
        raise SystemExit(f"'{python}' is the Python of '{prefix}': delete '{made}'")
    return python
