"""Text to AST. Every statement is read on its own, so none hides the errors of another."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import pyparsing as pp
from attrs import evolve

from streamlog.diagnostics import Diagnostic, Source, Span, finding, in_order
from streamlog.syntax import ast, grammar
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import (
    WHILE,
    Agg,
    BinOp,
    Call,
    Module,
    Neg,
    Rule,
    State,
    Statement,
    Step,
    Test,
)
from streamlog.syntax.metadata import attached
from streamlog.syntax.operands import MAX_LEVELS, too_deep
from streamlog.syntax.scan import MAX_PROBLEMS, TEXT, VARIABLE, WORDS, Scan, scan
from streamlog.syntax.suppressions import suppressions
from streamlog.syntax.syntax_errors import starts_statement, syntax_error
from streamlog.syntax.tokens import Refused, Tokens
from streamlog.syntax.walk import Node, children, walk

MAX_DIAGNOSTICS = MAX_PROBLEMS


def parse(source: Source) -> tuple[Module, tuple[Diagnostic, ...]]:
    """The statements that could be read, and what is wrong with the others."""
    parser = _Parser(scan(source))
    statements = parser.run()
    placed = list(attached(statements))
    wrong = [found for found in placed if isinstance(found, Diagnostic)]
    parser.found += wrong if not parser.found else []  # the rule below may be one not read
    found = tuple(node for node in placed if not isinstance(node, Diagnostic))
    allowed = tuple(suppressions(parser.scan.comments, found))
    module = Module(found, suppressions=allowed, span=Span(source, 0, len(source.text)))
    return module, _limited(parser.found)


class _TooMany(Exception):  # noqa: N818  (only ends the loop)
    pass


class _Parser:
    def __init__(self, scanned: Scan) -> None:
        self.scan = scanned
        self.found: list[Diagnostic] = []
        self.problem_places = [at for at, _ in scanned.problems]

    def run(self) -> list[Statement]:
        statements: list[Statement] = []
        try:
            for start, end in self.scan.statements:
                self._statement(start, end, statements)
            # What the scanner found behind the last token.
            self._scan_problems(len(self.scan.kinds), len(self.scan.kinds) + 1)
        except _TooMany:
            pass
        return statements

    def _statement(self, start: int, end: int, into: list[Statement]) -> None:
        kinds = self.scan.kinds
        if kinds[start] == "t" and kinds[start + 1 : start + 2] in (*WORDS, TEXT, VARIABLE):
            test = self._test(start, end)
            if test is not None:
                into.append(test)
            return
        while start < end:
            node, start = self._read(grammar.statement, start, end)
            if node is not None:
                into.append(node)

    def _test(self, start: int, end: int) -> Test | None:
        kinds = self.scan.kinds
        opening = kinds.find("{", start, end)
        name, _ = self._read(grammar.test_header, start, end if opening < 0 else opening + 1)
        if opening < 0:
            return None
        closing = kinds.rfind("}", opening, end)
        steps: list[Step] = []
        at, stop = opening + 1, end if closing < 0 else closing
        while at < stop:
            dot = kinds.find(".", at, stop)
            # An unfinished last step sees the brace, and says so.
            step_end = dot + 1 if dot >= 0 else min(stop + 1, end)
            step, _ = self._read(grammar.test_step, at, step_end)
            if step is not None:
                steps.append(step)
            at = step_end
        tokens = Tokens.of(self.scan, start, end)
        if closing < 0:
            last = tokens.span(len(tokens) - 1, len(tokens))
            brace = tokens.span(opening - start, opening - start + 1)
            self._report(
                finding(
                    "SL0101",
                    "expected `}` at the end of this test",
                    Span(last.source, last.end - 1, last.end),
                    related=[(brace, "opened here")],
                )
            )
        if name is None:
            return None
        return Test(name, tuple(steps), span=tokens.span(0, len(tokens)))

    def _read(self, rule: pp.ParserElement, start: int, end: int) -> tuple[Any, int]:
        """What the tokens say, or None; and where to go on."""
        if self._scan_problems(start, end):
            return None, end
        tokens = Tokens.of(self.scan, start, end)
        try:
            node = rule.parse_string(tokens)[0]
            if len(tokens) > MAX_LEVELS:
                _check_depth(node)
            if tokens.aggregates:
                node = _with_aggregates(node, tokens.aggregates)
            return node, end
        except Refused as refused:
            self._report(refused.diagnostic)
        except RecursionError:
            self._report(finding("SL0103", "nested too deeply", tokens.span(0, 1)))
        except pp.ParseBaseException:
            unfinished = tokens.furthest >= len(tokens)
            if not (unfinished and self.problem_places[-1:] == [end]):  # swallowed by a comment
                self._report(syntax_error(tokens))
            if "`.`" in tokens.expected and starts_statement(tokens, tokens.furthest):
                return None, start + tokens.furthest
        return None, end

    def _scan_problems(self, start: int, end: int) -> bool:
        problems = self.scan.problems
        first = bisect_left(self.problem_places, start)
        at = first
        while at < len(problems) and problems[at][0] < end:
            self._report(problems[at][1])
            at += 1
        return at > first

    def _report(self, diagnostic: Diagnostic) -> None:
        self.found.append(diagnostic)
        if len(self.found) > MAX_DIAGNOSTICS:
            raise _TooMany


def _limited(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    if len(found) <= MAX_DIAGNOSTICS:
        return in_order(found)
    last = found[MAX_DIAGNOSTICS]
    more = finding(
        "SL0101",
        f"more than {MAX_DIAGNOSTICS} errors; the rest of the file was not read",
        last.span,
    )
    return (*in_order(found[:MAX_DIAGNOSTICS]), more)


def _check_depth(node: Node | str) -> None:
    """Refuse what later passes could not go through by recursion. Itself without recursion."""
    if isinstance(node, str):
        return
    stack: list[tuple[Node, int, Node]] = [(node, 1, node)]
    while stack:
        top, level, outer = stack.pop()
        if level > MAX_LEVELS:
            raise too_deep(outer.span)
        for child in children(top):
            is_goal = isinstance(child, ast.Atom | ast.Comparison | ast.Not | ast.Choice)
            stack.append((child, level + 1, child if is_goal and level <= 2 else outer))


# --------------------------------------------------------------------------------- aggregates


def _with_aggregates(node: Any, suspects: int) -> Any:
    """`sum(C)` directly in a rule's head is an aggregate; anywhere else it is refused."""
    if not isinstance(node, Rule | State) or (isinstance(node, State) and node.word != WHILE):
        _refuse_aggregates((node,))
        return node
    args = tuple(map(_as_aggregate, node.head.args))
    limit = node.limit if isinstance(node, Rule) else None
    if limit is not None:
        _refuse_aggregates(limit.per)
        limit = evolve(limit, by=tuple(evolve(o, term=_as_aggregate(o.term)) for o in limit.by))
    found = [part for part in walk((*args, *(limit.by if limit else ()))) if isinstance(part, Agg)]
    for part in found:
        _refuse_aggregates(children(part))
    if len(found) < suspects:
        _refuse_aggregates(node.body)
    node = evolve(node, head=evolve(node.head, args=args))
    return evolve(node, limit=limit) if isinstance(node, Rule) else node


def _as_aggregate(arg: ast.Term) -> ast.Term:
    match arg:
        case Call() if _is_aggregate(arg):
            first, second = (*arg.args, None, None)[:2]
            return Agg(arg.name, first, second, span=arg.span)
        case Call():
            return evolve(arg, args=tuple(map(_as_aggregate, arg.args)))
        case Neg():
            return evolve(arg, operand=_as_aggregate(arg.operand))
        case BinOp():
            return evolve(arg, left=_as_aggregate(arg.left), right=_as_aggregate(arg.right))
        case _:
            return arg


def _is_aggregate(node: Node) -> bool:
    if isinstance(node, Call) and node.name in AGGREGATES:
        takes = AGGREGATES[node.name].takes
        return len(node.args) == takes or (node.name == "count" and not node.args)
    return isinstance(node, Agg)


def _refuse_aggregates(nodes: tuple[Node, ...]) -> None:
    for inner in walk(nodes):
        if _is_aggregate(inner):
            assert isinstance(inner, Call | Agg)
            name = inner.name if isinstance(inner, Call) else inner.func
            example = f"{name}<X>" if AGGREGATES[name].best else f"{name}(X)"
            raise Refused(
                finding(
                    "SL0106",
                    f"the aggregate `{name}` is outside a rule head",
                    inner.span,
                    help="aggregate in the head of a separate rule, as in"
                    f" `result(T, {example}) <- …`, and use that",
                )
            )
