"""Random programs full of windows, floats, durations, divisions, texts and nested negations.

`oracle.programs` throws rules together from goals; these are about what stands in them. Some run
on a calendar, some on plain numbers; none is recursive. Some floats are very large or very small,
and a tenth is none: their sums must not depend on the order.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from attrs import define, frozen
from oracle.programs import Case

from streamlog.compiler import Mode, Program, compile_source
from streamlog.diagnostics import Source

SECOND = 1_000_000
LAST = 12
TEXTS = ("a", "b", "ab", "ba", "", "Aé")
NAMES = {"s": "X", "n": "N", "f": "F", "d": "D"}  # texts, whole numbers, floats, durations
FLOATS = (1e16, -1e16, 0.1, -0.3, 1e-300, 1e300, -1e300, 123456789.123)
OPERATORS = ("<", "<=", ">", ">=", "!=", "!=", "=")
RESULTS = {"count": "n", "count_distinct": "n"}  # of aggregates that have a type of their own


@frozen
class Pred:
    name: str
    columns: str  # letters of NAMES; the timestamp comes before them
    is_table: bool = False


@define
class Scope:
    """A body in the making, and the variables that it binds."""

    literals: list[str]
    times: list[str]
    bound: dict[str, list[str]]
    count: list[int]

    def fresh(self, letter: str) -> str:
        self.count[0] += 1
        return f"{NAMES.get(letter, letter)}{self.count[0]}"

    def inner(self) -> Scope:
        """A negation's: what it binds is its own."""
        bound = {letter: list(names) for letter, names in self.bound.items()}
        return Scope([], list(self.times), bound, self.count)


def random_case(rng: Random) -> tuple[Case, Program]:
    while True:
        maker = Maker(rng)
        case = maker.case()
        program = compile_source(Source("random", case.text), mode=maker.mode)
        if program.ok and program.schema and set(case.facts) <= set(program.schema.streams):
            return case, program


class Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.on_calendar = rng.random() < 0.5
        self.mode = Mode.BATCH if rng.random() < 0.3 else Mode.STREAM
        self.streams = [Pred("s", "snf"), Pred("r", "snd"), Pred("q", "s")]
        self.table = Pred("lim", "snd", is_table=True)
        self.derived: list[Pred] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def case(self) -> Case:
        time = "time" if self.on_calendar else "int"
        types = {"s": "string", "n": "int", "f": "float"}
        types["d"] = "duration" if self.on_calendar else "int"
        lines = []
        for pred in self.streams:
            columns = ", ".join(f"c{i}: {types[c]}" for i, c in enumerate(pred.columns))
            lines.append(f"stream {pred.name}(T: {time}, {columns}).")
        columns = ", ".join(f"c{i}: {types[c]}" for i, c in enumerate(self.table.columns))
        lines.append(f"table {self.table.name}({columns}).")
        if self.chance(0.2):
            lines.append(self.static("k"))
        for number in range(self.rng.choice([1, 2, 3])):
            lines += self.rules(f"p{number + 1}")
        return Case(
            "\n".join(lines) + "\n",
            {pred.name: self.rows(pred) for pred in self.streams},
            {"lim": self.rows(self.table)},
        )

    # ------------------------------------------------------------------------------ data

    def rows(self, pred: Pred) -> list[tuple[object, ...]]:
        count = self.rng.randint(2, 6) if pred.is_table else self.rng.randint(8, 20)
        if self.chance(0.05):
            count = 0
        return sorted({self.row(pred) for _ in range(count)})

    def row(self, pred: Pred) -> tuple[object, ...]:
        rng, unit = self.rng, SECOND if self.on_calendar else 1
        values: dict[str, Callable[[], object]] = {
            "s": lambda: rng.choice(TEXTS[:2] if self.chance(0.8) else TEXTS),
            "n": lambda: rng.randint(-2, 4),
            "f": lambda: rng.choice(FLOATS) if self.chance(0.2) else rng.randint(-4, 8) / 4,
            "d": lambda: rng.randint(-1, 4) * unit,
        }
        data = tuple(values[letter]() for letter in pred.columns)
        return data if pred.is_table else (rng.randrange(LAST) * unit, *data)

    # ----------------------------------------------------------------------------- rules

    def rules(self, name: str) -> list[str]:
        rng = self.rng
        if self.chance(0.4):
            pred, rule = self.window(name)
            self.derived.append(pred)
            return [rule]
        func = rng.choice(["", "", "sum", "avg", "min", "max", "count", "count_distinct", "first"])
        if self.chance(0.1):
            func = "last"
        columns = rng.choice(["s", "n", "f", "d", "sn", "sf", "nd", "snf"])
        if func in ("sum", "avg") and columns[-1] == "s":
            columns = columns[:-1] + rng.choice("nfd")
        rules = [self.rule(name, columns, func) for _ in range(rng.choice([1, 1, 2]))]
        last = RESULTS.get(func, columns[-1])
        if func == "avg" and last == "n":
            last = "f"
        if func == "avg" and last == "d" and not self.on_calendar:
            last = "f"
        self.derived.append(Pred(name, columns[:-1] + last))
        return rules

    def static(self, name: str) -> str:
        """A rule over the table alone, in its place from then on."""
        scope = Scope([], [], {letter: [] for letter in NAMES}, [0])
        self.goal(scope, self.table, "")
        if self.chance(0.5):
            self.goal(scope, self.table, "")
        if self.chance(0.5):
            scope.literals.append(self.test(scope))
        if self.chance(0.3):
            inner = scope.inner()
            self.goal(inner, self.table, "")
            inner.literals.append(self.test(inner))
            scope.literals.append(f"not ({', '.join(inner.literals)})")
        head = [self.term(scope, letter, self.rng.choice([0, 0, 1])) for letter in "snd"]
        if self.chance(0.3):
            func = self.rng.choice(["min", "max", "first", "avg" if self.on_calendar else "sum"])
            head[-1] = f"{func}({head[-1]})"
        self.table = Pred(name, "snd", is_table=True)
        return f"{name}({', '.join(head)}) <- {', '.join(scope.literals)}."

    def window(self, name: str) -> tuple[Pred, str]:
        """An aggregate over the rows around those of `q`."""
        rng = self.rng
        scope = Scope(["q(T, X)"], ["T"], {"s": ["X"], "n": [], "f": [], "d": []}, [0])
        derived = [p for p in self.derived if p.columns != "s"]
        source = rng.choice(derived if derived and self.chance(0.3) else self.streams[:2])
        head = ["T", "X"]
        bounds = self.around(scope, "T0", wide=True)
        if self.chance(0.25):  # as wide as a table says
            scope.literals.append(f"{self.table.name}(X, N0, D0)")
            head += ["N0", "D0"]
            bounds = [
                rng.choice(["T0 >= T - D0", "T0 > T - D0 - 1us"]),
                rng.choice(["T0 <= T", "T0 < T"]),
            ]
            if not self.on_calendar:
                bounds = [b.replace("1us", "1") for b in bounds]
        position = rng.randrange(len(source.columns))
        letter = source.columns[position]
        args = []
        for place, column in enumerate(source.columns):
            if place == position:
                args.append("V")
            else:
                args.append("X" if column == "s" and self.chance(0.8) else "_")
        funcs = ["count", "min", "max"] + ["sum", "sum", "avg", "avg"] * (letter != "s")
        func = rng.choice(funcs)
        scope.literals += [f"{source.name}({', '.join(['T0', *args])})", *bounds]
        if self.chance(0.2):
            scope.literals.append(self.negation(scope, 1))
        if self.chance(0.15):
            scope.literals.append(self.test(scope))
        head.append(f"{func}(V)")
        rng.shuffle(scope.literals)
        last = RESULTS.get(func, letter)
        if func == "avg" and not (letter == "d" and self.on_calendar):
            last = "f"
        columns = "s" + "nd" * (len(head) > 3) + last
        return Pred(name, columns), f"{name}({', '.join(head)}) <- {', '.join(scope.literals)}."

    def rule(self, name: str, columns: str, func: str) -> str:
        rng = self.rng
        scope = Scope([], [], {letter: [] for letter in NAMES}, [0])
        self.goal(scope, rng.choice([*self.streams * 2, *self.derived]), "T")
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            self.more(scope)
        for letter in columns:
            if not scope.bound[letter]:
                having = [p for p in self.streams if letter in p.columns]
                self.goal(scope, rng.choice(having), "T")
        if self.chance(0.4):
            scope.literals.append(self.test(scope))
        if self.chance(0.15):
            scope.literals.append(f"({self.test(scope)} ; {self.test(scope)})")
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            scope.literals.append(self.negation(scope, rng.choice([1, 2, 2, 3])))
        values = []
        for letter in columns:
            value = self.term(scope, letter, rng.choice([0, 0, 1, 2]))
            if self.chance(0.3):
                var = scope.fresh("V")
                scope.literals.append(f"{var} = {value}")
                value = var
            values.append(value)
        if func:
            values[-1] = f"{func}({values[-1]})"
        time = "T"
        if self.chance(0.15):
            step = self.span(rng.choice([2, 3]))
            time = rng.choice([f"floor(T, {step})", f"ceil(T, {step})", f"T + {step}"])
        rng.shuffle(scope.literals)
        return f"{name}({', '.join([time, *values])}) <- {', '.join(scope.literals)}."

    # ----------------------------------------------------------------------------- goals

    def goal(self, scope: Scope, pred: Pred, time: str, *, binds: bool = True) -> None:
        args = [] if pred.is_table else [time]
        for letter in pred.columns:
            known = scope.bound[letter]
            if known and self.chance(0.6 if letter == "s" else 0.15):
                args.append(self.rng.choice(known))
            elif self.chance(0.03):
                args.append(self.constant(letter))
            elif binds and self.chance(0.85):
                var = scope.fresh(letter)
                known.append(var)
                args.append(var)
            else:
                args.append("_")
        if not pred.is_table and time not in scope.times:
            scope.times.append(time)
        scope.literals.append(f"{pred.name}({', '.join(args)})")

    def more(self, scope: Scope) -> None:
        if self.chance(0.3):
            self.goal(scope, self.table, "")
            return
        pred = self.rng.choice([*self.streams * 2, *self.derived])
        time = "T" if self.chance(0.3) else scope.fresh("T")
        bounds = [] if time == "T" else self.around(scope, time)
        self.goal(scope, pred, time)
        scope.literals += bounds

    def span(self, seconds: int) -> str:
        return f"{seconds}s" if self.on_calendar else str(seconds)

    def around(self, scope: Scope, time: str, *, wide: bool = False) -> list[str]:
        """Where a goal lies in time, seen from another that is bound."""
        rng, at = self.rng, self.rng.choice(scope.times)
        a, b = self.span(rng.randint(1, 3)), self.span(rng.randint(1, 5))
        options = [
            [f"{time} <= {at}", f"{time} > {at} - {b}"],
            [f"{time} < {at}", f"{time} >= {at} - {b}"],
            [f"{time} <= {at}"],
            [f"{time} < {at}"],
            [f"{at} <= {time}", f"{time} <= {at} + {b}"],
            [f"{time} >= {at} - {a}", f"{time} <= {at} + {b}"],
            [f"{time} > {at} - {b}", f"{time} < {at} - {a}"],
            [f"{time} < {at} + {a}"],
        ]
        if not wide:
            options += [
                [f"{time} = {at} - {a}"],
                [f"abs({time} - {at}) <= {a}"],
                [f"floor({time}, {b}) = floor({at}, {b})"],
                [f"{time} != {at}", f"{time} <= {at} + {b}"],
            ]
            if scope.bound["d"]:
                width = rng.choice(scope.bound["d"])
                options += [[f"{time} <= {at}", f"{time} >= {at} - {width}"]] * 2
        if self.mode is Mode.BATCH:
            options += [[f"{time} >= {at}"], [f"{time} > {at} + {a}"], [f"{time} != {at}"]]
            if scope.bound["d"] and not wide:
                options.append(
                    [f"{time} >= {at}", f"{time} < {at} + {rng.choice(scope.bound['d'])}"]
                )
        return rng.choice(options)

    def negation(self, scope: Scope, depth: int) -> str:
        inner = scope.inner()
        time = self.rng.choice(scope.times) if self.chance(0.2) else inner.fresh("T")
        bounds = [] if time in scope.times else self.around(scope, time)
        preds = [*self.streams, *self.derived]
        self.goal(inner, self.rng.choice(preds), time, binds=depth > 1 or self.chance(0.4))
        inner.literals += bounds
        if self.chance(0.2):
            self.goal(inner, self.table, "")
        if self.chance(0.2):
            self.more(inner)
        if self.chance(0.3):
            inner.literals.append(self.test(inner))
        if depth > 1:
            inner.literals.append(self.negation(inner, depth - 1))
        return f"not ({', '.join(inner.literals)})"

    # ----------------------------------------------------------------------------- terms

    def constant(self, letter: str) -> str:
        rng = self.rng
        match letter:
            case "s":
                return f'"{rng.choice(TEXTS)}"'
            case "n":
                return str(rng.randint(0, 4))
            case "f":
                return rng.choice(["0.5", "1.25", "2.0", "0.0"])
            case _:
                return self.span(rng.randint(0, 4))

    def term(self, scope: Scope, letter: str, depth: int) -> str:
        rng = self.rng
        if depth == 0:
            names = scope.bound[letter]
            return rng.choice(names) if names and self.chance(0.85) else self.constant(letter)

        def t(kind: str) -> str:
            return self.term(scope, kind, depth - 1)

        few = rng.choice([-3, -2, 2, 3, 5])
        match letter:
            case "s":
                options = [
                    f"{t('s')} ++ {t('s')}",
                    f"substr({t('s')}, {t('n')})",
                    f"substr({t('s')}, {t('n')}, {t('n')})",
                    f"substr({t('s')}, 0, 1)",
                    f"max({t('s')}, {t('s')})",
                    f"if({t('n')} < {t('n')}, {t('s')}, {t('s')})",
                ]
            case "n":
                options = [
                    f"({t('n')} + {t('n')})",
                    f"({t('n')} - {t('n')})",
                    f"{t('n')} * {few}",
                    f"({t('n')} // {few})",
                    f"({t('n')} % {few})",
                    f"(-{t('n')})",
                    f"abs({t('n')})",
                    f"max({t('n')}, {t('n')}, 1)",
                    f"length({t('s')})",
                    f"floor({t('n')}, {abs(few)})",
                    f"ceil({t('n')}, {abs(few)})",
                    f"if({t('s')} = {t('s')}, {t('n')}, {t('n')})",
                    f"if({t('n')} != 0, 6 // {t('n')}, {t('n')})",
                    *self.divided(scope, depth),
                ]
                if self.on_calendar:
                    options += [f"({t('d')} // 1s)", f"({t('d')} // {abs(few)}s)"]
            case "f":
                options = [
                    f"({t('f')} + {t('f')})",
                    f"({t('f')} - {t('n')})",
                    f"{t('f')} * {t('n')}",
                    f"({t('n')} / 4)",
                    f"({t('f')} / 2)",
                    f"({t('f')} / -0.5)",
                    f"abs({t('f')})",
                    f"min({t('f')}, {t('f')})",
                    f"if({t('f')} > {t('n')}, {t('f')}, 0.5)",
                ]
                if self.on_calendar:
                    options.append(f"({t('d')} / 4s)")
            case _:
                options = [f"({t('d')} + {t('d')})", f"({t('d')} - {t('d')})", f"abs({t('d')})"]
                options += [f"{t('d')} * {few}", f"({t('d')} // {few})"]
                options += [f"floor({t('d')}, {self.span(2)})", f"max({t('d')}, {t('d')})"]
                options.append(f"({t('d')} % {self.span(3)})")
                if len(scope.times) > 1:
                    one, other = rng.sample(scope.times, 2)
                    options += [f"({one} - {other})"] * 3
        return rng.choice(options)

    def divided(self, scope: Scope, depth: int) -> list[str]:
        """By a variable that a test keeps from zero, or that no row may have as zero."""
        if not scope.bound["n"]:
            return []
        by = self.rng.choice(scope.bound["n"])
        if self.chance(0.8):
            scope.literals.append(f"{by} != 0")
        return [f"({self.term(scope, 'n', depth - 1)} {self.rng.choice(['//', '%'])} {by})"] * 3

    def test(self, scope: Scope) -> str:
        rng = self.rng
        letter = rng.choice([c for c in NAMES if scope.bound[c]] or ["n"])
        one = self.term(scope, letter, rng.choice([0, 1]))
        if self.chance(0.1):
            return f"{one} in ({self.term(scope, letter, 0)}, {self.term(scope, letter, 1)})"
        if self.chance(0.1):
            return f"between({one}, {self.term(scope, letter, 0)}, {self.term(scope, letter, 0)})"
        if letter == "s" and self.chance(0.4):
            return f"{rng.choice(['contains', 'starts_with'])}({one}, {self.term(scope, 's', 0)})"
        if letter == "f" and self.chance(0.3):
            return f"{one} {rng.choice(OPERATORS[:4])} {self.term(scope, 'n', 0)}"
        if letter == "n" and self.chance(0.2):
            return f"{one} {rng.choice(OPERATORS[:4])} 1.5"
        return f"{one} {rng.choice(OPERATORS)} {self.term(scope, letter, rng.choice([0, 0, 1]))}"
