"""What is said where GraphFrames cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

from streamlog.spark import graph


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

    def __init__(self, jvm: Jvm, packages: str = "") -> None:
        self._jvm, self.conf = jvm, {"spark.jars.packages": packages}


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        pytest.param(Session(Jvm()), "start Spark with --packages io.graphframes:", id="missing"),
        pytest.param(
            Session(Jvm(), "io.graphframes:graphframes-spark4_2.13:0.12.3"),
            "was not resolved, or Spark was running before",
            id="asked for in vain",
        ),
        pytest.param(Session(Jvm("run")), "does not fit graphframes-py", id="too old"),
        pytest.param(Session(Jvm("run", "requiredEdgeColumns")), None, id="there"),
    ],
)
def test_available(session: Any, expected: str | None) -> None:
    pytest.importorskip("graphframes")
    said = graph.available(session)
    assert said == expected if expected is None else expected in (said or "")


def test_available_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "PACKAGE", "no-such-package")
    said = graph.available(Session(Jvm("run")))  # type: ignore[arg-type]
    assert said and "cannot be imported" in said
