"""`streamlog diff`: files, folders and revisions, and what is reported of them."""

from __future__ import annotations

import json
import subprocess
from itertools import permutations
from pathlib import Path

import pytest

OLD = """\
stream alarm(T: time, area: string) slack 5s.
stream report(T: time, area: string).
output open.

open(T, A) <- alarm(T, A), not answered(T, A).
answered(T, A) <- alarm(T, A), report(T1, A), T1 >= T, T1 <= T + 5min.
"""


def rows(result) -> list[tuple[str, str, str]]:
    (program,) = json.loads(result.stdout)["programs"]
    return [(c["predicate"], c["change"], c["effect"]) for c in program["changes"]]


@pytest.fixture
def diff(run, write):
    def compare(old: str, new: str, *options: str):
        write("old.slog", old)
        write("new.slog", new)
        return run("diff", "old.slog", "new.slog", *options)

    return compare


def test_equal_files(diff) -> None:
    result = diff(OLD, OLD.replace("T1", "Then"))
    assert (result.exit_code, result.stdout) == (0, "compared 1 program: no difference\n")


def test_a_change_reaches_what_rests_on_it(diff) -> None:
    result = diff(OLD, OLD.replace("T1 >= T,", "T1 >= T, A != roof,"), "--format", "json")
    assert result.exit_code == 0
    assert rows(result) == [
        ("answered", "means something else", "other"),
        ("open", "means something else", "other"),
    ]
    first, second = json.loads(result.stdout)["programs"][0]["changes"]
    assert first["because"] == [{"path": "new.slog", "line": 6}]
    assert (second["because"], second["through"]) == ([], ["answered"])


def test_the_name_of_a_predicate_in_between_means_nothing_to_its_readers(diff) -> None:
    result = diff(OLD, OLD.replace("answered", "seen"), "--format", "json")
    assert result.exit_code == 0
    assert rows(result) == [("answered", "removed", "other"), ("seen", "added", "other")]


def test_what_is_sooner_and_less_is_not_worse(diff) -> None:
    result = diff(OLD, OLD.replace("5min", "1min"), "--format", "json")
    assert result.exit_code == 0
    assert {change: effect for _, change, effect in rows(result)} == {
        "answers sooner": "better",
        "keeps less": "better",
        "means something else": "other",
    }


def test_how_an_input_is_read_is_said_of_the_input_alone(diff) -> None:
    result = diff(OLD, OLD.replace("slack 5s", "slack 1min"), "--format", "json")
    assert rows(result) == [("alarm", "is read differently", "other")]


def test_what_is_kept_does_not_depend_on_the_order_of_rules(diff) -> None:
    rules = [
        "p(T, W) <- a(T, _), s(T0, _, 3, W), T0 <= T, not (s(T1, _, V, _), V < 3, T1 < T).\n",
        "q(T, W) <- a(T, K), s(T0, K, V, W), T0 < T, not (s(T1, K, V1, _), V1 < V, T1 <= T).\n",
        "r(T, K) <- a(T, K), s(T0, K, _, _), T0 < T, not (s(T1, K, _, _), T0 < T1, T1 < T).\n",
    ]
    text = "stream s(T: int, k: string, v: int, w: string).\n"
    for moved in permutations(rules):
        assert "no difference" in diff(text + "".join(rules), text + "".join(moved)).stdout


def test_annotations(diff) -> None:
    old = OLD.replace("open(T, A)", "@id a\n@severity high\nopen(T, A)")
    new = OLD.replace("open(T, A)", "@id a\n@severity low\n@tags b\nopen(T, A)")
    result = diff(old, new)
    assert (result.exit_code, result.stdout) == (
        0,
        "new.slog\n"
        "predicate   change              before           after           because of\n"
        "───────────────────────────────────────────────────────────────────────────\n"
        "open        other annotations   @severity high   @severity low\n"
        "                                                 @tags b\n"
        "\n"
        "compared 1 program: 1 change, nothing worse\n",
    )


def test_columns_and_kinds(diff) -> None:
    result = diff("p(T, X) <- q(T, X), X > 1.", "p(T, X) <- q(T, X), X > 1s.", "--format", "json")
    assert ("p", "other columns", "other") in rows(result)
    result = diff("p(T) <- q(T).", "p(T) <- q(T). q(T) <- r(T).", "--format", "json")
    assert ("q", "other kind", "other") in rows(result)


def test_an_answer_that_is_gone(diff) -> None:
    without = "".join(line for line in OLD.splitlines(True) if "output" not in line)
    result = diff(OLD + "output answered.\n", without + "output answered.\n", "--format", "json")
    assert (result.exit_code, rows(result)) == (1, [("open", "no longer an answer", "worse")])


def test_refused_and_accepted(diff) -> None:
    forever = OLD.replace(", T1 <= T + 5min", "")
    result = diff(OLD, forever, "--format", "json")
    assert (result.exit_code, rows(result)) == (1, [("answered", "newly refused", "worse")])
    result = diff(forever, OLD, "--format", "json")
    assert (result.exit_code, rows(result)) == (0, [("answered", "newly accepted", "better")])
    result = diff(forever, forever)
    assert (result.exit_code, result.stdout) == (0, "compared 1 program: no difference\n")
    result = diff(OLD, forever, "--batch", "--format", "json")
    assert result.exit_code == 1
    assert "report end of data" in result.stdout


def test_a_python_function_is_what_its_file_says(run, write) -> None:
    text = 'function f(int): int from "f.py".\np(T, f(X)) <- q(T, X).\n'
    for folder, body in (("old", "return x"), ("new", "return x + 1")):
        write(f"{folder}/p.slog", text)
        write(f"{folder}/f.py", f"def f(x): {body}\n")
    assert rows(run("diff", "old", "new", "--format", "json")) == [
        ("p", "means something else", "other")
    ]


def test_queries(diff) -> None:
    result = diff("p(T) <- q(T).\n?p(T).", "p(T) <- q(T).\n?p(T), q(T).", "--format", "json")
    assert rows(result) == [(None, "asks something else", "other")]


def test_folders(run, write) -> None:
    write("old/a.slog", OLD)
    write("old/gone.slog", OLD)
    write("new/a.slog", OLD)
    write("new/sub/added.slog", OLD)
    result = run("diff", "old", "new")
    assert result.exit_code == 1
    assert result.stdout == (
        "gone.slog\n"
        "predicate   change            before   after   because of\n"
        "─────────────────────────────────────────────────────────\n"
        "            program removed   open\n"
        "\n"
        "sub/added.slog\n"
        "predicate   change          before   after   because of\n"
        "───────────────────────────────────────────────────────\n"
        "            program added            open\n"
        "\n"
        "compared 3 programs: 2 changes, 1 of them worse\n"
    )


# ----------------------------------------------------------------------------------- revisions


@pytest.fixture
def repository(write, tmp_path: Path):
    """One commit: a program that uses a file beside it."""
    write("rules/lib.slog", OLD.splitlines(True)[-1])
    write("rules/main.slog", "".join(OLD.splitlines(True)[:-1]) + 'use "lib.slog".\n')

    def git(*args: str) -> None:
        name = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *name, *args], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", ".")
    git("commit", "-m", "rules")
    return tmp_path


def test_revisions(run, write, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = run("diff", "main:rules", "rules")
    assert (same.exit_code, same.stdout) == (0, "compared 2 programs: no difference\n")
    lib = repository / "rules" / "lib.slog"
    lib.write_text(lib.read_text().replace("5min", "10min"))
    result = run("diff", "main:rules/main.slog", "rules/main.slog", "--format", "json")
    assert result.exit_code == 1
    assert ("open", "answers later", "worse") in rows(result)
    assert str(repository) not in result.stdout and "/tmp" not in result.stdout
    monkeypatch.chdir(repository / "rules")
    backwards = run("diff", "main.slog", "HEAD:./main.slog", "--format", "json")
    assert ("open", "answers sooner", "better") in rows(backwards)
    places = [
        p for c in json.loads(backwards.stdout)["programs"][0]["changes"] for p in c["because"]
    ]
    assert {p["path"] for p in places} == {"HEAD:rules/lib.slog", "HEAD:rules/main.slog"}


def test_a_folder_before_there_were_rules(run, write, repository: Path) -> None:
    write("later/README.md", "Rules will come.")
    name = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for command in (("add", "later"), ("commit", "-m", "a folder")):
        subprocess.run(["git", *name, *command], cwd=repository, check=True, capture_output=True)
    write("later/p.slog", OLD)
    result = run("diff", "main:later", "later")
    assert (result.exit_code, "program added" in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("nothing.slog", "REVISION:PATH"),
        ("absent:rules", "absent"),
        ("main:nowhere", "there is no program at nowhere in revision main"),
        ("--output=x:rules", "No such option"),
        ("main:../rules", "there is no program"),
        ("rules/main.slog", "a file and a folder cannot be compared"),
    ],
)
def test_misuse(run, repository: Path, old: str, said: str) -> None:
    result = run("diff", old, "rules")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
