"""Whether there is a Java that Spark can run on, and what to do if there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from streamlog.app.snippet import visible

if TYPE_CHECKING:
    from streamlog.runtime.executor import ExecutorFactory

# Spark 4 runs on the first two, and from 4.2 on the third as well.
VERSIONS = (17, 21, 25)
PATIENCE = 30  # seconds that `java -version` may take

_NEEDED = "Spark needs Java 17 or 21"
_REMEDY = (
    "Install one of them and let JAVA_HOME name its folder; "
    "or use `--engine local`, which works without Java."
)


def java_problem() -> str | None:
    """What keeps Spark from running, and what would help; None if nothing does.

    Java is looked for where Spark does: in JAVA_HOME if that is set, else on the PATH.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is not None:
        wrong = _wrong_with(java)
    elif home:
        wrong = f"JAVA_HOME is '{home}', which has no bin/java"
    else:
        wrong = "there is no Java on the PATH, and JAVA_HOME is not set"
    return f"{_NEEDED}, but {visible(wrong)}. {_REMEDY}" if wrong else None


def _wrong_with(java: str) -> str | None:
    try:
        done = subprocess.run(
            [java, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return f"'{java} -version' has not answered in {PATIENCE} seconds"
    except OSError as error:
        return f"'{java}' cannot be run: {(error.strerror or str(error)).lower()}"
    # `version "17.0.15"`, and `version "1.8.0_392"` up to Java 8
    version = re.search(r'\bversion "(?:1\.)?([0-9]+)', done.stdout)
    if done.returncode or version is None:
        said = next((line for line in done.stdout.splitlines() if line.strip()), "nothing")
        return f"'{java} -version' does not name a version; it says: {said.strip().rstrip('.')}"
    return None if int(version[1]) in VERSIONS else f"'{java}' is Java {version[1]}"


class NoSparkError(Exception):
    """Spark cannot be started; the message says why."""


def on_spark(memory: int | None) -> ExecutorFactory:
    """An executor for a few rows at a time, in a session with settings for that, whose Java takes
    at most so many bytes."""
    if problem := java_problem():
        raise NoSparkError(problem)
    from streamlog.spark.executor import SparkExecutor
    from streamlog.spark.session import TINY, SessionError, session, with_memory

    try:
        session("local[2]", {**TINY, **with_memory({}, memory)})
    except SessionError as error:
        raise NoSparkError(str(error)) from None
    return SparkExecutor
