"""What makes plans cheaper, in order: one file a rewrite, and its before and after in
`tests/fixtures/plan.txt` under its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from streamlog.plan.conjunction import Conjunction
from streamlog.plan.rewrites.earliest import earliest
from streamlog.plan.rewrites.latest import latest
from streamlog.plan.rewrites.latest_few import latest_few
from streamlog.plan.rewrites.lookups import lookups
from streamlog.plan.rewrites.projection import projection
from streamlog.plan.rewrites.ranks import ranks
from streamlog.plan.rewrites.selection import selection
from streamlog.plan.rewrites.settled import settled
from streamlog.plan.rewrites.windows import windows
from streamlog.plan.steps import Plan, Step
from streamlog.plan.walk import map_steps


@frozen
class Rewrite:
    """From a thing to a cheaper one of the same kind; the same object where nothing is cheaper."""

    name: str
    on: object  # Conjunction; Step, all those of a conjunction; or the whole Plan
    run: Callable[..., Any]


def _on_steps(rewrite: Callable[[Step, Conjunction], Step]) -> Callable[..., tuple[Step, ...]]:
    """Of each step, those inside others too."""
    return lambda steps, found: map_steps(steps, lambda step: rewrite(step, found))


# Of a conjunction, ranks come first: no other knows what it asks of. Then the latest row: what is
# looked up has no window. Of steps, the
# earliest row: it is recognised before constants leave the key. Projection sees the final indexes.
REWRITES = (
    Rewrite("ranks", Conjunction, ranks),
    Rewrite("latest", Conjunction, latest),
    Rewrite("latest_few", Conjunction, latest_few),
    Rewrite("lookups", Conjunction, lookups),
    Rewrite("windows", Conjunction, windows),
    Rewrite("earliest", Step, _on_steps(earliest)),
    Rewrite("selection", Step, _on_steps(selection)),
    Rewrite("settled", Step, _on_steps(settled)),
    Rewrite("projection", Plan, projection),
)


def rewritten(node: Any, on: object, *around: object) -> Any:
    """A conjunction, steps or a plan after all rewrites of its kind, one after the other."""
    for rewrite in REWRITES:
        if rewrite.on is on:
            node = rewrite.run(node, *around)
    return node
