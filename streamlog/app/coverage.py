"""What of a program its tests would notice: each rule, goal and alternative is left out in turn.

A part *matters* if some test fails without it. A goal that cannot be left out, because it binds
what others need or bounds how long an answer waits, matters if its rule does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import evolve, frozen
from rich.text import Text

from streamlog.app.formats import count
from streamlog.app.ruletest import Options, Results, Suite, run_test
from streamlog.app.tables import flat, plain_table
from streamlog.compiler import Program, compile_module
from streamlog.diagnostics import Span
from streamlog.runtime.executor import Limits
from streamlog.syntax.ast import (
    Atom,
    Body,
    Choice,
    Comparison,
    Const,
    Literal,
    Module,
    Not,
    Rule,
    Test,
    Type,
)
from streamlog.syntax.pretty import pretty

RULE, GOAL, ALTERNATIVE = "rule", "goal", "alternative"
_ROUNDS, _ROWS = 2_000, 100_000


@frozen
class Part:
    """`span` is where it stands, `text` what it says on one line."""

    kind: str
    span: Span
    text: str


@frozen
class Covered:
    part: Part
    rule: Span  # of which it is a part, or which it is
    matters: bool


def coverage(results: Iterable[Results], options: Options) -> tuple[Covered, ...]:
    """Of all rules of the programs whose tests have been run, those of used files too: they may
    matter to the tests of one program and not to those of another."""
    options = evolve(options, shuffle=False, limits=_limits(options.limits or Limits()))
    found: dict[Span, Covered] = {}
    for result in results:
        suite = result.suite
        if suite.program is None:
            continue
        passed = (v.test for v in result.verdicts if v.passed)
        tests = [test for test in passed if run_test(suite, test, options).passed]
        for covered in _of_suite(suite, suite.program, tests, options):
            known = found.get(covered.part.span)
            matters = covered.matters or (known is not None and known.matters)
            found[covered.part.span] = evolve(covered, matters=matters)
    return tuple(sorted(found.values(), key=lambda c: (c.rule.source.path, c.part.span.start)))


def _limits(given: Limits) -> Limits:
    """Without a goal that bounds it, a recursion may go on and on."""
    return evolve(
        given,
        rounds=min(given.rounds or _ROUNDS, _ROUNDS),
        rows=min(given.rows or _ROWS, _ROWS),
    )


def _of_suite(
    suite: Suite, program: Program, tests: Sequence[Test], options: Options
) -> Iterator[Covered]:
    module = program.written or program.parsed
    for place, rule in enumerate(module.statements):
        if not isinstance(rule, Rule):
            continue

        def noticed(body: Body, place: int = place, rule: Rule = rule) -> bool | None:
            """Whether a test fails with this body; None if the program is refused then."""
            other = evolve(rule, body=body)
            statements = (*module.statements[:place], other, *module.statements[place + 1 :])
            changed = _compiled(evolve(module, statements=statements), program)
            if changed is None:
                return None
            mutant = evolve(suite, stream=changed, program=changed)
            return any(not run_test(mutant, test, options).passed for test in tests)

        never = Comparison("=", _number(0, rule), _number(1, rule), span=rule.span)
        matters = noticed((*rule.body, never)) is True
        yield Covered(Part(RULE, rule.span, _line(pretty(rule))), rule.span, matters)
        for part, body in _without(rule.body):
            # What does not matter as a whole does not matter in part.
            answer = noticed(body) if matters else False
            yield Covered(part, rule.span, matters if answer is None else answer)


def _compiled(module: Module, like: Program) -> Program | None:
    changed = compile_module(module, mode=like.mode, root=like.root)
    return changed if isinstance(changed, Program) else None


def _number(value: int, rule: Rule) -> Const:
    return Const(value, Type.INT, span=rule.span)


def _without(body: Body) -> Iterator[tuple[Part, Body]]:
    """Each part of a body, and the body without it."""
    for place, goal in enumerate(body):
        before, after = body[:place], body[place + 1 :]
        if len(body) > 1:
            yield Part(GOAL, goal.span, _line(pretty(goal))), (*before, *after)
        for part, inner in _inside(goal):
            yield part, (*before, *inner, *after)


def _inside(goal: Literal) -> Iterator[tuple[Part, Body]]:
    """Each part of a goal, and what is left of it."""
    match goal:
        case Not(body):
            for part, inner in _without(body):
                yield part, (evolve(goal, body=inner),)
        case Choice(branches):
            for place, branch in enumerate(branches):
                others = (*branches[:place], *branches[place + 1 :])
                left: Body = others[0] if len(others) == 1 else (evolve(goal, branches=others),)
                span = branch[0].span.to(branch[-1].span)
                yield Part(ALTERNATIVE, span, _line(pretty(branch))), left
                for part, inner in _without(branch):
                    changed = (*branches[:place], inner, *branches[place + 1 :])
                    yield part, (evolve(goal, branches=changed),)
        case Atom() | Comparison():
            pass


def _line(text: str) -> str:
    return " ".join(text.split())


# --------------------------------------------------------------------------------- shown


def render(found: Sequence[Covered], width: int) -> Text:
    """What no test would miss, and how much that is; of a rule that does not matter, no parts."""
    table = plain_table("place", "part", "no test would miss")
    missed = [c for c in found if not c.matters]
    rules = {c.rule for c in missed if c.part.kind == RULE}
    for covered in missed:
        if covered.part.kind == RULE or covered.rule not in rules:
            part = covered.part
            table.add_row(Text(part.span.place), part.kind, Text(part.text))
    share = f" ({100 * (len(found) - len(missed)) // len(found)} %)" if found else ""
    counted = f"{len(found) - len(missed):,} of {count(len(found), 'part')} of rules"
    sentence = Text(f"coverage: {counted} matter to a test{share}")
    return Text("\n\n").join([flat(table, width), sentence]) if missed else sentence


def as_data(found: Sequence[Covered]) -> dict[str, Any]:
    return {
        "parts": len(found),
        "matter": sum(c.matters for c in found),
        "rules": [
            {
                "path": c.rule.source.path,
                "line": c.rule.source.position(c.rule.start)[0],
                "rule": c.part.text,
                "matters": c.matters,
                "parts": [_part_data(p) for p in found if p.rule == c.rule and p is not c],
            }
            for c in found
            if c.part.kind == RULE
        ],
    }


def _part_data(covered: Covered) -> dict[str, Any]:
    span = covered.part.span
    line, column = span.source.position(span.start)
    return {
        "kind": covered.part.kind,
        "line": line,
        "column": column,
        "text": covered.part.text,
        "matters": covered.matters,
    }
