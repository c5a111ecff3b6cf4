"""Programs in colour: the lexer, and the editors' grammar, which must say the same."""

from __future__ import annotations

import configparser
import json
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    _TokenType,
)
from rich.style import Style
from test_docs import BLOCKS
from textmate import KEYS, Grammar, compiled

import streamlog
from streamlog.analysis.builtins import AGGREGATE_SIGNATURES, FUNCTIONS, GOALS
from streamlog.app.lexer import SlogLexer
from streamlog.app.render import render_program
from streamlog.diagnostics import Source
from streamlog.syntax.ast import Type
from streamlog.syntax.declare import STREAM_OPTIONS
from streamlog.syntax.literals import UNITS
from streamlog.syntax.parse import parse
from streamlog.syntax.scan import ALLEN, STATE_WORDS, TIME_WORDS

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
EDITOR = ROOT / "docs" / "editor"
GRAMMAR = Grammar.read(EDITOR / "streamlog.tmLanguage.json")

FOLDERS = ("rules", "demos", "streamlog", "tests/app", "tests/failing", "tests/programs")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.slog"))]
PROGRAMS = {
    **{str(f.relative_to(ROOT)): f.read_text(encoding="utf-8") for f in FILES},
    **{block.name: block.text for block in BLOCKS if block.language == "slog"},
}
every_program = pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())

Token = tuple[int, _TokenType, str]


def tokens(text: str) -> list[Token]:
    return list(SlogLexer().get_tokens_unprocessed(text))


# ------------------------------------------------------------------------------- the lexer


@every_program
def test_a_program_keeps_its_text_and_has_no_errors(text: str) -> None:
    found = tokens(text)
    assert "".join(value for _, _, value in found) == text
    if not parse(Source("", text))[1]:
        assert [value for _, type_, value in found if type_ is Error] == []


PIECES = [
    *("(", ")", "{", "}", "<", ">", "=", "%", '"', "'", "\\", "@", ".", ",", ":", " ", "\n"),
    *("<-", "/*", "*/", "//", "..", "?", "X", "p", "first", "min", "test", "stream", "expect"),
    *("[", "]", "state", "since", "for", "at", "over"),
    *("5min", "5mins", "1.5", "@2026-01-01", "é", "\ufeff", "\r\n", "\t", "'a'", '"\\n"'),
]


@given(st.lists(st.sampled_from(PIECES) | st.characters(), max_size=30).map("".join))
def test_no_text_is_lost(text: str) -> None:
    found = tokens(text)
    assert "".join(value for _, _, value in found) == text
    assert [at for at, _, value in found if text[at : at + len(value)] != value] == []
    assert "" not in [value for _, _, value in found]


def test_the_golden_program(golden: Callable[[Path, str], None]) -> None:
    text = (HERE / "colours.slog").read_text(encoding="utf-8")
    assert parse(Source("", text))[1] == ()
    listed = (
        f"{str(type_).removeprefix('Token.'):<24}{value!r}"
        for _, type_, value in tokens(text)
        if value.strip()
    )
    golden(HERE / "colours.txt", "".join(f"{line}\n" for line in listed))


def test_every_type_is_in_the_golden_program() -> None:
    golden = (HERE / "colours.slog").read_text(encoding="utf-8")
    assert {*SCOPES.values()} - {type_ for _, type_, _ in tokens(golden)} == {Error, Name}


@pytest.mark.parametrize(
    ("text", "piece", "type_"),
    [
        ("stream(1).", "stream", Name.Function),
        ("stream s(T).", "stream", Keyword.Declaration),
        ("p(T, first(X)) <- q(T, X).", "first", Name.Builtin),
        ("first(T, X) <- q(T, X).", "first", Name.Function),
        ("p(T, first).", "first", String.Symbol),
        ("p(T) <- q(T, X), X = red.", "red", String.Symbol),
        ("p(T) <- q(T), red.", "red", Name.Function),
        ("p(T, X % Y) <- q(T, X, Y).", "%", Operator),
        ("p(T) <- q(T). % Y", "% Y", Comment.Single),
        ("p(T) <- q(T) % Y", "% Y", Comment.Single),
        ("state on(T) <- q(T).", "on", Name.Function),
        ("state s(a) on q(_, A).", "on", Keyword),
        ("state s(a) since q(_, A).", "a", Name.Attribute),
        ("p(T) <- q(T), s(X) at T.", "at", Operator.Word),
        ("p(T) <- q(T), s(X), at(T).", "at", Name.Function),
        ("p(5mins).", "5mins", Error),
        ("p(@2026-1-1).", "@2026-1-1", Error),
        ('p("a', '"a', Error),
        ("p(1). /* half\n", "/* half\n", Comment.Multiline),
        ("table t(a: integer).", "integer", Name),
        ("table t(a: int) form", "form", Name),
        ('test "a" { expect(1). }', "expect", Name.Function),
        ('test "a" { expect', "expect", Keyword),
    ],
)
def test_places(text: str, piece: str, type_: _TokenType) -> None:
    assert [t for _, t, value in tokens(text) if value == piece] == [type_]


def test_pages_have_the_same_colours() -> None:
    golden = (HERE / "colours.slog").read_text(encoding="utf-8")
    page = render_program(golden)
    assert page.plain == golden
    styles = {page.plain[s.start : s.end]: Style.parse(str(s.style)) for s in page.spans}
    assert styles["stream"] == Style.parse("bold blue")
    assert styles["duration"] == Style.parse("not bold green")
    assert styles["/* A rule with an aggregate in angles,\n   and one in parentheses. */"].italic
    assert styles["T0"] == Style.parse("cyan")


def test_pygments_is_told() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    line = config["options.entry_points"]["pygments.lexers"].strip()
    module, _, name = line.partition(" = ")[2].partition(":")
    assert getattr(import_module(module), name) is SlogLexer
    assert any(r.startswith("pygments") for r in config["options"]["install_requires"].split())


# -------------------------------------------------------------------- the editors' grammar

SCOPES = {
    "comment.block": Comment.Multiline,
    "comment.line": Comment.Single,
    "constant.character.escape": String.Escape,
    "constant.language": Keyword.Constant,
    "constant.numeric.duration": Number,
    "constant.numeric.float": Number.Float,
    "constant.numeric.integer": Number.Integer,
    "constant.other.code": Name.Constant,
    "constant.other.timestamp": Literal.Date,
    "entity.name.function": Name.Function,
    "entity.name.namespace": Name.Namespace,
    "entity.name.tag": Name.Decorator,
    "invalid.illegal": Error,
    "keyword.control.import": Keyword.Namespace,
    "keyword.control.step": Keyword,
    "keyword.operator": Operator,
    "keyword.operator.arrow": Keyword,
    "keyword.operator.logical": Operator.Word,
    "keyword.operator.query": Keyword,
    "keyword.other.declaration": Keyword.Declaration,
    "keyword.other.option": Keyword,
    "punctuation": Punctuation,
    "string.quoted.double": String.Double,
    "string.quoted.single": String.Single,
    "string.unquoted": String.Symbol,
    "support.function": Name.Builtin,
    "support.type": Keyword.Type,
    "variable.other": Name.Variable,
    "variable.parameter": Name.Attribute,
    "": Name,
}


def of_scope(scope: str) -> _TokenType:
    while scope not in SCOPES:
        scope = scope.rpartition(".")[0]
    return SCOPES[scope]


def told_apart(text: str, found: Iterable[Token]) -> list[str]:
    """Each line of the text again, its characters grouped by type."""
    types = {at + i: type_ for at, type_, value in found for i in range(len(value))}
    lines, last = [], None
    for at, char in enumerate(text):
        if char.isspace():
            continue
        if (line := (text.count("\n", 0, at), types[at])) != last:
            lines.append(f"line {line[0] + 1}, {types[at]}: ")
            last = line
        lines[-1] += char
    return lines


def same(text: str) -> bool:
    """Whether the two agree; where not, the difference is shown."""
    edited = [(at, of_scope(scope), value) for at, scope, value in GRAMMAR.tokens(text)]
    assert told_apart(text, edited) == told_apart(text, tokens(text))
    return True


@every_program
def test_the_editor_and_the_lexer_agree(text: str) -> None:
    assert same(text)


def test_expressions_and_names_are_sound() -> None:
    for rule in GRAMMAR.rules():
        assert rule.keys() <= KEYS
        assert ("begin" in rule) == ("end" in rule)
        for key in ("match", "begin", "end"):
            if key in rule:
                compiled(rule[key])
        if "include" in rule:
            assert rule["include"].removeprefix("#") in GRAMMAR.repository
        if "name" in rule:
            assert rule["name"].endswith(".slog")
            assert of_scope(rule["name"].removesuffix(".slog")) is not Name


def test_the_editor_knows_every_name_of_the_language() -> None:
    for name in FUNCTIONS:
        assert same(f"p(T, {name}(X)) <- q(T, Y), Y = {name}(X).")
    for name in AGGREGATE_SIGNATURES:
        assert same(f"p(T, {name}<X>, {name}(X)) <- q(T, {name}), {name}(X).")
    for name in GOALS:
        assert same(f"p(T, {name}) <- q(T), {name}(X, Y).")
    for type_ in Type:
        assert same(f"table t(a: {type_}, {type_}: int).")
    for option in STREAM_OPTIONS:
        assert same(f"stream s({option}: time) {option} 5s.")
    for relation in ALLEN:
        assert same(f"p(T) <- q(T, S), (S, T) {relation} (T, T + 1h), {relation}(T, {relation}).")
    for word in STATE_WORDS:
        assert same(f"state s({word}) on q(_, {word}), {word}(T).")
    for word in TIME_WORDS:
        timed = {"to": "s from T to T", "align": "T every T align T"}.get(word, f"s {word} T")
        assert same(f"p(T) <- q(T, {word}), {timed}, {word}(T), S = {word}.")
    for unit in UNITS:
        assert same(f"p(5{unit}, 0.5{unit}, {unit}).")


def test_the_extension_is_whole() -> None:
    extension = json.loads((EDITOR / "package.json").read_text(encoding="utf-8"))
    assert extension["version"] == streamlog.__version__
    (language,) = extension["contributes"]["languages"]
    (grammar,) = extension["contributes"]["grammars"]
    assert f"*{language['extensions'][0]}" in SlogLexer.filenames
    assert grammar["language"] == language["id"]
    assert grammar["scopeName"] == GRAMMAR.language
    assert Grammar.read(EDITOR / grammar["path"]) == GRAMMAR
    settings = json.loads((EDITOR / language["configuration"]).read_text(encoding="utf-8"))
    comments = settings["comments"]
    assert same(f"{comments['lineComment']} a\np. {' b '.join(comments['blockComment'])} q.")
    assert all(len(pair) == 2 for pair in settings["brackets"])
