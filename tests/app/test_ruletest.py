"""`streamlog test`: what passes, what fails and why, other orders, updates, JUnit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from streamlog.app.matching import ExpressionError, matcher
from streamlog.app.ruletest import Options, run_suite, suite_of
from streamlog.kernel import Kernel
from streamlog.runtime.engine import Engine

Write = Callable[[str, str], Path]

ALARM = """\
stream pre(T: int, area: string) slack 2.
stream report(T: int, area: string) slack 2.
table zone(area: string, name: string).
output alarm, named.

alarm(T, A) <- pre(T, A), not (report(T1, A), T <= T1, T1 <= T + 5).
named(T, N) <- alarm(T, A), zone(A, N).
"""
BLOCKING = "output last.\nlast(T, X) <- msg(T, X), not (msg(T1, X), T1 > T).\n"
LOOP = "output p.\np(T, X) <- q(T, X), not p(T, X).\n"


def test_block(*steps: str, name: str = "it works") -> str:
    return f'test "{name}" {{\n' + "".join(f"    {step}\n" for step in steps) + "}\n"


test_block.__test__ = False  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------ what passes


@pytest.mark.parametrize(
    "steps",
    [
        ["pre(1, a).", "advance 6.", "expect none alarm.", "advance 7.", "expect alarm(1, a)."],
        ["pre(1, a).", "report(4, a).", "end.", "expect none alarm."],
        ["pre(1, b).", "pre(1, a).", "end.", "expect alarm(1, a), alarm(1, b)."],
        ["zone(a, hall).", "pre(1, a).", "end.", "expect named(1, hall), alarm(1, a)."],
        ["pre(5, a).", "arrive late pre(2, a).", "end.", "expect alarm(5, a)."],
        ["pre(5, a).", "pre(3, b).", "end.", "expect alarm(5, a), alarm(3, b)."],
        ["reject pre(soon, a).", "reject pre(1).", "reject pre(1, _).", "reject pre(1, 2)."],
        ["reject pre(@2026-11-15T08:00:00Z, a).", "reject zone(a, 1)."],
        ["pre(1, a).", "expect pre(1, a).", "expect none report."],
        ["end.", "arrive late pre(1, a)."],
        [],
    ],
    ids=lambda steps: " ".join(steps) or "nothing",
)
def test_passes(run, write: Write, steps: list[str]) -> None:
    write("a.slog", ALARM + test_block(*steps))
    result = run("test", "a.slog")
    assert (result.exit_code, result.stdout) == (0, "a.slog: 1 passed\n1 passed\n")


def test_rows_from_files(run, write: Write) -> None:
    write("data/pre.csv", "area,T\na,1\nb,2\n")
    write("data/zone.csv", "area,name\na,Hall\n")
    write("data/named.csv", "T,N\n1,Hall\n")
    steps = (
        'given zone from "data/zone.csv".',
        'given pre from "data/pre.csv".',
        "end.",
        'expect named from "data/named.csv".',
    )
    write("a.slog", ALARM + test_block(*steps))
    assert run("test", "a.slog").exit_code == 0


def test_a_table_is_filled_as_the_program_says_unless_the_test_fills_it(run, write: Write) -> None:
    write("zone.csv", "area,name\na,Hall\n")
    program = ALARM.replace("name: string).", 'name: string) from "zone.csv".')
    write(
        "a.slog",
        program
        + test_block("pre(1, a).", "end.", 'expect named(1, "Hall").')
        + test_block("zone(a, other).", "pre(1, a).", "end.", "expect named(1, other)."),
    )
    assert run("test", "a.slog").stdout.endswith("\n2 passed\n")


def test_whole_numbers_stand_for_floats(run, write: Write) -> None:
    program = "stream m(T: int, x: float).\noutput p.\np(T, sum(X)) <- m(T, X).\n"
    write("a.slog", program + test_block("m(1, 2).", "m(1, 0.5).", "end.", "expect p(1, 2.5)."))
    assert run("test", "a.slog").exit_code == 0


# --------------------------------------------------------------------------- refused programs


def test_a_refusal_that_is_expected(run, write: Write) -> None:
    write("a.slog", LOOP + test_block("rejected SL0402."))
    assert run("test", "a.slog").stdout == "a.slog: 1 passed\n1 passed\n"


def test_steps_after_a_refusal_are_not_passed_over(run, write: Write) -> None:
    write("a.slog", LOOP + test_block("rejected SL0402.", "q(1, a).", "expect none p."))
    result = run("test", "a.slog")
    assert result.exit_code == 1
    assert "this step cannot be run: the program is refused, even for stored data" in result.stdout


def test_a_refusal_with_another_code(run, write: Write) -> None:
    write("a.slog", LOOP + test_block("rejected SL0401."))
    result = run("test", "a.slog")
    assert result.exit_code == 1
    assert "the program is refused, but with SL0402" in result.stdout


def test_an_accepted_program_is_not_refused(run, write: Write) -> None:
    write("a.slog", ALARM + test_block("rejected SL0401."))
    assert "the program is accepted" in run("test", "a.slog").stdout


LAST = ("msg(1, a).", "msg(2, a).", "expect none last.", "end.", "expect last(2, a).")


def test_what_a_stream_refuses_is_tested_over_stored_data(run, write: Write) -> None:
    """If the test says that it is refused, or the command asks for it."""
    write("a.slog", BLOCKING + test_block("rejected SL0401.", *LAST))
    assert run("test", "a.slog").stdout == "a.slog: 1 passed\n1 passed\n"
    write("a.slog", BLOCKING + test_block("rejected SL0401.", *LAST[:-1], "expect none last."))
    assert "unexpected" in run("test", "a.slog").stdout
    write("a.slog", BLOCKING + test_block(*LAST))
    assert run("test", "--batch", "a.slog").stdout == "a.slog: 1 passed\n1 passed\n"


def test_check_run_and_test_agree(run, write: Write) -> None:
    write("a.slog", BLOCKING + test_block("rejected SL0401.", name="no") + test_block(*LAST))
    for command in ("check", "run", "test"):
        result = run(command, "a.slog")
        assert result.exit_code == 1
        assert "[SL0401]" in result.stdout + result.stderr
        no_rows = ("--empty", "msg") if command == "run" else ()
        assert run(command, "--batch", "a.slog", *no_rows).exit_code == 0
    assert run("test", "a.slog").stdout.startswith("a.slog: 1 passed, 1 file refused\n")


def test_update_rewrites_what_runs_over_stored_data(run, write: Write) -> None:
    write("a.slog", BLOCKING + test_block("rejected SL0401.", *LAST[:-1], "expect none last."))
    assert run("test", "--update", "a.slog").exit_code == 0
    assert "expect last(2, a)." in Path("a.slog").read_text()


def test_other_refusals_stop_the_tests(run, write: Write) -> None:
    write("a.slog", LOOP + test_block("rejected SL0402.") + test_block("end.", name="other"))
    result = run("test", "a.slog")
    assert result.exit_code == 1
    assert result.stdout.startswith("a.slog: 1 passed, 1 file refused\n\nerror[SL0402]: ")
    assert result.stdout.endswith("\n\n1 passed, 1 file refused\n")
    # Asked for the one test that can run, there is nothing to complain about.
    assert run("test", "a.slog", "-k", "works").exit_code == 0


def test_a_file_that_cannot_be_read_as_a_program(run, write: Write) -> None:
    write("a.slog", "p(T) <- .\n")
    result = run("test", ".")
    assert (result.exit_code, result.stdout.split("\n")[0]) == (1, "a.slog: 1 file refused")


# ------------------------------------------------------------------------------ what fails


def test_a_diff(run, write: Write) -> None:
    steps = (
        "pre(9, a).",
        "pre(9, b).",
        "pre(1, c).",
        "report(9, a).",
        "advance 15.",
        "expect alarm(1, c), alarm(9, a).",
    )
    write("a.slog", ALARM + test_block(*steps))
    result = run("test", "a.slog")
    assert result.exit_code == 1
    assert (
        result.stdout
        == """\
a.slog: 1 failed

FAILED it works
this row is late: 1 is earlier than 7, which `pre` has passed
  --> a.slog:11:5
   |
11 |     pre(1, c).
   |     ^^^^^^^^^^
   |
   = note: if that is intended, write `arrive late pre(1, c).`

the answers so far are not these
  --> a.slog:14:5
   |
14 |     expect alarm(1, c), alarm(9, a).
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = missing:
     - alarm(1, c)
     - alarm(9, a)
   = unexpected:
     + alarm(9, b)
   = late:
     ! pre(1, c): 1 is earlier than 7, which `pre` has passed

1 failed
"""
    )


def test_a_missing_answer_says_what_it_waits_for(run, write: Write) -> None:
    write("a.slog", ALARM + test_block("pre(1, a).", "report(2, b).", "expect alarm(1, a)."))
    found = run("test", "a.slog").stdout
    assert "note: alarm at 1: waiting for `report`, last seen 2" in found


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("arrive late pre(9, a).", "this row is not late"),
        ("reject pre(9, a).", "this row is not rejected"),
        ("reject zone(a, b).", "this row is not rejected: the table takes it"),
        ("arrive late zone(a, b).", "`zone` is a table: its rows have no time to be late"),
        ("alarm(1, a).", "`alarm` is derived by rules; it cannot arrive"),
        ('given alarm from "p.csv".', "`alarm` is derived by rules; it cannot be given"),
        ('given pre from "none.csv".', "there is no file 'none.csv'"),
        (
            'given pre from "bad.csv".',
            "bad.csv:3: this row is rejected: column `T`: 'x' is not a valid int",
        ),
        ('given pre from "../p.csv".', "'../p.csv' lies outside the folder of this program"),
        ('expect alarm from "none.csv".', "there is no file 'none.csv'"),
    ],
)
def test_a_step_that_fails(run, write: Write, step: str, message: str) -> None:
    write("p.csv", "T,A\n1,a\n")
    write("bad.csv", "T,area\n1,a\nx,a\n")
    write("a.slog", ALARM + test_block("pre(9, a).", step))
    result = run("test", "a.slog")
    assert (result.exit_code, message in result.stdout) == (1, True), result.stdout


def test_an_error_of_the_program(run, write: Write) -> None:
    program = "output p.\np(T, D) <- q(T, X), D = 1 // X.\n"
    write("a.slog", program + test_block("q(1, 1).", "q(2, 0).", "expect p(1, 1)."))
    found = run("test", "a.slog").stdout
    assert "division by zero in the rule at a.slog:2" in found.replace("\n", " ")
    assert "    q(2, 0)." in found


def test_an_expected_value_out_of_range(run, write: Write) -> None:
    program = "stream q(T: int, x: int 1..3).\noutput p.\np(T, X) <- q(T, X).\n"
    write("a.slog", program + test_block("reject q(1, 4).", "expect q(1, 4)."))
    assert "q(1, 4) cannot be an answer" in run("test", "a.slog").stdout


# ------------------------------------------------------------------------------ other orders


class Hasty(Kernel):
    """Forgets all but the first row of a step: the answers depend on the evaluations."""

    def step(
        self, arrived: Mapping[str, Sequence[tuple[object, ...]]], progress: Mapping[str, int]
    ) -> Mapping[str, list[tuple[object, ...]]]:
        return super().step({s: rows[:1] for s, rows in arrived.items()}, progress)  # type: ignore


COPY = "stream q(T: int, x: string) slack 3.\noutput p.\np(T, X) <- q(T, X).\n"
ROWS = [f"q({t}, r{t})." for t in range(1, 30)]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlog.app.test_script.Kernel", Hasty)


@pytest.mark.usefixtures("hasty")
def test_another_order_that_gives_other_answers(run, write: Write) -> None:
    program = COPY.replace(" slack 3", "")
    write("a.slog", program + test_block(*ROWS, "end."))
    result = run("test", "a.slog", "--seed", "7")
    assert result.exit_code == 1
    assert "in another order of arrival the answers differ (--seed 7)" in result.stdout
    # Of 29 rows two are enough: one step takes both.
    order = result.stdout.split("the shortest order found that differs:\n")[1]
    assert len(re.findall(r"q\(\d+, r\d+\)\.", order)) == 2
    assert "evaluated" not in order
    assert result.stdout == run("test", "a.slog", "--seed", "7").stdout
    assert run("test", "a.slog", "--no-shuffle").exit_code == 0


def test_orders_are_those_that_the_slack_allows(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[list[int]] = []

    class Recording(Engine):
        def __init__(self, *args, **kwargs) -> None:
            pushed.append([])
            super().__init__(*args, **kwargs)

        def take(self, stream, rows) -> None:
            rows = list(rows)
            pushed[-1] += [row[0] for row in rows]
            super().take(stream, rows)

    monkeypatch.setattr("streamlog.app.test_script.Engine", Recording)
    path = write("a.slog", COPY + test_block(*ROWS, "advance 30.", "q(30, z).", "end."))
    (verdict,) = run_suite(suite_of(str(path)), Options()).verdicts
    assert (verdict.passed, verdict.orders) == (True, 6)
    written, *others = pushed
    assert written == [*range(1, 31)]
    assert len({tuple(order) for order in others}) == 6
    for order in others:
        assert sorted(order) == written
        assert order[-1] == 30  # `advance` is a promise that no order breaks
        assert all(t >= max(order[:i], default=t) - 3 for i, t in enumerate(order))


def test_idle_streams_and_horizons_are_respected(run, write: Write) -> None:
    program = (
        "stream a(T: int) slack 5 horizon 40.\nstream b(T: int) slack 1 idle 3.\n"
        "output p.\np(T) <- a(T), not (b(T1), T <= T1, T1 <= T + 2).\n"
    )
    steps = [f"a({t}). b({t})." for t in range(0, 60, 3)]
    write("a.slog", program + test_block(*steps, "end.", "expect none p."))
    for seed in range(5):
        assert run("test", "a.slog", "--seed", str(seed)).exit_code == 0


def test_sums_of_floats_do_not_depend_on_the_order(run, write: Write) -> None:
    program = (
        "stream m(T: int, x: float) slack 10.\noutput s, a.\n"
        "s(T, sum(X)) <- tick(T), m(T1, X), T1 <= T, T < T1 + 100.\n"
        "a(T, avg(X)) <- tick(T), m(T1, X), T1 <= T, T < T1 + 100.\n"
    )
    values = ("0.1", "0.2", "0.3", "0.7", "1e16", "-1e16", "0.4")
    steps = [f"m({i // 2}, {value})." for i, value in enumerate(values)]
    write("a.slog", program + test_block(*steps, "end."))
    for seed in range(5):
        assert run("test", "a.slog", "--seed", str(seed)).exit_code == 0


# ---------------------------------------------------------------------------------- updates


def test_update_rewrites_what_is_wrong_and_nothing_else(run, write: Write) -> None:
    wrong = (
        "\ufeff"
        + ALARM
        + 'test "ünïcode"  {  %  kept as it is\n'
        + "  pre(1,a).pre(1, b).\n"
        + "\tadvance 6.   expect alarm(9, a)  .   % not yet\n"
        + "  end .   expect alarm(1,a), named(1, x) .\n"
        + "  expect alarm( 1 , a ), alarm(1, b).\n"
        + "}"
    ).replace("\n", "\r\n")
    path = write("a.slog", wrong)
    result = run("test", "--update", "a.slog")
    assert (result.exit_code, result.stdout) == (0, "a.slog: 1 passed\n1 passed\n")
    assert result.stderr == "updated 2 expectations of a.slog\n"
    assert path.read_bytes().decode() == wrong.replace(
        "expect alarm(9, a)  .", "expect none alarm."
    ).replace(
        "expect alarm(1,a), named(1, x) .",
        "expect alarm(1, a), alarm(1, b).\r\n  expect none named.",
    )
    before = path.read_bytes()
    assert run("test", "--update", "a.slog").stderr == ""
    assert path.read_bytes() == before


def test_update_leaves_links_that_lead_out_of_the_folder(run, write: Write, tmp_path: Path) -> None:
    wrong = ALARM + test_block("pre(1, a).", "end.", "expect none alarm.")
    outside = write("outside.slog", wrong)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.slog").symlink_to(outside)
    result = run("test", "--update", "rules")
    assert result.exit_code == 1
    assert "rules/a.slog is a link that leads out of rules: left unchanged" in result.stderr
    assert outside.read_text() == wrong


def test_update_writes_long_expectations_one_a_line(run, write: Write) -> None:
    areas = [f"area_with_a_long_name_{i}" for i in range(4)]
    steps = [f"pre(1, {area})." for area in areas]
    path = write("a.slog", ALARM + test_block(*steps, "end.", "expect none alarm."))
    assert run("test", "--update", "a.slog").exit_code == 0
    answers = ",\n".join(f"        alarm(1, {area})" for area in areas)
    assert path.read_text().endswith(f"    end.\n    expect\n{answers}.\n}}\n")


def test_update_writes_expected_files(run, write: Write, tmp_path: Path) -> None:
    write("alarm.csv", "T,A\n7,x\n")
    steps = ('expect alarm from "alarm.csv".', 'expect named from "named.csv".')
    program = write("a.slog", ALARM + test_block("pre(1, a).", "end.", *steps))
    before = program.read_bytes()
    assert run("test", "--update", "a.slog").exit_code == 0
    assert (tmp_path / "alarm.csv").read_text() == "T,A\n1,a\n"
    assert (tmp_path / "named.csv").read_text() == "T,N\n"
    assert program.read_bytes() == before


def test_update_leaves_what_it_cannot_know(run, write: Write) -> None:
    steps = ("arrive late pre(1, a).", 'expect alarm from "../alarm.csv".')
    path = write("a.slog", ALARM + test_block(*steps))
    before = path.read_bytes()
    assert run("test", "--update", "a.slog").exit_code == 1
    assert path.read_bytes() == before


# -------------------------------------------------------------------------- the command line


def test_a_summary_of_several_files(run, write: Write) -> None:
    write("x/a.slog", ALARM + test_block("end."))
    write("x/b.slog", ALARM + test_block("end.") + test_block("expect alarm(1, a).", name="no"))
    write("x/none.slog", ALARM)
    result = run("test", "x")
    lines = result.stdout.split("\n")
    assert result.exit_code == 1
    assert lines[0] == f"{Path('x', 'a.slog')}: 1 passed"
    assert lines[1] == f"{Path('x', 'b.slog')}: 1 passed, 1 failed"
    assert lines[-3:] == ["", "2 passed, 1 failed", ""]


def test_no_tests_is_misuse(run, write: Write) -> None:
    write("a.slog", ALARM)
    result = run("test", "a.slog")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no test in 1 file" in result.stderr


def test_no_test_that_matches_is_misuse(run, write: Write) -> None:
    write("a.slog", ALARM + test_block("end."))
    result = run("test", "-k", "other", "a.slog")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no test matches" in result.stderr


def test_standard_input(run) -> None:
    assert run("test", "-", input=ALARM + test_block("end.")).exit_code == 0
    assert run("test", "--update", "-", input=ALARM).exit_code == 2


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("alarm", True),
        ("ALARM and works", True),
        ("alarm and not works", False),
        ("other or (works and not other)", True),
        ("'it works'", True),
        ('"works it"', False),
        ("not 'not'", True),
    ],
)
def test_expressions(expression: str, found: bool) -> None:
    assert matcher(expression)("rules/Alarm.slog::it works") is found


@pytest.mark.parametrize("expression", ["", "a and", "(a", "a)", "a b", "not", "'a", "or b"])
def test_expressions_that_cannot_be_read(run, write: Write, expression: str) -> None:
    with pytest.raises(ExpressionError):
        matcher(expression)
    write("a.slog", ALARM + test_block("end."))
    assert run("test", "-k", expression, "a.slog").exit_code == 2


def test_junit(run, write: Write, tmp_path: Path) -> None:
    write("a.slog", ALARM + test_block("end.") + test_block("expect alarm(1, a).", name="<no>\x01"))
    write("b.slog", "p(T) <- .\n")
    assert run("test", ".", "--junit", "out.xml").exit_code == 1
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert [root.get(n) for n in ("tests", "failures", "errors")] == ["3", "1", "1"]
    cases = {c.get("name"): c for c in root.iter("testcase")}
    assert set(cases) == {"it works", "<no>\ufffd", "the program compiles"}
    failure = cases["<no>\ufffd"].find("failure")
    assert failure is not None
    assert failure.get("message") == "the answers so far are not these"
    assert "- alarm(1, a)" in (failure.text or "")


def test_the_tests_of_used_files_are_run_once(run, write: Write) -> None:
    write("lib.slog", ALARM + test_block("end."))
    write("none.slog", "")
    uses = 'use "lib.slog".\nuse "none.slog" as none_of_it.\n'
    write("a.slog", uses + test_block("pre(1, a).", "end.", "expect alarm(1, a)."))
    assert run("test", "a.slog").stdout == "a.slog: 1 passed\nlib.slog: 1 passed\n2 passed\n"
    write("b.slog", 'use "lib.slog" as lib.\n')
    assert run("test", "b.slog").stdout == "lib.slog: 1 passed\n1 passed\n"
    assert run("test", ".").stdout == "a.slog: 1 passed\nlib.slog: 1 passed\n2 passed\n"


def test_what_has_infinitely_many_answers_cannot_be_expected(run, write: Write) -> None:
    rule = "stream s(T: int). recent(T) <- s(T0), T0 < T, T <= T0 + 5.\n"
    write("a.slog", rule + test_block("s(1).", "end.", "expect recent(2)."))
    result = run("test", "a.slog")
    assert result.exit_code == 1
    assert "`recent` has infinitely many answers" in result.stdout
