"""Nothing anyone can type makes the compiler fall over: mutations of valid programs.

In the ordinary run a share of the mutations is tried, from a seed that stands in each test's name.
The full run of the acceptance (50,000):

    STREAMLOG_FUZZ=50000 pytest tests/fuzz -rP

`-rP` shows the slowest program of each share. Other mutations: `STREAMLOG_SEED=7`.
"""

from __future__ import annotations

import faulthandler
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from streamlog.compiler import Mode, Program, compile_source
from streamlog.diagnostics import Diagnostic, Source

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("STREAMLOG_SEED", "2012"))
MUTATIONS = int(os.environ.get("STREAMLOG_FUZZ", "5000"))
SHARE = 250
HANG = 1.0  # seconds of processor time: the one limit the acceptance asks for
STUCK = 120.0  # seconds: a share that is still on one program is shown with its stack

MORE = (
    """
    stream s(T: time, area: string, n: int) slack 10s idle 30s horizon 1d keep 1h.
    table w(d: duration 1s..10s).
    table adjacent(a: string, b: string) from "adjacent.csv".
    output p, q.
    p(T, A, sum(N)) <- s(T, A, N), not (s(T1, A, _), T1 < T, T1 >= T - 5min ; adjacent(A, _)).
    q(ceil(T, 20s), A, avg(N)) <- s(T, A, N), N % 2 = 0, N // 3 > -1, A ++ "x" != "yx".
    q(T, A, 1.5) <- p(T, A, N), w(W), s(T1, A, _), T1 <= T, abs(T - T1) <= W, length(A) > 2.
    ?q(T, gate1, X), X > 2.5.
    """,
    """
    msg(1, red). msg(2, blue). msg(-3, 'a \\'b\\' c').
    first(T, X) :- msg(T, X), ¬ previous(T, X).  % comment
    previous(T, X) <- msg(T0, X), T0 < T.       // comment
    both(T) <- msg(T1, X), msg(T2, X), lgr(T1, T2, T), (X = red ; X = blue), ~first(T, X).
    best(T, X, min<D>) <- msg(T, X), best(T1, X, D1), T1 <= T, D = D1 + 1. /* comment */
    seen(T, count()) <- tick(T), msg(T1, _), T1 <= T, T1 > T - 10.
    ?- both(T).
    """,
    """
    stream t(T: int, v: float).
    output up.
    up(T, max(V)) <- t(T, V), not (t(T1, V1), T1 = T - 1, V1 >= V, not t(T1 - 1, V1)).
    test "up" {
        t(1, 1.5). t(2, 2.5).
        advance 3. expect up(1, 1.5), up(2, 2.5).
        arrive late t(0, 1.0). reject t(x, 1.0). given t from "t.csv".
        expect none up. expect up from "up.csv". end.
    }
    test "refused" { rejected SL0402. }
    """,
)
RULES = tuple(p.read_text(encoding="utf-8") for p in sorted((ROOT / "rules").rglob("*.slog")))
# What uses files is not compiled further than to the first that is not there.
PROGRAMS = tuple(text for text in RULES if "\nuse " not in text) + tuple(MORE)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
STRANGE = (
    *"\0\t\r\x0b\x1b\x85\u00a0\u2028\u200b\u202e\ufeff\ufffd\ud800éßİſΩ≤≥≠¬←𝒳🙂٣²½Ⅷａ１\U0010ffff",
    "\r\n",
    "e\u0301",
)
WORDS = _words(
    "<- :- not ! ~ ; , . ( ) { } [ ] < > <= >= = != + - * / // % ++ ? ?- .. : _ __ T X p msg "
    "stream table output test tick lgr max min abs floor ceil count sum avg first last min<D> "
    "use as export extend m.p m.q(T,X) "
    "slack idle horizon keep from advance expect none end given arrive late reject rejected "
    "SL0402 true false 0 1 -1 1.5 1e9 0x10 5s 5min 1week 1.5h @ @2026-11-15T08:00:00Z @9999-99-99 "
    '"a" \'b\' "\\x" " \' /* */ // %'
)
HUGE = _words(
    "9223372036854775807 -9223372036854775808 9223372036854775808 99999999999999999999999999 1e400 "
    "99999999999999999999week 9223372036854775807us @9999-12-31T23:59:59.999999Z 0.000000000001 "
    "106751991d 00000000000000000001"
)


def mutated(random: Random) -> str:
    text = random.choice(PROGRAMS)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        text = random.choice(MUTATIONS_OF)(text, random)
    return text


def _span(text: str, random: Random, longest: int = 60) -> tuple[int, int]:
    start = random.randint(0, len(text))
    return start, min(len(text), start + random.randint(0, longest))


def _insert(text: str, random: Random) -> str:
    at = random.randint(0, len(text))
    return text[:at] + random.choice((*STRANGE, *WORDS, *text[:200])) + text[at:]


def _delete(text: str, random: Random) -> str:
    at = random.randint(0, len(text))
    return text[:at] + text[at + 1 :]


def _replace(text: str, random: Random) -> str:
    at = random.randint(0, len(text))
    return text[:at] + random.choice((*STRANGE, *WORDS)) + text[at + 1 :]


def _tokens(change: Callable[[list[str], Random], None]) -> Callable[[str, Random], str]:
    def mutate(text: str, random: Random) -> str:
        tokens = TOKENS.findall(text)
        if tokens:
            change(tokens, random)
        return "".join(tokens)

    return mutate


def _swap(tokens: list[str], random: Random) -> None:
    one, other = random.randrange(len(tokens)), random.randrange(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _exchange(tokens: list[str], random: Random) -> None:
    """A token for another of the same text: often still a program."""
    solid = [i for i, t in enumerate(tokens) if not t.isspace()]
    if solid:
        tokens[random.choice(solid)] = tokens[random.choice(solid)]


def _other_word(tokens: list[str], random: Random) -> None:
    tokens[random.randrange(len(tokens))] = random.choice(WORDS)


def _huge(tokens: list[str], random: Random) -> None:
    numbers = [i for i, t in enumerate(tokens) if t.isdigit()] or range(len(tokens))
    tokens[random.choice(numbers)] = random.choice(HUGE)


def _duplicate(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:end] + text[start:end] * random.choice((1, 1, 2, 20)) + text[end:]


def _cut(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:start] + text[end:]


def _splice(text: str, random: Random) -> str:
    other = random.choice(PROGRAMS)
    return text[: random.randint(0, len(text))] + other[random.randint(0, len(other)) :]


def _join(text: str, random: Random) -> str:
    return text + "\n" + random.choice(PROGRAMS)


def _shuffle(text: str, random: Random) -> str:
    statements = text.split(".\n")
    random.shuffle(statements)
    return ".\n".join(statements)


def _nest(text: str, random: Random) -> str:
    left, right = random.choice(
        (
            ("(", ")"),
            ("not (", ")"),
            ("max(1, ", ")"),
            ("-", ""),
            ("{", "}"),
            ("p(", ")"),
            ("[", "]"),
        )
    )
    depth = random.choice((3, 30, 300, 3000))
    start, end = _span(text, random, 20)
    return text[:start] + left * depth + text[start:end] + right * depth + text[end:]


def _repeat(text: str, random: Random) -> str:
    """One short thing very often: long conjunctions, alternatives, sums, names."""
    piece = random.choice((", T1 != T", " ; s(T)", " + 1", ", not q(T1)", "x", ".", "/*", '"', " "))
    at = random.randint(0, len(text))
    return text[:at] + piece * random.choice((10, 100, 1000)) + text[at:]


MUTATIONS_OF: tuple[Callable[[str, Random], str], ...] = (
    _insert,
    _delete,
    _replace,
    _tokens(_swap),
    _tokens(_exchange),
    _tokens(_exchange),
    _tokens(_other_word),
    _tokens(_other_word),
    _tokens(_huge),
    _duplicate,
    _cut,
    _splice,
    _join,
    _shuffle,
    _nest,
    _repeat,
)


# ----------------------------------------------------------------------------- the harness


def faults(compilation: Program) -> Iterator[str]:
    """What is wrong with the findings themselves."""
    for diagnostic in compilation.diagnostics:
        yield from _misplaced(diagnostic, compilation.source)
    if compilation.ok and compilation.closed.plan is None:
        yield "no findings, and no plan either"


def _misplaced(diagnostic: Diagnostic, source: Source) -> Iterator[str]:
    for label in diagnostic.labels:
        span = label.span
        if span.source is not source or not 0 <= span.start <= span.end <= len(source.text):
            yield f"{diagnostic.code} points at {span} of {span.source.path}"


@pytest.mark.parametrize(
    "first", range(0, MUTATIONS, SHARE), ids=lambda first: f"seed {SEED}, from {first}"
)
def test_mutations(first: int) -> None:
    slowest, text = 0.0, ""
    seen: Counter[str] = Counter()
    for number in range(first, min(first + SHARE, MUTATIONS)):
        random = Random(f"{SEED}/{number}")
        program, mode = mutated(random), random.choice(tuple(Mode))
        where = f"seed {SEED}, mutation {number} ({mode.value}):\n{program[:3000]!r}"
        result, took = _compiled(program, mode, where)
        if took > HANG:  # What hangs, hangs again; the process had something else to do, perhaps.
            took = min(took, _compiled(program, mode, where)[1])
        if took > slowest:
            slowest, text = took, where
        seen.update({d.code for d in result.diagnostics} or {"nothing"})
        assert list(faults(result)) == [], where
    print(f"\nslowest of {first}…: {slowest:.3f} s, {text[:200]}")
    assert slowest < HANG, f"{slowest:.3f} s: {text}"
    # Mutations that never get past the parser would test nothing else.
    assert seen["SL0101"] < SHARE and sum(seen[c] for c in seen if c > "SL02") > SHARE / 10, seen


def _compiled(program: str, mode: Mode, where: str) -> tuple[Program, float]:
    """The result, and the seconds of processor time that this thread took for it."""
    faulthandler.dump_traceback_later(STUCK, exit=True)
    start = time.thread_time()
    try:
        result = compile_source(Source("fuzz.slog", program), mode=mode)
    except Exception as error:
        raise AssertionError(where) from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    return result, time.thread_time() - start


@pytest.mark.parametrize("text", PROGRAMS, ids=range(len(PROGRAMS)))
def test_the_programs_are_worth_mutating(text: str) -> None:
    """They parse, so that a small change reaches the later passes."""
    result = compile_source(Source("fuzz.slog", text), mode=Mode.BATCH)
    assert result.schema is not None, [d.message for d in result.diagnostics]


def test_a_misplaced_finding_is_noticed() -> None:
    source, other = Source("fuzz.slog", "p(T) <- s(T)"), Source("other.slog", "p(T) <- ")
    broken = compile_source(other)
    assert broken.diagnostics and list(_misplaced(broken.diagnostics[0], source))
