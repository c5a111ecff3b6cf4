"""The stages of a program on its way through the compiler: what a pass has made is a field of
the next stage, and whoever needs it says so by the stage that it takes."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from attrs import field, fields, frozen

from streamlog.analysis.contract import Contract
from streamlog.analysis.dependency import Graph
from streamlog.analysis.failing import Failing, failing
from streamlog.analysis.retention import Retentions
from streamlog.analysis.safety import Safety
from streamlog.analysis.schema import Schema
from streamlog.analysis.sequential import Class, RuleClass
from streamlog.analysis.strata import Strata
from streamlog.analysis.time.constraints import Relations
from streamlog.analysis.time.reach import Assumption, BranchTime
from streamlog.analysis.timers import timers
from streamlog.analysis.types import Given, TypeTable
from streamlog.analysis.versions import Case
from streamlog.diagnostics import Diagnostic, Source, Span, in_order
from streamlog.plan.steps import Plan
from streamlog.rewrite.bistate import Bistate
from streamlog.rewrite.open_predicates import OpenRule
from streamlog.syntax.ast import Module, Rule, Type
from streamlog.syntax.python_source import PythonSource

S = TypeVar("S", bound="Compilation")


class Mode(enum.Enum):
    STREAM = "stream"
    BATCH = "batch"  # over stored data: blocking is fine, the end of the data is known


# ------------------------------------------------------------------------------------ stages


@frozen(slots=False, kw_only=True)
class Compilation:
    """A text on its way to a program. Each pass makes the next stage of it, which has all that
    the stages before have; errors stop it where they are found."""

    source: Source
    mode: Mode = Mode.STREAM
    root: Path | None = None  # where `use` may look; None: nowhere
    diagnostics: tuple[Diagnostic, ...] = ()
    suppressing: tuple[Span, ...] = ()  # the comments that have allowed something

    @property
    def ok(self) -> bool:
        return not any(d.is_error for d in self.diagnostics)

    def to(self, stage: type[S], diagnostics: Iterable[Diagnostic] = (), **made: Any) -> S:
        """The stage with what a pass has made, or found out."""
        known = {a.name: getattr(self, a.name) for a in fields(type(self))}
        found = in_order((*self.diagnostics, *diagnostics))
        return stage(**{**known, **made, "diagnostics": found})


@frozen(slots=False, kw_only=True)
class Parsed(Compilation):
    parsed: Module  # as the text has it
    module: Module  # with the files it uses, and after desugaring in simple form
    written: Module | None = field(default=None, repr=False)  # with them, before desugaring
    given: Given = field(factory=dict, repr=False)  # types of columns that are known already
    files: tuple[Source, ...] = field(default=(), repr=False)  # of the module, its own first


@frozen(slots=False, kw_only=True)
class Resolved(Parsed):
    schema: Schema


@frozen(slots=False, kw_only=True)
class Typed(Resolved):
    types: TypeTable

    @cached_property
    def clocks(self) -> Mapping[str, Type | None]:
        """The type of each timestamped predicate's clock."""
        predicates = self.schema.predicates.items()
        return {n: self.types.column(n, 0) for n, p in predicates if p.temporal}


@frozen(slots=False, kw_only=True)
class Safe(Typed):
    safety: Safety


@frozen(slots=False, kw_only=True)
class Timed(Safe):
    times: tuple[BranchTime, ...]
    relations: Relations  # between the columns of predicates
    graph: Graph


@frozen(slots=False, kw_only=True)
class Stratified(Timed):
    strata: Strata
    rules: tuple[RuleClass, ...]

    @property
    def runs_by_the_clock(self) -> bool:
        """Whether no fact waits forever; else the program is for stored data only."""
        return not self.strata.growing and all(r.kind is not Class.BLOCKING for r in self.rules)


@frozen(slots=False, kw_only=True)
class Analysed(Stratified):
    cases: tuple[Case, ...]
    retained: Retentions
    contract: Contract

    @cached_property
    def failing(self) -> Failing:
        """Which tests may fail."""
        going_on = {time.rule.head.pred for time in timers(self.times)}
        return failing(self.schema, self.types, going_on)


@frozen(slots=False, kw_only=True)
class Planned(Analysed):
    """What executors run: rules without open predicates, and their pipelines."""

    plan: Plan = field(repr=False)
    python: tuple[PythonSource, ...] = ()  # the Python functions that may be called


@frozen(slots=False, kw_only=True)
class Opened(Analysed):
    open_rules: tuple[OpenRule, ...]


@frozen(slots=False, kw_only=True)
class Closed(Opened):
    closed: Analysed = field(repr=False)  # without open predicates

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What its time rests on that only the facts of tables say."""
        times = (*self.times, *self.closed.times)
        return tuple(dict.fromkeys(a for t in times for a in t.assumes))


@frozen(slots=False, kw_only=True)
class Narrowed(Closed):
    for_answers: Module = field(repr=False)  # of the closed program, what answers rest on


@frozen(slots=False, kw_only=True)
class Bistated(Narrowed):
    bistate: Bistate | None = field(repr=False)  # None: some fact waits forever


@frozen(slots=False, kw_only=True)
class Program(Bistated):
    """A text without errors. It speaks of the rules as they were written; `closed` is what runs."""

    closed: Planned = field(repr=False)
    # Where solutions that cannot be computed are left out: by the predicate of its errors, the
    # rule that they are of. None: they stop the run.
    errors: Mapping[str, Rule] | None = None
