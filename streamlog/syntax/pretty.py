"""AST to text, in one canonical form: `parse(pretty(x)) == x`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import NoReturn

from attrs import evolve, frozen

from streamlog.diagnostics import Span
from streamlog.syntax import ast
from streamlog.syntax.ast import (
    PRECEDENCE,
    Agg,
    Atom,
    BinOp,
    Body,
    Call,
    Choice,
    Comparison,
    Const,
    Literal,
    Neg,
    Not,
    Term,
    Type,
    Var,
)
from streamlog.syntax.data_path import DataPath
from streamlog.syntax.literals import EPOCH, FIRST, LAST, UNITS
from streamlog.syntax.nothing import Nothing
from streamlog.syntax.scan import RESERVED
from streamlog.syntax.time_form import TimeForm
from streamlog.syntax.walk import Node

WIDTH = 88
INDENT = "    "

NOTHING = Nothing.NONE.value
_BARE = re.compile(r"[a-z][A-Za-z0-9_]*")
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\\": "\\\\", '"': '\\"'}
# Where the scanner would take `%` or `//` for a comment unless it is in parentheses.
_COMMENT_LIKE = re.compile(r"\) (?:%|//) -*(?:\(|[^\W\d]\w*\()")


def pretty(node: Node | Body) -> str:
    """The text of any node; a statement with its final dot, a body without."""
    if isinstance(node, tuple):
        return body_text(node)
    if isinstance(node, Agg):
        return _argument(node)
    if isinstance(node, ast.Limit):
        return limit_text(node)
    if isinstance(node, ast.When):
        return _when(node)
    if isinstance(node, ast.Order):
        return _order(node)
    if isinstance(node, Var | Const | Neg | BinOp | Call):
        return term_text(node)
    if isinstance(node, Atom | Comparison | Not | Choice):
        return goal_text(node)
    if isinstance(node, ast.Column):
        return _column(node)
    if isinstance(node, ast.Option):
        return _option(node)
    if isinstance(node, ast.Timeline):
        return _timeline(node)
    if isinstance(node, ast.PredName):
        return _answer(node)
    if isinstance(node, ast.Module):
        return "".join(pretty(statement) + "\n" for statement in node.statements)
    if isinstance(node, ast.Test):
        steps = "".join(
            INDENT + pretty(step).replace("\n", "\n" + INDENT) + "\n" for step in node.steps
        )
        return (
            f"test {quoted(node.name)} {{\n{steps}}}" if steps else f"test {quoted(node.name)} {{}}"
        )
    return layout(node).text()


def _never(node: NoReturn) -> NoReturn:
    raise AssertionError(f"unknown node {node!r}")  # mypy proves that this cannot be reached


# -------------------------------------------------------------------------------------- terms


def term_text(term: Term) -> str:
    if isinstance(term, Var):
        return "_" if term.is_anonymous else term.name
    if isinstance(term, Const):
        return _const(term)
    if isinstance(term, Neg):
        inner = term_text(term.operand)
        return f"-({inner})" if isinstance(term.operand, BinOp) else f"-{inner}"
    if isinstance(term, BinOp):
        return _binary(term)
    if isinstance(term, Call):
        return f"{term.name}({', '.join(map(term_text, term.args))})"
    if isinstance(term, Agg):
        return f"{term.func}({', '.join(map(term_text, term.args))})"
    _never(term)


def _binary(term: BinOp) -> str:
    own = PRECEDENCE.get(term.op, 0)
    left = _unlike_a_name(term.left) if own == 0 else term_text(term.left)
    right = term_text(term.right)
    if (isinstance(term.left, BinOp) and PRECEDENCE[term.left.op] < own) or (
        # After a text the scanner would take these for comments.
        term.op in ("%", "//") and _ends_in_text(term.left)
    ):
        left = f"({left})"
    if isinstance(term.right, BinOp) and PRECEDENCE[term.right.op] <= own:
        right = f"({right})"
    return f"{left} {term.op} {right}"


def _unlike_a_name(term: Term) -> str:
    """A term before `<` or `in`, where a bare word would be taken for something else."""
    text = term_text(term)
    return f"({text})" if _ends_in_text(term) else text


def _ends_in_text(term: Term) -> bool:
    while not isinstance(term, Const):
        if isinstance(term, BinOp):
            term = term.right
        elif isinstance(term, Neg):
            term = term.operand
        else:
            return False
    return isinstance(term.value, str | bool | Nothing)


def _argument(term: Term) -> str:
    """`min(D)` reads as a function; within an expression there is no other way to write it."""
    if not (isinstance(term, Agg) and term.kind.best):
        return term_text(term)
    arg = ", ".join(map(term_text, term.args))
    # `<-` would be an arrow.
    return f"{term.func}<({arg})>" if arg.startswith("-") else f"{term.func}<{arg}>"


def _const(const: Const) -> str:
    value = const.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Nothing):
        return NOTHING
    if isinstance(value, str):
        return value if is_bare(value) else quoted(value)
    if isinstance(value, float):
        return repr(value)
    if const.type is Type.DURATION:
        return duration_text(value)
    if const.type is Type.TIME:
        return time_text(value)
    return str(value)


def is_bare(text: str) -> bool:
    """Whether a text needs no quotes."""
    return _BARE.fullmatch(text) is not None and text not in RESERVED and text != NOTHING


def quoted(text: str) -> str:
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable() or ord(char) > 0xFFFF:
        return char
    return f"\\u{ord(char):04x}"


def duration_text(microseconds: int) -> str:
    """In the largest unit that divides it."""
    if microseconds == 0:
        return "0s"
    unit = next(u for u in reversed(UNITS) if microseconds % UNITS[u] == 0)
    return f"{microseconds // UNITS[unit]}{unit}"


def time_text(microseconds: int) -> str:
    if not FIRST <= microseconds <= LAST:
        # No calendar date: a sum says it, though it reads back as one.
        return f"(@1970-01-01T00:00:00Z + {duration_text(microseconds)})"
    moment = EPOCH + timedelta(microseconds=microseconds)
    text = moment.replace(tzinfo=None).isoformat()
    return f"@{text.rstrip('0') if moment.microsecond else text}Z"


# -------------------------------------------------------------------------------------- goals


def body_text(body: Body) -> str:
    if len(body) == 1 and isinstance(body[0], Choice):
        return _choice(body[0])
    return _branch(body)


def goal_text(goal: Literal) -> str:
    if isinstance(goal, Atom) and goal.when is not None:
        return f"{goal_text(evolve(goal, when=None))} {_when(goal.when)}"
    if isinstance(goal, Atom) and goal.pred == ast.EVERY:
        words = zip(("", " every ", " align "), map(_apart, goal.args), strict=False)
        return "".join(word + term for word, term in words)
    if isinstance(goal, Atom) and goal.pred.startswith(ast.PAIRS):
        start, end, other_start, other_end = map(term_text, goal.args)
        word = goal.pred.removeprefix(ast.PAIRS)
        return f"({start}, {end}) {word} ({other_start}, {other_end})"
    if isinstance(goal, Atom):
        return f"{goal.pred}({', '.join(map(_argument, goal.args))})" if goal.args else goal.pred
    if isinstance(goal, Comparison):
        left, is_true = goal.left, isinstance(goal.right, Const) and goal.right.value is True
        if goal.op == "=" and is_true and isinstance(left, Call) and left.name == "in":
            value, *items = left.args
            text = term_text(value)
            first = f"({text})" if isinstance(value, BinOp | Neg) else _unlike_a_name(value)
            return f"{first} in ({', '.join(map(term_text, items))})"
        return f"{_shielded(goal.left)} {goal.op} {term_text(goal.right)}"
    if isinstance(goal, Not):
        if len(goal.body) == 1 and isinstance(goal.body[0], Atom | Not):
            return f"not {goal_text(goal.body[0])}"
        return f"not ({body_text(goal.body)})"
    if isinstance(goal, Choice):
        return f"({_choice(goal)})"
    _never(goal)


def _when(when: ast.When) -> str:
    times = [_apart(time) for time in when.times]
    if when.word == ast.OVER:
        return f"{when.word} {when.opens}{', '.join(times)}{when.closes}"
    return " ".join(f"{word} {time}" for word, time in zip(when.word.split(), times, strict=True))


def _choice(choice: Choice) -> str:
    return " ; ".join(map(_branch, choice.branches))


def limit_text(limit: ast.Limit) -> str:
    offset = f" offset {limit.offset}" if limit.offset else ""
    per = f" per {', '.join(map(_apart, limit.per))}" if limit.per else ""
    return f"limit {limit.count}{offset} by {', '.join(map(_order, limit.by))}{per}"


def _order(order: ast.Order) -> str:
    return _apart(order.term) + (" desc" if order.descending else "")


def _apart(term: Term) -> str:
    """A term before another word, where `%` and `//` would begin a comment."""
    text = term_text(term)
    return f"({text})" if any(op in text for op in ("%", "//")) else text


def _branch(branch: Body) -> str:
    return ", ".join(map(goal_text, branch))


def _shielded(term: Term) -> str:
    text = term_text(term)
    return f"({text})" if _COMMENT_LIKE.search(text) else text


# --------------------------------------------------------------------------------- statements


@frozen
class Layout:
    """A statement as a list: `lead item, item, … tail close`, on one line or one item a line;
    or in parts, each from a line of its own on."""

    lead: str
    items: tuple[tuple[str, Span], ...]
    close: str = "."
    glue: str = " "
    separator: str = ","
    tail: str = ""
    parts: tuple[Layout, ...] = ()

    def text(self, width: int = WIDTH) -> str:
        line = self.one_line()
        if len(line) <= width or not self.items:
            return line
        if not self.parts:
            return "\n".join(self.lines())
        parts = (part.text(width - len(INDENT)) for part in self.parts)
        return "\n".join(parts).replace("\n", f"\n{INDENT}")

    def one_line(self) -> str:
        items = f"{self.separator} ".join(text for text, _ in self.items)
        tail = f" {self.tail}" if self.tail else ""
        return (
            f"{self.lead}{self.glue}{items}{tail}{self.close}" if items else self.lead + self.close
        )

    def lines(self) -> list[str]:
        last = len(self.items) - 1
        items = [
            INDENT
            + text
            + (self.separator if i < last else "" if self.closes_apart or self.tail else self.close)
            for i, (text, _) in enumerate(self.items)
        ]
        end = INDENT + self.tail + self.close if self.tail else self.close
        return [self.lead, *items, *([end] if self.closes_apart or self.tail else [])]

    @property
    def closes_apart(self) -> bool:
        return self.close.startswith(")")


def layout(node: ast.Statement | ast.Step) -> Layout:
    """The list a statement is, whatever its kind; of a test, only its first line."""
    if isinstance(node, ast.Rule):
        shape = _body_layout(f"{goal_text(node.head)} <-", node.body)
        return evolve(shape, tail=limit_text(node.limit)) if node.limit else shape
    if isinstance(node, ast.Annotation):
        values = ", ".join(v if is_bare(v) else quoted(v) for v in node.values)
        return Layout(f"@{node.name} {values}", (), "")
    if isinstance(node, ast.Query):
        first = body_text(node.body)
        return _body_layout("?", node.body, glue=" " if first.startswith("-") else "")
    if isinstance(node, ast.Fact):
        return Layout(goal_text(node.atom), ())
    if isinstance(node, ast.Stream | ast.Table):
        kind = "stream" if isinstance(node, ast.Stream) else "table"
        options = "".join(f" {_option(option)}" for option in node.options)
        items = tuple((_column(c), c.span) for c in node.columns)
        if isinstance(node, ast.Stream) and node.progress:
            options += f" progress {', '.join(map(_timeline, node.progress))}"
        where = f" where {body_text(node.where)}" if node.where else ""
        return Layout(f"{kind} {node.name}(", items, f"){options}{where}.", "")
    if isinstance(node, ast.State):
        return _state_layout(node)
    if isinstance(node, ast.Output):
        return Layout("output", tuple((_answer(p), p.span) for p in node.preds))
    if isinstance(node, ast.Use):
        alias = f" as {node.alias}" if node.alias else ""
        return Layout(f"use {quoted(node.path)}{alias}", ())
    if isinstance(node, ast.Export):
        return Layout("export", tuple((p.name, p.span) for p in node.preds))
    if isinstance(node, ast.Extend):
        return Layout("extend", tuple((p.name, p.span) for p in node.preds))
    if isinstance(node, ast.Function):
        types = ", ".join(map(str, node.args))
        source = quoted(node.path)
        return Layout(f"function {node.name}({types}): {node.result} from {source}", ())
    if isinstance(node, ast.Test):
        return Layout(f"test {quoted(node.name)}", (), " {")
    return _step_layout(node)


def _step_layout(step: ast.Step) -> Layout:
    if isinstance(step, ast.Arrive):
        words = {"accepted": "", "late": "arrive late ", "rejected": "reject "}[step.fate]
        atom = goal_text(step.atom)
        # `end.` alone is the step.
        return Layout(words + ("end()" if atom == "end" and not words else atom), ())
    if isinstance(step, ast.Given):
        return Layout(f"given {step.pred.name} from {quoted(step.path)}", ())
    if isinstance(step, ast.Advance):
        one = f"{step.timeline} to " if step.timeline else ""
        return Layout(f"advance {one}{term_text(step.time)}", ())
    if isinstance(step, ast.End):
        return Layout("end", ())
    if isinstance(step, ast.Expect):
        return Layout("expect", tuple((goal_text(a), a.span) for a in step.atoms))
    if isinstance(step, ast.ExpectNone):
        return Layout(f"expect none {step.pred.name}", ())
    if isinstance(step, ast.ExpectFrom):
        return Layout(f"expect {step.pred.name} from {quoted(step.path)}", ())
    if isinstance(step, ast.Rejected):
        return Layout(f"rejected {step.code}", ())
    _never(step)


def _body_layout(lead: str, body: Body, glue: str = " ") -> Layout:
    if len(body) == 1 and isinstance(body[0], Choice):
        branches = body[0].branches
        items = tuple((_branch(b), b[0].span.to(b[-1].span)) for b in branches)
        return Layout(lead, items, glue=glue, separator=" ;")
    return Layout(lead, tuple((goal_text(g), g.span) for g in body), glue=glue)


def _state_layout(state: ast.State) -> Layout:
    args = [_argument(arg) for arg in state.head.args]
    keys = len(args) if state.keys is None else state.keys
    groups = (", ".join(part) for part in (args[:keys], args[keys:]) if part or state.keys)
    head = f"{state.head.pred}({'; '.join(groups)})" if args else state.head.pred
    begun = _body_layout(state.word, state.body)
    ends = [_body_layout("until", state.until)] if state.until else []
    ends += [Layout(f"for at most {_const(state.most)}", ())] if state.most else []
    tail = " ".join(end.one_line()[: -len(end.close)] for end in ends)
    shape = evolve(begun, lead=f"state {head} {state.word}", tail=tail)
    if not ends:
        return shape
    parts = [Layout(f"state {head}", ()), begun, *ends]
    return evolve(shape, parts=(*(evolve(p, close="") for p in parts[:-1]), parts[-1]))


def _answer(pred: ast.PredName) -> str:
    return f"{pred.name}({', '.join(pred.columns)})" if pred.columns else pred.name


def _column(column: ast.Column) -> str:
    text = column.name
    if column.ends is not None:
        text += f": {'..'.join(column.ends)}"
    if column.type is not None:
        text += f": {column.type}"
    if column.form is not None:
        text += f"({time_form_text(column.form)})"
    text += "?" * column.optional
    if column.low is not None and column.high is not None:
        text += f" {_const(column.low)}..{_const(column.high)}"
    text += " row" * column.is_row + " arrival" * column.is_arrival
    return text if column.path is None else _with_path(text, column.path)


def _with_path(column: str, path: DataPath) -> str:
    if len(path.keys) == 1 and not path.to_list:
        return f"{quoted(path.keys[0])} as {column}"
    return f"{column} {'in' if path.to_list else 'at'} {quoted(str(path))}"


def time_form_text(form: TimeForm) -> str:
    texts = [quoted(text) for text in (form.format, form.zone) if text]
    return form.unit or ", ".join((*texts, *filter(None, (form.of_two,))))


def _timeline(timeline: ast.Timeline) -> str:
    return " ".join((timeline.column, *map(_option, timeline.options)))


def _option(option: ast.Option) -> str:
    value = option.value
    text = quoted(value.value) if isinstance(value.value, str) else _const(value)
    return f"{option.name} {text}"
