"""What `explain` says about a program. The goldens of whole programs are elsewhere."""

from __future__ import annotations

import json

import pytest

from streamlog.app.dumps import DUMPS
from streamlog.app.quantity import quantity
from streamlog.compiler import PASSES
from streamlog.diagnostics import Source
from streamlog.syntax.ast import Type
from streamlog.syntax.parse import parse

ALARM = """\
stream pre_alarm(T: time, area: string).
stream report(T: time, area: string).
output pc_alarm.
pc_alarm(T, A) <- pre_alarm(T, A), not (report(T1, A), T <= T1, T1 <= T + 5min).
"""
FIRST = """\
first(T, X) <- msg(T, X), not previous(T, X).
previous(T, X) <- msg(T0, X), T0 < T.
?first(T, red).
"""
BLOCKING = """\
output q, r.
p(T, X) <- s(T, X), not (s(T1, X), T1 > T).
q(T, X) <- p(T, X).
r(T, X) <- s(T, X).
"""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1 us"),
        (999, "999 us"),
        (1_000, "1 ms"),
        (300_000_000, "5 min"),
        (299_999_999, "5 min - 1 us"),
        (299_999_998, "5 min - 2 us"),
        (299_999_997, "4 min 59 s 999 ms 997 us"),
        (300_000_001, "5 min 1 us"),
        (90_061_000_000, "1 d 1 h 1 min 1 s"),
        (-300_000_000, "-5 min"),
        (-299_999_999, "-5 min + 1 us"),
    ],
)
def test_quantity(value: int, text: str) -> None:
    assert quantity(value, Type.TIME) == text
    assert quantity(value, Type.INT) == quantity(value, None) == str(value)


def test_contract(run, write) -> None:
    write("a.slog", ALARM)
    result = run("explain", "a.slog")
    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == """\
Non-blocking. Slowest answer: pc_alarm, 5 min after its event. State is bounded.

predicate   class         delay          released   kept      because of
────────────────────────────────────────────────────────────────────────
pc_alarm    waits 5 min   pre_alarm 0    on close   nothing   line 4
                          report 5 min
pre_alarm   stream                                  5 min     line 4
report      stream                                  5 min     line 4
"""
    )


def test_contract_with_state_that_grows(run) -> None:
    assert (
        run("explain", "-", input=FIRST).stdout
        == """\
Non-blocking. No answer waits for later events. Unbounded state: msg, one row
per X.

predicate   class                delay   released     kept            because of
────────────────────────────────────────────────────────────────────────────────
first       sequential           0       on arrival   nothing
msg         stream                                    one row per X   line 2
previous    strictly                     when asked
            sequential, open
"""
    )


def test_what_rests_on_a_blocking_rule_waits_with_it(run, write) -> None:
    write("a.slog", BLOCKING)
    lines = run("explain", "--batch", "a.slog").stdout.split("\n")
    assert lines[0].startswith("Blocking: for stored data only.")
    at_end = {line.split()[0] for line in lines if "end of data" in line}
    assert at_end == {"p", "q"}
    found = json.loads(run("explain", "--batch", "--format", "json", "a.slog").stdout)
    predicates = found["programs"][0]["contract"]["predicates"]
    assert {p["name"] for p in predicates if p["at_end_of_data"]} == {"p", "q"}


def test_contract_as_json(run, write) -> None:
    write("a.slog", ALARM)
    [program] = json.loads(run("explain", "--format", "json", "a.slog").stdout)["programs"]
    assert program["path"] == "a.slog"
    contract = program["contract"]
    assert (contract["class"], contract["outputs"]) == ("waits", ["pc_alarm"])
    because = {"path": "a.slog", "line": 4}
    [alarm] = [p for p in contract["predicates"] if p["name"] == "pc_alarm"]
    assert alarm["delays"] == [
        {"stream": "pre_alarm", "by": 0, "because": because},
        {"stream": "report", "by": 300_000_000, "because": because},
    ]
    [report] = [p for p in contract["predicates"] if p["name"] == "report"]
    assert report["kept"] == {
        "what": "span",
        "span": 300_000_000,
        "columns": [],
        "best": [],
        "because": because,
    }
    assert contract["rules"] == [
        {
            **because,
            "predicate": "pc_alarm",
            "class": "waits",
            "waits": 300_000_000,
            "relaxed": False,
            "metadata": {},
        }
    ]


def test_strata(run, write) -> None:
    write("a.slog", ALARM)
    assert (
        run("explain", "--strata", "a.slog").stdout
        == """\
step   predicate   clock       stratum   stride
──────────────────────────────────────────────────
1      pre_alarm   t           0         unlimited
2      report      t           0         unlimited
3      pc_alarm    t + 5 min   0         unlimited
"""
    )


def test_mermaid(run, write) -> None:
    write("a.slog", ALARM)
    assert (
        run("explain", "--graph", "mermaid", "a.slog").stdout
        == """\
flowchart LR
    n0(["pc_alarm"])
    n1[/"pre_alarm"/]
    n2[/"report"/]
    n1 --> n0
    n2 -.->|"negation 0 to 5 min"| n0
"""
    )


def test_dot(run, write) -> None:
    write("a.slog", ALARM)
    assert (
        run("explain", "--graph", "dot", "a.slog").stdout
        == """\
digraph program {
    rankdir=LR;
    "pc_alarm" [shape=box peripheries=2];
    "pre_alarm" [shape=cds];
    "report" [shape=cds];
    "pre_alarm" -> "pc_alarm" [label=""];
    "report" -> "pc_alarm" [label="negation 0 to 5 min" style=dashed];
}
"""
    )


def test_bistate_is_a_program(run, write) -> None:
    write("a.slog", FIRST)
    text = run("explain", "--bistate", "a.slog").stdout
    assert "first_new(X) <- msg_new(X), not previous_new(X).\n" in text
    assert "previous_new(X) <- msg_old(X).\n" in text
    module, diagnostics = parse(Source("bistate.slog", text))
    assert diagnostics == ()
    assert module.statements
    data = json.loads(run("explain", "--bistate", "--format", "json", "a.slog").stdout)
    assert text.startswith(data["programs"][0]["bistate"]["program"])


def test_several_programs(run, write) -> None:
    write("rules/b.slog", ALARM)
    write("rules/a.slog", FIRST)
    write("rules/c.slog", "p(T) <- .\n")
    result = run("explain", "rules")
    assert result.exit_code == 1
    titles = [line for line in result.stdout.split("\n") if line.startswith("% ")]
    assert titles == ["% rules/a.slog", "% rules/b.slog"]
    assert " --> rules/c.slog:1:" in result.stderr


def test_every_pass_has_a_dump() -> None:
    assert list(DUMPS) == [p.name for p in PASSES]


@pytest.mark.parametrize("name", [p.name for p in PASSES])
def test_dumps(run, write, name: str) -> None:
    write("a.slog", FIRST)
    result = run("check", "--dump-after", name, "a.slog")
    assert result.exit_code == 0
    assert "first" in result.stdout or "previous" in result.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("schema", "derived first/2 with timestamp\n"),
        ("safety", "previous: open at 1\n"),
        ("time", "previous <- msg: up to -1\n"),
        ("open_predicates", "    core      msg(T0, X)\n    residual  T0 < T\n"),
    ],
)
def test_what_a_dump_says(run, write, name: str, text: str) -> None:
    write("a.slog", FIRST)
    assert text in run("check", "--dump-after", name, "a.slog").stdout


def test_a_pass_that_was_not_reached_dumps_nothing(run, write) -> None:
    write("a.slog", "p(T) <- .\n")
    result = run("check", "--dump-after", "contract", "a.slog")
    assert (result.exit_code, result.stdout) == (1, "")


def test_the_plan_is_that_of_a_run(run, write) -> None:
    """Rules on which no answer rests are left out, and constants of queries are pushed down."""
    write(
        "a.slog",
        "stream s(T: int, x: string).\np(T, X) <- s(T, X).\n"
        "q(T, X) <- s(T, X), s(T1, X), T1 < T.\n?p(T, red).\n",
    )
    shown = run("explain", "--plan", "a.slog").stdout
    assert "gives p(T, red)" in shown and "gives q" not in shown
    assert "q(" not in run("explain", "--sql", "a.slog").stdout
