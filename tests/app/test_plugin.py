"""The pytest plugin: `pytest rules/` runs the tests that programs contain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# pytester forgets what a run within this process has imported, and then it is imported anew.
from streamlog.app import ruletest, ruleupdate, verdicts  # noqa: F401

PROGRAM = """\
stream q(T: int, x: string) slack 2.
output p.
p(T, X) <- q(T, X).

test "a row is copied" {
    q(1, a).
    end.
    expect p(1, a).
}

test "another row is copied" {
    q(2, b).
    end.
    expect p(2, wrong).
}
"""
LOOP = "output p.\np(T, X) <- q(T, X), not p(T, X).\n"


@pytest.fixture
def rules(pytester: pytest.Pytester) -> Path:
    pytester.makeini("[pytest]\naddopts = -p no:hypothesispytest\n")  # slow to start
    path = pytester.mkdir("rules") / "copy.slog"
    path.write_text(PROGRAM)
    return path


@pytest.mark.usefixtures("rules")
def test_tests_are_collected(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--collect-only", "-q")
    assert result.outlines[:2] == [
        "rules/copy.slog::a row is copied",
        "rules/copy.slog::another row is copied",
    ]


@pytest.mark.usefixtures("rules")
def test_a_failure_shows_the_diff(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("rules")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*copy.slog: another row is copied*",
            "the answers so far are not these",
            "  --> rules/copy.slog:14:5",
            "14 |     expect p(2, wrong).",
            "     - p(2, wrong)",
            "     + p(2, b)",
            "FAILED rules/copy.slog::another row is copied*",
        ]
    )
    assert "Traceback" not in result.stdout.str()


@pytest.mark.usefixtures("rules")
def test_one_test_by_its_name(pytester: pytest.Pytester) -> None:
    pytester.runpytest_inprocess("-k", "another").assert_outcomes(failed=1, deselected=1)
    pytester.runpytest_inprocess("rules/copy.slog::a row is copied").assert_outcomes(passed=1)


def test_stop_at_the_first_failure(pytester: pytest.Pytester, rules: Path) -> None:
    rules.write_text(PROGRAM.replace("expect p(1, a)", "expect none p"))
    pytester.runpytest_inprocess("-x").assert_outcomes(failed=1)


@pytest.mark.usefixtures("rules")
def test_junit(pytester: pytest.Pytester) -> None:
    pytester.runpytest_inprocess("--junitxml=out.xml")
    text = (pytester.path / "out.xml").read_text()
    assert 'name="another row is copied"' in text
    assert "+ p(2, b)" in text


def test_update(pytester: pytest.Pytester, rules: Path) -> None:
    wrong = PROGRAM.replace("expect p(1, a)", "expect p(1, other), p(2, and_more)")
    rules.write_text(wrong)
    result = pytester.runpytest_inprocess("--update-slog")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["updated 2 expectations of *copy.slog"])
    assert rules.read_text() == PROGRAM.replace("wrong", "b")


def test_update_leaves_links_that_lead_out(
    pytester: pytest.Pytester, rules: Path, tmp_path: Path
) -> None:
    outside = rules.rename(tmp_path / "outside.slog")
    rules.symlink_to(outside)
    result = pytester.runpytest_inprocess("--update-slog")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["* is a link that leads out of *: left unchanged"])
    assert outside.read_text() == PROGRAM


def test_update_in_one_process(pytester: pytest.Pytester, rules: Path) -> None:
    wrong = "".join(
        f'test "{i}" {{ q({i}, a). end. expect none p. }}\n' for i in range(20)
    )  # each on its own line, so that every update moves the tests that follow
    rules.write_text(PROGRAM.split("\ntest")[0] + wrong)
    result = pytester.runpytest_subprocess("-n", "2", "--update-slog")
    result.assert_outcomes(passed=20)
    right = "".join(f'test "{i}" {{ q({i}, a). end. expect p({i}, a). }}\n' for i in range(20))
    assert rules.read_text() == PROGRAM.split("\ntest")[0] + right


def test_a_program_that_is_refused_is_a_failed_item(pytester: pytest.Pytester, rules: Path) -> None:
    rules.write_text(LOOP + 'test "one" { rejected SL0402. }\ntest "two" { end. }\n')
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["error?SL0402?: *", "FAILED rules/copy.slog::the program compiles*"]
    )


def test_a_refusal_that_every_test_expects_passes(pytester: pytest.Pytester, rules: Path) -> None:
    rules.write_text(LOOP + 'test "one" { rejected SL0402. }\n')
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_blocking_program_is_a_failed_item(pytester: pytest.Pytester, rules: Path) -> None:
    """Unless the test says that it is refused in a stream."""
    blocking = "output p.\np(T) <- q(T), not (q(T1), T1 > T).\n"
    steps = "q(1). q(2). end. expect p(2)."
    said = f'test "one" {{ rejected SL0401. {steps} }}\n'
    rules.write_text(f'{blocking}{said}test "two" {{ {steps} }}\n')
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["error?SL0401?: *"])
    rules.write_text(blocking + said)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_files_without_tests_give_no_items(pytester: pytest.Pytester, rules: Path) -> None:
    rules.write_text("output p.\np(T, X) <- q(T, X).\n")
    assert pytester.runpytest_inprocess().ret is pytest.ExitCode.NO_TESTS_COLLECTED


def test_tests_of_the_same_name_are_told_apart(pytester: pytest.Pytester, rules: Path) -> None:
    rules.write_text(PROGRAM.replace("another", "a"))
    result = pytester.runpytest_inprocess("--collect-only", "-q")
    assert result.outlines[1] == "rules/copy.slog::a row is copied [2]"


def test_options_reach_the_runner(
    pytester: pytest.Pytester, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[str] = []
    monkeypatch.setattr(ruletest, "shuffled", lambda *args: seeds.append(args[2]) or 0)
    pytester.runpytest_inprocess("-k", "a and not another", "--slog-seed", "5")
    pytester.runpytest_inprocess("-k", "a and not another", "--slog-no-shuffle")
    assert seeds == ["5/a row is copied"]


def test_the_plugin_is_light() -> None:
    code = (
        "import pytest, sys; before = set(sys.modules); import streamlog.app.pytest_plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["streamlog", "streamlog.app", "streamlog.app.pytest_plugin"]


def test_what_check_warns_of_is_in_the_summary(pytester: pytest.Pytester, rules: Path) -> None:
    rules.write_text(
        'output p.\np(T, T1) <- s(T), s(T1), T1 < T.\ntest "t" { s(1). end. expect none p. }\n'
    )
    result = pytester.runpytest_inprocess("rules", "-W", "always::streamlog.ProgramWarning")
    assert result.parseoutcomes()["passed"] == 1
    result.stdout.fnmatch_lines(["*ProgramWarning: *copy.slog:2:19: SL0502: every fact of `s`*"])
