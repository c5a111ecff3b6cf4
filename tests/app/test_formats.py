"""Findings as other programs read them."""

from __future__ import annotations

import json
import re

import pytest

from streamlog.app.formats import as_github, as_json, as_sarif, summary
from streamlog.codes import CODES, Severity
from streamlog.diagnostics import Diagnostic, Label, Source, Span, finding

A = Source("rules/a,b: c%.slog", "é日(T) <- q(T),\n  not r(T).\n")
LIB = Source("lib/metro.slog", "r(T) <- s(T).")

ONE_LINE = finding(
    "SL0402",
    "100% sure:\r\nno, really",
    Span(A, 8, 12),
    "here",
    related=[(Span(LIB, 0, 4), "r, defined here"), (Span(A, 0, 2), "")],
    help=["write `<`", "or wait"],
)
SEVERAL_LINES = finding("SL0504", "a warning", Span(A, 0, len(A.text) - 1))
NOTE = Diagnostic(
    "SL0504", "a note", (Label(Span(A, len(A.text), len(A.text))),), severity=Severity.NOTE
)
ALL = [ONE_LINE, SEVERAL_LINES, NOTE]


def test_json() -> None:
    document = json.loads(as_json(ALL, files=3))
    assert document["summary"] == {"files": 3, "errors": 1, "warnings": 1, "notes": 1}
    assert [d["severity"] for d in document["diagnostics"]] == ["error", "warning", "note"]
    assert document["diagnostics"][0] == {
        "code": "SL0402",
        "severity": "error",
        "message": "100% sure:\r\nno, really",
        "metadata": {},
        "help": ["write `<`", "or wait"],
        "labels": [
            {
                "path": "rules/a,b: c%.slog",
                "line": 1,
                "column": 9,
                "end_line": 1,
                "end_column": 13,
                "text": "here",
                "primary": True,
            },
            {
                "path": "lib/metro.slog",
                "line": 1,
                "column": 1,
                "end_line": 1,
                "end_column": 5,
                "text": "r, defined here",
                "primary": False,
            },
            {
                "path": "rules/a,b: c%.slog",
                "line": 1,
                "column": 1,
                "end_line": 1,
                "end_column": 3,
                "text": "",
                "primary": False,
            },
        ],
    }


def test_json_of_nothing() -> None:
    assert json.loads(as_json([], files=1)) == {
        "diagnostics": [],
        "summary": {"files": 1, "errors": 0, "warnings": 0, "notes": 0},
    }


def test_github() -> None:
    assert as_github(ALL, files=3).split("\n") == [
        "::error file=rules/a%2Cb%3A c%25.slog,line=1,col=9,endLine=1,endColumn=13,title=SL0402"
        "::100%25 sure:%0D%0Ano, really%0Ahelp: write `<`%0Ahelp: or wait",
        "::warning file=rules/a%2Cb%3A c%25.slog,line=1,endLine=2,title=SL0504::a warning",
        "::notice file=rules/a%2Cb%3A c%25.slog,line=3,col=1,endLine=3,endColumn=1,title=SL0504"
        "::a note",
    ]


def test_sarif() -> None:
    document = json.loads(as_sarif(ALL, files=3))
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    [run] = document["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CODES)
    for rule in rules:
        assert rule["shortDescription"]["text"] == CODES[rule["id"]].title
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["id"] in rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for place in result["locations"] + result.get("relatedLocations", []):
            region = place["physicalLocation"]["region"]
            start = region["startLine"], region["startColumn"]
            assert (1, 1) <= start <= (region["endLine"], region["endColumn"])
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"(%[0-9A-F]{2}|[A-Za-z0-9/._~-])+", uri)

    first = run["results"][0]
    assert first["level"] == "error"
    assert first["message"]["text"] == "100% sure:\r\nno, really\nhelp: write `<`\nhelp: or wait"
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "rules/a%2Cb%3A%20c%25.slog"},
                "region": {"startLine": 1, "startColumn": 9, "endLine": 1, "endColumn": 13},
            },
            "message": {"text": "here"},
        }
    ]
    assert [place["id"] for place in first["relatedLocations"]] == [1, 2]
    assert "message" not in first["relatedLocations"][1]
    assert [r["level"] for r in run["results"]] == ["error", "warning", "note"]
    assert "relatedLocations" not in run["results"][1]


def test_sarif_of_an_absolute_path() -> None:
    source = Source("/srv/my rules/a.slog", "p.")
    [run] = json.loads(as_sarif([finding("SL0101", "x", Span(source, 0, 1))], 1))["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///srv/my%20rules/a.slog"


@pytest.mark.parametrize(
    ("found", "files", "text"),
    [
        ([], 1, "checked 1 file: no findings"),
        ([ONE_LINE], 3, "checked 3 files: 1 error"),
        (
            [NOTE, SEVERAL_LINES, ONE_LINE, SEVERAL_LINES],
            2,
            "checked 2 files: 1 error, 2 warnings, 1 note",
        ),
    ],
)
def test_summary(found: list[Diagnostic], files: int, text: str) -> None:
    assert summary(found, files) == text
