"""A standalone Spark cluster on this machine: a master and two workers, for as long as a test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

SPARK = Path(pyspark.__file__).parent
PATIENCE = 60  # seconds for master and workers to find each other


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def cluster(root: Path) -> Iterator[str]:
    """The address of its master. All its processes end with it."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as ending:
        at = ["--host", "127.0.0.1", "--webui-port", "0"]
        ending.enter_context(_daemon(root, "master.Master", *at, "--port", str(port)))
        for number in (1, 2):
            more = ["--cores", "1", "--memory", "600m", "-d", str(root / f"work{number}"), master]
            ending.enter_context(_daemon(root, "worker.Worker", *at, *more, log=f"worker{number}"))
        patience = time.monotonic() + PATIENCE
        while (root / "master.log").read_text().count("Registering worker") < 2:
            if time.monotonic() > patience:
                raise TimeoutError((root / "master.log").read_text()[-2000:])
            time.sleep(0.2)
        yield master


@contextmanager
def _daemon(root: Path, kind: str, *args: str, log: str = "master") -> Iterator[None]:
    # `spark-class` becomes the Java process, so its id is the one to end.
    with (root / f"{log}.log").open("w") as out:
        process = subprocess.Popen(
            [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *args],
            env=environment() | {"SPARK_DAEMON_MEMORY": "192m"},
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def environment() -> dict[str, str]:
    """Without what a session in this process has left, which children would take for their own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
    # Java that lives for seconds spends them on compiling, unless told not to.
    return kept | {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}


def submit(*args: object, timeout: float) -> subprocess.CompletedProcess[str]:
    """`spark-submit`, with this Python on both sides."""
    return _run([str(SPARK / "bin" / "spark-submit"), *map(str, args)], timeout)


def streamlog(*args: object, timeout: float) -> subprocess.CompletedProcess[str]:
    return _run([sys.executable, "-m", "streamlog.app.cli", *map(str, args)], timeout)


def _run(command: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
    env = environment()
    if command[0] != sys.executable:
        env["PYSPARK_PYTHON"] = sys.executable
    return subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
    )
