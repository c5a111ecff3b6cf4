from __future__ import annotations

from streamlog.diagnostics import Source
from streamlog.syntax import ast
from streamlog.syntax.parse import parse
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import (
    atoms,
    depth,
    map_body_terms,
    map_terms,
    transform,
    variables,
)


def rule(text: str) -> ast.Rule:
    module, found = parse(Source("t.slog", text))
    assert found == ()
    (statement,) = module.statements
    assert isinstance(statement, ast.Rule)
    return statement


RULE = rule("p(T, sum(C)) <- q(T, A), not (r(B), not s(-D)), (t(E + F) ; u(max(G, H))), A < I.")


def test_variables_come_in_the_order_of_the_text() -> None:
    assert "".join(v.name for v in variables(RULE)) == "TCTABDEFGHAI"
    assert [v.name for v in variables(RULE.body[:1])] == ["T", "A"]


def test_atoms_at_any_depth() -> None:
    assert [a.pred for a in atoms(RULE.body)] == ["q", "r", "s", "t", "u"]


def _renamed(term: ast.Term) -> ast.Term:
    return ast.Var("Z", span=term.span) if term == ast.Var("B", span=term.span) else term


def test_a_change_copies_only_what_lies_above_it() -> None:
    changed = map_terms(RULE, _renamed)
    assert pretty(changed) == pretty(RULE).replace("r(B)", "r(Z)")
    assert changed.head is RULE.head
    assert changed.body[0] is RULE.body[0]
    assert changed.body[2] is RULE.body[2]


def test_nothing_changed_is_the_same_object() -> None:
    assert map_terms(RULE, lambda term: term) is RULE
    assert map_body_terms(RULE.body, lambda term: term) is RULE.body


def test_a_transformation_sees_changed_children() -> None:
    def fold(node: ast.Term | object) -> object:
        match node:
            case ast.BinOp("+", ast.Const(a, ast.Type.INT), ast.Const(b, ast.Type.INT), span=span):
                return ast.Const(a + b, ast.Type.INT, span=span)
        return node

    folded = transform(rule("p(X) <- X = 1 + 2 + 3."), fold)
    assert pretty(folded) == "p(X) <- X = 6."


def test_depth_counts_levels() -> None:
    x = rule("p(X) <- X = -Y.")
    assert depth(x) == 4  # rule, comparison, minus, variable
    assert depth(x.head) == 2
