"""Of rows that are ranked by their time, only the latest are found.

    book_rows(T, S, U, C) <- ask(T, S), trade(U, S, C), U <= T.     wanted: 5 by U desc per S
        for each ask(T, S): the rows trade(U, S, C) with one of the five latest U up to T

So no pair of a question and an old trade is made. What is ranked has the question's timestamp, so
for each question five times are enough, whatever else the rule asks and groups by; unless
something is asked of the trades themselves, which the latest of them may fail.
"""

from __future__ import annotations

from attrs import evolve

from streamlog.plan.conjunction import Conjunction
from streamlog.plan.order import range_join
from streamlog.plan.rewrites.latest import looked_up_alone
from streamlog.plan.steps import Store
from streamlog.syntax.walk import variables


def latest_few(found: Conjunction) -> Conjunction:
    limit = found.rule.wanted
    if limit is None or not limit.by[0].descending or found.fold or found.ranked:
        return found
    for goal in found.goals:
        own = looked_up_alone(goal, found)
        if own is None or goal.args[0] != limit.by[0].term:
            continue
        join, used = range_join(goal, list(own.tests), own.bound, found.program.schema)
        asked = (*limit.per, *found.negations, *(x for body in found.lookups for x in body))
        if (
            join.index.store is not Store.BY_TIME
            or join.high is None
            or len(used) < len(own.tests)
            or own.names & {v.name for x in asked for v in variables(x)}
        ):
            continue
        return evolve(
            found,
            goals=tuple(g for g in found.goals if g is not goal),
            tests=tuple(t for t in found.tests if not any(t is o for o in own.tests)),
            after=(goal, *own.tests),
            awaited=(goal,),
            latest=limit.offset + limit.count,
        )
    return found
