"""Text to program: the passes, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, fields, frozen

from streamlog.analysis.advice import advice, kept_for_ever
from streamlog.analysis.contract import as_executed, contract, is_as_soon
from streamlog.analysis.dependency import dependencies, mark_of
from streamlog.analysis.modules import files_of, merged
from streamlog.analysis.premap import check_extrema
from streamlog.analysis.refusals import STREAM_ONLY, refusals
from streamlog.analysis.retention import retentions
from streamlog.analysis.safety import check_safety
from streamlog.analysis.schema import Kind, resolve
from streamlog.analysis.sequential import classify_all
from streamlog.analysis.skipping import check_skipping
from streamlog.analysis.strata import stratify
from streamlog.analysis.suppressed import suppressed, with_metadata
from streamlog.analysis.temporal import check_heads
from streamlog.analysis.time.reach import reaches
from streamlog.analysis.time.relations import relations
from streamlog.analysis.types import infer
from streamlog.analysis.versions import Case, Version, split_all
from streamlog.codes import Severity
from streamlog.diagnostics import Diagnostic, Source, in_order
from streamlog.plan.lower import lower
from streamlog.plan.parts import for_answers
from streamlog.rewrite import failures
from streamlog.rewrite.bistate import bistate
from streamlog.rewrite.close import close
from streamlog.rewrite.constants import constants
from streamlog.rewrite.desugar import desugar
from streamlog.rewrite.number import numbered
from streamlog.rewrite.open_predicates import open_rules
from streamlog.rewrite.timelines import on_timelines
from streamlog.stages import (
    Analysed,
    Bistated,
    Closed,
    Compilation,
    Mode,
    Narrowed,
    Opened,
    Parsed,
    Planned,
    Program,
    Resolved,
    Safe,
    Stratified,
    Timed,
    Typed,
)
from streamlog.syntax.ast import Export, Module, Rule, Type
from streamlog.syntax.load import load, read
from streamlog.syntax.parse import parse
from streamlog.syntax.root import root_of
from streamlog.syntax.walk import atoms, variables

# What the passes are for, and what comes out at their end.
__all__ = [
    "PASSES",
    "Compilation",
    "Mode",
    "Parsed",
    "Planned",
    "Program",
    "compile_file",
    "compile_module",
    "compile_source",
    "focused",
    "skipping",
]


@frozen
class Pass:
    """A step from one stage to the next. It runs only while there are no errors, unless it can
    make sense of a program in spite of them."""

    name: str
    run: Callable[[Any], Compilation]
    in_spite_of_errors: type[Compilation] | None = None  # if the program has come so far


def _parse(text: Compilation) -> Parsed:
    module, diagnostics = parse(text.source)
    return text.to(Parsed, diagnostics, parsed=module, module=module)


def _load(program: Parsed) -> Parsed:
    main, diagnostics = load(program.module, program.root)
    module, more = merged(main)
    files = tuple(file.source for file in files_of(main))
    return program.to(Parsed, (*diagnostics, *more), module=module, written=module, files=files)


def _desugar(program: Parsed) -> Parsed:
    module, diagnostics = desugar(program.module)
    return program.to(Parsed, diagnostics, module=module)


def _schema(program: Parsed) -> Resolved:
    module = numbered(program.module)
    schema, diagnostics = resolve(module)
    if not any(d.is_error for d in diagnostics):
        diagnostics += tuple(check_heads(schema.rules, schema.is_temporal, schema.timestamps))
    # What is exported is a matter of files, and rewriting may leave nothing of it.
    statements = tuple(s for s in module.statements if not isinstance(s, Export))
    module = evolve(module, statements=statements)
    return program.to(Resolved, diagnostics, module=module, schema=schema)


def _types(program: Resolved) -> Typed:
    types, diagnostics = infer(program.schema, program.given)
    return program.to(Typed, diagnostics, types=types)


def _safety(program: Typed) -> Safe:
    safety, diagnostics = check_safety(program.schema)
    return program.to(Safe, diagnostics, safety=safety)


def _timelines(program: Safe) -> Safe:
    """On which of a stream's timelines each goal reads it."""
    schema, types = program.schema, program.types
    if not schema.views:
        return program
    module = on_timelines(program.module, schema, types, relations(schema, types))
    if module is program.module:
        return program
    made = _through(PASSES[_place("schema") : _place("safety") + 1], _again(program, module))
    assert isinstance(made, Safe), made.diagnostics
    return evolve(
        program, module=made.module, schema=made.schema, types=made.types, safety=made.safety
    )


def _time(program: Safe) -> Timed:
    known = relations(program.schema, program.types)
    times, diagnostics = reaches(program.schema, program.types, known)
    graph = dependencies(program.schema, times)
    return program.to(Timed, diagnostics, times=times, relations=known, graph=graph)


def _strata(program: Timed) -> Stratified:
    schema, strata = program.schema, stratify(program.graph)
    diagnostics = [
        *refusals(schema, program.times, strata, program.clocks),
        *check_extrema(schema, strata, program.safety.open),
    ]
    if program.mode is Mode.BATCH:
        diagnostics = [_accepted_in_batch(d) if d.code in STREAM_ONLY else d for d in diagnostics]
    rules = classify_all(
        schema.rules, program.times, {n: p.temporal for n, p in schema.predicates.items()}
    )
    return program.to(Stratified, diagnostics, strata=strata, rules=rules)


def _accepted_in_batch(refusal: Diagnostic) -> Diagnostic:
    return evolve(
        refusal,
        severity=Severity.NOTE,
        help=("accepted over stored data: the answers come when all data have been read",),
    )


def _contract(program: Stratified) -> Analysed:
    schema, strata = program.schema, program.strata
    cases: tuple[Case, ...] = ()
    too_many: tuple[Diagnostic, ...] = ()
    if program.runs_by_the_clock:
        cases, too_many = split_all(program.times, schema, strata.potential)
    retained = retentions(program.times, cases, strata.potential)
    promised = contract(
        schema,
        program.safety,
        program.clocks,
        program.graph,
        program.rules,
        retained.values() if cases else (),
    )
    diagnostics = (*too_many, *advice(schema, strata, promised, program.source))
    made = {"cases": cases, "retained": retained, "contract": promised}
    return program.to(Analysed, diagnostics, **made)


def _open_predicates(program: Analysed) -> Opened:
    split = open_rules(program.schema, program.safety, program.times, program.clocks)
    return program.to(Opened, open_rules=split)


def _close(program: Opened) -> Closed:
    """The program that executors run, and what of the contract follows from that."""
    closed, errors = _closed(program)
    if errors:
        return program.to(Closed, errors, closed=closed)
    promised = program.contract
    if closed is not program:
        cores = {r.core.head.pred: r for r in program.open_rules if isinstance(r.core, Rule)}
        named = {
            name: (core.rule.head.pred, core.column_names(program.schema, columns))
            for name, columns in closed.schema.column_names.items()
            if (core := cores.get(name)) is not None
        }
        promised = as_executed(promised, closed.contract, named)
    return program.to(Closed, kept_for_ever(promised), closed=closed, contract=promised)


def _closed(program: Opened) -> tuple[Analysed, Sequence[Diagnostic]]:
    """The program without open predicates, analysed anew because its rules have changed.

    With cores, unless they would make it wait for longer than it has to: a core of two goals is
    known when both are. Then calls are unfolded in place, except those by which a rule would fall
    into too many cases.
    """
    late: Analysed | None = None
    too_many: list[Diagnostic] = []
    tries = [frozenset[str](), frozenset(r.rule.head.pred for r in program.open_rules)]
    for in_place in tries:
        module, found = close(program.module, program.open_rules, in_place)
        if module is program.module:
            return program, ()
        if not found:
            closed = _analysed(program, module)
            found = tuple(d for d in closed.diagnostics if d.is_error)
            if isinstance(closed, Analysed) and not found:
                if is_as_soon(closed.contract, program.contract):
                    return closed, ()
                late = late or closed
        # Rules grow when calls are unfolded; nothing else can go wrong that was right before.
        grown = [d for d in found if d.code == "SL0406"]
        fewer = in_place - _called(program, grown)
        if fewer and fewer != in_place:
            tries.append(fewer)
        too_many = too_many or grown
    assert late is not None or too_many
    return late or program, () if late else too_many


def _called(program: Opened, diagnostics: Iterable[Diagnostic]) -> set[str]:
    """The open predicates that the rules of diagnostics call, by way of others too."""
    opened = {r.rule.head.pred for r in program.open_rules}
    reached: set[str] = set()
    spans = [d.span for d in diagnostics]
    rules = [r for r in program.schema.rules if any(r.span.encloses(s) for s in spans)]
    for rule in rules:
        called = {a.pred for a in atoms(rule.body)} & opened - reached
        rules += [r for r in program.schema.rules if r.head.pred in called]
        reached |= called
    return reached


def _analysed(program: Typed, module: Module) -> Compilation:
    """The program of other rules over the same inputs."""
    passes = PASSES[_place("schema") : _place("contract") + 1]
    return _through(passes, _again(program, module))


def _again(program: Typed, module: Module) -> Parsed:
    """Other rules over the same inputs, whose types are known: a program made of rules has no
    tests, whose facts say something of types too."""
    types, predicates = program.types, program.schema.predicates
    given: dict[tuple[str, int], Type] = {}
    for name, p in predicates.items():
        if p.kind is not Kind.DERIVED:
            for position in range(p.arity):
                of = (name, position) if p.view is None else (p.view.of, p.view.order[position])
                if (type_ := types.column(*of)) is not None:
                    given[name, position] = type_
    return Parsed(
        source=program.source,
        mode=program.mode,
        root=program.root,
        parsed=module,
        module=module,
        given=given,
    )


def _constants(program: Closed) -> Narrowed:
    schema, closed = program.schema, program.closed
    module = closed.module
    if schema.outputs or schema.queries:
        module = constants(
            module,
            closed.schema,
            closed.types,
            program.contract.outputs,
            () if schema.outputs else schema.queries,
        )
    return program.to(Narrowed, for_answers=module)


def _bistate(program: Narrowed) -> Bistated:
    """Of the program as it stands; but where an open predicate would be old, and so would have to
    be stored, of the program without open predicates. An aggregate over such a predicate has no
    bistate rule: there the variables of the core would tell solutions apart. Nor has a limit."""
    if not program.runs_by_the_clock:
        return program.to(Bistated, bistate=None)
    made_of: Analysed = program
    for goal in (g for case in program.cases for g in case.atoms):
        if goal.version is Version.OLD and program.safety.is_open(goal.atom.pred):
            made_of = program.closed
    if any(rule.limit is not None for rule in made_of.schema.rules):
        return program.to(Bistated, bistate=None)
    counting = (r for r in made_of.schema.rules if mark_of(r) is not None)
    if made_of is not program and any(v.is_from_core for r in counting for v in variables(r.body)):
        return program.to(Bistated, bistate=None)
    made = bistate(
        program.module.span, made_of.schema, made_of.types, made_of.strata, made_of.cases
    )
    return program.to(Bistated, bistate=made)


def _plan(program: Bistated) -> Program:
    return program.to(Program, closed=_planned(program.closed))


def focused(program: Program) -> Program:
    """The program for a run that shows its answers and nothing else: rules are made for the
    constants that are asked for, if time still allows them then. Other predicates may lack rows."""
    closed = program.closed
    if program.for_answers is not closed.module:
        made = _analysed(program, program.for_answers)
        # `tick` sees all streams.
        if isinstance(made, Analysed) and made.schema.timelines == closed.schema.timelines:
            closed = _planned(made)
    if program.schema.outputs or program.schema.queries:
        plan = for_answers(closed.plan, program.contract.outputs)
        closed = closed if plan is closed.plan else evolve(closed, plan=plan)
    return program if closed is program.closed else evolve(program, closed=closed)


def skipping(program: Program) -> Program:
    """The program that leaves solutions out that cannot be computed, and finds them. Raises
    `SkipError` where something else could change by that."""
    closed = program.closed
    executed = {r.rule.span: r.rule for r in closed.plan.rules}
    check_skipping(closed.failing, executed)
    module, errors = failures.skipping(closed.module, closed.failing, executed)
    if not errors:
        return evolve(program, errors=errors)
    made = _analysed(program, module)
    assert isinstance(made, Analysed) and made.ok
    planned = _planned(made, skips=True)
    wanted = {*errors, *(rule.head.pred for rule in executed.values())}
    plan = for_answers(planned.plan, wanted)
    return evolve(program, closed=evolve(planned, plan=plan), errors=errors)


def _planned(closed: Analysed, *, skips: bool = False) -> Planned:
    plan = lower(
        closed.schema,
        closed.types,
        closed.times,
        closed.graph,
        closed.strata,
        closed.contract,
        closed.retained,
        closed.failing,
        skips,
    )
    known = {a.name: getattr(closed, a.name) for a in fields(Analysed)}
    return Planned(**known, plan=plan)


# The order matters: desugaring needs all statements together, types and safety need names that
# are settled, time needs types (only whole numbers make differences), strata need time.
PASSES = (
    Pass("parse", _parse),
    Pass("load", _load),
    Pass("desugar", _desugar),
    Pass("schema", _schema),
    Pass("types", _types),
    Pass("safety", _safety, in_spite_of_errors=Typed),  # a wrong type does not hide a slip
    Pass("timelines", _timelines),
    Pass("time", _time),
    Pass("strata", _strata),
    Pass("contract", _contract),
    Pass("open_predicates", _open_predicates),
    Pass("close", _close),
    Pass("constants", _constants),
    Pass("bistate", _bistate),
    Pass("plan", _plan),
)


def _place(name: str) -> int:
    return [p.name for p in PASSES].index(name)


def compile_source(
    source: Source,
    *,
    mode: Mode = Mode.STREAM,
    root: Path | None = None,
    until: str | None = None,
) -> Compilation:
    """The program of a text: a `Program`, unless it has errors, or `until` names an earlier pass.
    `root` is the folder below which `use` may look."""
    passes = PASSES[: _place(until) + 1] if until else PASSES
    return _reviewed(_through(passes, Compilation(source=source, mode=mode, root=root)))


def compile_module(
    module: Module,
    diagnostics: Iterable[Diagnostic] = (),
    *,
    mode: Mode = Mode.STREAM,
    root: Path | None = None,
) -> Compilation:
    """The program of statements that were read already, perhaps from several texts."""
    start = Compilation(source=module.span.source, mode=mode, root=root)
    read = start.to(Parsed, diagnostics, parsed=module, module=module, written=module)
    return _reviewed(_through(PASSES[_place("load") + 1 :], read))


def _reviewed(program: Compilation) -> Compilation:
    """Without what comments allow, and with what annotations say of the rules."""
    if not isinstance(program, Parsed):
        return program
    # What passes have not seen, and what only holds in a stream, cannot be judged.
    is_whole = isinstance(program, Program) and program.mode is Mode.STREAM
    judged = program.source if is_whole else None
    module = program.module
    left, used = suppressed(program.diagnostics, module.suppressions, judged)
    found = in_order(with_metadata(left, module.statements))
    return evolve(program, diagnostics=found, suppressing=used)


def _through(passes: Iterable[Pass], program: Compilation) -> Compilation:
    for step in passes:
        in_spite = step.in_spite_of_errors
        if program.ok or (in_spite is not None and isinstance(program, in_spite)):
            program = step.run(program)
    return program


def compile_file(path: Path, *, mode: Mode = Mode.STREAM, until: str | None = None) -> Compilation:
    source = read(path)
    if isinstance(source, Diagnostic):
        return Compilation(source=source.span.source, mode=mode, diagnostics=(source,))
    return compile_source(source, mode=mode, root=root_of(path), until=until)
