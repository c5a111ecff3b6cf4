"""`streamlog explain` for codes; the views of a program are tested with their goldens."""

from __future__ import annotations

import json

import pytest

from streamlog.app.pages import all_pages, page
from streamlog.app.render import render_page
from streamlog.codes import CODES, Code, Severity

CODE = Code(
    "SL0999",
    Severity.WARNING,
    "an example",
    "One paragraph that is long enough to be wrapped\nin a narrow terminal.\n\nAnother.\n",
    "p(T) <- q(T).\n",
    "output p.\n\np(T) <- q(T).\n",
)


def test_a_page_in_the_terminal() -> None:
    assert render_page(CODE, 40).plain == (
        "SL0999: an example  (warning)\n"
        "\n"
        "One paragraph that is long enough to be\n"
        "wrapped in a narrow terminal.\n"
        "\n"
        "Another.\n"
        "\n"
        "Gives this code:\n"
        "\n"
        "    p(T) <- q(T).\n"
        "\n"
        "Does not:\n"
        "\n"
        "    output p.\n"
        "\n"
        "    p(T) <- q(T)."
    )


def test_a_page_as_markdown() -> None:
    assert page(CODE, "###") == (
        "### SL0999: an example\n"
        "\n"
        "*warning*\n"
        "\n"
        "One paragraph that is long enough to be wrapped\n"
        "in a narrow terminal.\n"
        "\n"
        "Another.\n"
        "\n"
        "Gives this code:\n"
        "\n"
        "```\n"
        "p(T) <- q(T).\n"
        "```\n"
        "\n"
        "Does not:\n"
        "\n"
        "```\n"
        "output p.\n"
        "\n"
        "p(T) <- q(T).\n"
        "```\n"
    )


def test_all_pages_have_every_code_once() -> None:
    headings = [line for line in all_pages().split("\n") if line.startswith("### ")]
    assert headings == [f"### {c.code}: {c.title}" for c in CODES.values()]


def test_the_diagnostics_page_is_up_to_date(repository) -> None:
    written = (repository / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    assert written == all_pages(), "python -m streamlog.app.pages > docs/diagnostics.md"


def test_codes_in_any_case(run) -> None:
    result = run("explain", "sl0401", "SL0504")
    assert result.exit_code == 0
    lines = result.stdout.split("\n")
    assert lines[0] == "SL0401: a rule that would wait forever  (error)"
    assert "SL0504: a relation that is never read  (warning)" in lines


def test_codes_as_json(run) -> None:
    [code] = json.loads(run("explain", "--format", "json", "SL0401").stdout)["codes"]
    assert list(code) == ["code", "severity", "title", "explanation", "bad", "good"]
    assert (code["code"], code["severity"]) == ("SL0401", "error")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["SL041"], "there is no code SL041; did you mean SL0401?"),
        (["sl9"], "there is no code SL9"),
        (["missing.slog"], "'missing.slog' is not a file, a folder or a code"),
        (["a.slog", "--bistate", "--strata"], "--bistate and --strata cannot be combined"),
        (["a.slog", "--bistate", "--graph", "dot"], "--bistate and --graph cannot"),
        (["a.slog", "--graph", "dot", "--format", "json"], "--graph dot cannot be combined"),
        (["a.slog", "SL0401"], "cannot be explained together"),
        (["a.slog", "--graph", "png"], "'png' is not one of"),
    ],
)
def test_misuse(run, write, args: list[str], message: str) -> None:
    write("a.slog", "output p.\np(T) <- q(T).\n")
    result = run("explain", *args)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_file_named_like_a_code_is_a_file(run, write) -> None:
    write("SL0401", "p(T) <- .\n")
    result = run("explain", "SL0401")
    assert result.exit_code == 1
    assert "error[SL0101]" in result.stderr


def test_a_refused_program(run, write) -> None:
    write("a.slog", "p(T) <- .\n")
    result = run("explain", "a.slog")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[SL0101]" in result.stderr
