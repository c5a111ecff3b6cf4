"""Text to program: the passes, in order."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from attrs import evolve, field, frozen

from streamlog.analysis.advice import advice, kept_for_ever
from streamlog.analysis.contract import Contract, as_executed, contract, is_as_soon
from streamlog.analysis.dependency import Graph, dependencies, mark_of
from streamlog.analysis.premap import check_extrema
from streamlog.analysis.refusals import STREAM_ONLY, refusals
from streamlog.analysis.safety import Safety, check_safety
from streamlog.analysis.schema import Schema, resolve
from streamlog.analysis.sequential import Class, RuleClass, classify_all
from streamlog.analysis.strata import Strata, stratify
from streamlog.analysis.temporal import check_heads
from streamlog.analysis.time.reach import Assumption, BranchTime, reaches
from streamlog.analysis.types import TypeTable, infer
from streamlog.analysis.versions import Case, Version, split_all
from streamlog.codes import Severity
from streamlog.diagnostics import Diagnostic, Source, in_order
from streamlog.plan.lower import lower
from streamlog.plan.steps import Plan
from streamlog.rewrite.bistate import Bistate, bistate
from streamlog.rewrite.close import close
from streamlog.rewrite.constants import constants
from streamlog.rewrite.desugar import desugar
from streamlog.rewrite.open_predicates import OpenRule, open_rules
from streamlog.syntax.ast import Module, Rule, Type
from streamlog.syntax.load import load, read
from streamlog.syntax.parse import parse
from streamlog.syntax.walk import variables

T = TypeVar("T")


class Mode(enum.Enum):
    STREAM = "stream"
    BATCH = "batch"  # over stored data: blocking is fine, the end of the data is known


@frozen(slots=False)
class Compilation:
    """A program as far as the passes have come. What a pass has not made yet is missing."""

    source: Source
    mode: Mode = Mode.STREAM
    root: Path | None = None  # where `use` may look; None: nowhere
    diagnostics: tuple[Diagnostic, ...] = ()
    parsed: Module | None = None
    module: Module | None = None
    schema: Schema | None = None
    types: TypeTable | None = None
    safety: Safety | None = None
    times: tuple[BranchTime, ...] = ()
    graph: Graph | None = None
    strata: Strata | None = None
    rules: tuple[RuleClass, ...] = ()
    cases: tuple[Case, ...] = ()
    contract: Contract | None = None
    open_rules: tuple[OpenRule, ...] = ()
    bistate: Bistate | None = field(default=None, repr=False)
    closed: Compilation | None = field(default=None, repr=False)  # without open predicates
    for_answers: Module | None = field(default=None, repr=False)  # of that, what they rest on
    plan: Plan | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        return not any(d.is_error for d in self.diagnostics)

    @property
    def runs_by_the_clock(self) -> bool:
        """Whether no fact waits for ever; else the program is for stored data only."""
        strata = the(self.strata)
        return not strata.growing and all(r.kind is not Class.BLOCKING for r in self.rules)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What its time rests on that only the facts of tables say."""
        closed = self.closed.times if self.closed else ()
        return tuple(dict.fromkeys(a for t in (*self.times, *closed) for a in t.assumes))

    @cached_property
    def clocks(self) -> Mapping[str, Type | None]:
        """The type of each timestamped predicate's clock."""
        schema, types = the(self.schema), the(self.types)
        return {n: types.column(n, 0) for n, p in schema.predicates.items() if p.temporal}

    def saying(self, diagnostics: Iterable[Diagnostic]) -> Compilation:
        return evolve(self, diagnostics=in_order((*self.diagnostics, *diagnostics)))


@frozen
class Pass:
    """A step from one compilation to the next. It runs only while there are no errors, unless
    it can make sense of a program in spite of them."""

    name: str
    run: Callable[[Compilation], Compilation]
    in_spite_of_errors: bool = False


def the(value: T | None) -> T:
    """What an earlier pass has made."""
    assert value is not None
    return value


def _parse(so_far: Compilation) -> Compilation:
    module, diagnostics = parse(so_far.source)
    return evolve(so_far.saying(diagnostics), parsed=module, module=module)


def _load(so_far: Compilation) -> Compilation:
    module, diagnostics = load(the(so_far.module), so_far.root)
    return evolve(so_far.saying(diagnostics), module=module)


def _desugar(so_far: Compilation) -> Compilation:
    module, diagnostics = desugar(the(so_far.module))
    return evolve(so_far.saying(diagnostics), module=module)


def _schema(so_far: Compilation) -> Compilation:
    schema, diagnostics = resolve(the(so_far.module))
    if not any(d.is_error for d in diagnostics):
        diagnostics += tuple(check_heads(schema.rules, schema.is_temporal))
    return evolve(so_far.saying(diagnostics), schema=schema)


def _types(so_far: Compilation) -> Compilation:
    types, diagnostics = infer(the(so_far.schema))
    return evolve(so_far.saying(diagnostics), types=types)


def _safety(so_far: Compilation) -> Compilation:
    safety, diagnostics = check_safety(the(so_far.schema))
    return evolve(so_far.saying(diagnostics), safety=safety)


def _time(so_far: Compilation) -> Compilation:
    schema = the(so_far.schema)
    times, diagnostics = reaches(schema, the(so_far.types))
    graph = dependencies(schema, times)
    return evolve(so_far.saying(diagnostics), times=times, graph=graph)


def _strata(so_far: Compilation) -> Compilation:
    schema, strata = the(so_far.schema), stratify(the(so_far.graph))
    found = [
        *refusals(schema, so_far.times, strata, so_far.clocks),
        *check_extrema(schema, strata, the(so_far.safety).open),
    ]
    if so_far.mode is Mode.BATCH:
        found = [_accepted_in_batch(d) if d.code in STREAM_ONLY else d for d in found]
    rules = classify_all(
        schema.rules, so_far.times, {n: p.temporal for n, p in schema.predicates.items()}
    )
    return evolve(so_far.saying(found), strata=strata, rules=rules)


def _accepted_in_batch(refusal: Diagnostic) -> Diagnostic:
    return evolve(
        refusal,
        severity=Severity.NOTE,
        help=("accepted over stored data: the answers come when all data have been read",),
    )


def _contract(so_far: Compilation) -> Compilation:
    schema, strata = the(so_far.schema), the(so_far.strata)
    cases: tuple[Case, ...] = ()
    if so_far.runs_by_the_clock:
        cases, too_many = split_all(so_far.times, schema, strata.potential)
        so_far = so_far.saying(too_many)
    promised = contract(
        schema,
        the(so_far.safety),
        so_far.clocks,
        the(so_far.graph),
        so_far.rules,
        cases,
    )
    said = so_far.saying(advice(schema, strata, promised))
    return evolve(said, cases=cases, contract=promised)


def _open_predicates(so_far: Compilation) -> Compilation:
    found = open_rules(the(so_far.schema), the(so_far.safety), so_far.times, so_far.clocks)
    return evolve(so_far, open_rules=found)


def _close(so_far: Compilation) -> Compilation:
    """The program that executors run, and what of the contract follows from that."""
    closed, errors = _closed(so_far)
    if errors:
        return evolve(so_far.saying(errors), closed=closed)
    cores = {
        r.core.head.pred: r.rule.head.pred for r in so_far.open_rules if isinstance(r.core, Rule)
    }
    promised = the(so_far.contract)
    if closed is not so_far:
        promised = as_executed(promised, the(closed.contract), cores)
    return evolve(so_far.saying(kept_for_ever(promised)), closed=closed, contract=promised)


def _closed(so_far: Compilation) -> tuple[Compilation, Sequence[Diagnostic]]:
    """The program without open predicates, analysed anew because its rules have changed.

    With cores, unless they would make it wait for longer than it has to: a core of two goals is
    known when both are.
    """
    late: Compilation | None = None
    closed = so_far
    for in_place in (False, True):
        module, found = close(the(so_far.module), so_far.open_rules, in_place=in_place)
        if module is so_far.module or found:
            return late or so_far, () if late else found
        closed = _analysed(so_far, module)
        if closed.ok and is_as_soon(the(closed.contract), the(so_far.contract)):
            return closed, ()
        late = late or (closed if closed.ok else None)
    if late is not None:
        return late, ()
    # Rules grow when calls are unfolded; nothing else can go wrong that was right before.
    errors = [d for d in closed.diagnostics if d.is_error]
    assert all(d.code == "SL0406" for d in errors), [d.message for d in errors]
    return closed, errors


def _analysed(so_far: Compilation, module: Module) -> Compilation:
    made = Compilation(so_far.source, so_far.mode, so_far.root, module=module)
    for run in (_schema, _types, _safety, _time, _strata, _contract):
        made = run(made)
    return made


def _constants(so_far: Compilation) -> Compilation:
    closed, schema = the(so_far.closed), the(so_far.schema)
    module = the(closed.module)
    if schema.outputs or schema.queries:
        module = constants(
            module,
            the(closed.schema),
            the(closed.types),
            the(so_far.contract).outputs,
            () if schema.outputs else schema.queries,
        )
    return evolve(so_far, for_answers=module)


def focused(program: Compilation) -> Compilation:
    """The program for a run that shows its answers and nothing else: rules are made for the
    constants that are asked for, if time still allows them then. Other predicates may lack rows."""
    module, closed = the(program.for_answers), the(program.closed)
    if module is closed.module:
        return program
    made = _analysed(program, module)
    if not made.ok or the(made.schema).streams != the(closed.schema).streams:  # `tick` sees all
        return program
    return _plan(evolve(program, closed=made))


def _bistate(so_far: Compilation) -> Compilation:
    """Of the program as it stands; but where an open predicate would be old, and so would have to
    be stored, of the program without open predicates. An aggregate over such a predicate has no
    bistate rule: there the variables of the core would tell solutions apart."""
    if not so_far.runs_by_the_clock:
        return so_far
    safety, made_of = the(so_far.safety), so_far
    for goal in (g for case in so_far.cases for g in case.atoms):
        if goal.version is Version.OLD and safety.is_open(goal.atom.pred):
            made_of = the(so_far.closed)
    counting = (r for r in the(made_of.schema).rules if mark_of(r) is not None)
    if made_of is not so_far and any(v.is_from_core for r in counting for v in variables(r.body)):
        return so_far
    made = bistate(
        the(so_far.module).span,
        the(made_of.schema),
        the(made_of.types),
        the(made_of.strata),
        made_of.cases,
    )
    return evolve(so_far, bistate=made)


def _plan(so_far: Compilation) -> Compilation:
    closed = the(so_far.closed)
    made = lower(
        the(closed.schema),
        the(closed.types),
        closed.times,
        the(closed.graph),
        the(closed.strata),
        the(closed.contract),
        closed.cases,
    )
    return evolve(so_far, plan=made)


# The order matters: desugaring needs all statements together, types and safety need names that
# are settled, time needs types (only whole numbers make differences), strata need time.
PASSES = (
    Pass("parse", _parse),
    Pass("load", _load),
    Pass("desugar", _desugar),
    Pass("schema", _schema),
    Pass("types", _types),
    Pass("safety", _safety, in_spite_of_errors=True),  # a wrong type does not hide a slip
    Pass("time", _time),
    Pass("strata", _strata),
    Pass("contract", _contract),
    Pass("open_predicates", _open_predicates),
    Pass("close", _close),
    Pass("constants", _constants),
    Pass("bistate", _bistate),
    Pass("plan", _plan),
)


def compile_source(
    source: Source,
    *,
    mode: Mode = Mode.STREAM,
    root: Path | None = None,
    until: str | None = None,
) -> Compilation:
    """The program of a text. `root` is the folder below which `use` may look."""
    return _through(PASSES, Compilation(source, mode, root), until)


def compile_module(
    module: Module,
    diagnostics: Iterable[Diagnostic] = (),
    *,
    mode: Mode = Mode.STREAM,
    root: Path | None = None,
) -> Compilation:
    """The program of statements that were read already, perhaps from several texts."""
    start = Compilation(module.span.source, mode, root, parsed=module, module=module)
    read = [p.name for p in PASSES].index("load") + 1
    return _through(PASSES[read:], start.saying(diagnostics))


def _through(passes: Iterable[Pass], result: Compilation, until: str | None = None) -> Compilation:
    for step in passes:
        if result.ok or (step.in_spite_of_errors and result.schema and result.types):
            result = step.run(result)
        if step.name == until:
            break
    return result


def compile_file(path: Path, *, mode: Mode = Mode.STREAM, until: str | None = None) -> Compilation:
    source = read(path)
    if isinstance(source, Diagnostic):
        return Compilation(source.span.source, mode, diagnostics=(source,))
    return compile_source(source, mode=mode, root=path.resolve().parent, until=until)
