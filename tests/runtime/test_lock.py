"""A folder is one process's, until that ends in whatever way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamlog.runtime.lock import Locked, locked

HOLD = """
import sys, time
from pathlib import Path
from streamlog.runtime.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with (
        holder(folder) as other,
        pytest.raises(Locked, match=rf"is in use by process {other.pid} on .+, since 2.+Z$"),
    ):
        try:
            with locked(folder):
                raise AssertionError("both hold it")
        finally:
            other.kill()


def test_a_killed_holder_is_no_obstacle(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    assert str(other.pid) in (tmp_path / "lock").read_text()
    with locked(tmp_path), pytest.raises(Locked, match=f"process {os.getpid()}"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_only_the_owner_can_look_into_a_folder_that_was_made(tmp_path: Path) -> None:
    with locked(tmp_path / "state"):
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "state" / "lock").stat().st_mode & 0o777 == 0o600
