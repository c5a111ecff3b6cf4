"""Random programs in which a few old rows stand for all others: the latest, the highest, the last.

Each rule is one of the shapes that `analysis.sufficient_rows` knows, often bent a little, so that
it may just not be one of them any more.
"""

from __future__ import annotations

from random import Random

from oracle.programs import LAST_TIME, Case

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source

DECLARATIONS = """
stream s(T: int, k: string, v: int, w: string).
stream r(T: int, k: string).
stream a(T: int, k: string).
""".strip()


def random_case(rng: Random) -> Case:
    while True:
        case = Maker(rng).case()
        if compile_source(Source("random", case.text)).ok:
            return case


class Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.source = "s"

    def case(self) -> Case:
        rng, lines = self.rng, [DECLARATIONS]
        if rng.random() < 0.4:
            self.source = "d"
            lines.append(self.derived())
        lines += (self.rule(f"p{number}") for number in range(rng.choice([1, 1, 2, 3])))
        facts = {
            "s": [
                (self.time(), self.key(), rng.randint(0, 4), rng.choice(["on", "off", "x"]))
                for _ in range(rng.randint(8, 20))
            ],
            "r": [(self.time(), self.key()) for _ in range(rng.randint(0, 6))],
            "a": [(self.time(), self.key()) for _ in range(rng.randint(5, 12))],
        }
        return Case(
            "\n".join(lines) + "\n", {name: sorted(set(rows)) for name, rows in facts.items()}, {}
        )

    def time(self) -> int:
        return self.rng.randrange(LAST_TIME)

    def key(self) -> str:
        return self.rng.choice("kl")

    def derived(self) -> str:
        return "d(T, K, V, W) <- " + self.rng.choice(
            [
                "s(T, K, V, W), V != 2.",
                "s(T, K, V, W), not (r(T1, K), T1 = T - 1).",
                "s(T, K, V, W), not (r(T1, K), T < T1, T1 <= T + 2).",
                "s(T0, K, V, W), T = T0 + 1.",
                "s(T, K, V0, W), r(T1, K), T1 <= T, V = T - T1.",
            ]
        )

    # ----------------------------------------------------------------------------- pieces

    def goal(self, time: str, key: str, value: str, word: str) -> str:
        return f"{self.source}({time}, {key}, {value}, {word})"

    def before(self, time: str) -> str:
        return f"{time} {self.rng.choice(['<', '<='])} T"

    def order(self) -> str:
        return self.rng.choice(["<", "<=", ">", ">="])

    def value(self, name: str) -> str:
        return self.rng.choice([name, name, f"{name} + 1", f"5 - {name}", f"2 * {name}"])

    def maybe(self, chance: float, *literals: str) -> list[str]:
        return [self.rng.choice(literals)] if self.rng.random() < chance else []

    def bends(self, *names: str) -> list[str]:
        """Now and then something more is asked of the same row, or of another."""
        rng = self.rng
        name = rng.choice(names)
        return [
            *self.maybe(0.25, f"{name} {self.order()} {rng.randint(0, 4)}", f"{name} != 2"),
            *self.maybe(0.15, "r(T9, K), T9 < T", "not (r(T9, K), T9 < T)"),
            *self.maybe(0.15, "not (r(T8, K), T < T8, T8 <= T + 2)"),
            *self.maybe(0.15, f"not (r(T7, K), T7 <= T, {name} {self.order()} T7)"),
            *self.maybe(0.1, f"not ({self.goal('T6', '_', 'V6', '_')}, V6 > {name}, T6 < T)"),
        ]

    # ------------------------------------------------------------------------------ rules

    def rule(self, name: str) -> str:
        shapes = (self.exceeded, self.extreme, self.latest, self.last, self.state)
        head, literals = self.rng.choice((*shapes, self.top, self.distance))()
        self.rng.shuffle(literals)
        return f"{name}({', '.join(head)}) <- {', '.join(literals)}."

    def exceeded(self) -> tuple[list[str], list[str]]:
        """Nothing up to now is above, or below."""
        other = self.goal("T0", self.rng.choice(["K", "_"]), "V0", self.rng.choice(["_", "W"]))
        inner = [other, f"{self.value('V0')} {self.order()} V", self.before("T0")]
        inner += self.maybe(0.2, "V0 > 1", "r(T5, K), T5 < T", "W0 = W")
        return ["T", "K", "V"], [
            self.goal("T", "K", "V", "W"),
            f"not ({', '.join(inner)})",
            *self.bends("V"),
        ]

    def extreme(self) -> tuple[list[str], list[str]]:
        func = self.rng.choice(["min", "max", "min", "max", "count_distinct", "sum"])
        arg = self.rng.choice([self.value("V"), self.value("V"), "T0", "V + T0"])
        key = self.rng.choice(["K", "K", "_", "K0"])
        head = ["T", "K", f"{func}({arg})"]
        return head, [
            "a(T, K)",
            self.goal("T0", key, "V", self.rng.choice(["_", "_", "W", "on"])),
            self.before("T0"),
            *self.maybe(0.2, f"not (r(T1, K), T0 {self.order()} T1, T1 <= T)"),
            *self.bends("V", "T0"),
        ]

    def latest(self) -> tuple[list[str], list[str]]:
        """With what came with it."""
        rng = self.rng
        rival = self.goal("T1", "K", rng.choice(["_", "_", "_", "V"]), rng.choice(["_", "_", "W"]))
        order = rng.choice(["T0 < T1", "T0 < T1", "T0 < T1", "T0 > T1", "T0 < T1 - 1"])
        head = rng.choice([["T", "K", "V"], ["T", "V", "W"], ["T", "K"]])
        return head, [
            "a(T, K)" if rng.random() < 0.8 else "a(T, _)",
            self.goal("T0", "K", "V", rng.choice(["W", "W", "W"])),
            self.before("T0"),
            f"not ({rival}, {order}, {self.before('T1')})",
            *self.bends("V"),
        ]

    def last(self) -> tuple[list[str], list[str]]:
        func = self.rng.choice(["last", "first"])
        arg = self.rng.choice(["V", "V", "W"])
        return ["T", "K", f"{func}({arg})"], [
            "a(T, K)",
            self.goal("T0", self.rng.choice(["K", "K", "_"]), "V", "W"),
            self.before("T0"),
            *self.bends("V", "T0"),
        ]

    def state(self) -> tuple[list[str], list[str]]:
        """Switched on and not off since."""
        return ["T", "K"], [
            "a(T, K)",
            self.goal("T0", "K", "_", "on"),
            self.before("T0"),
            f"not ({self.goal('T1', 'K', '_', 'off')}, T0 < T1, {self.before('T1')})",
        ]

    def top(self) -> tuple[list[str], list[str]]:
        """Who had the highest value so far."""
        rng = self.rng
        key = rng.choice(["_", "K"])
        value = rng.choice(["V", "V", "V", "V", "3"])
        rival = self.goal("T1", key, "V1", "_")
        return rng.choice([["T", "W"], ["T", value, "W"]]), [
            "a(T, K)",
            self.goal("T0", key, value, "W"),
            self.before("T0"),
            f"not ({rival}, V1 {rng.choice(['>', '<'])} {value}, {self.before('T1')})",
            *self.maybe(0.2, "s(T, _, V, _)"),
            *self.bends(value),
        ]

    def distance(self) -> tuple[list[str], list[str]]:
        """How long ago."""
        return ["T", "K", "D"], [
            "a(T, K)",
            self.goal("T0", "K", "_", "_"),
            self.before("T0"),
            f"not ({self.goal('T1', 'K', '_', '_')}, T0 < T1, {self.before('T1')})",
            "D = T - T0",
        ]
