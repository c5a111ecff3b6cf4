"""Diagnostics as other programs read them: JSON, GitHub annotations, SARIF 2.1.0."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from streamlog import __version__
from streamlog.codes import CODES, Severity
from streamlog.diagnostics import Diagnostic, Label, Span

Formatter = Callable[[Sequence[Diagnostic], int], str]


def summary(diagnostics: Sequence[Diagnostic], files: int) -> str:
    """`checked 3 files: 1 error, 2 warnings`."""
    counts = Counter(d.severity for d in diagnostics)
    found = ", ".join(count(counts[s], str(s)) for s in Severity if counts[s])
    return f"checked {count(files, 'file')}: {found or 'no findings'}"


def count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"


def _region(span: Span, *names: str) -> dict[str, int]:
    """Where a span begins and ends, under the names that a format has for line and column."""
    positions = (*span.source.position(span.start), *span.source.position(span.end))
    return dict(zip(names, positions, strict=True))


def _full_message(diagnostic: Diagnostic) -> str:
    """With the help, for formats that have no place of their own for it."""
    return "\n".join((diagnostic.message, *(f"help: {text}" for text in diagnostic.help)))


# ------------------------------------------------------------------------------------ JSON


def as_json(diagnostics: Sequence[Diagnostic], files: int) -> str:
    counts = Counter(d.severity for d in diagnostics)
    document = {
        "diagnostics": [_json_diagnostic(d) for d in diagnostics],
        "summary": {"files": files, **{f"{s}s": counts[s] for s in Severity}},
    }
    return json.dumps(document, indent=2)


def _json_diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "help": list(diagnostic.help),
        "metadata": dict(diagnostic.metadata),
        "labels": [_json_label(label, i == 0) for i, label in enumerate(diagnostic.labels)],
    }


def _json_label(label: Label, primary: bool) -> dict[str, Any]:
    return {
        "path": label.span.source.path,
        **_region(label.span, "line", "column", "end_line", "end_column"),
        "text": label.text,
        "primary": primary,
    }


# ---------------------------------------------------------------------------------- GitHub

_GITHUB_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def as_github(diagnostics: Sequence[Diagnostic], files: int) -> str:
    """One workflow command a line."""
    return "\n".join(map(_github_command, diagnostics))


def _github_command(diagnostic: Diagnostic) -> str:
    region = _region(diagnostic.span, "line", "col", "endLine", "endColumn")
    if region["line"] != region["endLine"]:  # GitHub refuses columns when there are several lines
        del region["col"], region["endColumn"]
    properties = {"file": diagnostic.span.source.path, **region, "title": diagnostic.code}
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    level = _GITHUB_LEVELS[diagnostic.severity]
    return f"::{level} {written}::{_data(_full_message(diagnostic))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# ----------------------------------------------------------------------------------- SARIF

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(diagnostics: Sequence[Diagnostic], files: int) -> str:
    indexes = {code: i for i, code in enumerate(CODES)}
    driver = {"name": "streamlog", "version": __version__, "rules": [*map(_sarif_rule, CODES)]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(d, indexes[d.code]) for d in diagnostics],
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_rule(code: str) -> dict[str, Any]:
    from streamlog.app.pages import page

    entry = CODES[code]
    return {
        "id": code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.explanation.strip() or entry.title},
        "help": {"text": entry.explanation.strip() or entry.title, "markdown": page(entry)},
        "defaultConfiguration": {"level": str(entry.severity)},
    }


def _sarif_result(diagnostic: Diagnostic, index: int) -> dict[str, Any]:
    primary, *related = diagnostic.labels
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": str(diagnostic.severity),
        "message": {"text": _full_message(diagnostic)},
        "locations": [_sarif_location(primary)],
    }
    if diagnostic.metadata:
        result["properties"] = dict(diagnostic.metadata)
    if related:
        result["relatedLocations"] = [
            {"id": number, **_sarif_location(label)} for number, label in enumerate(related, 1)
        ]
    return result


def _sarif_location(label: Label) -> dict[str, Any]:
    region = _region(label.span, "startLine", "startColumn", "endLine", "endColumn")
    artifact = {"uri": _uri(label.span.source.path)}
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": artifact, "region": region}
    }
    if label.text:
        location["message"] = {"text": label.text}
    return location


def _uri(path: str) -> str:
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix(), errors="replace")


FORMATTERS: dict[str, Formatter] = {"json": as_json, "github": as_github, "sarif": as_sarif}
