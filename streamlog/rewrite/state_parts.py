"""Parts of declarations of states, and what is wrong with them by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import evolve

from streamlog.analysis.column_names import name_of
from streamlog.analysis.dependency import strong_components
from streamlog.diagnostics import Diagnostic, finding
from streamlog.rewrite.names import free_name
from streamlog.rewrite.state_kinds import Defined, Rows
from streamlog.rewrite.states import state_goals
from streamlog.syntax.ast import (
    WHILE,
    Agg,
    Atom,
    Body,
    Choice,
    Column,
    Comparison,
    Const,
    Literal,
    Not,
    State,
    Stream,
    Table,
    Term,
    Type,
    Var,
)
from streamlog.syntax.walk import atoms, map_terms, variables


def names_a_state(literal: Literal, states: Mapping[str, object]) -> bool:
    return any(True for _ in state_goals((literal,), states))


def with_different_variables(state: State, taken: set[str]) -> State:
    """Aggregates aside: what else stands in the head is computed in the body."""
    args: list[Term] = []
    body = list(state.body)
    for arg in state.head.args:
        is_own = isinstance(arg, Var) and arg not in args and arg.name != "_"
        if is_own or isinstance(arg, Agg):
            args.append(arg)
            continue
        variable = Var(free_name("Value", taken), span=arg.span)
        args.append(variable)
        body.append(Comparison("=", variable, arg, span=arg.span))
    return evolve(state, head=evolve(state.head, args=tuple(args)), body=tuple(body))


def conjunctions(body: Body) -> list[Body]:
    """The disjunctive normal form, in negations too."""
    found: list[Body] = [()]
    for literal in body:
        match literal:
            case Choice(branches):
                ways = [c for branch in branches for c in conjunctions(branch)]
            case Not(inner):
                ways = [tuple(evolve(literal, body=b) for b in conjunctions(inner))]
            case _:
                ways = [(literal,)]
        found = [(*start, *way) for start in found for way in ways]
    return found


def renamed(term: Term, names: Mapping[str, Term]) -> Term:
    return map_terms(term, lambda t: names.get(t.name, t) if isinstance(t, Var) else t)


def is_simple(goal: Atom, own: Iterable[Term]) -> bool:
    """Whether a goal can be called as it is: with different variables, all of the state's."""
    named = [a for a in goal.args if not (isinstance(a, Var) and a.name == "_")]
    own = list(own)
    return (
        all(isinstance(a, Var) for a in named)
        and len(set(named)) == len(named)
        and all(isinstance(a, Var) and a in named[1:] for a in own)
        and len(set(own)) == len(own)
        and goal.args[0] == named[0]
    )


def of_rows(declaration: Stream | Table) -> Defined:
    position = next(i for i, c in enumerate(declaration.columns) if c.ends)
    others = [c for c in declaration.columns if not c.ends]
    others = others[1:] if isinstance(declaration, Stream) else others
    columns = tuple(c.name for c in others)
    return Defined(declaration.name, columns, Rows(declaration, position), span=declaration.span)


def two_columns(declaration: Stream | Table) -> Stream | Table:
    """`valid: since..until` is `since: time, until: time?`."""
    columns: list[Column] = []
    for column in declaration.columns:
        if column.ends is None:
            columns.append(column)
        else:
            since, until = column.ends
            columns.append(Column(since, Type.TIME, span=column.span))
            columns.append(Column(until, Type.TIME, optional=True, span=column.span))
    return evolve(declaration, columns=tuple(columns))


def columns_of(args: Iterable[Term]) -> tuple[str, ...]:
    """As the declaration calls them."""
    taken: set[str] = set()
    found: list[str] = []
    for arg in args:
        match arg:
            case Var(name) if not arg.is_anonymous:
                found.append(name)
            case Const(str(word)):
                found.append(word)
            case _:
                found.append(name_of(arg) or "value")
    return tuple(free_name(name, taken) for name in found)


def not_carried(state: State, time: Callable[[Body], Term | None]) -> Iterator[Diagnostic]:
    head = {a.name for a in state.head.args if isinstance(a, Var)}
    times = {t.name for t in (time(state.body), time(state.until)) if isinstance(t, Var)}
    begun = {v.name for v in variables(state.body)}
    for variable in variables(state.until):
        name = variable.name
        if name in begun and name not in head | times | {"_"}:
            yield finding(
                "SL0804",
                f"`{name}` begins `{state.head.pred}` and ends it, so it belongs to what holds",
                variable.span,
                "the same value as at the beginning?",
                related=[(state.head.span, f"`{name}` is not among its arguments")],
                help=f"make `{name}` an argument of the state, or write `_` for any value",
            )
            head.add(name)


def circular(written: Mapping[str, Sequence[State]]) -> Iterator[Diagnostic]:
    """States that hold while they hold."""
    reads = {
        name: {a.pred for s in of if s.word == WHILE for a in atoms(s.body) if a.pred in written}
        for name, of in written.items()
    }
    for component in strong_components(sorted(reads), lambda n: sorted(reads[n])):
        names = sorted(component)
        if len(names) > 1 or names[0] in reads[names[0]]:
            first = written[names[0]][0]
            yield finding(
                "SL0803",
                f"`{names[0]}` holds while it holds itself"
                if len(names) == 1
                else f"`{names[0]}` and `{names[1]}` hold while the other does",
                first.span,
                related=[(written[n][0].span, "and this one") for n in names[1:]],
                help="begin one of them `since` an event",
            )
