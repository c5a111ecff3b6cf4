"""Random programs about facts with two or three times, whose relations are declared or inferred.

A bound may stand far from where it is needed: in a declaration, or in the rule of a predicate that
another rule reads. What the compiler refuses in a stream is thrown away; the rest it has to get
right although many of its rules, alone, bound nothing.
"""

from __future__ import annotations

from random import Random

from attrs import evolve, frozen
from oracle.programs import Case

from streamlog.compiler import Program, compile_source
from streamlog.diagnostics import Source

LAST = 14
TEXTS = ("a", "b")


@frozen
class Pred:
    name: str
    times: int  # how many of its columns are times; a text comes behind them


# What the rules below do not make: `tick`, limits, open predicates and counts.
BESIDE = (
    "k0(T, X) <- tick(T), s(_, U, X), U <= T, U > T - 3, not (s(_, V, X), V > U, V <= T).",
    "l0(U, X, T) <- s(T, U, X) limit 2 by T desc, X per X.",
    "c0(T, X) <- r(T, X), not o0(T, X).",
    "d0(T, count()) <- r(T, _), s(_, U, _), U <= T, U >= T - 5.",
    "e0(U, X) <- s(T, U, X), not (s(T1, U1, X), U1 > U, U1 <= U + 2, T1 >= T).",
    "g0(U, max(T)) <- s(T, U, _), not o0(U, b).",
)


def beside(case: Case, rng: Random) -> Case:
    """With some of these rules too, which bound `s` on its second time alone."""
    rules = ["o0(T, X) <- s(_, U, X), U <= T, U >= T - 4.", *rng.sample(BESIDE, 3)]
    return evolve(case, text="\n".join([case.text, *rules, ""]))


def random_case(rng: Random) -> tuple[Case, Program]:
    while True:
        case = Maker(rng).case()
        program = compile_source(Source("random", case.text))
        if program.ok and set(case.facts) <= set(program.schema.streams):
            return case, program


class Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.known = [Pred("s", 2), Pred("s", 2), Pred("v", 3), Pred("r", 1)]
        self.ahead, self.back = rng.randrange(4), rng.randrange(5)
        self.length = rng.randrange(4)
        self.several = rng.random() < 0.6

    def case(self) -> Case:
        rng = self.rng
        clauses = [f"U <= T + {self.ahead}"] * (rng.random() < 0.9)
        clauses += [f"T - {self.back} <= U"] * (rng.random() < 0.9)
        where = f" where {', '.join(clauses)}" if clauses else ""
        lines = [
            f"stream s(T: int, U: int, x: string){self.progress('U')}{where}.",
            f"stream v(T: int, begin: int, end: int, x: string){self.progress('begin', 'end')} "
            f"where begin <= end, "
            f"end < begin + {self.length + 1}, end {rng.choice(['=', '<='])} T.",
            "stream r(T: int, x: string).",
            f"table hours(low: int, high: int) where low <= high, high <= low + {self.length}.",
        ]
        for number in range(rng.randint(1, 4)):
            lines += self.rules(f"p{number}")
        equal = "end = T" in lines[1]
        return Case("\n".join(lines) + "\n", self.facts(equal), {"hours": self.hours()})

    def progress(self, *columns: str) -> str:
        """On several timelines, perhaps."""
        chosen = [c for c in columns if self.rng.random() < 0.7] if self.several else []
        return f" progress {', '.join(['T', *chosen])}" if chosen else ""

    # ------------------------------------------------------------------------------ data

    def facts(self, equal: bool) -> dict[str, list[tuple[object, ...]]]:
        rng = self.rng
        s, v, r = set(), set(), set()
        for _ in range(rng.randint(4, 14)):
            t = rng.randrange(LAST)
            s.add((t, rng.randint(t - self.back, t + self.ahead), rng.choice(TEXTS)))
            end = t if equal else t - rng.randrange(9)
            v.add((t, end - rng.randint(0, self.length), end, rng.choice(TEXTS)))
            r.add((rng.randrange(LAST), rng.choice(TEXTS)))
        return {"s": sorted(s), "v": sorted(v), "r": sorted(r)}

    def hours(self) -> list[tuple[object, ...]]:
        lows = [self.rng.randrange(LAST) for _ in range(self.rng.randrange(4))]
        return sorted({(low, low + self.rng.randint(0, self.length)) for low in lows})

    # ----------------------------------------------------------------------------- rules

    def rules(self, name: str) -> list[str]:
        rng = self.rng
        times = rng.choice([1, 2, 2, 3])
        made = [self.rule(name, times) for _ in range(rng.choice([1, 1, 2]))]
        if times == 2 and rng.random() < 0.3:
            made.append(
                f"{name}(T, U, X) <- {name}(T0, U, X), r(T, X), T0 < T, "
                f"T <= {rng.choice(['U', 'T0'])} + {rng.randrange(5)}."
            )
        self.known.append(Pred(name, times))
        return made

    def rule(self, name: str, times: int) -> str:
        rng = self.rng
        names: list[str] = []
        body = [self.goal(rng.choice(self.known), names) for _ in range(rng.choice([1, 2, 2]))]
        if rng.random() < 0.15:
            names += ["L", "H"]
            body.append("hours(L, H)")
        for _ in range(rng.choice([0, 1, 2, 2])):
            body.append(self.comparison(names, names))
        if rng.random() < 0.3:
            body.append(f"D = {rng.choice(names)} {rng.choice('+-')} {rng.randrange(4)}")
            names.append("D")
        head = [rng.choice(names) for _ in range(times)]
        if rng.random() < 0.4:
            inner: list[str] = []
            goals = [self.goal(rng.choice(self.known), inner, "N")]
            goals += [self.comparison(inner, names) for _ in range(rng.choice([1, 2]))]
            body.append(f"not ({', '.join(goals)})")
        at = rng.randrange(times)
        if rng.random() < 0.3:
            head[at] += f" {rng.choice('+-')} {rng.randrange(4)}"
        elif at and rng.random() < 0.4:
            for column in {at, rng.randrange(1, times)}:
                head[column] = (
                    f"{rng.choice(['min', 'max', 'first', 'last', 'sum'])}({head[column]})"
                )
        return f"{name}({', '.join(head)}, X) <- {', '.join(body)}."

    def goal(self, pred: Pred, names: list[str], prefix: str = "T") -> str:
        new = [f"{prefix}{len(names) + n}" for n in range(pred.times)]
        names += new
        text = (
            self.rng.choice(["X", "X", "X", "_"]) if prefix == "N" or len(new) < len(names) else "X"
        )
        args = [n if self.rng.random() < 0.95 else str(self.rng.randrange(LAST)) for n in new]
        names[:] = [n for n in names if n not in new or n in args] or names
        return f"{pred.name}({', '.join(args)}, {text})"

    def comparison(self, left: list[str], right: list[str]) -> str:
        rng = self.rng
        op = rng.choice(["<=", "<=", "<", ">=", ">", "="])
        offset = rng.choice(["", "", f" + {rng.randrange(5)}", f" - {rng.randrange(5)}"])
        return f"{rng.choice(left)} {op} {rng.choice(right)}{offset}"
