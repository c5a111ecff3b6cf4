"""`check --strict`, comments that allow warnings, and annotations."""

from __future__ import annotations

import json

import pytest

OUTPUT = "output session.\n"
RULE = "session(T, U, L) <- logout(T, U), login(T0, U), T0 < T, L = T - T0.\n"
ALLOW = "% streamlog: allow SL0502: history is the point\n"


def codes(result) -> list[str]:
    return [d["code"] for d in json.loads(result.stdout)["diagnostics"]]


@pytest.fixture
def check(run, write):
    def check(text: str, *options: str):
        write("p.slog", text)
        return run("check", "p.slog", "--strict", "--format", "json", *options)

    return check


def test_warnings_fail_only_if_strict(run, write) -> None:
    write("p.slog", OUTPUT + RULE)
    assert run("check", "p.slog").exit_code == 0
    assert run("check", "--strict", "p.slog").exit_code == 1
    write("p.slog", "p(T) <- q(T).\n")
    assert run("check", "--strict", "p.slog").exit_code == 0


@pytest.mark.parametrize(
    "text",
    [
        OUTPUT + ALLOW + RULE,
        OUTPUT + ALLOW + "@severity high\n\n" + RULE,
        OUTPUT + "@severity high\n" + ALLOW + RULE,
        OUTPUT + RULE.rstrip() + "  " + ALLOW,
        OUTPUT + RULE.replace("T0 < T", "T0 < T  // streamlog: allow SL0502: why\n"),
        OUTPUT + RULE.replace("T0 < T", "T0 < T /* streamlog: allow SL0502: why */"),
    ],
)
def test_what_is_allowed(check, text: str) -> None:
    result = check(text)
    assert (result.exit_code, codes(result)) == (0, [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (OUTPUT + RULE + ALLOW, ["SL0502", "SL0702"]),
        (ALLOW + OUTPUT + RULE, ["SL0502", "SL0702"]),
        (OUTPUT + ALLOW.replace(": history", "") + RULE, ["SL0502", "SL0702"]),
        (OUTPUT + ALLOW.replace(": history is the point", "") + RULE, ["SL0703"]),
        (OUTPUT + ALLOW.replace("SL0502", "SL0702") + RULE, ["SL0502", "SL0702"]),
    ],
)
def test_what_is_not(check, text: str, found: list[str]) -> None:
    result = check(text)
    assert (result.exit_code, sorted(codes(result))) == (1, found)


def test_over_stored_data_there_may_be_nothing_to_allow(check) -> None:
    assert codes(check(OUTPUT + ALLOW + RULE, "--batch")) == []


def test_a_used_file_is_judged_by_itself_and_by_those_that_use_it(run, write) -> None:
    """Here nothing waits in the file itself; where it is used, something does."""
    allow = "% streamlog: allow SL0506: somebody always comes\n"
    rule = "quiet(T) <- seen(T), not (seen(T1), T < T1, T1 <= T + 30s).\n"
    write("lib.slog", f"stream seen(T: time).\noutput other.\n{allow}{rule}other(T) <- seen(T).\n")
    write("a.slog", 'use "lib.slog".\noutput quiet.\n')
    write("b.slog", 'use "lib.slog".\noutput p.\np(T) <- seen(T).\n')
    for files, found in (
        (["lib.slog"], ["SL0504", "SL0702"]),
        (["a.slog"], []),
        (["b.slog"], []),
        (["lib.slog", "a.slog", "b.slog"], ["SL0504"]),
    ):
        assert sorted(codes(run("check", "--format", "json", *files))) == found


def test_what_is_allowed_is_not_reported_by_other_commands(run, write) -> None:
    text = OUTPUT + ALLOW + RULE
    write("p.slog", text + 'test "none" { end. expect none session. }\n')
    assert "SL0502" not in run("test", "p.slog").stderr


def test_what_is_allowed_is_not_reported_in_a_session(run, write) -> None:
    write("p.slog", OUTPUT + ALLOW + RULE)
    result = run("repl", "p.slog", input="p(T) <- login(T, _).\n")
    assert "SL0502" not in result.output and "SL0702" not in result.output


def test_metadata(run, write) -> None:
    about = '@id "S-1"\n@severity low\n@tags a, "b c"\n@owner team\n'
    meant = {"id": "S-1", "severity": "low", "tags": ["a", "b c"], "owner": "team"}
    write("p.slog", OUTPUT + about + RULE)
    (finding,) = json.loads(run("check", "p.slog", "--format", "json").stdout)["diagnostics"]
    assert finding["metadata"] == meant
    sarif = json.loads(run("check", "p.slog", "--format", "sarif").stdout)
    assert sarif["runs"][0]["results"][0]["properties"] == meant
    explained = json.loads(run("explain", "p.slog", "--format", "json").stdout)
    (rule,) = explained["programs"][0]["contract"]["rules"]
    assert rule["metadata"] == meant
    assert rule["line"] == 6


def test_a_proof_names_the_rule_by_its_id(run, write) -> None:
    write("p.slog", '@id "S-1"\np(T) <- q(T).\nq(1).\n')
    result = run("repl", "p.slog", input=".why p(1)\n")
    assert "by p.slog line 2 (S-1): p(T) <- q(T)." in result.output


def test_metadata_of_rules_that_are_taken_apart(run, write) -> None:
    write("p.slog", "@id x\np(T, S, sum(F) / count()) <- q(T, S, F) limit 3 by count() desc.\n")
    explained = json.loads(run("explain", "p.slog", "--format", "json").stdout)
    rules = explained["programs"][0]["contract"]["rules"]
    assert {rule["metadata"]["id"] for rule in rules} == {"x"}


def test_formatting_keeps_them(run, write) -> None:
    text = (
        '% About it.\n@id "S-1"\n% between\n@severity  low   % why\n@tags "a",b\n'
        "\n% streamlog: allow SL0502: so it is\n" + RULE
    )
    path = write("p.slog", text)
    assert run("fmt", "p.slog").exit_code == 0
    assert path.read_text() == text.replace("  low   %", " low  %").replace('"a",b', "a, b")
    assert run("fmt", "--check", "p.slog").exit_code == 0
