"""Random programs with a recursion that is a closure (`plan.closures`), or nearly one.

Paths are joined or lengthened at either end, over tables or streams, with the best of some cost,
only the earliest of each, or each time that one gets better; their columns stand in any order, and
other rules read them. Often a rule is bent a little, so that it is no closure any more.
"""

from __future__ import annotations

from random import Random

from oracle.programs import LAST_TIME, Case

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source

NODES = "abcd"


def random_case(rng: Random) -> Case:
    while True:
        case = Maker(rng).case()
        if compile_source(Source("random", case.text)).ok:
            return case


class Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.timed = rng.random() < 0.75
        self.cost = rng.random() < 0.6
        self.first = self.timed and not self.cost
        self.best = rng.choice(["min", "min", "max"])
        self.combine = rng.choice(["+", "+", "max", "min"])
        self.wide = rng.random() < 0.2  # a column that all parts of a path share
        names = ["x", "y", *(["w"] if self.wide else []), *(["d"] if self.cost else [])]
        if rng.random() < 0.3:
            rng.shuffle(names)
        self.columns = [*(["t"] if self.timed else []), *names]
        self.bent = rng.random() < 0.25

    def case(self) -> Case:
        rng = self.rng
        kind = "stream" if self.timed else "table"
        time = "T: int, " if self.timed else ""
        columns = f"{time}x: string, y: string, w: string, d: int"
        lines = [f"{kind} arc({columns}).", f"{kind} road({columns}).", "stream ask(T: int)."]
        if rng.random() < 0.2:
            lines.append("output p, q.")
        rules = [*self.base(), self.recursive()]
        if rng.random() < 0.2:
            rules.append(self.recursive())
        rng.shuffle(rules)
        lines += rules
        lines.append(self.reader())
        rows = {name: [self.row() for _ in range(rng.randint(0, 7))] for name in ("arc", "road")}
        asked = sorted({(rng.randrange(LAST_TIME),) for _ in range(rng.randint(0, 4))})
        sets = {name: sorted(set(found)) for name, found in rows.items()}
        facts = {"ask": asked, **(sets if self.timed else {})}
        return Case("\n".join(lines) + "\n", facts, {} if self.timed else sets)

    def row(self) -> tuple[int | str, ...]:
        """Costs that get no better on a cycle."""
        rng = self.rng
        cost = rng.randint(0, 3) if self.best == "min" else -rng.randint(0, 3)
        time = (rng.randrange(LAST_TIME),) if self.timed else ()
        return (*time, rng.choice(NODES), rng.choice(NODES), rng.choice("kkl"), cost)

    def p(self, **terms: str) -> str:
        return f"p({', '.join(terms.get(c, '_') for c in self.columns)})"

    def head(self, **terms: str) -> str:
        if self.cost:
            terms["d"] = f"{self.best}<{terms['d']}>"
        return self.p(**terms)

    def arc(self, t: str, x: str, y: str, w: str, d: str, name: str = "") -> str:
        args = [*([t] if self.timed else []), x, y, w if self.wide else "_", d]
        return f"{name or 'arc'}({', '.join(args)})"

    def tests(self, t: str, x: str, y: str, d: str) -> list[str]:
        """That nothing before was as good."""
        if not self.timed or (self.bent and self.rng.random() < 0.2):
            return []
        if self.first:
            known = self.p(t="T0", x=x, y=y, w="W")
            return [f"not ({known}, T0 < {t})"]
        order = "<=" if self.best == "min" else ">="
        if self.bent:
            order = self.rng.choice(["<=", "<", ">=", ">"])
        known = self.p(t="T0", x=x, y=y, w="W", d="D0")
        return [f"not ({known}, D0 {order} {d}, T0 < {t})"]

    def rule(self, head: str, body: list[str]) -> str:
        self.rng.shuffle(body)
        return f"{head} <- {', '.join(body)}."

    def base(self) -> list[str]:
        rng = self.rng
        found = []
        for name in rng.choice([["arc"], ["arc"], ["arc", "road"]]):
            x, y = ("Y", "X") if name == "road" and rng.random() < 0.3 else ("X", "Y")
            goal = self.arc("T", x, y, "W", "D" if self.cost else "_", name)
            body = [goal, *self.tests("T", "X", "Y", "D")]
            if rng.random() < 0.15:
                body.append("X != b")
            found.append(self.rule(self.head(t="T", x="X", y="Y", w="W", d="D"), body))
        return found

    def recursive(self) -> str:
        rng = self.rng
        left = self.p(t="T1", x="X", y="Y", w="W", d="D1")
        right = self.p(t="T2", x="Y", y="Z", w="W", d="D2")
        shape = rng.choice(["join", "join", "end", "begin"])
        if shape == "end":
            right = self.arc("T2", "Y", "Z", "W", "D2" if self.cost else "_")
        if shape == "begin":
            left = self.arc("T1", "X", "Y", "W", "D1" if self.cost else "_")
        body = [left, right, *self.tests("T", "X", "Z", "D")]
        if self.timed:
            body.append(rng.choice(["lgr(T1, T2, T)", "T = max(T2, T1)"]))
        if self.cost:
            plus = self.combine == "+"
            body.append("D = D1 + D2" if plus else f"D = {self.combine}(D1, D2)")
        if self.bent and rng.random() < 0.4:
            body.append(rng.choice(["X != Z", "Y != a", "X != Y"]))
        return self.rule(self.head(t="T", x="X", y="Z", w="W", d="D"), body)

    def reader(self) -> str:
        rng, time = self.rng, "T1 <= T" if self.timed else "T >= 0"
        near = self.p(t="T1", x="X", y="Y", w="_", d="D")
        return rng.choice(
            [
                f"q(T, X, Y) <- ask(T), {near}, {time}.",
                f"q(T, X) <- ask(T), arc({'_, ' * self.timed}X, _, _, _), "
                f"not ({self.p(t='T1', x='X', y='a', w='_', d='_')}, {time}).",
                f"q(T, X, count()) <- ask(T), {near}, {time}.",
            ]
        )
