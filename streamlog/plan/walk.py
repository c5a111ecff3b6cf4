"""Through the steps of a plan: what they read, and their joins, those inside others too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import evolve

from streamlog.plan.steps import Exists, Extend, Filter, Fold, Join, Ranked, RulePlan, Step
from streamlog.syntax.ast import Var
from streamlog.syntax.walk import variables


def reads(step: Step) -> Iterator[Var]:
    """The variables that a step speaks about."""
    match step:
        case Join(atom, _, low, high):
            yield from variables(atom)
            for term in (low, high):
                if term is not None:
                    yield from variables(term)
        case Extend(var, term):
            yield var
            yield from variables(term)
        case Exists(steps):
            for inner in steps:
                yield from reads(inner)
        case Fold(_, _, join):
            yield from reads(join)
        case Ranked(var, join):
            yield var
            yield from reads(join)
        case Filter(test):
            yield from variables(test)


def bindings(step: Step) -> Iterator[Var]:
    """The variables that have a value after a step, those among them that had one before too."""
    match step:
        case Join(atom):
            yield from variables(atom)
        case Extend(var) | Fold(var):
            yield var
        case Ranked(var, join):
            yield var
            yield from variables(join.atom)
        case Exists() | Filter():
            pass


def joins(steps: Iterable[Step]) -> Iterator[Join]:
    for step in steps:
        match step:
            case Join():
                yield step
            case Exists(inner):
                yield from joins(inner)
            case Fold(_, _, join) | Ranked(_, join):
                yield join
            case Filter() | Extend():
                pass


def joins_of(rule: RulePlan) -> Iterator[Join]:
    for pipeline in rule.pipelines:
        yield from joins(pipeline.steps)
    yield from joins(rule.checks)


def map_steps(steps: Iterable[Step], change: Callable[[Step], Step]) -> tuple[Step, ...]:
    """The steps with each replaced by what `change` makes of it, the inner ones first."""

    def changed(step: Step) -> Step:
        match step:
            case Fold(_, _, join) | Ranked(_, join):
                inner = change(join)
                assert isinstance(inner, Join)
                return change(evolve(step, join=inner))
            case Exists(inside):
                return change(evolve(step, steps=map_steps(inside, change)))
            case Join() | Filter() | Extend():
                return change(step)

    return tuple(map(changed, steps))


def map_joins_of(rule: RulePlan, change: Callable[[Join], Join]) -> RulePlan:
    def changed(step: Step) -> Step:
        return change(step) if isinstance(step, Join) else step

    pipelines = (evolve(p, steps=map_steps(p.steps, changed)) for p in rule.pipelines)
    return evolve(rule, pipelines=tuple(pipelines), checks=map_steps(rule.checks, changed))


def readings(rule: RulePlan) -> Iterator[tuple[Join, set[int]]]:
    """Each join, and the columns that are read of the rows it finds: those that are tested, or
    whose values are used later on."""
    for pipeline in rule.pipelines:
        yield from _readings(pipeline.steps, {v.name for v in rule.carries})
    shown = {v.name for term in (*rule.head, *rule.order) for v in variables(term)}
    yield from _readings(rule.checks, shown)


def _readings(steps: tuple[Step, ...], later: set[str]) -> Iterator[tuple[Join, set[int]]]:
    later = set(later)
    for step in reversed(steps):
        match step:
            case Join():
                yield step, _columns(step, later)
            case Exists(inner):
                yield from _readings(inner, set())
            case Fold(_, _, join, column):
                yield join, set() if column is None else {column}
            case Ranked(_, join, column):
                yield join, {column, *_columns(join, later)}
            case Filter() | Extend():
                pass
        later |= {v.name for v in reads(step)}


def _columns(join: Join, later: set[str]) -> set[int]:
    free = [(p, a) for p, a in enumerate(join.atom.args) if p not in join.index.fixed]
    return {p for p, a in free if not isinstance(a, Var) or a.name in later}
