"""Random programs with states, and what holds at every instant by playing their events.

The snapshot of an instant says which tuples of each state hold: from it on, and so until the next
instant. An interval begins where a tuple is in a snapshot and not in the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any, TypeAlias

from attrs import field, frozen
from oracle.programs import Case

from streamlog.syntax.nothing import NONE

LAST = 12
_ORDER = ("or", "test", "not")
LOW, HIGH = -6, 3 * LAST
TEXTS = ("a", "b", "ab")
EVENTS = {"a": 1, "b": 1, "c": 2, "z": 0, "q": 1}  # streams and their columns beside the time
RELATIONS: dict[str, Callable[[int, int, int, int], bool]] = {
    "before": lambda a, b, c, d: b < c,
    "meets": lambda a, b, c, d: b == c,
    "overlaps": lambda a, b, c, d: a < c < b < d,
    "starts": lambda a, b, c, d: a == c and b < d,
    "during": lambda a, b, c, d: c < a and b < d,
    "finishes": lambda a, b, c, d: c < a and b == d,
    "equals": lambda a, b, c, d: (a, b) == (c, d),
    "intersects": lambda a, b, c, d: a < d and c < b,
    "after": lambda a, b, c, d: d < a,
    "contains": lambda a, b, c, d: a < c and d < b,
}

Tuple: TypeAlias = tuple[Any, ...]
Names: TypeAlias = Mapping[str, Any]
Snapshot: TypeAlias = frozenset[Tuple]


@frozen
class Goal:
    """An event at the instant, a state that holds then, a test, or goals that are negated or of
    which one is enough."""

    kind: str
    name: str = ""
    args: tuple[str, ...] = ()
    parts: tuple[tuple[Goal, ...], ...] = ()


@frozen
class StateOf:
    """The snapshots of a state."""

    name: str
    arity: int
    at: Mapping[int, Snapshot] = field(repr=False)

    def begins(self) -> Iterator[Tuple]:
        for t in range(LOW + 1, HIGH):
            yield from ((t, *row) for row in self.at[t] - self.at[t - 1])

    def intervals(self) -> Iterator[Tuple]:
        """With the end before the beginning."""
        for s, *row in self.begins():
            end = next((e for e in range(s, HIGH) if tuple(row) not in self.at[e]), None)
            if end is not None:
                yield (end, s, *row)


@frozen
class StateCase:
    case: Case
    expected: dict[str, set[Tuple]]


def state_case(rng: Random) -> StateCase:
    return _Maker(rng).made()


def random_case(rng: Random) -> Case:
    """For suites that know what every program with data must fulfil."""
    return state_case(rng).case


class _Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.unit = rng.choice(["", "us"])
        self.facts = {
            name: self._rows(lambda n=arity: self._texts(n), 0 if rng.random() < 0.1 else 6)
            for name, arity in EVENTS.items()
        }
        self.tables: dict[str, list[Tuple]] = {}
        self.lines: list[str] = []
        self.states: list[StateOf] = []
        self.expected: dict[str, set[Tuple]] = {}

    def _rows(self, rest: Callable[[], Tuple], most: int) -> list[Tuple]:
        rng = self.rng
        return sorted({(rng.randrange(LAST), *rest()) for _ in range(rng.randint(0, most))})

    def _texts(self, count: int) -> Tuple:
        return tuple(self.rng.choice(TEXTS) for _ in range(count))

    def made(self) -> StateCase:
        rng = self.rng
        kind = "time" if self.unit else "int"
        self.lines = [
            f"stream {name}(T: {kind}{''.join(f', x{i}: string' for i in range(arity))})."
            for name, arity in EVENTS.items()
        ]
        if self.unit and rng.random() < 0.6:
            self._validity()
        for number in range(rng.choice([1, 1, 2])):
            self._begun(f"s{number}")
        for number in range(rng.choice([0, 1, 1, 2])):
            rng.choice([self._while, self._while, self._load])(f"w{number}")
        for number in range(rng.choice([1, 2, 3])):
            self._reader(f"r{number}")
        case = Case("\n".join(self.lines) + "\n", self.facts, self.tables)
        return StateCase(case, self.expected)

    def _add(self, name: str, arity: int, at: Mapping[int, Snapshot]) -> None:
        self.states.append(StateOf(name, arity, at))
        self.expected[name] = set(self.states[-1].intervals())
        self.lines.append(f"output {name}.")

    # ------------------------------------------------------------------------------ solving

    def solve(self, body: Sequence[Goal], t: int, known: Names) -> Iterator[Names]:
        if not body:
            yield known
            return
        # What is negated or compared has its values from all the others, wherever it stands.
        goal, *rest = sorted(body, key=lambda g: _ORDER.index(g.kind) if g.kind in _ORDER else -1)
        for found in self._solutions(goal, t, known):
            yield from self.solve(rest, t, found)

    def _solutions(self, goal: Goal, t: int, known: Names) -> Iterable[Names]:
        match goal.kind:
            case "event":
                rows = {row[1:] for row in self.facts[goal.name] if row[0] == t}
                return self._matches(goal.args, rows, known)
            case "state":
                (state,) = (s for s in self.states if s.name == goal.name)
                return self._matches(goal.args, state.at[t], known)
            case "not":
                return [] if any(True for _ in self.solve(goal.parts[0], t, known)) else [known]
            case "or":
                return [found for part in goal.parts for found in self.solve(part, t, known)]
            case _:
                left, right = (known.get(a, a.strip('"')) for a in goal.args)
                return [known] * ((left != right) if goal.name == "!=" else left == right)

    def _matches(self, args: Tuple, rows: Iterable[Tuple], known: Names) -> Iterator[Names]:
        for row in rows:
            found = dict(known)
            for arg, value in zip(args, row, strict=True):
                if arg == "_":
                    continue
                if arg.startswith('"'):
                    if arg != f'"{value}"':
                        break
                elif found.setdefault(arg, value) != value:
                    break
            else:
                yield found

    # --------------------------------------------------------------------------- the states

    def _validity(self) -> None:
        rng = self.rng
        of_stream = rng.random() < 0.3
        rows: set[Tuple] = set()
        for _ in range(rng.randint(0, 6)):
            since = rng.randrange(LAST)
            until = rng.choice([None, since, *range(since, since + 6), rng.randrange(LAST)])
            rows.add((rng.choice(TEXTS), since, until))
        at = {
            t: frozenset((x,) for x, s, u in rows if s <= t and (u is None or t < u))
            for t in range(LOW, HIGH)
        }
        data = [(x, s, NONE if u is None else u) for x, s, u in rows]
        if of_stream:
            self.lines.append("stream v(T: time, x: string, valid: since..until) where T <= since.")
            self.facts["v"] = sorted(
                {(s - rng.randrange(2), x, s, u) for x, s, u in data}, key=repr
            )
        else:
            self.lines.append("table v(x: string, valid: since..until).")
            self.tables["v"] = data
        self.states.append(StateOf("v", 1, at))
        self.lines.append("out_v(E, S, X) <- q(E0, _), v(X) from S to E, E0 = E.")
        closed = {(e, s, x) for e, s, x in self.states[-1].intervals()}
        probes = {t for t, _ in self.facts["q"]}
        self.expected["out_v"] = {row for row in closed if row[0] in probes}

    def _begun(self, name: str) -> None:
        """Of one declaration or two."""
        rng = self.rng
        arity = rng.choice([1, 1, 2])
        snapshots = [self._declared(name, arity) for _ in range(rng.choice([1, 1, 1, 2]))]
        at = {t: frozenset().union(*(s[t] for s in snapshots)) for t in range(LOW, HIGH)}
        self._add(name, arity, at)

    def _declared(self, name: str, arity: int) -> Mapping[int, Snapshot]:
        rng = self.rng
        keys = rng.choice([None, None, None, *range(1, arity)])
        head = ("X", "Y")[:arity]
        since = [Goal("event", "c" if arity == 2 or rng.random() < 0.2 else "a", ("X", "Y"))]
        if since[0].name == "a":
            since = [Goal("event", "a", ("X",))]
        if arity == 1 and since[0].name == "c":
            since = [Goal("event", "c", rng.choice([("X", "_"), ("X", "X"), ("_", "X")]))]
        if rng.random() < 0.2:
            since.append(Goal("not", parts=((Goal("event", "b", ("X",)),),)))
        if rng.random() < 0.15:
            since.append(Goal("test", "!=", ("X", '"b"')))
        held = [s for s in self.states if s.arity == 1]
        if held and rng.random() < 0.2:
            goal = Goal("state", rng.choice(held).name, ("X",))
            since.append(goal if rng.random() < 0.5 else Goal("not", parts=((goal,),)))
        if rng.random() < 0.1:
            head = ('"k"', *head[1:]) if arity == 2 else head
        elif arity == 2 and rng.random() < 0.1:
            head = ("X", "X")
        ends = [
            (Goal("event", "b", ("X",)),),
            (Goal("event", "z"),),
            (Goal("or", parts=((Goal("event", "b", ("X",)),), (Goal("event", "a", ("X",)),))),),
            (Goal("event", "c", ("_", "X")),),
            (Goal("event", "b", ("X",)), Goal("event", "z")),
        ]
        if arity == 2 and "Y" in head:
            ends.append((Goal("event", "c", ("Y", "X")),))
        until = (
            rng.choice([(), *ends]) if keys is not None or rng.random() < 0.1 else rng.choice(ends)
        )
        if "X" not in head and any("X" in g.args for g in _goals(until)):
            until = (Goal("event", "z"),)
        most = rng.choice([None, None, 1, 3, 5])
        self._declare(name, head, keys, since, until, most)
        return self._played(head, keys, since, until, most)

    def _declare(
        self,
        name: str,
        head: Tuple,
        keys: int | None,
        since: Sequence[Goal],
        until: Sequence[Goal],
        most: int | None,
    ) -> None:
        rng = self.rng
        divided = ", ".join(head)
        if keys is not None:
            divided = f"{', '.join(head[:keys])}; {', '.join(head[keys:])}"
        time = "_" if len(since) == 1 and rng.random() < 0.3 else "T"
        text = f"state {name}({divided}) {'since' if keys is None else 'on'} "
        text += _text(since, time)
        if until:
            text += f" until {_text(until, 'T')}"
        if most is not None:
            text += f" for at most {most}{self.unit}"
        self.lines.append(f"{text}.")

    def _played(
        self,
        head: Tuple,
        keys: int | None,
        since: Sequence[Goal],
        until: Sequence[Goal],
        most: int | None,
    ) -> Mapping[int, Snapshot]:
        active: dict[Tuple, int] = {}
        at = {}
        for t in range(LOW, HIGH):
            if most is not None:
                active = {row: s for row, s in active.items() if t < s + most}
            if until:
                for found in self.solve(until, t, {}):
                    active = {
                        row: s
                        for row, s in active.items()
                        if any(found.get(a, v) != v for a, v in zip(head, row, strict=True))
                    }
            begun = {
                tuple(found[a] if a in found else a.strip('"') for a in head)
                for found in self.solve(since, t, {})
            }
            if keys is not None:
                replaced = {row[:keys] for row in begun}
                active = {row: s for row, s in active.items() if row[:keys] not in replaced}
            active |= dict.fromkeys(begun, t)
            at[t] = frozenset(active)
        return at

    def _body(self) -> list[Goal]:
        """States, at least one of them not negated."""
        rng = self.rng
        body = [self._state_goal()]
        for _ in range(rng.choice([0, 1, 1, 2])):
            goal = self._state_goal()
            kind = rng.random()
            if kind < 0.4:
                body.append(goal)
            elif kind < 0.75:
                body.append(Goal("not", parts=((goal,),)))
            elif kind < 0.85:
                inner = Goal("not", parts=((self._state_goal(),),))
                body.append(Goal("not", parts=((goal, inner),)))
            elif kind < 0.95:
                same = Goal("state", goal.name, goal.args)
                body.append(Goal("or", parts=((goal,), (same, body[0]))))
            else:
                body.append(Goal("test", "!=", ("X", rng.choice(['"b"', '"a"']))))
        return body

    def _state_goal(self) -> Goal:
        state = self.rng.choice(self.states)
        first = ("X",) * (state.arity > 0)
        rest = tuple(self.rng.choice(["Y", "Y", "_", "X", '"a"']) for _ in range(state.arity - 1))
        return Goal("state", state.name, (*first, *rest))

    def _while(self, name: str) -> None:
        rng = self.rng
        arity = 1
        bodies = [self._body() for _ in range(rng.choice([1, 1, 1, 2]))]
        snapshots = []
        for body in bodies:
            head = ("X",)
            self.lines.append(f"state {name}(X) while {_text(body, None)}.")
            snapshots.append(
                {
                    t: frozenset(tuple(f[a] for a in head) for f in self.solve(body, t, {}))
                    for t in range(LOW, HIGH)
                }
            )
        at = {t: frozenset().union(*(s[t] for s in snapshots)) for t in range(LOW, HIGH)}
        self._add(name, arity, at)

    def _load(self, name: str) -> None:
        """A number of tuples."""
        wide = [s for s in self.states if s.arity == 2]
        if not wide:
            self._while(name)
            return
        state = self.rng.choice(wide)
        body = [Goal("state", state.name, ("X", "Y"))]
        unary = [s for s in self.states if s.arity == 1]
        if unary and self.rng.random() < 0.5:
            goal = Goal("state", self.rng.choice(unary).name, ("Y",))
            body.append(goal if self.rng.random() < 0.5 else Goal("not", parts=((goal,),)))
        grouped = self.rng.random() < 0.7
        head = "X, count()" if grouped else "count()"
        self.lines.append(f"state {name}({head}) while {_text(body, None)}.")
        at = {}
        for t in range(LOW, HIGH):
            found = {(f["X"], f["Y"]) for f in self.solve(body, t, {})}
            if grouped:
                counted = {x: sum(1 for f in found if f[0] == x) for x, _ in found}
                at[t] = frozenset(counted.items())
            else:
                at[t] = frozenset({(len(found),)} if found else ())
        self._add(name, 2 if grouped else 1, at)
        self.states.pop()  # its numbers are no texts

    # -------------------------------------------------------------------------- the readers

    def _reader(self, name: str) -> None:
        rng = self.rng
        kinds = (self._at, self._not_at, self._counted, self._over, self._not_over)
        more = (self._at, self._from, self._pairs, self._events_over)
        maker = rng.choice([*kinds, *more])
        maker(name, rng.choice(self.states))

    def _offset(self) -> tuple[str, int]:
        by = self.rng.choice([0, 0, 1, 2, -1, -2])
        return (f"T {'+-'[by < 0]} {abs(by)}{self.unit}" if by else "T"), by

    def _at(self, name: str, state: StateOf) -> None:
        """Whatever holds."""
        (text, by), rest = self._offset(), ("X", "Y")[: state.arity]
        args = ", ".join(rest)
        self.lines.append(f"{name}(T, {args}) <- q(T, _), {state.name}({args}) at {text}.")
        self.expected[name] = {(t, *row) for t, _ in self.facts["q"] for row in state.at[t + by]}

    def _not_at(self, name: str, state: StateOf) -> None:
        (text, by), rest = self._offset(), ", _" * (state.arity - 1)
        self.lines.append(f"{name}(T, X) <- q(T, X), not {state.name}(X{rest}) at {text}.")
        self.expected[name] = {
            (t, x) for t, x in self.facts["q"] if all(row[0] != x for row in state.at[t + by])
        }

    def _counted(self, name: str, state: StateOf) -> None:
        (text, by), args = self._offset(), ", ".join("_" * state.arity)
        self.lines.append(f"{name}(T, count()) <- q(T, _), {state.name}({args}) at {text}.")
        times = [t for t, _ in self.facts["q"]]
        self.expected[name] = {
            (t, times.count(t) * len(state.at[t + by])) for t in times if state.at[t + by]
        }

    def _window(self) -> tuple[str, Callable[[int], list[tuple[int, int]]]]:
        """As text; and of it, the instants and what lies right behind them."""
        rng = self.rng
        back, ahead = rng.choice([0, 1, 3]), rng.choice([0, 0, 1])
        opens, closes = rng.choice(["[]", "[]", "[)", "(]", "()"])
        low = f"T - {back}{self.unit}" if back else "T"
        high = f"T + {ahead}{self.unit}" if ahead else "T"
        first, last = int(opens == "("), int(closes == ")")

        def points(t: int) -> list[tuple[int, int]]:
            """Twice the time: odd numbers are between instants."""
            return [(p, p // 2) for p in range(2 * (t - back) + first, 2 * (t + ahead) - last + 1)]

        return f"{opens}{low}, {high}{closes}", points

    def _over(self, name: str, state: StateOf) -> None:
        (text, points), args = self._window(), ", ".join(("X", "Y")[: state.arity])
        self.lines.append(f"{name}(T, {args}) <- q(T, _), {state.name}({args}) over {text}.")
        self.expected[name] = {
            (t, *row) for t, _ in self.facts["q"] for _, i in points(t) for row in state.at[i]
        }

    def _not_over(self, name: str, state: StateOf) -> None:
        (text, points), rest = self._window(), ", _" * (state.arity - 1)
        self.lines.append(f"{name}(T, X) <- q(T, X), not {state.name}(X{rest}) over {text}.")
        self.expected[name] = {
            (t, x)
            for t, x in self.facts["q"]
            if not any(row[0] == x for _, i in points(t) for row in state.at[i])
        }

    def _events_over(self, name: str, state: StateOf) -> None:
        text, points = self._window()
        self.lines.append(f"{name}(T, X, count()) <- q(T, X), c(X, _) over {text}.")
        counts: dict[Tuple, int] = {}
        for (t, x), (u, y, _) in product(self.facts["q"], self.facts["c"]):
            if x == y and (2 * u, u) in points(t):
                counts[t, x] = counts.get((t, x), 0) + 1
        self.expected[name] = {(*key, count) for key, count in counts.items()}

    def _from(self, name: str, state: StateOf) -> None:
        args = ", ".join(("X", "Y")[: state.arity])
        self.lines.append(f"{name}(S, {args}) <- {state.name}({args}) from S, q(S, _).")
        times = {t for t, _ in self.facts["q"]}
        self.expected[name] = {row for row in state.begins() if row[0] in times}

    def _pairs(self, name: str, state: StateOf) -> None:
        rng = self.rng
        other = rng.choice(self.states)
        relation = rng.choice(sorted(RELATIONS))
        first, second = (", ".join(("X", "_")[: s.arity]) for s in (state, other))
        negated = rng.random() < 0.2
        goal = f"(S, E) {relation} (S1, E1)"
        self.lines.append(
            f"{name}(T, S, E, S1, E1) <- q(T, _), {state.name}({first}) from S to E, "
            f"{other.name}({second}) from S1 to E1, E <= T, E1 <= T, "
            f"{f'not {goal}' if negated else goal}."
        )
        self.expected[name] = {
            (t, s, e, s1, e1)
            for t, _ in self.facts["q"]
            for e, s, *row in state.intervals()
            for e1, s1, *row1 in other.intervals()
            if row[0] == row1[0] and e <= t and e1 <= t
            if RELATIONS[relation](s, e, s1, e1) != negated
        }


def _goals(body: Iterable[Goal]) -> Iterator[Goal]:
    for goal in body:
        yield goal
        for part in goal.parts:
            yield from _goals(part)


def _text(body: Iterable[Goal], time: str | None) -> str:
    """`time` is that of events; states are named without one where it is None."""
    parts = []
    for goal in body:
        match goal.kind:
            case "event":
                parts.append(f"{goal.name}({', '.join((time or 'T', *goal.args))})")
            case "state":
                behind = f" at {time}" if time else ""
                parts.append(f"{goal.name}({', '.join(goal.args)}){behind}")
            case "not":
                parts.append(f"not ({_text(goal.parts[0], time)})")
            case "or":
                parts.append(f"({' ; '.join(_text(p, time) for p in goal.parts)})")
            case _:
                parts.append(f"{goal.args[0]} {goal.name} {goal.args[1]}")
    return ", ".join(parts)
