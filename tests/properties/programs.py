"""Random small programs about time: text that mostly gets as far as the time pass."""

from __future__ import annotations

from random import Random

STREAMS = ("s", "r")
DERIVED = ("p", "q", "u", "v")
AGGREGATES = ("sum", "count", "min")


class _Rule:
    """One rule in the making. Every predicate has a timestamp and one number."""

    def __init__(self, program: RandomProgram, name: str, is_first: bool) -> None:
        self.program, self.random, self.name = program, program.random, name
        self.is_first = is_first  # reads a stream, so that every predicate has timestamps
        self.literals: list[str] = []
        self.bound: list[str] = []  # timestamps that a positive goal binds
        self.values: list[str] = []
        self.count = 0

    def text(self) -> str:
        random = self.random
        is_open = self.name in self.program.open
        head = "T"
        if is_open:
            self.positive(self.fresh("T"), closed=True)
            self.relate(self.bound[0], "T", ("<", "<", "<=", "<="))
        elif random.random() < 0.2:
            head = self.made_head()
        elif random.random() < 0.06:
            new = self.fresh("T")
            self.positive(new, closed=True)
            self.literals += ["tick(T)", *self.near(new, "T")]
            self.bound.insert(0, "T")
        else:
            self.positive("T" if random.random() < 0.7 else self.fresh("T"), closed=True)
            if "T" not in self.bound:
                self.pin("T", self.bound[0])
        for _ in range(random.choice((0, 1, 1, 1, 2))):
            self.goal(head if head[0] == "T" and head.isalnum() else self.bound[0], is_open)
        if random.random() < 0.25 and len(self.bound) > 1:
            one, other = random.sample(self.bound, 2)
            self.relate(one, other, ("<", "<=", "!=", ">", ">=", "="))
        if self.program.wild and random.random() < 0.3:
            self.literals.append(f"{random.choice(self.bound)} >= {self.program.instant()}")
        value = self.values[0]
        if self.name in self.program.open_data:
            value = "D"
            self.literals.append(f"{self.values[0]} {random.choice(('<', '<=', '>'))} D")
        if self.name in self.program.aggregates:
            value = f"{self.program.aggregates[self.name]}({value})"
            if random.random() < 0.2:
                value += " - count()"
        limit = self.limit(value) if self.name in self.program.limits else ""
        return f"{self.name}({head}, {value}) <- {', '.join(self.literals)}{limit}."

    def limit(self, value: str) -> str:
        """What ranks the rows: the value in the head, or what else the rule knows."""
        random = self.random
        others = [] if self.name in self.program.aggregates else [*self.bound, *self.values]
        by = f"{random.choice((value, *others))}{random.choice(('', ' desc'))}"
        offset = random.choice(("", "", " offset 1"))
        per = f" per {random.choice(self.values)}" if others and random.random() < 0.3 else ""
        return f" limit {random.randint(1, 2)}{offset} by {by}{per}"

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def offset(self, least: int = -3, most: int = 3) -> str:
        number = self.random.randint(least, most)
        if number == 0:
            return ""
        return f" {'+' if number > 0 else '-'} {self.number(abs(number))}"

    def number(self, value: int) -> str:
        return f"{value}us" if self.program.by_clock else str(value)

    def random_number(self, least: int, most: int) -> str:
        return self.number(self.random.randint(least, most))

    def made_head(self) -> str:
        """A head's timestamp that is computed, or a variable that is."""
        random = self.random
        self.positive("T1", closed=True)
        self.count = 1
        kind = random.choice(("offset", "lgr", "max", "min", "equal", "round"))
        if kind == "offset":
            return f"T1{self.offset()}"
        if kind == "round" and self.program.wild:
            return f"{random.choice(('floor', 'ceil'))}(T1, {self.random_number(2, 4)})"
        self.positive(self.fresh("T"), closed=True)
        second = self.bound[-1]
        if kind == "lgr":
            self.literals.append(f"lgr(T1, {second}, T)")
        elif kind in ("max", "min"):
            self.literals.append(f"T = {kind}(T1, {second}{self.offset(-1, 1)})")
        else:
            self.literals.append(f"T = T1{self.offset()}")
        self.bound.append("T")
        return "T"

    def pick(self, closed: bool) -> str:
        program, random = self.program, self.random
        if self.is_first and not self.literals:
            return random.choice(program.streams)
        names = program.streams * 2 if random.random() < 0.4 else program.streams + program.derived
        tests = program.open | program.open_data
        return random.choice([n for n in names if not (closed and n in tests)])

    def test(self, time: str) -> str:
        """A goal at a timestamp that others bind, of any predicate."""
        name = self.pick(False)
        return f"{name}({time}, {self.values[0] if name in self.program.open_data else '_'})"

    def positive(self, time: str, closed: bool, offset: str = "") -> None:
        value = self.fresh("V")
        self.literals.append(f"{self.pick(closed)}({time}{offset}, {value})")
        self.values.append(value)
        if time not in self.bound:
            self.bound.append(time)

    def pin(self, new: str, old: str) -> None:
        """A variable in place of another goal's timestamp."""
        self.literals.append(f"{new} = {old}{self.offset()}")
        self.bound.append(new)

    def relate(self, one: str, other: str, ops: tuple[str, ...]) -> None:
        self.literals.append(f"{one} {self.random.choice(ops)} {other}{self.offset(-2, 2)}")

    def near(self, new: str, old: str) -> list[str]:
        """Comparisons that keep a goal's timestamp near another: mostly bounded ahead."""
        random, kind = self.random, self.random.random()
        if kind < 0.12:
            return [f"{new} = {old}{self.offset(-3, 1)}"]
        if kind < 0.17:
            return [f"abs({new} - {old}) <= {self.random_number(0, 2)}"]
        if kind < 0.24 and not self.program.wild:
            gap, least = self.fresh("G"), self.random_number(-1, 2)
            if random.random() < 0.7:
                return [f"{gap} = {old} - {new}", f"{gap} >= {least}"]
            more = self.fresh("G")
            wider = f"{more} = {gap} + {self.number(1)}"
            return [f"{gap} = {old} - {new}", wider, f"{more} >= {least}"]
        if kind < 0.30 and self.program.settings:
            wide = self.fresh("W")
            return [f"w({wide})", f"{new} >= {old} - {wide}", f"{new} <= {old}"]
        if kind < 0.36 and self.program.wild:
            step, name = self.random_number(2, 4), random.choice(("floor", "ceil"))
            return [f"{name}({new}, {step}) {random.choice(('<', '<=', '='))} {old}"]
        if kind < 0.40 and self.program.wild:
            return [f"{new} = {self.program.instant()}"]
        if kind < 0.42:
            return [f"{new} != {old}"]
        if kind < 0.44:
            low, high = f"{old}{self.offset(-4, -1)}", f"{old}{self.offset(-1, 2)}"
            return [f"between({new}, {low}, {high})"]
        if kind < 0.47:
            other = random.choice(self.bound)
            return [f"{new} <= {random.choice(('max', 'min'))}({old}, {other}{self.offset(-1, 0)})"]
        if kind < 0.52:
            return [f"{old}{self.offset(-1, 2)} > {new}", f"{old} <= {new}{self.offset(0, 3)}"]
        if kind < 0.55:
            return [f"{new} in ({old}{self.offset(-4, -1)}, {old}{self.offset(-1, 2)})"]
        if kind < 0.58:
            other = random.choice(self.bound)
            condition = f"{old} {random.choice(('<', '=', '>='))} {other}{self.offset(-1, 1)}"
            either = f"{old}{self.offset(-3, -1)}, {other}{self.offset(-1, 1)}"
            return [f"{new} {random.choice(('=', '<='))} if({condition}, {either})"]
        found = [f"{new} {random.choice(('<', '<', '<='))} {old}{self.offset(-3, 2)}"]
        if random.random() < 0.6:
            found.append(f"{new} {random.choice(('>', '>='))} {old}{self.offset(-4, -1)}")
        if random.random() < 0.1:
            found.append(f"{new} != {old}{self.offset()}")
        return found

    def goal(self, head: str, is_open: bool) -> None:
        random, kind = self.random, self.random.random()
        anchor = random.choice((head, head, *self.bound))
        if is_open and anchor == "T":
            anchor = self.bound[0]  # nothing binds T, so a negation cannot test it
        if kind < 0.35:
            if random.random() < 0.2:
                self.positive(anchor, closed=True, offset=self.offset(-2, 1))
                return
            new = self.fresh("T")
            self.positive(new, closed=True)
            self.literals += self.near(new, anchor)
        elif kind < 0.42:
            self.literals.append(self.test(random.choice(self.bound)))
        elif kind < 0.60:
            time = random.choice(self.bound)
            self.literals.append(f"not {self.test(time + self.offset(-2, 1))}")
        elif kind < 0.92:
            self.literals.append(self.negation(anchor))
        else:
            one, other = self.branch(anchor), self.branch(anchor)
            self.literals.append(f"({one} ; {other})")

    def negation(self, anchor: str, depth: int = 0) -> str:
        random, local = self.random, self.fresh("L")
        parts = [f"{self.pick(True)}({local}, _)", *self.near(local, anchor)]
        kind = random.random()
        if kind < 0.25:
            second = self.fresh("L")
            other = random.choice((local, anchor))
            parts += [f"{self.pick(True)}({second}, _)", *self.near(second, other)]
        elif kind < 0.4 and depth == 0:
            parts.append(self.negation(local, 1))
        elif kind < 0.5:
            parts.append(f"not {self.test(local)}")
        return f"not ({', '.join(parts)})"

    def branch(self, anchor: str) -> str:
        if self.random.random() < 0.5:
            return self.negation(anchor)
        new = self.fresh("T")
        return ", ".join([f"{self.pick(True)}({new}, _)", *self.near(new, anchor)])


class RandomProgram:
    """`wild` programs have constants on the time axis and rounding, so bounds may be loose."""

    def __init__(self, seed: object) -> None:
        self.random = random = Random(str(seed))
        self.wild = random.random() < 0.25
        self.by_clock = random.random() < 0.12
        self.settings = random.random() < 0.2
        self.streams = list(STREAMS[: random.randint(1, 2)])
        self.derived = list(DERIVED[: random.randint(1, 4)])
        self.open = {n for n in self.derived[1:] if random.random() < 0.15}
        self.open_data = {n for n in self.derived[1:] if random.random() < 0.08}
        self.aggregates = {
            n: random.choice(AGGREGATES)
            for n in self.derived
            if n not in self.open | self.open_data and random.random() < 0.15
        }
        self.limits = {
            n
            for n in self.derived
            if n not in self.open | self.open_data and random.random() < 0.12
        }
        lines = []
        unit = "us" if self.by_clock else ""
        if self.by_clock:
            lines += [f"stream {n}(T: time, V: int)." for n in self.streams]
        if self.settings and random.random() < 0.3:
            lines.append(f"table w(W: {'duration' if unit else 'int'} 1{unit}..3{unit}).")
        elif self.settings:
            lines += [f"w({n}{unit})." for n in random.choice(((2,), (1, 3), (0, 2, 4)))]
        for name in self.derived:
            for number in range(random.choice((1, 1, 2, 2, 3))):
                lines.append(_Rule(self, name, number == 0).text())
        self.text = "\n".join(lines) + "\n"

    def instant(self) -> str:
        number = self.random.randint(0, 4)
        return f"@1970-01-01T00:00:00.00000{number}Z" if self.by_clock else str(number)
