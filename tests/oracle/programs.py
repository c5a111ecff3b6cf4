"""Random complete programs with data, and the ways in which the data may arrive.

A program has one or two streams, perhaps a table, perhaps open predicates, and one to four derived
predicates. Most rules are thrown together from goals, comparisons and negations; some predicates
are of a kind that chance would not find: timers, closures, shortest paths, recursion through
negation. Everything that grows has a bound in its rule (`N < 12`), so every model is finite. What
the compiler refuses in a stream is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from streamlog.analysis.timelines import View
from streamlog.compiler import compile_source
from streamlog.diagnostics import Source
from streamlog.runtime.executor import BEGIN, END, Row

LAST_TIME = 12
SYMBOLS = ("a", "b", "ab")
NUMBERS = range(4)
PATTERNS = ('"^a.?$"', '"^(a+)+$"', '"[^a]$"', '"(?i)B"', '"\\\\bb|^$"')
LETTERS = {"s": "X", "n": "N", "f": "F"}  # what variables of strings, numbers, floats are called
TO_FLOAT = ("avg", "var", "stddev", "median", "percentile")
AGGREGATES = ("count", "sum", *TO_FLOAT, "min", "max", "count_distinct", "first", "last")
AGGREGATES += ("arg_min", "arg_max", "collect")
Step: TypeAlias = tuple[dict[str, list[Row]], dict[str, int]]


@frozen
class Case:
    """A program that compiles in a stream, the rows of its streams and those of its tables."""

    text: str
    facts: dict[str, list[Row]]
    tables: dict[str, list[Row]]


def random_case(rng: Random) -> Case:
    while True:
        case = _Maker(rng).case()
        compilation = compile_source(Source("random", case.text), until="strata")
        if compilation.ok and compilation.schema:
            # A stream that is neither declared nor read does not exist; a setting that nobody
            # reads is a stream.
            streams = compilation.schema.streams
            return evolve(case, facts={n: case.facts.get(n, []) for n in streams})


# ---------------------------------------------------------------------------------- arrivals


def arrival_orders(
    rng: Random, facts: Mapping[str, Sequence[Row]], slack: int | Mapping[str, int]
) -> list[list[tuple[str, Row]]]:
    """All rows in an order that the slack permits, cut into batches, some of them empty.

    A row may come after rows of its stream that are up to `slack` later; streams mix at will.
    """
    queues = []
    for name, rows in facts.items():
        most = slack if isinstance(slack, int) else slack.get(name, 0)
        late = {row: row[0] + rng.uniform(0, most) for row in rows}
        queues.append([(name, row) for row in sorted(rows, key=lambda r: (late[r], rng.random()))])
    order = []
    favourite = rng.choice([None, *range(len(queues))])  # one stream may run ahead
    while any(queues):
        ready = [i for i, queue in enumerate(queues) if queue]
        first = favourite if favourite in ready and rng.random() < 0.7 else rng.choice(ready)
        order.append(queues[first].pop(0))
    cuts = sorted(rng.choices(range(len(order) + 1), k=rng.choice([0, 1, 2, 3, len(order)])))
    return [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]


Views = Mapping[str, Mapping[str, View]]


def on_views(facts: Mapping[str, Sequence[Row]], views: Views) -> dict[str, Sequence[Row]]:
    """The rows of streams, and those of their views on other timelines."""
    found = dict(facts)
    for stream, some in views.items():
        for name, view in some.items():
            found[name] = sorted(tuple(row[p] for p in view.order) for row in facts.get(stream, ()))
    return found


@define
class _OnSeveral:
    """A stream with several timelines on its way: its rows come in any order, each timeline
    promises what it can, and a row goes to the executor when one of them has passed it."""

    columns: Mapping[str, int]  # by timeline
    coming: list[Row]
    held: list[Row] = field(factory=list)

    def go_on(self, rng: Random, size: int, progress: dict[str, int]) -> list[Row]:
        count = rng.randint(0, size)
        self.held += self.coming[:count]
        del self.coming[:count]
        for name, column in self.columns.items():
            most = min((row[column] for row in self.coming), default=LAST_TIME + 4)
            least = max(progress[name], -1)
            if most > least and rng.random() < 0.7:
                progress[name] = rng.choice([most, rng.randint(least, most)])
        passed = [
            row for row in self.held if any(row[c] <= progress[n] for n, c in self.columns.items())
        ]
        self.held = [row for row in self.held if row not in passed]
        return sorted(passed)


def executor_steps(
    rng: Random, facts: Mapping[str, Sequence[Row]], views: Views = MappingProxyType({})
) -> list[Step]:
    """The rows as an executor gets them: each stream in the order of time, with its progress,
    which is that of the last row or runs ahead up to the next one; the last step ends all."""
    waiting = {name: sorted(rows) for name, rows in facts.items() if name not in views}
    several = {
        name: _OnSeveral(
            {name: 0, **{n: view.column for n, view in some.items()}},
            rng.sample(facts[name], len(facts[name])),
        )
        for name, some in views.items()
    }
    timelines = [*facts, *(name for some in views.values() for name in some)]
    progress = dict.fromkeys(timelines, BEGIN)
    size = rng.choice([1, 2, 4, 30])
    steps: list[Step] = []
    while any(waiting.values()) or any(s.coming or s.held for s in several.values()):
        if several and not any(s.coming for s in several.values()) and rng.random() < 0.2:
            break  # the end brings the rest
        arrived: dict[str, list[Row]] = {}
        for name, stream in several.items():
            if stream.coming or stream.held:
                arrived[name] = stream.go_on(rng, size, progress)
        arrived |= on_views(arrived, {n: views[n] for n in arrived})
        for name, rows in waiting.items():
            if rng.random() < 0.3:
                continue
            count = rng.randint(0, size)
            arrived[name], waiting[name] = rows[:count], rows[count:]
            most = waiting[name][0][0] if waiting[name] else LAST_TIME + 4
            least = max(progress[name], -1, *(row[0] for row in arrived[name]))
            progress[name] = least
            if most > least and rng.random() < 0.8:
                progress[name] = rng.choice([most, rng.randint(least, most)])
        steps.append(({n: r for n, r in arrived.items() if r}, dict(progress)))
    ending = sorted(name for name, rows in waiting.items() if not rows)
    if rng.random() < 0.3 and ending:
        progress[rng.choice(ending)] = END
        steps.append(({}, dict(progress)))
    rest = {name: sorted(rows) for name, rows in waiting.items() if rows}
    rest |= {name: sorted(s.coming + s.held) for name, s in several.items()}
    rest = on_views(rest, {n: views[n] for n in views if n in rest})
    steps.append(({n: r for n, r in rest.items() if r}, dict.fromkeys(timelines, END)))
    return steps


# ---------------------------------------------------------------------------------- programs


@frozen
class _Pred:
    """`columns` has a letter for each argument but the timestamp: s(tring), n(umber), f(loat)."""

    name: str
    columns: str
    is_temporal: bool = True
    open: frozenset[int] = frozenset()  # 0 is the timestamp
    aggregate: str | None = None  # of the last column


@define
class _Scope:
    """A body in the making: its literals and the variables they bind, by letter."""

    literals: list[str] = field(factory=list)
    variables: dict[str, list[str]] = field(factory=lambda: {"s": [], "n": [], "f": []})
    times: list[str] = field(factory=list)

    def fresh(self, letter: str) -> str:
        names = self.variables[letter]
        names.append(f"{LETTERS[letter]}{len(names) or ''}")
        return names[-1]

    def fresh_time(self) -> str:
        self.times.append(f"T{len(self.times) or ''}")
        return self.times[-1]


class _Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.streams: list[_Pred] = []
        self.tables: list[_Pred] = []
        self.open: list[_Pred] = []
        self.derived: list[_Pred] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def case(self) -> Case:
        rng = self.rng
        for name in ("s", "r")[: rng.choice([1, 2, 2])]:
            self.streams.append(_Pred(name, rng.choice(["s", "sn", "sn", "ss", "ssn", "n"])))
            if self.chance(0.7):
                self.lines.append(f"stream {self._declared(self.streams[-1], 'T: int')}.")
        tables: dict[str, list[Row]] = {}
        if self.chance(0.35):
            table = _Pred("lim", rng.choice(["sn", "ss", "s"]), is_temporal=False)
            self.tables.append(table)
            self.lines.append(f"table {self._declared(table)}.")
            tables["lim"] = sorted({self._data(table) for _ in range(rng.randint(0, 4))})
        if self.chance(0.15):
            self.tables.append(_Pred("wsize", "n", is_temporal=False))
            self.lines.append(f"wsize({rng.randint(1, 4)}).")
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            self._make_open(f"o{len(self.open) + 1}")
        plans = [self._choose(f"p{number + 1}") for number in range(rng.choice([1, 2, 3, 4]))]
        self.derived += (pred for pred, _ in plans)
        for pred, make in plans:
            self.lines += make(pred)
        if self.chance(0.3):
            self.lines.append(f"output {', '.join(p.name for p in self.derived)}.")
        facts = {stream.name: self._rows(stream) for stream in self.streams}
        return Case("\n".join(self.lines) + "\n", facts, tables)

    def _declared(self, pred: _Pred, *first: str) -> str:
        types = {"s": "string", "n": "int"}
        columns = (f"c{i}: {types[letter]}" for i, letter in enumerate(pred.columns))
        return f"{pred.name}({', '.join((*first, *columns))})"

    def _data(self, pred: _Pred) -> Row:
        values = {"s": SYMBOLS, "n": NUMBERS}
        return tuple(self.rng.choice(values[letter]) for letter in pred.columns)

    def _rows(self, stream: _Pred) -> list[Row]:
        count = self.rng.choice([0, 4, 6, 8, 10, 12, 14])
        last = self.rng.choice([4, LAST_TIME])
        return sorted({(self.rng.randint(0, last), *self._data(stream)) for _ in range(count)})

    # ----------------------------------------------------------------- predicates

    def _choose(self, name: str) -> tuple[_Pred, Callable[[_Pred], list[str]]]:
        """A predicate and how to make its rules."""
        rng = self.rng
        arcs = [s for s in self.streams if s.columns == "ssn"]
        pairs = [s for s in self.streams if s.columns.startswith("ss")]
        kind = rng.random()
        if arcs and kind < 0.35:
            func = rng.choice(["min", "min", "max"])
            return _Pred(name, "ssn", aggregate=func), lambda p: self._best_path(p, arcs[0])
        if pairs and kind < 0.45:
            return _Pred(name, "ss"), lambda p: self._closure(p, rng.choice(pairs))
        if kind < 0.53:
            return _Pred(name, rng.choice(["s", "n", "sn"])), self._timer
        if kind < 0.62:
            return _Pred(name, rng.choice(["s", "n", "sn"])), self._now_and_then
        if kind < 0.85:
            func = rng.choice(AGGREGATES)
            last = {"count": "n", "sum": "n", "count_distinct": "n"}.get(func)
            last = "f" if func in TO_FLOAT else "s" if func == "collect" else last
            columns = rng.choice(["", "s", "s", "n"]) + (last or rng.choice("sn"))
            return _Pred(name, columns, aggregate=func), self._rules
        return _Pred(name, rng.choice(["", "s", "n", "sn", "ss", "nn"])), self._rules

    def _rules(self, pred: _Pred) -> list[str]:
        return [self._rule(pred) for _ in range(self.rng.choice([1, 1, 2, 3]))]

    def _best_path(self, pred: _Pred, arc: _Pred) -> list[str]:
        p, a, rng = pred.name, arc.name, self.rng
        smallest = pred.aggregate == "min"
        second = f"{p}(T2, Y, Z, D2)" if self.chance(0.5) else f"{a}(T2, Y, Z, D2)"
        cost = "D1 + D2" if smallest else "min(D1, D2)"
        bound = rng.choice(["", ", D < 8" if smallest else ", D >= 1", ", T2 <= T1 + 4"])
        tests = ["", ""]
        lines = []
        if smallest and self.chance(0.5):
            o = f"{p}_shorter"
            tests = [f", not {o}(T, X, Y, D)", f", not {o}(T, X, Z, D)"]
            lines = [f"{o}(T, X, Y, D) <- {p}(T1, X, Y, D1), D1 <= D, T1 < T."]
        agg = f"{pred.aggregate}<D>" if self.chance(0.5) else f"{pred.aggregate}(D)"
        return [
            *lines,
            f"{p}(T, X, Y, {agg}) <- {a}(T, X, Y, D){tests[0]}.",
            f"{p}(T, X, Z, {agg}) <- {p}(T1, X, Y, D1), {second}, "
            f"lgr(T1, T2, T), D = {cost}{bound}{tests[1]}.",
        ]

    def _closure(self, pred: _Pred, pair: _Pred) -> list[str]:
        p, rest = pred.name, ", _" * (len(pair.columns) - 2)
        base = f"{p}(T, X, Y) <- {pair.name}(T, X, Y{rest})."
        later = self.rng.choice(["lgr(T1, T2, T)", "T = max(T1, T2)", "T = T2, T1 <= T2"])
        second = f"{p}(T2, Y, Z)" if self.chance(0.4) else f"{pair.name}(T2, Y, Z{rest})"
        window = self.rng.choice(["", ", T2 <= T1 + 3", ", T1 <= T2 + 2"])
        return [base, f"{p}(T, X, Z) <- {p}(T1, X, Y), {second}, {later}{window}."]

    def _timer(self, pred: _Pred) -> list[str]:
        """What goes on by itself until a bound, or until something stops it."""
        variables = [LETTERS[letter] for letter in pred.columns]
        args = "".join(f", {v}" for v in variables)
        step = self.rng.choice([1, 1, 2, 5])
        stop = ""
        if self.chance(0.5):
            goal = self._negated(_Scope(variables=self._as_scope(variables), times=["T"]), pred)
            stop = f", {goal}"
        count = args.replace("N", "N + 1") if self.chance(0.4) else args
        bound = f"T < {self.rng.choice([6, 10, 14])}"
        return [
            self._rule(pred),
            f"{pred.name}(T + {step}{count}) <- {pred.name}(T{args}), {bound}{stop}.",
        ]

    def _now_and_then(self, pred: _Pred) -> list[str]:
        """Recursion through negation, at earlier times."""
        scope = self._scope(pred)
        args = "".join(f", {v}" for v in self._head_values(pred, scope))
        before = self.rng.choice(
            ["T9 < T", "T9 < T, T <= T9 + 3", "T9 = T - 1", "T9 = T - 2", "T9 + 2 < T"]
        )
        negation = f"not ({pred.name}(T9{args}), {before})"
        rule = f"{pred.name}(T{args}) <- {', '.join((*scope.literals, negation))}."
        return [rule] if self.chance(0.7) else [rule, self._rule(pred)]

    @staticmethod
    def _as_scope(variables: list[str]) -> dict[str, list[str]]:
        return {k: [v for v in variables if v.startswith(name)] for k, name in LETTERS.items()}

    # ------------------------------------------------------------ open predicates

    def _make_open(self, name: str) -> None:
        """`o(T, X) <- s(T0, X), T0 < T`, with more to it now and then."""
        rng = self.rng
        columns = rng.choice(["", "s", "s", "n", "sn"])
        data_open = "n" in columns and self.chance(0.5)
        positions = {0} | ({columns.index("n") + 1} if data_open else set())
        if data_open and self.chance(0.2):
            positions.discard(0)
        pred = _Pred(name, columns, open=frozenset(positions))
        for _ in range(rng.choice([1, 1, 2])):
            scope = _Scope()
            time = scope.fresh_time()
            if 0 in positions:
                scope.literals.append(self._goal(rng.choice(self.streams), "T1", scope))
                scope.times.append("T1")
                scope.literals += rng.choice(
                    [
                        ["T1 < T"],
                        ["T1 < T", "T <= T1 + 3"],
                        ["T1 <= T"],
                        ["T < T1", "T1 <= T + 2"],
                        ["T1 <= T - 4"],
                    ]
                )
                if self.chance(0.2):  # a second goal, which may lie elsewhere in time
                    scope.literals.append(self._goal(rng.choice(self.streams), "T2", scope))
                    scope.literals.append(rng.choice(["T2 < T", "T2 <= T - 5", "T2 <= T"]))
                time = "T1"
            else:
                scope.literals.append(self._goal(rng.choice(self.streams), time, scope))
            if self.chance(0.2) and self.open:
                scope.literals.append(self._negated(scope, pred, at=time))
            args = []
            for position, letter in enumerate(columns, 1):
                if position in positions:
                    least = rng.choice(scope.variables["n"] or ["1"])
                    scope.literals.append(f"{least} {rng.choice(['<=', '<', '>='])} N9")
                    args.append("N9")
                else:
                    args.append(self._bound(letter, scope))
            head = f"{name}({', '.join(['T', *args])})"
            self.lines.append(f"{head} <- {', '.join(scope.literals)}.")
        self.open.append(pred)

    # ---------------------------------------------------------------------- rules

    def _scope(self, pred: _Pred) -> _Scope:
        """A body with the timestamp T and its first goal."""
        scope = _Scope()
        time = scope.fresh_time()
        earlier = self.derived[: self.derived.index(pred)]
        sources = self.streams * 3 + earlier * 2
        if self.chance(0.08):
            scope.literals.append(f"tick({time})")
        else:
            scope.literals.append(self._goal(self.rng.choice(sources), time, scope))
        return scope

    def _rule(self, pred: _Pred) -> str:
        rng = self.rng
        scope = self._scope(pred)
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            self._add_goal(scope, pred)
        for letter in pred.columns:
            if not scope.variables[letter] and self.chance(0.9):
                having = [s for s in self.streams if letter in s.columns]
                if having:
                    scope.literals.append(self._goal(rng.choice(having), "T", scope))
        if self.chance(0.4):
            self._add_test(scope)
        if self.chance(0.1):
            scope.literals.append(self._alternatives(scope, pred))
        if self.chance(0.4):
            scope.literals.append(self._negated(scope, pred))
        time = self._head_time(scope)
        args = [time, *self._head_values(pred, scope)]
        if pred.aggregate:
            func = pred.aggregate
            empty = func == "count" and self.chance(0.5)
            also = {"percentile": lambda: rng.choice(["0", "0.3", "0.95"])}
            also |= dict.fromkeys(
                ("arg_min", "arg_max"), lambda: self._bound(rng.choice("sn"), scope)
            )
            second = f", {also[func]()}" if func in also else ""
            value = args[-1]
            args[-1] = f"{func}({'' if empty else value}{second})"
            if pred.columns[-1] in "nf" and self.chance(0.2):
                args[-1] = self._computed(args[-1], value, pred.columns[-1])
        limit = self._limit(pred, scope, args) if self.chance(0.12) else ""
        rng.shuffle(scope.literals)
        return f"{pred.name}({', '.join(args)}) <- {', '.join(scope.literals)}{limit}."

    def _limit(self, pred: _Pred, scope: _Scope, args: list[str]) -> str:
        rng = self.rng
        terms = args if pred.aggregate else [*args, *self._names(scope), *scope.times]
        by = [
            f"{term}{rng.choice(['', ' desc', ' asc'])}"
            for term in rng.sample(terms, rng.choice([1, 1, 2]) if len(terms) > 1 else 1)
        ]
        groups = [a for a in args if a[0].isupper()] if pred.aggregate else self._names(scope)
        per = rng.sample(groups, min(len(groups), rng.choice([0, 1, 1, 2])))
        offset = f" offset {rng.choice([1, 2])}" if self.chance(0.2) else ""
        behind = f" per {', '.join(per)}" if per else ""
        return f" limit {rng.choice([1, 1, 2, 3])}{offset} by {', '.join(by)}{behind}"

    def _names(self, scope: _Scope) -> list[str]:
        return [name for names in scope.variables.values() for name in names]

    def _computed(self, aggregate: str, value: str, letter: str) -> str:
        """An expression of aggregates, of the same type."""
        one = {"n": "1", "f": "0.5"}[letter]
        also = ["count()", f"count({value})"] if letter == "n" else [aggregate]
        other = self.rng.choice([one, aggregate, *also])
        return self.rng.choice(
            [f"{aggregate} + {other}", f"{one} - {aggregate}", f"-({aggregate})"]
        )

    def _head_time(self, scope: _Scope) -> str:
        rng = self.rng
        kind = rng.random()
        positive = [t for t in scope.times if f"({t}" in " ".join(scope.literals)]
        if kind < 0.12 and len(positive) > 1:
            one, other = rng.sample(positive, 2)
            scope.literals.append(f"lgr({one}, {other}, T8)")
            return "T8"
        if kind < 0.2:
            return f"{rng.choice(['floor', 'ceil'])}(T, {rng.choice([2, 3, 5])})"
        if kind < 0.28:
            scope.literals.append("T < 12")
            return f"T + {rng.choice([1, 3])}"
        return "T"

    def _head_values(self, pred: _Pred, scope: _Scope) -> list[str]:
        return [
            self._bound("n" if letter == "f" and pred.aggregate else letter, scope)
            for letter in pred.columns
        ]

    def _bound(self, letter: str, scope: _Scope) -> str:
        """A bound variable, a constant where there is none, sometimes an expression."""
        names = scope.variables[letter]
        if not names or self.chance(0.05):
            return self._constant(letter)
        name = self.rng.choice(names)
        if letter == "n" and self.chance(0.12):
            scope.literals.append(f"{name} < 12")
            options = [f"{name} + 1", f"max({name}, 2)", f"{name} // 2", f"int({name} / 2)"]
            options += [f"if({name} < 2, {name}, 1)", f"round({name} * 0.5)"]
            return self.rng.choice(options)
        if letter == "s" and self.chance(0.06):
            options = [f"upper({name})", f"substr({name}, 0, 1)", f"replace({name}, a, b)"]
            options += [f"if({name} > b, {name}, a)", f"split({name}, b, 0)", f"trim({name})"]
            return self.rng.choice(options)
        return name

    def _constant(self, letter: str) -> str:
        if letter == "s":
            return self.rng.choice(SYMBOLS)
        return self.rng.choice(["0.5", "1.5"]) if letter == "f" else str(self.rng.choice(NUMBERS))

    # ---------------------------------------------------------------------- goals

    def _goal(self, pred: _Pred, time: str, scope: _Scope, binds: bool = True) -> str:
        """A goal; one that binds brings new variables, another has `_` instead."""
        args = [time] if pred.is_temporal else []
        before = {letter: list(names) for letter, names in scope.variables.items()}
        for position, letter in enumerate(pred.columns, 1):
            names = (scope.variables if self.chance(0.1) else before)[letter]
            must_be_bound = position in pred.open
            if names and (must_be_bound or self.chance(0.55)):
                args.append(self.rng.choice(names))
            elif must_be_bound or self.chance(0.07):
                args.append(self._constant(letter))
            elif binds and self.chance(0.8):
                args.append(scope.fresh(letter))
            else:
                args.append("_")
        return f"{pred.name}({', '.join(args)})" if args else pred.name

    def _add_goal(self, scope: _Scope, pred: _Pred) -> None:
        kind = self.rng.random()
        if self.tables and kind < 0.3:
            table = self.rng.choice(self.tables)
            scope.literals.append(self._goal(table, "", scope))
            return
        if self.open and kind < 0.45:
            called = self.rng.choice(self.open)
            scope.literals.append(self._goal(called, self.rng.choice(scope.times), scope))
            return
        goal, is_recursive = self._source(pred)
        time, comparisons = self._when(scope, "T", earlier=is_recursive)
        scope.literals.append(self._goal(goal, time, scope))
        scope.literals += comparisons

    def _source(self, pred: _Pred) -> tuple[_Pred, bool]:
        """A predicate with timestamps, and whether it may depend on `pred`."""
        index = self.derived.index(pred) if pred in self.derived else 0
        if index < len(self.derived) and self.chance(0.25):
            return self.rng.choice(self.derived[index:]), True
        return self.rng.choice(self.streams * 2 + self.derived[:index]), False

    def _when(self, scope: _Scope, head: str, earlier: bool) -> tuple[str, list[str]]:
        """A goal's timestamp, and how it lies to the head's."""
        rng = self.rng
        if not earlier and self.chance(0.25):
            return head, []
        if self.chance(0.15):
            return f"{head} - {rng.choice([1, 2])}", []
        if not earlier and self.chance(0.1):
            return f"{head} + {rng.choice([1, 3])}", []
        t = scope.fresh_time()
        if self.tables and self.tables[-1].name == "wsize" and self.chance(0.5):
            width = scope.fresh("n")
            return t, [f"{t} < {head}", f"wsize({width})", f"{head} <= {t} + {width}"]
        options = [[f"{t} < {head}"], [f"{t} < {head}", f"{head} <= {t} + 4"]]
        options += [[f"{head} > {t} + 1"], [f"{t} = {head} - 1"]]
        if not earlier:
            options += [
                [f"{t} <= {head}"],
                [f"{head} <= {t}", f"{t} <= {head} + 2"],
                [f"{head} < {t}", f"{t} < {head} + 4"],
                [f"{head} - 2 <= {t}", f"{t} <= {head} + 2", f"{t} != {head}"],
                [f"abs({t} - {head}) <= 2"],
                [f"floor({t}, 4) = floor({head}, 4)"],
            ]
        return t, rng.choice(options)

    def _negated(self, scope: _Scope, pred: _Pred, at: str = "T") -> str:
        if self.open and self.chance(0.45):
            return f"not {self._goal(self.rng.choice(self.open), at, scope, binds=False)}"
        if self.tables and self.chance(0.15):
            return f"not {self._goal(self.rng.choice(self.tables), '', scope, binds=False)}"
        goal, is_recursive = self._source(pred)
        inner = _Scope(times=["T5"] * 6)  # so that the next one is T6
        time, comparisons = self._when(inner, at, earlier=is_recursive)
        literals = [self._goal(goal, time, scope, binds=False), *comparisons]
        if self.chance(0.15):
            literals.append(self._goal(self.rng.choice(self.streams), time, scope, binds=False))
        if self.chance(0.07):
            literals.append(f"not {self.rng.choice(self.streams).name}_seen({time})")
            self._seen()
        return f"not ({', '.join(literals)})" if len(literals) > 1 else f"not {literals[0]}"

    def _seen(self) -> None:
        """A projection of each stream, so that negations can stand in negations."""
        for stream in self.streams:
            line = f"{stream.name}_seen(T) <- {stream.name}(T{', _' * len(stream.columns)})."
            if line not in self.lines:
                self.lines.insert(0, line)

    def _alternatives(self, scope: _Scope, pred: _Pred) -> str:
        def one() -> str:
            if self.chance(0.5):
                stream = self.rng.choice(self.streams)
                return self._goal(stream, "T", scope, binds=False)
            inner = _Scope(variables=scope.variables, times=list(scope.times))
            inner.literals.clear()
            self._add_test(inner)
            return ", ".join(inner.literals) or "T > 3"

        return f"({one()} ; {one()})"

    def _add_test(self, scope: _Scope) -> None:
        rng, numbers, texts = self.rng, scope.variables["n"], scope.variables["s"]
        op = rng.choice(["<", "<=", "!=", ">", ">=", "="])
        tests = [f"T > {rng.randint(0, 6)}", "T != 3", "T % 2 = 0"]
        if numbers:
            n, m = rng.choice(numbers), rng.choice(numbers)
            tests += [f"{n} {op} {rng.choice(NUMBERS)}", f"{n} {op} {m}", f"{n} * 2 {op} {m} + 1"]
            tests += [f"{n} in (0, {m} + 1)", f"between({n}, 1, {m})", f"not ({n} in (1, 2))"]
            tests += [f"{n} / 2 {op} 0.5", f"abs({n} - {m}) {op} 1", f"{n} < T"]
        if texts:
            x, y = rng.choice(texts), rng.choice(texts)
            tests += [f"{x} {op} {y}", f"contains({x}, b)", f"starts_with({x}, {y})"]
            tests += [f"matches({x}, {rng.choice(PATTERNS)})", f"length({x}) {op} 1"]
            tests += [f"{x} ++ {y} != aab", f"hash({x}) % 2 = 0", f"{x} in (a, {y} ++ b)"]
        scope.literals.append(rng.choice(tests))


def cases(rng: Random, count: int) -> Iterator[Case]:
    return (random_case(rng) for _ in range(count))
