"""Random programs as people write them about data: calendar times on which the clocks of a zone
change, texts and floats, columns that may lack a value, functions in heads, tests and negations,
aggregates of all kinds, rankings with equal places."""

from __future__ import annotations

from random import Random

from oracle.programs import Case

from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.syntax.nothing import NONE

DECLARATIONS = """
stream s(T: time, k: string, n: int{0}, f: float, b: bool, w: string{0}).
stream r(T: time, k: string, d: duration).
table t(k: string, m: int?).
""".strip()

MINUTE = 60_000_000
# The clocks of Berlin go forward, back, and do not change; those of Lord Howe by half an hour.
CHANGES = (1_774_746_000_000_000, 1_792_890_000_000_000, 1_783_000_800_000_000)
CHANGES += (1_791_039_600_000_000,)
ZONES = ('"Europe/Berlin"', '"America/New_York"', '"Australia/Lord_Howe"', '"Asia/Kolkata"')
UNITS = ("minute", "hour", "day", "week")
TEXTS = ("ab-12", " ab", "Ab", '{"a": [1, "x"]}', "", "ß-é-1", "12")


def random_case(rng: Random) -> Case:
    while True:
        case = _Maker(rng).case()
        if compile_source(Source("random", case.text)).ok:
            return case


class _Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.change = rng.choice(CHANGES)
        self.optional = rng.random() < 0.5
        self.derived: list[str] = []

    def case(self) -> Case:
        rng, lines = self.rng, [DECLARATIONS.format("?" * self.optional)]
        if rng.random() < 0.4:
            self.derived.append("e")
            lines.append(f"e(T, K, N, F, B, W) <- {self.goal('s', '')}, {self.test('')}.")
        lines += (self.rule(f"p{number}") for number in range(rng.choice([1, 1, 2])))
        facts = {
            "s": {self.row() for _ in range(rng.randint(4, 14))},
            "r": {
                (self.time(), rng.choice("kKl"), rng.randint(-2, 4) * 15 * MINUTE) for _ in range(4)
            },
        }
        rows = {name: sorted(found) for name, found in facts.items()}
        table = {("k", rng.choice([1, NONE])), ("l", 2), ("K", rng.choice([0, NONE]))}
        tables = {"t": sorted(rng.sample(sorted(table), rng.randint(0, 3)))}
        return Case("\n".join(lines) + "\n", rows, tables)

    def time(self) -> int:
        hours = self.rng.choice([0, 0, 0, 24, 168])
        return self.change + (self.rng.randint(-8, 8) * 15 + hours * 60) * MINUTE

    def row(self) -> tuple[object, ...]:
        rng = self.rng
        return (
            self.time(),
            rng.choice("kkKl"),
            rng.choice([*[NONE] * self.optional, 0, 1, 2, -3]),
            rng.choice([0.0, 0.5, 1.5, 2.5, -1.005, 1e16]),
            rng.random() < 0.5,
            rng.choice([*TEXTS, *[NONE, NONE] * self.optional]),
        )

    # ----------------------------------------------------------------------------- terms

    def zone(self) -> str:
        return self.rng.choice(["", f", {self.rng.choice(ZONES)}"])

    def when(self, x: str) -> str:
        return (
            f"{self.rng.choice(['hour', 'day', 'minute', 'weekday', 'month'])}(T{x}{self.zone()})"
        )

    def there(self, name: str, other: str) -> str:
        """A value that may be missing, or another."""
        return f"default({name}, {other})" if self.optional else name

    def whole(self, x: str) -> str:
        number = self.there(f"N{x}", "0")
        return self.rng.choice(
            [
                number,
                self.there(f"N{x}", f"int(F{x} / 4.0)"),
                f"if(F{x} < 1.5, 1, {number})",
                f"if(B{x}, length(K{x}), 2)",
                f"round(F{x} / 2)",
                f"hash(K{x}) % 7",
                f"length({self.there(f'W{x}', f'K{x}')})",
                f"int(floor(F{x}, 0.5))",
                self.when(x),
            ]
        )

    def real(self, x: str) -> str:
        return self.rng.choice(
            [
                f"F{x}",
                f"F{x}",
                f"F{x} * 2",
                f"round(F{x}, 2)",
                f"sqrt(abs(F{x}))",
                f"if(B{x}, F{x}, 0.0)",
                f"pow(min(F{x}, 3.0), 2)",
                f"float({self.there(f'N{x}', '1')}) / 3",
            ]
        )

    def text(self, x: str) -> str:
        word = self.there(f"W{x}", f"K{x}")
        return self.rng.choice(
            [
                f"K{x}",
                f"K{x}",
                f"upper(K{x})",
                word,
                f"trim({word})",
                f'split({word}, "-", 1)',
                f'regex_extract({word}, "[0-9]+")',
                f"replace({word}, a, K{x})",
                f'format(T{x}, "%d %H:%M"{self.zone()})',
                f"date(T{x}{self.zone()})",
                f"string({self.whole(x)})",
                f"string(B{x}) ++ K{x}",
                f"if(K{x} > b, K{x}, k)",
            ]
        )

    def anything(self, x: str) -> str:
        """Columns that may lack a value too."""
        own = [f"N{x}", f"W{x}", f"B{x}", f"F{x}", f"K{x}"]
        return self.rng.choice([*own, self.whole(x), self.real(x), self.text(x)])

    def test(self, x: str, other: str | None = None) -> str:
        rng = self.rng
        op = rng.choice(["<", "<=", ">", ">=", "!=", "="])
        number, word = self.there(f"N{x}", "1"), self.there(f"W{x}", f"K{x}")
        tests = [
            f"{self.whole(x)} {op} {rng.randint(0, 3)}",
            f"{self.real(x)} {op} 1.5",
            f"{self.text(x)} {op} k",
            f"B{x} = {rng.choice(['true', 'false'])}",
            f"K{x} in (k, l)",
            f"not ({number} in (0, 1))",
            f"between(F{x}, 0.0, 2.0)",
            f"contains({word}, a)",
            f'matches({word}, "^[a-z]+")',
            f"{self.when(x)} {op} {rng.choice([1, 2, 3, 25, 29])}",
            f"t(K{x}, _), not t(K{x}, none)",
            f"not t(K{x}, N{x})",
        ]
        if self.optional:
            tests += [f"N{x} {rng.choice(['=', '!='])} none", f"W{x} = none"]
        if other is not None:
            tests += [f"{self.whole(x)} {op} {self.whole(other)}"] * 2
            tests += [f"{self.real(x)} {op} {self.real(other)}"] * 2
            tests += [f"{self.text(x)} {op} {self.text(other)}"] * 2
            tests += [f"N{x} {rng.choice(['=', '!='])} N{other}", f"W{x} = W{other}"]
        return rng.choice(tests)

    # ----------------------------------------------------------------------------- goals

    def goal(self, pred: str, x: str, key: str | None = None) -> str:
        return f"{pred}(T{x}, {key or f'K{x}'}, N{x}, F{x}, B{x}, W{x})"

    def source(self) -> str:
        return self.rng.choice(["s", "s", *self.derived])

    def near(self, x: str) -> list[str]:
        """How a timestamp lies to T."""
        rng = self.rng
        ago = rng.choice(["15min", "1h", "2h"])
        day = f"date_trunc(day, T{x}, {ZONES[0]}) = date_trunc(day, T, {ZONES[0]})"
        return rng.choice(
            [
                [f"T{x} < T"],
                [f"T{x} <= T", f"T - {ago} <= T{x}"],
                [f"T < T{x}", f"T{x} <= T + {ago}"],
                [f"floor(T{x}, 1h) = floor(T, 1h)"],
                [day, f"T{x} < T"],
                [f"T{x} = T - {ago}"],
            ]
        )

    def negation(self) -> str:
        if self.rng.random() < 0.4:
            test = self.rng.choice(["lower(K1) = lower(K)", "T1 + D <= T", "D > 15min", "K1 != K"])
            return f"not ({', '.join(['r(T1, K1, D)', *self.near('1'), test])})"
        key = self.rng.choice([None, "K"])
        body = [self.goal(self.source(), "1", key), *self.near("1"), self.test("1", "")]
        if key:
            body = [literal.replace("K1", "K") for literal in body]
        return f"not ({', '.join(body)})"

    # ----------------------------------------------------------------------------- rules

    def rule(self, name: str) -> str:
        rng = self.rng
        body, names = [self.goal(self.source(), "")], [""]
        if rng.random() < 0.4:
            key = rng.choice([None, "K"])
            goal = [self.goal(self.source(), "2", key), *self.near("2")]
            goal += [self.test("2", "")] * rng.choice([0, 1])
            body += [x.replace("K2", "K") for x in goal] if key else goal
            names.append("2" if key is None else "")
        if rng.random() < 0.5:
            body.append(self.test(""))
        if rng.random() < 0.2:
            body.append(f"({self.test('')} ; {self.test('')})")
        if rng.random() < 0.4:
            body.append(self.negation())
        if rng.random() < 0.2:
            body.append("t(K, M)")
        zone = self.zone()
        time = rng.choice(
            ["T", "T", "T", "floor(T, 30min)", f"date_trunc({rng.choice(UNITS)}, T{zone})"]
        )
        x = rng.choice(names)
        aggregates = rng.random() < 0.5
        key = rng.choice(["K", "N", "B", self.text("")])
        values = [self.aggregate(x) for _ in range(rng.choice([1, 1, 2]))] if aggregates else []
        values = values or [self.anything(rng.choice(names)) for _ in range(rng.choice([0, 1, 2]))]
        head = [time, key, *values]
        rng.shuffle(body)
        limit = self.limit(head, aggregates) if rng.random() < 0.5 else ""
        return f"{name}({', '.join(head)}) <- {', '.join(body)}{limit}."

    def aggregate(self, x: str) -> str:
        rng = self.rng
        number = rng.choice([self.whole, self.real])(x)
        return rng.choice(
            [
                "count()",
                f"count(N{x})",
                f"count_distinct({self.anything(x)})",
                f"sum({number})",
                f"sum({self.real(x)}) / count()",
                f"100.0 * count_if({self.whole(x)} > 0) / count()",
                f"count_if(B{x})",
                f"avg({number})",
                f"{rng.choice(['min', 'max'])}<{rng.choice([number, f'K{x}'])}>",
                f"max<{number}> - min<{number}>",
                f"{rng.choice(['var', 'stddev', 'median'])}({number})",
                f"percentile({number}, {rng.choice(['0.0', '0.5', '0.95', '1.0'])})",
                f"{rng.choice(['arg_min', 'arg_max'])}({self.text(x)}, {number})",
                f"{rng.choice(['first', 'last'])}({self.text(x)})",
                f"collect({rng.choice([self.text(x), number, f'B{x}'])})",
            ]
        )

    def limit(self, head: list[str], aggregates: bool) -> str:
        rng = self.rng
        own = [*"NFWTKB", *head[1:], self.whole("")]
        by = [
            f"{rng.choice(head[1:] if aggregates else own)}{rng.choice(['', ' desc', ' asc'])}"
            for _ in range(rng.choice([1, 2]))
        ]
        groups = [head[1]] if aggregates else ["K", "B", "N", self.text("")]
        per = rng.sample(groups, min(len(groups), rng.choice([0, 1, 1, 2])))
        offset = rng.choice(["", "", "", " offset 1", " offset 2"])
        behind = f" per {', '.join(per)}" if per else ""
        return f" limit {rng.choice([1, 2, 3])}{offset} by {', '.join(by)}{behind}"
