"""Rules with a limit, so that each ranks the rows of one goal and does nothing else.

    top(T, S, P) <- sale(T, S, P, A, _), A > 0.0 limit 5 by A desc per S.
        top_rows(T, S, P, A) <- sale(T, S, P, A, _), A > 0.0.
        top(T, S, P) <- top_rows(T, S, P, A) limit 5 by A desc per S.

    best(floor(T, 1h), S, sum(A)) <- sale(T, S, _, A, _) limit 3 by sum(A) desc.
        best_rows(floor(T, 1h), S, sum(A)) <- sale(T, S, _, A, _).
        best(T, S, Sum_a) <- best_rows(T, S, Sum_a) limit 3 by Sum_a desc.

What is ranked are different rows, so all columns of the goal stand in the head or in the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from streamlog.analysis.builtins import GOALS
from streamlog.diagnostics import Diagnostic, finding
from streamlog.rewrite.computed import several_values
from streamlog.rewrite.names import Names, free_name, predicates
from streamlog.syntax.ast import Agg, Atom, Const, Limit, Rule, Statement, Term, Var
from streamlog.syntax.walk import variables, walk


def ranked(statements: Iterable[Statement]) -> tuple[list[Statement], list[Diagnostic]]:
    statements = list(statements)
    taken = predicates(statements)
    result: list[Statement] = []
    diagnostics: list[Diagnostic] = []
    for statement in statements:
        limit = statement.limit if isinstance(statement, Rule) else None
        if not isinstance(statement, Rule) or limit is None or _is_simple(statement, limit):
            result.append(statement)
        elif found := list(_pointless(limit)) or list(_ungrouped(statement, limit)):
            diagnostics += found
        else:
            result += _two_rules(statement, limit, taken)
    return result, diagnostics


def _is_simple(rule: Rule, limit: Limit) -> bool:
    match rule.body:
        case (Atom(pred, args),) if pred not in GOALS:
            pass
        case _:
            return False
    ranking = (*(o.term for o in limit.by), *limit.per)
    terms = (*args, *rule.head.args, *ranking)
    if not all(isinstance(t, Var) and not t.is_anonymous for t in terms):
        return False
    is_one_row = len(set(args)) == len(args) and len(set(rule.head.args)) == rule.head.arity
    return is_one_row and args[:1] == rule.head.args[:1] and {*args} == {*rule.head.args, *ranking}


def _pointless(limit: Limit) -> Iterator[Diagnostic]:
    for term in (*(o.term for o in limit.by), *limit.per):
        if any(isinstance(part, Var | Agg) for part in walk(term)):
            continue
        capital = ""
        if isinstance(term, Const) and isinstance(term.value, str) and term.value[:1].islower():
            capital = term.value[0].upper() + term.value[1:]
        yield finding(
            "SL0109",
            "the limit ranks by what is the same for all solutions",
            term.span,
            help=f"variables begin with an upper-case letter: `{capital}`" if capital else "",
        )


def _ungrouped(rule: Rule, limit: Limit) -> Iterator[Diagnostic]:
    """Where a rule aggregates, a group is ranked by what it has one value of."""
    parts = (n for n in walk((rule.head, limit)) if isinstance(n, Agg))
    if next(parts, None) is None:
        return
    for term in (*(o.term for o in limit.by), *limit.per):
        if isinstance(term, Agg) or term in rule.head.args:
            continue
        if any(isinstance(part, Agg) for part in walk(term)):
            continue  # what computes with aggregates is checked where they are taken apart
        yield from several_values(
            rule, variables(term), "the rule aggregates, so groups are ranked"
        )


def _two_rules(rule: Rule, limit: Limit, taken: set[str]) -> tuple[Rule, Rule]:
    head = rule.head
    names = Names({a.name for a in head.args if isinstance(a, Var)})
    called: list[Var] = []
    for position, term in enumerate(head.args):
        is_own = isinstance(term, Var) and not term.is_anonymous and term not in called
        called.append(term if is_own and isinstance(term, Var) else names.variable(term, position))
    of_term: dict[Term, Var] = {}
    for term, variable in zip(head.args, called, strict=True):
        of_term.setdefault(term, variable)
    more: list[Term] = []  # what is ranked by, for which the head has no place

    def column(term: Term) -> Var:
        if term not in of_term:
            more.append(term)
            of_term[term] = names.variable(term, len(called) + len(more))
        return of_term[term]

    by = tuple(evolve(order, term=column(order.term)) for order in limit.by)
    per = tuple(map(column, limit.per))
    rows = evolve(head, pred=free_name(f"{head.pred}_rows", taken), args=(*head.args, *more))
    call = evolve(rows, args=(*called, *map(column, more)))
    groups = any(isinstance(part, Agg) for part in walk(rows))
    return (
        evolve(rule, head=rows, limit=None, is_auxiliary=True, wanted=None if groups else limit),
        # A place of its own: the types of variables are known by that of their rule.
        evolve(
            rule,
            head=evolve(head, args=tuple(called)),
            body=(call,),
            limit=evolve(limit, by=by, per=per),
            span=limit.span,
        ),
    )
