"""What is said where Spark cannot find its Java. The executables are shell scripts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from streamlog.app import java
from streamlog.app.java import java_problem

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake javas are shell scripts")

REMEDY = (
    "Install one of them and let JAVA_HOME name its folder; or use `--engine local`, which works "
    "without Java."
)
SAYS_17 = """echo 'openjdk version "17.0.15" 2025-04-15' >&2"""
SAYS_11 = """echo 'openjdk version "11.0.2" 2019-01-15' >&2"""

Install = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put an executable `java` below a folder; at first there is none, nor a JAVA_HOME."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def install(folder: str, script: str) -> Path:
        java = tmp_path / folder / "java"
        java.parent.mkdir(parents=True, exist_ok=True)
        java.write_text(f"#!{shutil.which('sh', path=os.defpath)}\n{script}\n", encoding="utf-8")
        java.chmod(0o755)
        return java

    return install


def test_no_java() -> None:
    assert java_problem() == (
        "Spark needs Java 17 or 21, but there is no Java on the PATH, and JAVA_HOME is not set. "
        + REMEDY
    )


@pytest.mark.parametrize(
    "says",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'java version "21" 2023-09-19 LTS',
        'openjdk version "25.0.3" 2026-04-21 LTS',
        'Picked up JAVA_TOOL_OPTIONS: -Dversion=8\nopenjdk version "21-ea" 2023-09-19',
    ],
)
def test_a_java_that_will_do(install: Install, says: str) -> None:
    install("bin", f"echo '{says}' >&2")
    assert java_problem() is None


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "1.8.0_392"', 8),
        ('openjdk version "11.0.2" 2019-01-15', 11),
        ('openjdk version "16" 2021-03-16', 16),
        ('openjdk version "22.0.1" 2024-04-16', 22),
        ('openjdk version "170.0.1" 2099-04-16', 170),
    ],
)
def test_a_wrong_version(install: Install, says: str, version: int) -> None:
    path = install("bin", f"echo '{says}' >&2")
    assert java_problem() == f"Spark needs Java 17 or 21, but '{path}' is Java {version}. {REMEDY}"


def test_java_home_comes_first(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    old = install("old/bin", SAYS_11)
    new = install("bin", SAYS_17)
    monkeypatch.setenv("JAVA_HOME", str(old.parents[1]))
    assert f"'{old}' is Java 11" in (java_problem() or "")
    monkeypatch.setenv("JAVA_HOME", str(new.parents[1]))
    assert java_problem() is None


def test_an_empty_java_home_is_none(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("bin", SAYS_17)
    monkeypatch.setenv("JAVA_HOME", "")
    assert java_problem() is None


def test_a_java_home_without_java(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("bin", SAYS_17)  # Spark would not look here
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert java_problem() == (
        f"Spark needs Java 17 or 21, but JAVA_HOME is '{tmp_path / 'gone'}', which has no "
        f"bin/java. {REMEDY}"
    )


def test_a_java_that_only_says_how_to_get_one(install: Install) -> None:
    path = install("bin", "echo >&2; echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    assert (
        f"'{path} -version' does not name a version; it says: Unable to locate a Java Runtime. "
        in (java_problem() or "")
    )


def test_a_java_that_says_nothing(install: Install) -> None:
    install("bin", "exit 0")
    assert "it says: nothing. Install" in (java_problem() or "")


def test_what_java_says_cannot_steer_the_terminal(install: Install) -> None:
    install("bin", r"printf '\033[31mno\033[0m\n'")
    assert "it says: ␛[31mno␛[0m." in (java_problem() or "")


def test_a_file_that_cannot_be_run(install: Install) -> None:
    path = install("bin", "")
    path.write_bytes(b"\x7fELF, but not really")
    assert f"'{path}' cannot be run: exec format error." in (java_problem() or "")


def test_a_java_that_hangs(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "PATIENCE", 0.2)
    path = install("bin", f"exec {shutil.which('sleep', path=os.defpath)} 60")
    assert f"'{path} -version' has not answered in 0.2 seconds" in (java_problem() or "")
