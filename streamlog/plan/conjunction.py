"""A conjunction of a rule on its way to a plan: its literals by the role they play."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from streamlog.analysis.builtins import FILTERS
from streamlog.analysis.failing import Failing
from streamlog.analysis.optional import guarded
from streamlog.analysis.ranges import Ranges, computed
from streamlog.analysis.schema import Schema
from streamlog.analysis.time.reach import BranchTime, Goal
from streamlog.analysis.types import TypeTable
from streamlog.plan.steps import Fold, Grouping, Ranked
from streamlog.syntax.ast import Atom, Body, Comparison, Literal, Not, Rule, Term, Var

HEAD_TIME = "head_time"  # a variable of ours: the language's start with a capital or `_`

Delays = Mapping[str, Mapping[str, int | None]]  # by predicate and stream, as in the contract


@frozen
class Surroundings:
    """What a conjunction must know of the program around it."""

    schema: Schema
    types: TypeTable
    component_of: Mapping[str, int]
    delays: Delays
    improving: Mapping[str, frozenset[str]]  # predicates whose rows a better one may replace
    failing: Failing
    skips: bool  # solutions that cannot be computed are left out


@frozen
class Conjunction:
    """The rewrites of `plan.rewrites` take one and return one."""

    program: Surroundings
    rule: Rule
    head: tuple[Term, ...]  # as in the rule, its timestamp a variable
    goals: tuple[Atom, ...]  # positive, with rows to enumerate
    tests: tuple[Literal, ...]  # comparisons and built-in tests
    negations: tuple[Not, ...]
    time: BranchTime | None
    group: Grouping | None
    ranges: Ranges  # the numbers that its variables can have as far as goals say
    skips: Ranges | None  # and where other tests hold, if what may fail then is left out
    lookups: tuple[Body, ...] = ()  # positive goals of which only the existence matters
    fold: Fold | None = None
    ranked: Ranked | None = None
    after: Body = ()  # a goal and tests that come after one of these
    latest: int | None = None  # of the goal in `after`, rows at the so many latest times
    awaited: tuple[Atom, ...] = ()  # goals whose rows must have come, besides those negated

    def time_of(self, atom: Atom) -> Goal | None:
        """Where a goal lies in time, if it has one."""
        goals = self.time.goals if self.time else ()
        return next((g for g in goals if g.atom is atom), None)


def conjunction(
    program: Surroundings, rule: Rule, body: Body, time: BranchTime | None, group: Grouping | None
) -> Conjunction:
    head, body = rule.head.args, guarded(body, program.schema)
    given = dict(program.failing.given(rule, body))
    narrowed = dict(program.failing.ranges(rule, body)) if program.skips else None
    tests: list[Literal] = [
        x for x in body if isinstance(x, Comparison) or (isinstance(x, Atom) and x.pred in FILTERS)
    ]
    if time is not None and not isinstance(head[0], Var):
        stamp = Var(HEAD_TIME, span=head[0].span)
        tests.append(Comparison("=", stamp, head[0], span=head[0].span))
        given[HEAD_TIME] = computed(head[0], given).range
        head = (stamp, *head[1:])
    return Conjunction(
        program,
        rule,
        head,
        tuple(a for a in body if isinstance(a, Atom) and a.pred not in FILTERS),
        tuple(tests),
        tuple(x for x in body if isinstance(x, Not)),
        time,
        group,
        given,
        narrowed,
    )
