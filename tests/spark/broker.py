"""A Kafka broker on this machine, from its published artifacts, for as long as a test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from standalone import environment, free_port

from streamlog.spark.topics import CONNECTOR

BROKER = ("org.apache.kafka:kafka_2.13:3.9.1",)
# The connector's parts one by one: its token provider, which is for delegation tokens alone, could
# not be had in the connector's own version where this was written.
PARTS = (
    CONNECTOR,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "streamlog-tests"
FETCHING, STARTING = 180, 60  # seconds
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"  # any id will do
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
"""


def jars(name: str, artifacts: Iterable[str], *, alone: bool) -> list[Path]:
    """The files of Maven artifacts, with what they need unless `alone`; fetched once."""
    folder = CACHE / name
    if not any(folder.glob("*.jar")):
        _fetch(folder, artifacts, alone)
    return sorted(folder.glob("*.jar"))


def _fetch(folder: Path, artifacts: Iterable[str], alone: bool) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("there is no mvn to fetch jars with")
    exclusion = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    wanted = ""
    for artifact in artifacts:
        group, name, version = artifact.split(":")
        wanted += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version>"
            f"<exclusions>{exclusion if alone else ''}</exclusions></dependency>"
        )
    new = folder.with_name(f".{folder.name}-{os.getpid()}")
    new.mkdir(parents=True)
    (new / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>streamlog</groupId>"
        f"<artifactId>jars</artifactId><version>1</version><dependencies>{wanted}</dependencies>"
        "</project>"
    )
    command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            [*command, f"-DoutputDirectory={new}"],
            cwd=new,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=FETCHING,
        )
        if done.returncode:
            pytest.skip(f"mvn cannot fetch {', '.join(artifacts)}")
        new.rename(folder)
    except subprocess.TimeoutExpired:
        pytest.skip(f"mvn has not fetched {', '.join(artifacts)} in {FETCHING} s")
    finally:
        shutil.rmtree(new, ignore_errors=True)


class Broker:
    def __init__(self, folder: Path) -> None:
        self._path = ":".join(map(str, jars("kafka-3.9.1", BROKER, alone=False)))
        self._port, self._folder = free_port(), folder
        self.address = f"127.0.0.1:{self._port}"

    @contextmanager
    def running(self) -> Iterator[Broker]:
        settings = self._folder / "server.properties"
        settings.write_text(
            SETTINGS.format(port=self._port, controller=free_port(), folder=self._folder)
        )
        self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings))
        command = self._command("kafka.Kafka", str(settings))
        with (self._folder / "broker.log").open("w") as log:
            process = subprocess.Popen(
                command, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            self._wait(process)
            yield self
        finally:
            process.kill()  # there is nothing to save
            process.wait()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        patience = time.monotonic() + STARTING
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                return
            except OSError:
                if process.poll() is not None or time.monotonic() > patience:
                    raise RuntimeError((self._folder / "broker.log").read_text()) from None
                time.sleep(0.2)

    def produce(self, topic: str, lines: Iterable[str]) -> None:
        args = ("--bootstrap-server", self.address, "--topic", topic)
        self._java("kafka.tools.ConsoleProducer", *args, text="".join(f"{x}\n" for x in lines))

    def _command(self, main: str, *args: str) -> list[str]:
        return ["java", "-Xmx256m", "-cp", self._path, main, *args]

    def _java(self, main: str, *args: str, text: str = "") -> None:
        subprocess.run(
            self._command(main, *args),
            env=environment(),
            input=text,
            text=True,
            check=True,
            capture_output=True,
            timeout=STARTING,
        )
