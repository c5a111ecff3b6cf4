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
