"""A derivation as a tree."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text
from rich.tree import Tree

from streamlog.analysis.types import settled
from streamlog.app.show import place_of
from streamlog.app.tables import value_text
from streamlog.app.test_script import fact_text
from streamlog.compiler import Program
from streamlog.rewrite.desugar import printable
from streamlog.runtime.absence import Absence, Bound, Closed, Gone
from streamlog.runtime.engine import Engine
from streamlog.runtime.executor import END
from streamlog.runtime.values import moment
from streamlog.runtime.why import Derived, Fact, Given, Missing, Proof, Wait
from streamlog.syntax.ast import Rule, Type
from streamlog.syntax.metadata import metadata
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import variables

MOST_LEVELS = 12


def why_tree(engine: Engine, found: Proof | Missing) -> Tree:
    return _Trees(engine).tree(found)


class _Trees:
    def __init__(self, engine: Engine) -> None:
        self.engine, self.program = engine, engine.program
        self.seen: set[Fact] = set()

    def tree(self, found: Proof | Missing) -> Tree:
        if isinstance(found, Missing):
            return self._missing(found)
        return self._add(None, found, 0)

    def _fact(self, fact: Fact) -> Text:
        if fact.pred not in self.engine.schema.predicates:  # tick
            return Text(f"{fact.pred}({moment(int(fact.row[0]), self._any_clock())})")
        return Text(fact_text(self.program, fact.pred, fact.row), "bold")

    def _any_clock(self) -> Type | None:
        streams = self.engine.schema.streams
        return self.engine.clock(streams[0]) if streams else None

    def _add(self, above: Tree | None, proof: Proof, level: int) -> Tree:
        title = self._fact(proof.fact)
        match proof:
            case Given(_, origin):
                title.append(f"  {origin.value}", "dim")
                return _below(above, title)
            case Derived(fact) if fact in self.seen:
                return _below(above, title.append("  as above", "dim"))
            case Derived(fact) if level >= MOST_LEVELS:
                return _below(above, title.append(f"  …; .why {title.plain} goes on", "dim"))
            case Derived():
                self.seen.add(proof.fact)
                tree = _below(above, title)
                self._reasons(tree, proof, level)
                return tree

    def _reasons(self, tree: Tree, proof: Derived, level: int) -> None:
        rule = tree.add(_rule(proof.rule, self.program))
        names = dict.fromkeys(v.name for v in variables(proof.rule) if not v.is_anonymous)
        values = ", ".join(
            f"{name} = {self._variable(proof.rule, name, proof.binding[name])}"
            for name in names
            if name in proof.binding
        )
        if values and proof.group is None:
            rule.add(Text(f"with {values}", "dim"))
        if proof.group is None:
            for goal in proof.goals:
                self._add(tree, goal, level + 1)
        else:
            self._group(tree, proof, level)
        for absence in proof.absences:
            self._absence(tree, absence)

    def _variable(self, rule: Rule, name: str, value: object) -> str:
        return value_text(value, settled(self.program.types.variable(rule, name)))

    def _group(self, tree: Tree, proof: Derived, level: int) -> None:
        assert proof.group is not None
        count, samples = proof.group.count, proof.group.samples
        many = f"{count} solution{'s' * (count != 1)}"
        heading = f"over {many}"
        if len(samples) < count:
            heading = f"over {many}, the first {len(samples)} of them"
        if len(samples) == 1 < count:
            heading = f"over {many}, this one decides"
        group = tree.add(Text(heading, "dim"))
        for number, goals in enumerate(samples, 1):
            place = group if len(samples) == 1 else group.add(Text(f"solution {number}", "dim"))
            for goal in goals:
                self._add(place, goal, level + 1)

    # ---------------------------------------------------------------------------- negation

    def _absence(self, tree: Tree, absence: Absence) -> None:
        words = " and ".join(_gone(goal) for goal in absence.goals)
        if absence.conditions:
            words += f" with {', '.join(absence.conditions)}"
        place = tree.add(Text(f"no {words}"))
        for line in map(_closed, absence.closed):
            place.add(Text(line, "dim"))
        for rule, inner in absence.through:
            self._absence(place.add(_rule(rule, self.program)), inner)

    # ---------------------------------------------------------------------- what is not there

    def _missing(self, missing: Missing) -> Tree:
        possible = any(not c.against for c in missing.candidates)
        verdict = "does not hold"
        if missing.waits:
            verdict = "is not decided yet" if possible else "does not hold so far"
        tree = Tree(self._fact(missing.fact).append(f"  {verdict}", "red"), guide_style="dim")
        for candidate in missing.candidates:
            rule = tree.add(_rule(candidate.rule, self.program))
            for fact in candidate.goals:
                rule.add(self._fact(fact).append("  is there", "dim"))
            for fact in candidate.against:
                rule.add(self._fact(fact).append("  contradicts it", "red"))
        for wait in missing.waits:
            tree.add(Text(_wait(wait, self.engine.clock(wait.stream)), "dim"))
        if not missing.candidates:
            derived = missing.fact.pred in self.engine.schema.rules_of
            why = "no rule gives it from the facts so far" if derived else "it has not arrived"
            tree.add(Text(why))
        return tree


def _below(above: Tree | None, title: Text) -> Tree:
    return Tree(title, guide_style="dim") if above is None else above.add(title)


def _rule(rule: Rule, program: Program) -> Text:
    text = " ".join(map(str.strip, pretty(printable(rule)).split("\n")))
    called = metadata(rule).get("id")
    place = place_of(rule, program.source) + (f" ({called})" if called else "")
    return Text.assemble((f"by {place}: ", "dim"), (text, "cyan"))


def _gone(goal: Gone) -> str:
    known = ", ".join(f"{name}={value_text(value, type_)}" for name, value, type_ in goal.known)
    return goal.pred + (f"({known})" if known else "") + "".join(_stretch(goal))


def _stretch(goal: Gone) -> Iterator[str]:
    """The times that it speaks about; a date that both ends share is said once."""
    low, high = goal.low, goal.high
    if low is not None and low == high:
        yield f" at {moment(low.at, goal.clock)}"
        return
    if low is not None:
        yield f" {'after' if low.open else 'from'} {moment(low.at, goal.clock)}"
    if high is not None:
        yield f" {_until(low, high)} {moment(high.at, goal.clock)}"


def _until(low: Bound | None, high: Bound) -> str:
    if high.open:
        return "before" if low is None else "and before"
    return "up to" if low is None else "to"


def _closed(closed: Closed) -> str:
    now = f"is at {moment(closed.progress, closed.clock)}"
    if closed.progress >= END:
        now = "has ended"
    if closed.needed is None:
        return f"closed: `{closed.stream}` {now}"
    return f"closed: `{closed.stream}` had to pass {moment(closed.needed, closed.clock)} and {now}"


def _wait(wait: Wait, clock: Type | None) -> str:
    at = f"it is at {moment(wait.progress, clock)}"
    if wait.needs is None:
        return f"waiting for the end of `{wait.stream}`; {at}"
    return f"waiting for `{wait.stream}` to pass {moment(wait.needs, clock)}; {at}"
