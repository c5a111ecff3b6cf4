"""What the grammar's elements make of the tokens they match.

The grammar reads a body as one flat chain, operands joined by `;`, `,`, comparisons and arithmetic
(rising in how tightly they bind), because whether `(…)` is a term or a group of goals shows only
behind it. Here the chain becomes goals.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from attrs import evolve

from streamlog.diagnostics import did_you_mean
from streamlog.syntax.aggregates import AGGREGATES
from streamlog.syntax.ast import (
    AT,
    EVERY,
    FROM,
    FROM_TO,
    OVER,
    PAIRS,
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
    Not,
    Term,
    Type,
    When,
)
from streamlog.syntax.operands import (
    MAX_LEVELS,
    Chain,
    Goal,
    Group,
    Interval,
    Operand,
    end_of,
    index_of,
    leaf,
    negative,
    prefix,
    simple,
    start_of,
    too_deep,
)
from streamlog.syntax.scan import (
    ALLEN,
    INTERVAL_WORD,
    QUALIFIED,
    TIME_WORD,
    WINDOW,
    WORDS,
)
from streamlog.syntax.tokens import Refused, Tokens

TIMED = (TIME_WORD, INTERVAL_WORD)

_ONLY_SINGLES = re.compile(r"[^-](?:,[^-])*\Z")
# Enough nesting for a group of plain calls whose arguments are calls.
_FLAT = r"\([^()]*\)"
_NESTED = rf"\((?:[^()]|{_FLAT})*\)"
_NAMES = WORDS + QUALIFIED
_PLAIN_OPERAND = re.compile(rf"n*-*(?:[{_NAMES}]{_NESTED}|\((?:[^()]|{_NESTED})*\)|.)")
_COMPARISON_SPELLINGS = {"≤": "<=", "≥": ">=", "≠": "!="}


def plain_call(tokens: Tokens, start: int, end: int) -> Operand:
    """`n*-*name(x, …)` with no parentheses among the arguments."""
    negations, first = prefix(tokens, start)
    name = first
    while tokens[name] == "-":
        name += 1
    if tokens[name + 2] == ")":
        args: list[Term] = []
    elif _ONLY_SINGLES.match(tokens, name + 2, end - 1):
        args = [simple(tokens, at, at, 1) for at in range(name + 2, end - 1, 2)]
    else:
        args = _arguments(tokens, run(tokens, name + 2, end - 1))
    value: Term = _call(tokens, name, end, tuple(args))
    if name > first:
        value = negative(tokens, value, first, name, end)
    return Operand(start, end, negations, value)


def run(tokens: Tokens, start: int, end: int) -> list[Operand | int]:
    """A chain of leaves, plain calls and groups of these: most bodies are one such match."""
    chain: list[Operand | int] = []
    at = start
    while at < end:
        match = _PLAIN_OPERAND.match(tokens, at, end)
        assert match is not None
        stop = match.end()
        if tokens[stop - 1] != ")":
            chain.append(leaf(tokens, at, stop))
        elif (opening := tokens.find("(", at)) and tokens[opening - 1] in _NAMES and opening > at:
            chain.append(plain_call(tokens, at, stop))
        else:
            inner = run(tokens, opening + 1, stop - 1)
            chain.append(group(tokens, at, [opening, *inner, stop - 1]))
        if stop < end:
            chain.append(stop)
        at = stop + 1
    return chain


def call(tokens: Tokens, start: int, chain: Chain) -> Operand:
    """The opening token's index, the arguments joined by infixes, the index of `)`."""
    opening, close = index_of(chain[0]), index_of(chain[-1])
    negations, first = prefix(tokens, start)
    end = close + 1
    takes_one = tokens.text(opening - 1) in ("if", "count_if")
    args = _arguments(tokens, chain[1:-1], may_compare=takes_one)
    value = _call(tokens, opening - 1, end, tuple(args))
    return Operand(start, end, negations, negative(tokens, value, first, opening - 1, end))


def group(tokens: Tokens, start: int, chain: Chain) -> Operand:
    opening, close = index_of(chain[0]), index_of(chain[-1])
    negations, first = prefix(tokens, start)
    inner = Group(_branches(tokens, chain[1:-1]), opening - first)
    return Operand(start, close + 1, negations, inner)


def aggregate(tokens: Tokens, start: int, chain: Chain) -> Operand:
    """`name<term>`."""
    close, name = index_of(chain[-1]), tokens.text(start)
    if name not in AGGREGATES:
        guess = did_you_mean(name, AGGREGATES)
        help = f"did you mean `{guess}`?" if guess else f"there are {', '.join(AGGREGATES)}"
        raise tokens.refuse("SL0101", f"`{name}` is not an aggregate", start, start + 1, help=help)
    if AGGREGATES[name].takes == 2:
        message = f"`{name}` takes two terms, in parentheses"
        raise tokens.refuse("SL0205", message, start, close + 1, help=AGGREGATES[name].usage)
    tokens.aggregates += 1
    arg = expression(tokens, chain[:-1])
    return Operand(start, close + 1, 0, Agg(name, arg, span=tokens.span(start, close + 1)))


def _arguments(tokens: Tokens, chain: Chain, *, may_compare: bool = False) -> list[Term]:
    """`may_compare`: the first may be a comparison."""
    args: list[Term] = []
    begin = 0
    for i in range(1, len(chain) + 1, 2):
        if i == len(chain) or tokens[index_of(chain[i])] == ",":
            args.append(_argument(tokens, chain[begin:i], may_compare and not args))
            begin = i + 1
    return args


def _argument(tokens: Tokens, chain: Chain, may_compare: bool) -> Term:
    at = next((i for i in range(1, len(chain), 2) if tokens[index_of(chain[i])] in "=<>"), None)
    if at is None:
        return expression(tokens, chain)
    goal = _goal(tokens, chain)
    if not may_compare:
        message = "a comparison cannot be part of a term"
        help = "the first argument of `if` may be one, as in `if(X < Y, X, Y)`"
        raise tokens.refuse("SL0101", message, goal.start, goal.end, help=help)
    assert not isinstance(goal.left, Operand) and goal.right is not None
    return BinOp(goal.op, goal.left, goal.right, span=tokens.span(goal.start, goal.end))


def _call(tokens: Tokens, start: int, end: int, args: tuple[Term, ...]) -> Call:
    name = tokens.text(start)
    if name in AGGREGATES:
        tokens.aggregates += 1
    return Call(name, args, span=tokens.span(start, end))


def expression(tokens: Tokens, chain: Chain) -> Term:
    """Operands joined by arithmetic, as a tree; all operators associate to the left."""
    if len(chain) == 1:
        return _term(tokens, chain[0])
    if len(chain) > 2 * MAX_LEVELS**2:
        # With two precedences, no shorter chain is sure to be too deep.
        raise too_deep(tokens.span(start_of(chain[0]), start_of(chain[-1])))
    terms: list[tuple[Term, int]] = []  # each with the token it starts at
    ops: list[str] = []
    end = 0

    def reduce() -> None:
        (right, _), (left, start) = terms.pop(), terms.pop()
        terms.append((BinOp(ops.pop(), left, right, span=tokens.span(start, end)), start))

    for item in chain:
        if isinstance(item, int):
            op = tokens.text(item)
            while ops and PRECEDENCE[ops[-1]] >= PRECEDENCE[op]:
                reduce()
            ops.append(op)
        else:
            terms.append((_term(tokens, item), item.start))
            end = item.end
    while ops:
        reduce()
    return terms[0][0]


def _term(tokens: Tokens, operand: Operand | int) -> Term:
    assert not isinstance(operand, int)
    start, end, negations, value = operand
    if negations:
        raise tokens.refuse("SL0101", "a negation cannot be part of a term", start, start + 1)
    if isinstance(value, Interval):
        raise tokens.refuse("SL0101", "an interval cannot be part of a term", start, end)
    if not isinstance(value, Group):
        return value
    opening = start + value.minuses
    if len(value.branches) > 1 or len(value.branches[0]) > 1:
        raise tokens.refuse("SL0101", "a group of goals cannot be part of a term", opening, end)
    inner = value.branches[0][0]
    if inner.negations or inner.op:
        what = "negation" if inner.negations else "comparison"
        message = f"a {what} cannot be part of a term"
        raise tokens.refuse("SL0101", message, inner.start, inner.end)
    left = inner.left
    term = _term(tokens, left) if isinstance(left, Operand) else left
    return negative(tokens, term, start, opening, end)


# -------------------------------------------------------------------------------------- goals


class Goals(NamedTuple):
    """A whole body; not yet literals, so that a slip behind it is reported first."""

    branches: list[list[Goal]]

    def body(self, tokens: Tokens) -> Body:
        return _body(tokens, self.branches)


def goals(tokens: Tokens, start: int, chain: Chain) -> Goals:
    return Goals(_branches(tokens, chain))


def atom(operand: Operand) -> Atom:
    """A head or a fact: the grammar has let only calls and words through."""
    value = operand.value
    if isinstance(value, Call):
        return Atom(value.name, value.args, span=value.span)
    assert isinstance(value, Const)
    return Atom(value.span.text, (), span=value.span)


def _branches(tokens: Tokens, chain: Chain) -> list[list[Goal]]:
    branches: list[list[Goal]] = [[]]
    begin = 0
    for i in range(1, len(chain), 2):
        kind = tokens[index_of(chain[i])]
        if kind in ",;":
            branches[-1].append(_goal(tokens, chain[begin:i]))
            begin = i + 1
            if kind == ";":
                branches.append([])
    branches[-1].append(_goal(tokens, chain[begin:]))
    return branches


def _goal(tokens: Tokens, chain: Chain) -> Goal:
    first, last = chain[0], chain[-1]
    assert isinstance(first, Operand) and isinstance(last, Operand)
    start, end, negations = first.start, last.end, first.negations
    if len(chain) == 1:
        return Goal(start, end, negations, first)
    plain = (Operand(start + negations, first.end, 0, first.value), *chain[1:])
    if any(tokens[index_of(chain[i])] in TIMED for i in range(1, len(chain), 2)):
        made = _timed(tokens, plain)
        return Goal(start, end, negations, first, tokens.text(index_of(chain[1])), made=made)
    comparisons = [i for i in range(1, len(chain), 2) if tokens[index_of(chain[i])] in "=<>i"]
    if len(comparisons) > 1:
        at = index_of(chain[comparisons[1]])
        raise tokens.refuse(
            "SL0101",
            f"a second comparison in one goal, `{tokens.text(at)}`",
            at,
            at + 1,
            help="compare in two goals, as in `X < Y, Y < Z`",
        )
    if not comparisons:
        return Goal(start, end, negations, expression(tokens, plain))
    if negations:
        raise tokens.refuse(
            "SL0101",
            "`not` before a comparison",
            start,
            end,
            help="write the opposite comparison, or put it in parentheses: `not (X < Y)`",
        )
    at = comparisons[0]
    op = tokens.text(index_of(chain[at]))
    if op == "in":
        found = expression(tokens, plain[:at])
        items = _items(tokens, chain[at + 1 :])
        span = tokens.span(start, end)
        call = Call("in", (found, *items), span=span)
        return Goal(start, end, 0, call, "=", Const(True, Type.BOOL, span=span))
    left, right = expression(tokens, plain[:at]), expression(tokens, plain[at + 1 :])
    return Goal(start, end, 0, left, _COMPARISON_SPELLINGS.get(op, op), right)


def _timed(tokens: Tokens, chain: Chain) -> Atom:
    """A goal and what is said of time behind it; or a goal made of a word between terms."""
    words = [i for i in range(1, len(chain), 2) if tokens[index_of(chain[i])] in TIMED]
    texts = tuple(tokens.text(index_of(chain[i])) for i in words)
    ends = [*words[1:], len(chain)]
    parts = [chain[i + 1 : end] for i, end in zip(words, ends, strict=True)]
    first, last = chain[0], chain[-1]
    assert isinstance(first, Operand) and isinstance(last, Operand)
    span = tokens.span(first.start, last.end)
    if texts[0] in ALLEN and len(texts) == 1:
        pairs = (_interval(tokens, chain[: words[0]]), _interval(tokens, parts[0]))
        return Atom(f"{PAIRS}{texts[0]}", tuple(t for p in pairs for t in p[:2]), span=span)
    if texts in (("every",), ("every", "align")):
        terms = (expression(tokens, part) for part in (chain[: words[0]], *parts))
        return Atom(EVERY, tuple(terms), span=span)
    word = " ".join(texts)
    if word not in (AT, FROM, FROM_TO, WINDOW):
        at = index_of(chain[words[-1] if texts[0] in (AT, FROM, WINDOW, "every") else words[0]])
        help = "a state is read `p(X) at T`, `p(X) from S` or `p(X) from S to E`"
        message = f"`{tokens.text(at)}` says nothing here"
        raise tokens.refuse("SL0101", message, at, at + 1, help=help)
    if words[0] > 1:
        raise _no_goal(tokens, first.start, end_of(chain[words[0] - 1]))
    goals = _literals(tokens, Goal(first.start, first.end, 0, first))
    if len(goals) != 1 or not isinstance(goals[0], Atom) or goals[0].when:
        raise _no_goal(tokens, first.start, first.end)
    said = tokens.span(index_of(chain[1]), last.end)
    if word == WINDOW:
        window = _interval(tokens, parts[0])
        when = When(OVER, window[:2], window.opens, window.closes, span=said)
    else:
        when = When(word, tuple(expression(tokens, part) for part in parts), span=said)
    return evolve(goals[0], when=when, span=span)


def _interval(tokens: Tokens, chain: Chain) -> Interval:
    operand = chain[0]
    assert isinstance(operand, Operand)
    value = operand.value
    if len(chain) == 1 and isinstance(value, Interval):
        return value
    if len(chain) == 1 and isinstance(value, Group) and not value.minuses:
        goals = value.branches[0]
        if len(value.branches) == 1 and len(goals) == 2:
            first, second = (
                _term(tokens, Operand(g.start, g.end, 0, Group([[g]], 0))) for g in goals
            )
            return Interval(first, second, "(", ")")
    message, help = "expected an interval", "write its two ends, as in `(S, E)` or `[T - 1h, T]`"
    raise tokens.refuse("SL0101", message, operand.start, end_of(chain[-1]), help=help)


def _items(tokens: Tokens, chain: Chain) -> list[Term]:
    """The terms in the parentheses behind `in`."""
    operand = chain[0]
    assert isinstance(operand, Operand)
    value = operand.value
    if len(chain) > 1 or not isinstance(value, Group) or len(value.branches) > 1:
        last = chain[-1]
        assert isinstance(last, Operand)
        message = "`in` takes a list of values"
        help = "write `X in (a, b, c)`"
        raise tokens.refuse("SL0101", message, operand.start, last.end, help=help)
    return [_term(tokens, Operand(g.start, g.end, 0, Group([[g]], 0))) for g in value.branches[0]]


def _body(tokens: Tokens, branches: list[list[Goal]]) -> Body:
    bodies = tuple(
        tuple(literal for goal in branch for literal in _literals(tokens, goal))
        for branch in branches
    )
    if len(bodies) == 1:
        return bodies[0]
    return (Choice(bodies, span=tokens.span(branches[0][0].start, branches[-1][-1].end)),)


def _literals(tokens: Tokens, goal: Goal) -> Body:
    """A goal as literals: several when it is a conjunction in parentheses."""
    start, end, negations, left, op, right, made = goal
    if negations > MAX_LEVELS:
        raise too_deep(tokens.span(start, end))
    if op and right is not None:
        assert not isinstance(left, Operand)
        return (Comparison(op, left, right, span=tokens.span(start, end)),)
    value = left.value if isinstance(left, Operand) else left
    inner: Body
    if made is not None:
        inner = (made,)
    elif isinstance(value, Group) and not value.minuses:
        inner = _body(tokens, value.branches)
        if len(inner) == 1 and isinstance(inner[0], Choice) and len(value.branches) > 1:
            # Seen from outside, the parentheses belong to the choice.
            inner = (Choice(inner[0].branches, span=tokens.span(start + negations, end)),)
    elif isinstance(value, Call):
        inner = (Atom(value.name, value.args, span=value.span),)
    elif isinstance(left, Operand) and isinstance(value, Const) and tokens[end - 1] in WORDS:
        if end - start - negations > 1:
            raise _no_goal(tokens, start + negations, end)
        inner = (Atom(value.span.text, (), span=value.span),)
    else:
        raise _no_goal(tokens, start + negations, end)
    for at in range(start + negations - 1, start - 1, -1):
        negation: Literal = Not(inner, span=tokens.span(at, end))
        inner = (negation,)
    return inner


def _no_goal(tokens: Tokens, start: int, end: int) -> Refused:
    text = " ".join(tokens.span(start, end).text.split())
    return tokens.refuse(
        "SL0101",
        f"`{text}` is not a goal" if len(text) <= 40 else "this is not a goal",
        start,
        end,
        help="a goal is a predicate, as in `p(X)`, or a comparison, as in `X < Y`",
    )
