"""pytest collects the `test` blocks of .slog files.

pytest imports this module in every run of every project that has streamlog installed, so it
imports streamlog itself only when there is a .slog file to collect.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from streamlog.app.ruletest import Options, Suite, Verdict
    from streamlog.syntax.ast import Test

_UPDATED: pytest.StashKey[dict[str, int]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("streamlog", "tests of rule programs")
    group.addoption(
        "--update-slog",
        action="store_true",
        help="Rewrite the expectations of .slog tests that fail. Runs in one process.",
    )
    group.addoption(
        "--slog-no-shuffle",
        action="store_true",
        help="Run .slog tests in the written order only.",
    )
    group.addoption(
        "--slog-seed",
        type=int,
        default=0,
        metavar="N",
        help="The seed of the other orders of arrival that .slog tests are run in (default: 0).",
    )
    group.addoption(
        "--slog-allow-python",
        action="store_true",
        help="Execute the Python files from which .slog programs have functions.",
    )
    parser.addini(
        "slog_allow_python", "Always as with --slog-allow-python.", type="bool", default=False
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    # Two workers of xdist could rewrite one file at the same time.
    if config.getoption("update_slog") and hasattr(config.option, "numprocesses"):
        config.option.numprocesses = 0


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SlogFile | None:
    if file_path.suffix != ".slog":
        return None
    return SlogFile.from_parent(parent, path=file_path)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for path, count in sorted(config.stash.get(_UPDATED, {}).items()):
        what = "expectation" if count == 1 else "expectations"
        terminalreporter.write_line(f"updated {count} {what} of {path}")


class SlogFile(pytest.File):
    """A program; its tests are the items."""

    def collect(self) -> Iterator[pytest.Item]:
        from streamlog import ProgramWarning, program_warnings

        suite = _suite(self.path)
        if suite.tests:
            for line in program_warnings(suite.stream.diagnostics):
                self.warn(ProgramWarning(line))
        if suite.refusal:
            yield SlogProgram.from_parent(self, name="the program compiles", suite=suite)
        names: dict[str, int] = {}
        for number, test in enumerate(suite.tests):
            if test not in suite.runnable:
                continue
            names[test.name] = names.get(test.name, 0) + 1
            name = test.name if names[test.name] == 1 else f"{test.name} [{names[test.name]}]"
            yield SlogTest.from_parent(self, name=name, suite=suite, number=number)


class SlogItem(pytest.Item):
    line: int | None = None

    def __init__(self, *, suite: Suite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, SlogFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self.line, f"{self.path.name}: {self.name}"


class SlogProgram(SlogItem):
    """Stands for the tests of a program that is refused."""

    def runtest(self) -> None:
        from streamlog.app.verdicts import render_refusal

        raise SlogFailure(render_refusal(self.suite.refusal).plain)


class SlogTest(SlogItem):
    """A test block."""

    def __init__(self, *, number: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.number = number
        self.line = self.test.span.source.position(self.test.span.start)[0] - 1

    @property
    def test(self) -> Test:
        return self.suite.tests[self.number]

    def runtest(self) -> None:
        from streamlog.app.verdicts import render_problems

        verdict = self._verdict()
        if not verdict.passed and self.config.getoption("update_slog"):
            verdict = self._updated()
        if not verdict.passed:
            raise SlogFailure(render_problems(verdict).plain)

    def _verdict(self) -> Verdict:
        from streamlog.app.ruletest import run_test

        return run_test(self.suite, self.test, self._options)

    def _updated(self) -> Verdict:
        """Read again, since another test's update may have moved this one; rewritten; run again."""
        from streamlog.app.inputs import leads_out
        from streamlog.app.ruleupdate import update

        root = self.config.rootpath
        if self.path.is_relative_to(root) and leads_out(self.path, root):
            raise SlogFailure(f"{self.path} is a link that leads out of {root}: left unchanged")
        self.suite = _suite(self.path)
        changed = update([self._verdict()])
        if changed:
            updated = self.config.stash.setdefault(_UPDATED, {})
            updated[self.suite.path] = updated.get(self.suite.path, 0) + changed
            self.suite = _suite(self.path)
        return self._verdict()

    @property
    def _options(self) -> Options:
        from streamlog.app.ruletest import Options

        config = self.config
        return Options(
            shuffle=not config.getoption("slog_no_shuffle"),
            seed=config.getoption("slog_seed"),
            allow_python=bool(
                config.getoption("slog_allow_python") or config.getini("slog_allow_python")
            ),
        )


class SlogFailure(Exception):  # noqa: N818  (what a test found, not a failure of ours)
    """A test that does not pass; the message is its diff."""


def _suite(path: Path) -> Suite:
    from streamlog.app.ruletest import suite_of

    return suite_of(str(path))
