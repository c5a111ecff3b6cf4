"""`streamlog new`: a project that is in order from the start."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest


def test_what_it_makes(run, tmp_path: Path) -> None:
    result = run("new", "airport")
    assert result.exit_code == 0
    for step in ("test airport", "run airport/airport.slog", "explain airport/airport.slog"):
        assert f"  streamlog {step} " in result.stdout
    made = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert made == [
        "airport/README.md",
        "airport/airport.slog",
        "airport/data/pre_alarm.csv",
        "airport/data/report.csv",
        "airport/streamlog.toml",
    ]
    readme = (tmp_path / "airport" / "README.md").read_text()
    assert readme.startswith("# airport\n")
    assert "{{" not in readme


def test_it_is_in_order(run) -> None:
    run("new", "airport")
    checked = run("check", "airport")
    assert (checked.exit_code, checked.stderr) == (0, "checked 1 file: no findings\n")
    assert run("fmt", "--check", "airport").exit_code == 0


def test_what_it_says_to_do_next_works(run) -> None:
    for line in run("new", "airport").stdout.split("next:\n")[1].splitlines():
        assert run(*line.split("   ")[0].split()[1:]).exit_code == 0


def test_its_data_fit_its_streams(run, tmp_path: Path) -> None:
    run("new", "airport")
    program = (tmp_path / "airport" / "airport.slog").read_text()
    for file in sorted((tmp_path / "airport" / "data").iterdir()):
        assert f'{file.stem}(T: time, area: string) from "data/{file.name}"' in program
        header, *rows = csv.reader(file.read_text().splitlines())
        assert header == ["T", "area"]
        assert rows
        assert all(len(row) == 2 and row[0].endswith("Z") for row in rows)


def test_an_empty_folder_will_do(run, tmp_path: Path) -> None:
    (tmp_path / "airport").mkdir()
    assert run("new", "airport").exit_code == 0


@pytest.mark.parametrize("name", ["", "a/b", "../up", "1st", "-x", ".hid", "a b", "ä", "a.slog"])
def test_names_that_are_refused(run, tmp_path: Path, name: str) -> None:
    result = run("new", "--", name)
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(run, write) -> None:
    precious = write("airport/airport.slog", "p(1).\n")
    result = run("new", "airport")
    assert result.exit_code == 2
    assert "overwrites nothing" in result.stderr
    assert list(precious.parent.iterdir()) == [precious]
    write("metro", "a file")
    assert run("new", "metro").exit_code == 2
