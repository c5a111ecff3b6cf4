"""`run --metrics`: figures for Prometheus, asked for over HTTP while a program runs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamlog.control.metrics import COUNTERS, GAUGES

RULES = """
stream pre_alarm(T: time, A: string).
stream report(T: time, A: string).
output pc_alarm.
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""
DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"


@pytest.fixture
def port(write, tmp_path: Path) -> Iterator[int]:
    write("p.slog", RULES)
    hostile = 'gate ""1""\\\\n</script>'
    write("pre_alarm.csv", f'T,A\n2026-11-15T08:00:00Z,"{hostile}"\nsoon,x\n')
    write("report.csv", "T,A\n2026-11-15T08:03:00Z,y\n2026-11-15T08:02:00Z,y\n")
    inputs = [f"--input={name}={name}.csv" for name in ("pre_alarm", "report")]
    command = [sys.executable, "-m", "streamlog.app.cli", "run", "p.slog", "--engine", "local"]
    command += ["--follow", "--metrics", "0", *inputs, "--output", "pc_alarm=out.csv"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = next(line for line in process.stderr if line.startswith("metrics: "))
    yield int(re.search(r":(\d+)/metrics", line)[1])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


def asked(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def figures(port: int) -> dict[tuple[str, tuple[str, ...]], float]:
    status, body = asked(port, "/metrics")
    assert status == 200
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }


def test_what_a_run_reports(port: int) -> None:
    until = time.monotonic() + 60
    while (found := figures(port)).get(("streamlog_rows_total", ("report",))) != 2:
        assert time.monotonic() < until, found
        time.sleep(0.05)
    assert found["streamlog_rows_total", ("pre_alarm",)] == 2
    assert found["streamlog_rejected_rows_total", ("pre_alarm",)] == 1
    assert found["streamlog_late_rows_total", ("report",)] == 1
    assert found["streamlog_answers_total", ("pc_alarm",)] == 0
    assert found["streamlog_progress_timestamp_seconds", ("report",)] == 1794729780
    assert found["streamlog_held_back_by", ("pc_alarm", "report")] == 1
    assert found["streamlog_held_back_seconds", ("pc_alarm",)] > 0
    assert found["streamlog_state_rows", ("pre_alarm",)] == 1
    assert asked(port, "/health")[0] == 200
    assert json.loads(asked(port, "/health")[1])["alive"] is True


def test_nothing_else_is_served(port: int) -> None:
    for path in ("/", "/metrics/../p.slog", "/p.slog", "/metrics?x=1", "/%2e%2e/"):
        status, body = asked(port, path, Host="evil.example", **{"X-Forwarded-For": "<script>"})
        assert (status, body) == (404, "not here\n")


def test_a_port_that_is_taken(run, write, port: int, tmp_path: Path) -> None:
    args = ("run", "p.slog", "--engine", "local", "--input", "pre_alarm=pre_alarm.csv")
    args += ("--input", "report=report.csv", "--format", "csv", "--metrics", str(port))
    taken = run(*args, "--follow")
    assert taken.exit_code == 2 and f"--metrics {port}: address already in use" in taken.stderr
    assert "--metrics is for --follow" in run(*args).stderr


def test_the_dashboard_asks_for_what_there_is() -> None:
    known = {f"streamlog_{name}_total" for name in COUNTERS}
    known |= {f"streamlog_{name}" for name in GAUGES}
    board = json.loads(DASHBOARD.read_text())
    asked_for = [t["expr"] for panel in board["panels"] for t in panel["targets"]]
    names = {name for expr in asked_for for name in re.findall(r"streamlog_\w+", expr)}
    assert names <= known and len(names) > 8
