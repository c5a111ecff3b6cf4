"""The kernel, or another executor, against the oracle, for one program with data."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from attrs import evolve
from oracle.executor import NaiveExecutor
from oracle.naive import model
from oracle.programs import Case, executor_steps, on_views

from streamlog.analysis.contract import Keeps
from streamlog.compiler import Program, compile_source, focused
from streamlog.diagnostics import Source
from streamlog.kernel import Kernel
from streamlog.runtime.executor import END, ExecutorFactory, Limits, Resumable, Row
from streamlog.stages import Safe
from streamlog.syntax.ast import Const
from streamlog.syntax.nothing import NONE
from streamlog.syntax.pretty import quoted
from streamlog.syntax.walk import atoms

Answers = dict[str, set[Row]]


def compiled(case: Case) -> Program:
    program = compile_source(Source("case.slog", case.text))
    assert program.ok, program.diagnostics
    return program


def expected(program: Program, case: Case) -> Answers:
    full = model(plain(program, case), {**case.tables, **case.facts})
    return {name: set(full.get(name, ())) for name in closed_derived(program)}


def plain(program: Program, case: Case) -> Program:
    """The program as it is written, before its goals are put on timelines."""
    if not program.schema.views:
        return program
    written = compile_source(Source("plain.slog", case.text), until="safety")
    assert isinstance(written, Safe) and not any(
        written.schema.stream_of(a.pred) != a.pred
        for r in written.schema.rules
        for a in atoms(r.body)
    )
    return evolve(program, schema=written.schema, types=written.types, safety=written.safety)


def closed_derived(program: Program) -> list[str]:
    assert program.schema and program.safety
    # Of rows that a limit will leave out, some are never made.
    complete = {
        n for n, rules in program.schema.rules_of.items() if not any(r.wanted for r in rules)
    }
    return [n for n in program.schema.rules_of if n in complete and not program.safety.is_open(n)]


def tables(program: Program, case: Case) -> dict[str, list[Row]]:
    """The rows of the tables, those that stand in the program too."""
    assert program.schema
    result = {name: list(rows) for name, rows in case.tables.items()}
    for name, facts in program.schema.facts_of.items():
        rows = [tuple(a.value for a in f.atom.args if isinstance(a, Const)) for f in facts]
        result[name] = list(dict.fromkeys([*result.get(name, ()), *rows]))
    return result


def arrivals(program: Program, case: Case) -> dict[str, list[Row]]:
    """The rows of the streams, those that stand in the program too."""
    assert program.schema
    given = tables(program, case)
    return {
        name: sorted({*case.facts.get(name, ()), *given.get(name, ())})
        for name in program.schema.streams
    }


def at_once(program: Program, case: Case, executor: ExecutorFactory = Kernel) -> Answers:
    """Everything in one step."""
    made = executor(program.closed, tables(program, case), Limits())
    facts = on_views(arrivals(program, case), program.schema.views)
    found = made.step(facts, dict.fromkeys(facts, END))
    return collected(program, [found])


def in_steps(
    program: Program,
    case: Case,
    rng: Random,
    *,
    restart: bool = False,
    certain: bool = False,
    tidy: bool = False,
    executor: ExecutorFactory = Kernel,
) -> Answers:
    """Cut into steps; perhaps saved and loaded between two of them; perhaps checked at each step
    against what the contract says must be certain by then; perhaps forgetting at each step what
    may be forgotten, which is otherwise put off until there is much of it."""
    made = executor(program.closed, tables(program, case), Limits())
    naive = NaiveExecutor(program, case.tables) if certain else None
    steps = executor_steps(rng, arrivals(program, case), program.schema.views)
    stop = rng.randrange(len(steps)) if restart else -1
    outputs = []
    released: Answers = {}
    promised: Answers = {}
    for number, (arrived, progress) in enumerate(steps):
        if number == stop:
            assert isinstance(made, Resumable)
            saved = made.save()
            made = executor(program.closed, tables(program, case), Limits())
            assert isinstance(made, Resumable)
            made.load(saved)
            assert as_sets(made.save()) == as_sets(saved)  # nothing is lost by saving twice
        found = made.step(arrived, progress)
        outputs.append(found)
        if tidy:
            made.holding()
        for name, rows in found.items():
            known = released.setdefault(name, set())
            assert len(set(rows)) == len(rows) and not known & set(rows), f"{name} twice: {rows}"
            known |= set(rows)
        if naive is not None:
            for name, rows in naive.step(arrived, progress).items():
                promised.setdefault(name, set()).update(rows)
            for name in closed_derived(program):
                missing = promised.get(name, set()) - released.get(name, set())
                missing = {row for row in missing if is_due(program, name, row, progress)}
                assert not missing, f"{name} held back at step {number}: {sorted(missing)}"
    return collected(program, outputs)


def as_sets(saved: Mapping[str, list[Row]]) -> dict[str, set[Row]]:
    return {name: set(rows) for name, rows in saved.items()}


def is_due(program: Program, name: str, row: Row, progress: dict[str, int]) -> bool:
    """Whether the contract promises a row by now, which may be later than the rules alone would:
    where an open predicate cannot be unfolded, its core is waited for."""
    return all(
        any(
            progress[timeline] >= END or (by is not None and progress[timeline] > row[0] + by)
            for timeline, by in d.ways
        )
        for d in program.contract[name].decided
    )


def collected(program: Program, outputs: list) -> Answers:
    result: Answers = {name: set() for name in closed_derived(program)}
    for found in outputs:
        for name, rows in found.items():
            if name in result:
                result[name] |= set(rows)
    return result


def check(case: Case, rng: Random, cuts: int = 3, executor: ExecutorFactory = Kernel) -> None:
    program = compiled(case)
    answers = expected(program, case)
    assert at_once(program, case, executor) == answers, "at once"
    assert program.schema
    # The naive executor knows the facts of the program before they arrive.
    comparable = not program.schema.facts_of.keys() & set(program.schema.streams)
    for number in range(cuts):
        certain = number == 1 and comparable
        found = in_steps(
            program,
            case,
            rng,
            restart=number == 0,
            certain=certain,
            tidy=number == 2,
            executor=executor,
        )
        assert found == answers, f"cut {number}"


def check_answers_alone(case: Case, rng: Random) -> bool:
    """A run for a query with constants, or for one output, gives the answers it is asked for.
    Returns whether the rules were made for them."""
    program = compiled(case)
    model_ = expected(program, case)
    lines = [line for line in case.text.splitlines() if not line.startswith("output ")]
    # What is made of a part of a rule has another name beside a question about it.
    auxiliary = {r.head.pred for r in program.schema.rules if r.is_auxiliary}
    name = rng.choice(sorted(model_.keys() - auxiliary))
    arity, rows = program.schema[name].arity, sorted(model_[name])
    wanted: dict[int, object] = {}
    if rng.random() < 0.3 or not rows:
        lines.append(f"output {name}.")
    else:
        row = rng.choice(rows)
        wanted = {i: row[i] for i in range(1, arity) if rng.random() < 0.7}
        args = (_text(wanted[i]) if i in wanted else f"V{i}" for i in range(arity))
        lines.append(f"?{name}({', '.join(args)}).")
    asking = compiled(evolve(case, text="\n".join(lines) + "\n"))
    made = focused(asking)
    answers = {r for r in model_[name] if all(r[i] == value for i, value in wanted.items())}
    kernel = Kernel(made.closed, tables(asking, case))
    found = []
    for arrived, progress in executor_steps(rng, arrivals(asking, case), asking.schema.views):
        found += kernel.step(arrived, progress).get(name, [])
    assert len(set(found)) == len(found), "an answer twice"
    assert {r for r in found if all(r[i] == v for i, v in wanted.items())} == answers, lines[-1]
    return made is not asking


def _text(value: object) -> str:
    if value is NONE:
        return "none"
    return quoted(value) if isinstance(value, str) else str(value)


def check_one_per_key(case: Case, rng: Random) -> int:
    """Where the contract promises one row per key, that is what is held of rows that are old.
    Returns of how many predicates it does."""
    program = compiled(case)
    closed = program.closed
    assert closed and closed.contract and closed.schema and closed.strata and program.closed.plan
    contract, schema = closed.contract, closed.schema
    promised = {p.predicate.name: p for p in contract.predicates if p.kept.what is Keeps.PER_KEY}
    far = max((d.by or 0 for p in contract.predicates for d in p.delays), default=0)
    far += max(closed.strata.potential.values(), default=0)
    kernel = Kernel(program.closed, tables(program, case))
    for arrived, progress in executor_steps(rng, arrivals(program, case), program.schema.views):
        kernel.step(arrived, progress)
        kernel.holding()  # which tidies up
        for name, entry in promised.items():
            bound = min(progress.values()) - far - entry.kept.span
            indexes = [i for i in kernel.plan.indexes if i.pred == name]
            held = [r for i in indexes for r in kernel._memory.rows(i)]  # not those in candidates
            rows = [r for r in held if r[0] is not None and r[0] < bound]
            key = [schema.column_names[name].index(c) for c in entry.kept.columns]
            keys = [tuple(r[i] for i in key) for r in rows]
            old = [
                program.closed.plan.thinned[i] for i in indexes if i in program.closed.plan.thinned
            ]
            few = [e for o in old for e in o.sufficient]
            if any(e.best and (e.best.count > 1 or 0 in e.columns) for e in few):
                continue  # a limit: any number may have one of the best values
            if any(e.best and e.best.column == 0 for o in old for e in o.sufficient):
                # Of the latest, all at that time.
                keys = [k for k, _ in {(k, r[0]) for k, r in zip(keys, rows, strict=True)}]
            most = len(set(keys)) * len(indexes) * max(1, len(entry.kept.best))
            assert len(keys) <= most, f"{name}: {rows}"
    return len(promised)
