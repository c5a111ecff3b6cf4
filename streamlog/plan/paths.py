"""Path-shaped recursion: closure, reachability and shortest paths, recognised in the rules.

    reach(X, Y) <- link(X, Y).                 Closure: from column 1 to column 2, of its base
    reach(X, Z) <- reach(X, Y), link(Y, Z).

    wet(Y) <- spring(Y).                       Reach: the base goes on along the arcs
    wet(Z) <- wet(Y), pipe(Y, Z).

    cost(X, Y, min<C>) <- road(X, Y, C).       Closure with a Cost: shortest paths
    cost(X, Z, min<C>) <- cost(X, Y, A), cost(Y, Z, B), C = A + B.

The *base* of a predicate is what its rules give that do not call it, its facts included. A rule
that does call it adds an *arc* at one end, or joins two paths. The end of a path and the ends of
an arc may have several columns, so a graph for each instant is one graph whose nodes have
timestamps. Nothing here depends on data; whether it pays is for executors to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from streamlog.plan.steps import Exists, Fold, Join, Plan, RulePlan, Step
from streamlog.syntax.ast import Const, Rule


@frozen
class Arc:
    """A row of `pred` leads from the values of its columns `tail` to those of its columns `head`,
    in the direction in which the path grows. Column k of both belongs to column k of the path's
    end. Of the rows, those with the values of `where` and with equal values in `same`."""

    pred: str
    tail: tuple[int, ...]
    head: tuple[int, ...]
    where: tuple[tuple[int, Const], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    weight: int | Const | None = None  # a column, a number, or nothing to put to the cost

    @property
    def turned(self) -> Arc:
        return evolve(self, tail=self.head, head=self.tail)


@frozen
class Cost:
    """Of all paths between two ends the best: `best` of what `combine` makes of the weights."""

    column: int
    best: str  # min or max
    combine: str | None  # + or max or min; None: a label that is carried along as it is
    ends: bool  # on any data; else the fixpoint ends only if no cycle makes the cost better

    @property
    def requires(self) -> str | None:
        """What the data must be like for an end, with this evaluation or any other."""
        if self.ends:
            return None
        return f"no cycle may have a {'negative' if self.best == 'min' else 'positive'} weight"


@frozen
class Paths:
    """A predicate whose rows are paths."""

    pred: str
    arcs: tuple[Arc, ...]
    cost: Cost | None
    symmetric: bool  # every arc is known to lead back as well, with the same weight
    at_once: bool  # the timestamp is the cost: right only when all data are there


@frozen
class Closure(Paths):
    """One or more rows of the base in a row, from the columns `source` to the columns `target`.

    The base is its own arcs, weight in the column of the cost; `arcs` are the predicates behind
    it where it is nothing else. `both_ways`: each row of the base counts backwards too.
    `renewed`: there is a row for each instant at which the rows of the base so far make the cost
    better than those before did.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    both_ways: bool = False
    renewed: bool = False


@frozen
class Reach(Paths):
    """A row of the base and any number of arcs at its columns `end`, with the same `carried`."""

    carried: tuple[int, ...]
    end: tuple[int, ...]


@frozen
class Unlike:
    """Why a recursion is none of these, and the rule that makes it so."""

    reason: str
    rule: Rule | None = None


def base_rules(paths: Paths, plan: Plan) -> tuple[RulePlan, ...]:
    """The conjunctions that make the base, without `not earlier` where that makes the best."""
    result = []
    for rule in plan.rules:
        starts = {p.start.pred for p in rule.pipelines if p.start is not None}
        joined = {j for p in rule.pipelines for s in p.steps for j in _reads(s)}
        if rule.rule.head.pred == paths.pred and paths.pred not in starts | joined:
            checks = tuple(c for c in rule.checks if paths.pred not in _reads(c))
            awaits = tuple(a for a in rule.awaits if a.pred != paths.pred)
            result.append(evolve(rule, checks=checks, awaits=awaits))
    return tuple(result)


def _reads(step: Step) -> Iterator[str]:
    match step:
        case Join(atom) | Fold(join=Join(atom)):
            yield atom.pred
        case Exists(steps):
            for inner in steps:
                yield from _reads(inner)
        case _:
            pass


def in_words(found: Paths | Unlike) -> str:
    """One line for `explain --plan`."""
    match found:
        case Unlike(reason):
            return f"not path-shaped: {reason}"
        case Closure(source=source, target=target):
            what = f"{_columns(source)} to {_columns(target)}"
            kind = "closure" if found.cost is None else _best(found.cost)
            each = ", each time that one gets better" if found.renewed else ""
            words = f"{kind}{_along(found, ' of ')}, from {what}{each}"
        case Reach(end=end):
            kind = "reachability" if found.cost is None else _best(found.cost)
            words = f"{kind}{_along(found, ' along ')}, from the base, at {_columns(end)}"
        case _:
            raise TypeError(found)
    requires = found.cost.requires if found.cost else None
    return words + (f"; {requires}" if requires else "")


def _columns(columns: tuple[int, ...]) -> str:
    return f"column{'s' * (len(columns) > 1)} {', '.join(str(c + 1) for c in columns)}"


def _along(paths: Paths, word: str) -> str:
    names = sorted({a.pred for a in paths.arcs})
    return word + " and ".join(names) if names else ""


def _best(cost: Cost) -> str:
    match cost.best, cost.combine:
        case "min", "+":
            return "shortest paths"
        case "max", "+":
            return "longest paths"
        case "min", None:
            return "least labels"
        case "max", None:
            return "largest labels"
        case best, combine:
            return f"paths with the {'least' if best == 'min' else 'largest'} {combine}"
