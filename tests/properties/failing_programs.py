"""Random programs whose rules may fail: divisions, numbers beyond 64 bits, texts that are none."""

from __future__ import annotations

from random import Random

from oracle.programs import Case

_NUMBERS = (-3, -1, 0, 0, 1, 2, 3, 2**62, -(2**63), 2**63 - 1)
_TEXTS = ("0", "1", "2", "-3", "x", "", "(", "99999999999999999999")


def random_case(rng: Random) -> Case:
    """`p0`, `p1`, … read streams, a table and each other; some facts are negated."""
    return _Writer(rng).case()


class _Writer:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.fresh = 0

    def case(self) -> Case:
        rng = self.rng
        rules = [rule for number in range(rng.randint(1, 4)) for rule in self._rules(number)]
        ranged = " -3..3" if rng.random() < 0.3 else ""
        text = [
            f"stream s(T: int, a: int, b: int{ranged}, x: string) slack 2.",
            "stream u(T: int, k: int).",
            "table w(k: int, v: int).",
            *rules,
        ]
        numbers = (-3, -1, 0, 1, 3) if ranged else _NUMBERS
        facts = {
            "s": {
                (rng.randint(0, 9), rng.choice(_NUMBERS), rng.choice(numbers), rng.choice(_TEXTS))
                for _ in range(rng.randint(0, 9))
            },
            "u": {(rng.randint(0, 9), rng.choice(_NUMBERS)) for _ in range(rng.randint(0, 7))},
        }
        tables = {"w": {(rng.choice(_NUMBERS), rng.choice(_NUMBERS)) for _ in range(4)}}
        return Case(
            "\n".join(text),
            {name: sorted(rows) for name, rows in facts.items()},
            {name: sorted(rows) for name, rows in tables.items()},
        )

    def _rules(self, number: int) -> list[str]:
        return [self._rule(number) for _ in range(self.rng.randint(1, 2))]

    def _rule(self, number: int) -> str:
        rng, self.fresh = self.rng, 0
        repeated = rng.random() < 0.15
        body = ["s(T, A, A, X)" if repeated else "s(T, A, B, X)"]
        whole = ["A"] if repeated else ["A", "B"]
        if number and rng.random() < 0.5:
            body.append(f"p{rng.randrange(number)}(T, P)")
            whole.append("P")
        if rng.random() < 0.4:
            body.append("u(T1, K)" if rng.random() < 0.5 else "u(T1, A)")
            body += ["T1 <= T", "T1 >= T - 3"]
            whole += ["K"] if body[-3] == "u(T1, K)" else []
        if rng.random() < 0.3:
            body.append(f"w({self._whole(whole) if rng.random() < 0.4 else rng.choice(whole)}, V)")
        if rng.random() < 0.3:
            body.append(rng.choice(["not u(T, A)", "not (u(T2, A), T2 <= T, T2 >= T - 2)"]))
        if rng.random() < 0.2:
            body.append(rng.choice(["matches(X, X)", 'matches(X, "^[0-9]+$")', 'X != "x"']))
        for _ in range(rng.randint(0, 2)):
            body.append(
                f"{rng.choice([*whole, self._whole(whole)])} {self._op()} {rng.randint(-2, 3)}"
            )
        head = self._whole(whole)
        if rng.random() < 0.5:
            self.fresh += 1
            body.append(f"R{self.fresh} = {head}")
            head = f"R{self.fresh}"
            if rng.random() < 0.4:
                body.append(f"{head} {self._op()} {rng.randint(-2, 3)}")
        rng.shuffle(body)
        return f"p{number}(T, {head}) <- {', '.join(body)}."

    def _op(self) -> str:
        return self.rng.choice(["<", "<=", ">", ">=", "!=", "="])

    def _whole(self, names: list[str]) -> str:
        one, other = self.rng.choice(names), self.rng.choice(names)
        return self.rng.choice(
            [
                f"{one} // {other}",
                f"{one} % {other}",
                f"{one} * {other}",
                f"{one} + {other}",
                f"-{one}",
                "int(X)",
                f"int(X) - {one}",
                f"int(sqrt({one}))",
                one,
            ]
        )
