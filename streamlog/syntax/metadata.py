"""Annotations: lines above a rule that say something about it, and nothing about its answers.

@id "AUTH-001"
@severity high
@tags login, brute_force
@owner "soc@example.org"
brute_force(T, U) <- …
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from streamlog.diagnostics import Diagnostic, did_you_mean, finding
from streamlog.syntax import literals
from streamlog.syntax.ast import Annotation, Rule, Statement
from streamlog.syntax.scan import TEXT
from streamlog.syntax.tokens import Tokens

NAMES = ("id", "severity", "tags", "owner")
SEVERITIES = ("informational", "low", "medium", "high", "critical")
_SEVERAL = ("tags",)


def annotation(tokens: Tokens, start: int, found: list[int]) -> Annotation:
    name = tokens.text(start)[1:]
    if name not in NAMES:
        guess = did_you_mean(name, NAMES)
        known = ", ".join(f"`@{n}`" for n in NAMES)
        help = f"did you mean `@{guess}`?" if guess else f"the annotations are {known}"
        raise tokens.refuse("SL0701", f"unknown annotation `@{name}`", start, start + 1, help=help)
    if name not in _SEVERAL and len(found) > 1:
        message = f"`@{name}` takes one value"
        raise tokens.refuse("SL0701", message, found[1], found[1] + 1)
    values = tuple(_value(tokens, at) for at in found)
    if name == "severity" and values[0] not in SEVERITIES:
        message = f"`{values[0]}` is not a severity"
        help = f"the severities are {', '.join(SEVERITIES)}"
        raise tokens.refuse("SL0701", message, found[0], found[0] + 1, help=help)
    return Annotation(name, values, span=tokens.span(start, found[-1] + 1))


def _value(tokens: Tokens, at: int) -> str:
    token = tokens.text(at)
    return literals.unquoted(token, tokens.span(at, at + 1)) if tokens[at] == TEXT else token


def attached(statements: Iterable[Statement]) -> Iterator[Statement | Diagnostic]:
    """The statements, with the annotations at the rules below them too; and what is wrong."""
    above: dict[str, Annotation] = {}
    for statement in statements:
        if isinstance(statement, Annotation):
            old = above.setdefault(statement.name, statement)
            if old is not statement:
                yield finding(
                    "SL0701",
                    f"`@{statement.name}` stands above this rule twice",
                    statement.span,
                    related=[(old.span, "first said here")],
                    help="keep one of them",
                )
            yield statement
            continue
        if isinstance(statement, Rule):
            yield evolve(statement, annotations=tuple(above.values()))
        else:
            yield from map(_homeless, above.values())
            yield statement
        above = {}
    yield from map(_homeless, above.values())


def _homeless(found: Annotation) -> Diagnostic:
    message = f"`@{found.name}` does not stand above a rule"
    help = "annotations speak of the rule that follows them"
    return finding("SL0701", message, found.span, help=help)


def metadata(rule: Rule) -> Mapping[str, str | list[str]]:
    """What the annotations of a rule say, as data."""
    return {a.name: list(a.values) if a.name in _SEVERAL else a.values[0] for a in rule.annotations}
