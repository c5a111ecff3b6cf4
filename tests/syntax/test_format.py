"""`fmt` on texts as people write them; the properties are in `test_properties`."""

from __future__ import annotations

import pytest

from streamlog.diagnostics import Source
from streamlog.syntax.format import format_source
from streamlog.syntax.parse import parse


def formatted(text: str) -> str:
    source = Source("t.slog", text)
    module, found = parse(source)
    assert found == ()
    return format_source(source, module)


CASES = {
    "nothing": ("", ""),
    "only comments": ("% a\n\n\n\n% b", "% a\n\n% b\n"),
    "at most one blank line": ("p(1).\n\n\n\nq(2).\nr(3).", "p(1).\n\nq(2).\nr(3).\n"),
    "one statement a line": ("p(1). p(2).", "p(1).\np(2).\n"),
    "leading and trailing": (
        "% about p\np( 1 ).% one\n// about q\nq(2). /* two */",
        "% about p\np(1).  % one\n// about q\nq(2).  /* two */\n",
    ),
    "comments inside a rule": (
        "p(X) <- % why\n q(X), % first\n   % own line\n not (r(X), // inner\n s(X)), t(X). % end",
        "p(X) <-  % why\n    q(X),  % first\n    % own line\n    not (r(X), s(X)),  // inner\n"
        "    t(X).  % end\n",
    ),
    "alternatives": (
        "p <- a, b % one\n ; c. % two",
        "p <-\n    a, b ;  % one\n    c.  % two\n",
    ),
    "comments at columns": (
        "stream s(T: time, % when\n area: string % where\n) slack 5s. % late",
        "stream s(\n    T: time,  % when\n    area: string  % where\n) slack 5s.  % late\n",
    ),
    "a comment that would become an operator goes above": (
        "stream s(x: % X\n int 0..5).",
        "stream s(\n    % X\n    x: int 0..5\n).\n",
    ),
    "two comments for one line": ("p(1, % a\n 2). % b", "% a\np(1, 2).  % b\n"),
    "tests": (
        'test "a" { % head\n p(1). advance 5. % now\n\n\n % next\n expect p(1), % one\n p(2). \n'
        " % last\n} % done\n",
        'test "a" {  % head\n    p(1).\n    advance 5.  % now\n\n    % next\n    expect\n'
        "        p(1),  % one\n        p(2).\n    % last\n}  % done\n",
    ),
    "states": (
        "state s( a;b ) on p(_,A,B)until q(_,A) for at most 6h.% why\n"
        "state t(A) since p(T,A), % one\n r(T) until % two\n q(T, A), x(T).\n"
        "state u(A)while s(A,_), % one\n not(t(A);s(_,A)).",
        "state s(a; b) on p(_, A, B) until q(_, A) for at most 6h.  % why\n"
        "state t(A) since\n    p(T, A),  % one\n    r(T)\n    until q(T, A), x(T).  % two\n"
        "state u(A) while\n    s(A, _),  % one\n    not (t(A) ; s(_, A)).\n",
    ),
    "a long state has its parts on lines": (
        "state in_room(person; room, reason) on entered(_, P, R, Why), known_person(P), "
        "not closed_room(R) until left(_, P, R), not came_back(P, R), was_seen(P) ; "
        "the_end_of_the_day(_), not_at_night(R) for at most 12h.",
        "state in_room(person; room, reason)\n"
        "    on entered(_, P, R, Why), known_person(P), not closed_room(R)\n"
        "    until\n"
        "        left(_, P, R), not came_back(P, R), was_seen(P) ;\n"
        "        the_end_of_the_day(_), not_at_night(R)\n"
        "    for at most 12h.\n",
    ),
    "times": (
        "p(T)<-q(T),s(X)at T- 5min,not s( X )over(T ,T+1h],(T,T+1h)met_by( T , T ),"
        "U every 1d align 2h,not s(X)from max(T,T)to f(T,T).",
        "p(T) <-\n    q(T),\n    s(X) at T - 5min,\n    not s(X) over (T, T + 1h],\n"
        "    (T, T + 1h) met_by (T, T),\n    U every 1d align 2h,\n"
        "    not s(X) from max(T, T) to f(T, T).\n",
    ),
    "block comments keep their lines": (
        "/* one\n     two */ p(1).\r\n",
        "/* one\n     two */\np(1).\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_formatting(case: str) -> None:
    text, expected = CASES[case]
    assert formatted(text) == expected
    assert formatted(expected) == expected
