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


def test_a_used_file_is_judged_with_those_that_use_it(run, write) -> None:
    write(
        "lib.slog",
        "stream beat(T: time, agent: string).\n"
        "% streamlog: allow SL0506: others send beats too\n"
        "gone(T, A) <- beat(T, A), not (beat(T1, A), T < T1, T1 <= T + 30s).\n",
    )
    write("a.slog", 'use "lib.slog".\noutput p.\np(T) <- beat(T, _).\n')
    alone = codes(run("check", "--strict", "a.slog", "--format", "json"))
    assert alone == ["SL0702"]  # there `gone` is no answer
    result = run("check", "--strict", ".", "--format", "json")
    assert (result.exit_code, codes(result)) == (0, [])


def test_what_is_allowed_is_not_reported_by_other_commands(run, write) -> None:
    text = OUTPUT + ALLOW + RULE
    write("p.slog", text + 'test "none" { end. expect none session. }\n')
    assert "SL0502" not in run("test", "p.slog").stderr


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
