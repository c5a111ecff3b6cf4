"""The notebook of the documentation, executed by nbconvert, with some cells more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MORE = {
    "refused": "%%slog\np(T) <- q(T), not r(U).",
    "warned": "%%slog\noutput p.\np(T, L) <- q(T), r(U), U < T, L = T - U.",
    "misused": "%%slog two names\np(T) <- q(T).",
    "unknown": "%%slog --input q=nothing\np(T) <- q(T).",
    "late": "rows = [(2, 'a'), (1, '<b>'), (3, None)]",
    "set aside": "%%slog --input q=rows\np(T, X) <- q(T, X).",
    "no answers": "%%slog\np(T) <- q(T), T > 5.\nq(1).",
}


def cell(source: str) -> dict[str, Any]:
    """One that may fail."""
    tags = {"tags": ["raises-exception"]}
    lines = source.splitlines(keepends=True)
    own = {"execution_count": None, "id": str(abs(hash(source))), "outputs": []}
    return {"cell_type": "code", "metadata": tags, "source": lines, **own}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What cells show, by their source or by their name in `MORE`."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    notebook["cells"] += map(cell, MORE.values())
    (folder / "in.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    command = ["-m", "nbconvert", "--to", "notebook", "--execute", "--output", "out", "in.ipynb"]
    environment = {**os.environ, "IPYTHONDIR": str(folder), "JUPYTER_CONFIG_DIR": str(folder)}
    subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, check=True, capture_output=True
    )
    names = {source: name for name, source in MORE.items()}
    done = json.loads((folder / "out.ipynb").read_text(encoding="utf-8"))
    found = {}
    for one in done["cells"]:
        source = "".join(one["source"])
        shown = one.get("outputs", [])
        found[names.get(source, source)] = "".join(text for o in shown for text in texts(o))
    return found


def texts(output: dict[str, Any]) -> list[str]:
    data = output.get("data", {})
    traceback = "\n".join(output.get("traceback", ()))
    return [*output.get("text", []), *data.get("text/html", data.get("text/plain", [])), traceback]


def of(outputs: dict[str, str], begin: str) -> str:
    (found,) = (text for source, text in outputs.items() if source.startswith(begin))
    return found


def test_a_program_shows_its_contract(outputs: dict[str, str]) -> None:
    assert outputs["hot"] == (
        "<p>Non-blocking. No answer waits for later events. State is bounded.</p>\n"
        "<table><thead><tr><th>predicate</th><th>class</th><th>delay</th><th>released</th>"
        "<th>kept</th></tr></thead><tbody>"
        "<tr><td>hottest</td><td>sequential</td><td>0</td><td>on arrival</td><td>nothing</td></tr>"
        "<tr><td>reading</td><td>stream</td><td></td><td></td><td>the highest value</td></tr>"
        "</tbody></table>"
    )


def test_a_cell_shows_contract_and_answers(outputs: dict[str, str]) -> None:
    text = of(outputs, "%%slog\nstream alarm")
    assert "Slowest answer: unanswered, 5 min after its event." in text
    assert text.endswith(
        "<p><b>unanswered</b></p><table><thead><tr><th>T</th><th>A</th></tr></thead><tbody>"
        "<tr><td>2026-11-15T08:01:00Z</td><td>gate2</td></tr></tbody></table>"
    )


def test_rows_from_a_frame(outputs: dict[str, str]) -> None:
    text = of(outputs, "%%slog hot")
    assert "<td>2026-11-15T08:02:00Z</td><td>boiler</td><td>82.0</td>" in text
    assert "hall', 19.0" in of(outputs, "from streamlog.notebook")


def test_findings(outputs: dict[str, str]) -> None:
    assert "the program is refused" in outputs["refused"]
    assert "error[SL0401]" in outputs["refused"]
    assert "warning[SL0502]" in outputs["warned"] and "Unbounded state" in outputs["warned"]
    assert "%%slog [NAME]" in outputs["misused"]
    assert "there is no variable nothing" in outputs["unknown"]


def test_rows_that_are_set_aside(outputs: dict[str, str]) -> None:
    text = outputs["set aside"]
    assert "<p>1 late row, the first because 1 is earlier than 2, which `q` has passed</p>" in text
    assert "<p>1 rejected row, the first because " in text
    assert "<td>2</td><td>a</td>" in text and "<b>b" not in text
    assert outputs["no answers"].endswith("<p><b>p</b>: no answers</p>")
