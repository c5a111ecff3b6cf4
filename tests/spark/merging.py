"""Many small programs as one, so that Spark has few large things to do instead of many small ones.

Predicates get the number of their program: `x7_p1`. Programs with `tick`, or with timers, which
depend on the time that *any* stream speaks of, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from random import Random

from attrs import evolve, frozen
from kernel_checks import Answers, arrivals, at_once, compiled, tables
from oracle.programs import Case, random_case

from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source
from streamlog.runtime.executor import Row
from streamlog.syntax.ast import Atom, Output, State, Stream, Table
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import Node, transform


@frozen
class Merged:
    program: Program
    text: str
    facts: dict[str, list[Row]]
    tables: dict[str, list[Row]]
    answers: Answers


def suitable_cases(
    seeds: Iterable[int], make: Callable[[Random], Case]
) -> Iterator[tuple[int, Case, Program]]:
    for seed in seeds:
        case = make(Random(seed))
        program = compiled(case)
        assert program.closed.plan
        alone = any(c.is_timer or "tick" in c.preds for c in program.closed.plan.components)
        if not alone:
            yield seed, case, program


def merged(
    seeds: Iterable[int],
    slack: int | None = None,
    make: Callable[[Random], Case] = random_case,
    idle: int | None = None,
) -> Merged:
    """The programs of the seeds together, with what the kernel answers to each alone. With a
    slack, every stream is declared to have it, and to be `idle` if that is given too."""
    texts: list[str] = []
    facts: dict[str, list[Row]] = {}
    given: dict[str, list[Row]] = {}
    answers: Answers = {}
    for seed, case, program in suitable_cases(seeds, make):
        assert program.schema
        start = f"x{seed}_"
        own = case.text
        if slack is not None:
            streams = declared(program, f"slack {slack}" + (f" idle {idle}" if idle else ""))
            if streams is None:
                continue
            own = streams + re.sub(r"^stream [^.]*\.$", "", own, flags=re.M)
        texts.append(prefixed(own, start, program.schema.predicates.keys()))
        facts |= {start + n: rows for n, rows in arrivals(program, case).items()}
        given |= {start + n: rows for n, rows in tables(program, case).items()}
        answers |= {start + n: rows for n, rows in at_once(program, case).items()}
    text = "\n".join(texts)
    program = compile_source(Source("merged", text))
    assert program.ok, [d.message for d in program.diagnostics]
    return Merged(program, text, facts, given, answers)


def prefixed(text: str, start: str, names: Collection[str]) -> str:
    """A program with longer names for its predicates, and without outputs."""
    module = compile_source(Source("one", text), until="parse").parsed
    names = {*names, *(s.head.pred for s in module.statements if isinstance(s, State))}

    def longer(node: Node) -> Node:
        match node:
            case Atom(name) if name in names:
                return evolve(node, pred=start + name)
            case Stream(name) | Table(name):
                return evolve(node, name=start + name)
            case _:
                return node

    kept = [s for s in module.statements if not isinstance(s, Output)]
    return "".join(f"{pretty(transform(s, longer))}\n" for s in kept)


def declared(program: Program, options: str) -> str | None:
    """Its streams as declarations, if all their types are known."""
    assert program.schema and program.types
    result = ""
    for name in program.schema.streams:
        types = [program.types.column(name, i) for i in range(program.schema[name].arity)]
        if None in types:
            return None
        optional = program.schema.optional
        columns = (
            f"k{i}: {t.value}{'?' * ((name, i) in optional)}" for i, t in enumerate(types) if t
        )
        result += f"stream {name}({', '.join(columns)}) {options}.\n"
    return result
