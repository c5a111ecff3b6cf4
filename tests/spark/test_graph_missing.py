"""What is said where GraphFrames cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

from streamlog.spark import graph_calls


class Jvm:
    """A class loader that knows what it is told."""

    def __init__(self, *methods: str) -> None:
        self.methods = methods
        self.java = self.lang = self.Thread = self

    def currentThread(self) -> Jvm:  # noqa: N802 - Java's name
        return self

    def getContextClassLoader(self) -> Jvm:  # noqa: N802
        return self

    def getResource(self, name: str) -> object:  # noqa: N802
        return name if self.methods else None

    def loadClass(self, name: str) -> Jvm:  # noqa: N802
        return self

    def getMethods(self) -> list[Any]:  # noqa: N802
        return [type("Method", (), {"getName": lambda _, m=m: m})() for m in self.methods]


class Session:
    version = "4.3.0"

    def __init__(self, jvm: Jvm, packages: str = "", directory: str | None = None) -> None:
        self._jvm, self.conf = jvm, {"spark.jars.packages": packages}
        self.sparkContext, self.directory = self, directory

    def getCheckpointDir(self) -> str | None:  # noqa: N802
        return self.directory


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        pytest.param(Session(Jvm()), "start Spark with --packages io.graphframes:", id="missing"),
        pytest.param(Session(Jvm()), "--packages org.apache.sedona:", id="missing: elsewhere"),
        pytest.param(
            Session(Jvm(), "io.graphframes:graphframes-spark4_2.13:0.12.3"),
            "io.graphframes:graphframes-spark4_2.13:0.12.3 was not resolved, or Spark was running",
            id="asked for in vain",
        ),
        pytest.param(
            Session(Jvm(), graph_calls.ELSEWHERE),
            f"{graph_calls.ELSEWHERE} was not resolved, or Spark was running",
            id="asked for elsewhere in vain",
        ),
        pytest.param(Session(Jvm("run")), "is older than 0.9.1", id="too old"),
        pytest.param(
            Session(Jvm("run", "setEarlyStopping")),
            "add --conf spark.checkpoint.dir=DIR",
            id="0.9 without a directory",
        ),
        pytest.param(
            Session(Jvm("run", "setEarlyStopping"), directory="/tmp"),
            None,
            id="0.9 with a directory",
        ),
        pytest.param(
            Session(Jvm("run", "setEarlyStopping", "setUseLocalCheckpoints")), None, id="0.10"
        ),
    ],
)
def test_available(session: Any, expected: str | None) -> None:
    said = graph_calls.available(session)
    assert said == expected if expected is None else expected in (said or "")


def test_available_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_calls, "PACKAGE", "no-such-package")
    said = graph_calls.available(Session(Jvm("run")))  # type: ignore[arg-type]
    assert said and "cannot be imported" in said
