"""A program made unusual: what the generators do not write by themselves, put into any program.

Each change takes a program that compiles and returns another one, or None where there is no place
for it. So every shape of every generator is combined with each of them:

    repeated          r(T0, V, V)          a variable twice in a goal, perhaps its timestamp
    without_columns   yes, not no()        tables and rules that have no arguments
    ranged            among(N)             a variable with a range from facts, perhaps a timestamp
    divided           not zero(N), 6 // N  a division that another goal makes safe
    renamed           ℌ beside H, ﬁ, ªx    names that Python would take for each other
    in_the_future     p(T + 2) <- …        heads after their goals
    crowded           a(T, _) 25 times     many goals in one rule
    twice_aggregated  sum(V), count()      several aggregates of one group
    branched          (T0 > T - 9 ; …)     alternatives that see a goal in different windows
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from attrs import evolve
from oracle.programs import Case

from streamlog.analysis.builtins import FILTERS, TICK
from streamlog.compiler import Mode, Program, compile_source
from streamlog.diagnostics import Source
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Column,
    Comparison,
    Const,
    Literal,
    Module,
    Not,
    Output,
    PredName,
    Query,
    Rule,
    Stream,
    Table,
    Type,
    Var,
    branches,
)
from streamlog.syntax.pretty import pretty
from streamlog.syntax.walk import atoms, transform, variables

T = TypeVar("T")

# Names that are different to us, and equal or not even names after NFKC, as Python has them.
_LETTERS = {"T": "𝐓", "X": "ℌ", "N": "H", "V": "Ⅴ", "K": "Ｋ", "D": "𝔇", "W": "Ｗ", "F": "ℱ"}
_WORDS = ("ﬁ", "fi", "ªx", "ax", "ſ", "é", "e\u0301", "class", "print", "row", "µ", "μ", "ĳ", "ij")


def unusual(case: Case, rng: Random, mode: Mode = Mode.STREAM, tries: int = 8) -> Case:
    """The case with one to three changes; as it was, if none of those tried can be made."""
    wanted = rng.choice([1, 1, 2, 3])
    for _ in range(tries):
        program = _compiled(case, mode)
        change = rng.choice(_CHANGES)
        changed = change(case, program, rng)
        if changed is not None and changed != case and _is_usable(changed, mode):
            # A further change might make a division unsafe.
            case, wanted = changed, 0 if change is _divided else wanted - 1
        if wanted == 0:
            break
    return case


def _compiled(case: Case, mode: Mode) -> Program:
    return compile_source(Source("unusual", case.text), mode=mode)


def _is_usable(case: Case, mode: Mode) -> bool:
    program = _compiled(case, mode)
    return program.ok and set(case.facts) == set(program.schema.streams)


# -------------------------------------------------------------------------------- changes


def _repeated(case: Case, program: Program, rng: Random) -> Case | None:
    types = program.types

    def alike(atom: Atom) -> list[tuple[int, int]]:
        """Places of a variable, and of another argument of the same type."""
        kinds = [types.column(atom.pred, i) for i in range(atom.arity)]
        return [
            (i, j)
            for i, arg in enumerate(atom.args)
            for j in range(atom.arity)
            if isinstance(arg, Var) and arg.name != "_" and i != j
            if kinds[i] is kinds[j] is not None
        ]

    def change(rule: Rule) -> Rule | None:
        goals = [a for a in atoms(rule.body) if a.pred not in FILTERS and alike(a)]
        if not goals:
            return None
        goal = rng.choice(goals)
        i, j = rng.choice(alike(goal))
        args = tuple(goal.args[i] if n == j else a for n, a in enumerate(goal.args))
        changed = evolve(goal, args=args)
        return evolve(
            rule, body=tuple(transform(x, lambda n: changed if n is goal else n) for x in rule.body)
        )

    return _with_rule(case, program, rng, change)


def _without_columns(case: Case, program: Program, rng: Random) -> Case | None:
    schema, number = program.schema, rng.randrange(1000)
    fact, empty, derived = (f"{name}{number}" for name in ("yes", "no", "so"))
    static = [n for n, p in schema.predicates.items() if not p.temporal and n not in FILTERS]
    lines = [f"table {fact}().", f"table {empty}().", f"{fact}()."]
    if static and rng.random() < 0.7:
        base = rng.choice(static)
        args = ", ".join("_" * schema[base].arity)
        lines.append(f"{derived} <- {base}({args}){rng.choice(['', f', {fact}()'])}.")
    else:
        lines.append(f"{derived}() <- {fact}(), not {empty}.")
    goals = [f"{fact}()", f"not {empty}()", derived, f"not {derived}"]

    def change(rule: Rule) -> Rule | None:
        return _with_goal(rule, rng, rng.choice(goals))

    return _with_rule(case, program, rng, change, lines)


def _ranged(case: Case, program: Program, rng: Random) -> Case | None:
    number = rng.randrange(1000)
    values = sorted(rng.sample(range(10), rng.choice([1, 3, 8])))

    def change(rule: Rule) -> Rule | None:
        names = _whole_numbers(rule, program)
        return _with_goal(rule, rng, f"among{number}({rng.choice(names)})") if names else None

    facts = " ".join(f"among{number}({v})." for v in values)
    bounds = f": int {values[0]}..{values[-1]}" if rng.random() < 0.5 else ": int"
    return _with_rule(case, program, rng, change, [f"table among{number}(n{bounds}). {facts}"])


def _divided(case: Case, program: Program, rng: Random) -> Case | None:
    number = rng.randrange(1000)

    def change(rule: Rule) -> Rule | None:
        names = _whole_numbers(rule, program)
        if not names:
            return None
        name = rng.choice(names)
        safe = f"{name} != 0" if rng.random() < 0.3 else f"not zero{number}({name})"
        result = f"Q{number} = 6 {rng.choice(['//', '%'])} {name}"
        return _with_goal(rule, rng, f"{result}, {safe}, Q{number} {rng.choice('<>')} 1")

    return _with_rule(case, program, rng, change, [f"table zero{number}(n: int). zero{number}(0)."])


def _renamed(case: Case, program: Program, rng: Random) -> Case | None:
    """All names at once, so that names that look alike come together."""
    module = program.parsed
    schema = program.schema
    names = [n for n in schema.predicates if n != TICK and n not in FILTERS]
    rng.shuffle(names)
    words = dict(zip(names, rng.sample(_WORDS, len(_WORDS)), strict=False))
    written = sorted({v.name for v in variables(module) if v.name != "_"})
    chosen = {n: _LETTERS[n[0]] + n[1:] for n in written if n[0] in _LETTERS and rng.random() < 0.7}
    if len(set(chosen.values()) | (set(written) - set(chosen))) < len(written):
        return None

    def change(node: T) -> T:
        match node:
            case Var(name):
                return evolve(node, name=chosen.get(name, name))
            case Atom(pred):
                return evolve(node, pred=words.get(pred, pred))
            case Stream(name) | Table(name) | PredName(name):
                return evolve(node, name=words.get(name, name))
            case Column(name):
                return evolve(node, name=chosen.get(name, name))
            case _:
                return node

    text = _text(transform(module, change))
    facts = {words.get(n, n): rows for n, rows in case.facts.items()}
    return Case(text, facts, {words.get(n, n): rows for n, rows in case.tables.items()})


def _in_the_future(case: Case, program: Program, rng: Random) -> Case | None:
    types, schema = program.types, program.schema

    def goes_on(name: str) -> bool:
        """Whether it rests on itself without a negation: then it would go on forever."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for rule in schema.rules_of.get(waiting.pop(), ()):
                for body in branches(rule.body):
                    new = {x.pred for x in body if isinstance(x, Atom)} - found
                    found |= new
                    waiting += new
        return name in found

    def change(rule: Rule) -> Rule | None:
        if not rule.head.args or not isinstance(first := rule.head.args[0], Var):
            return None
        clock, name = types.column(rule.head.pred, 0), rule.head.pred
        if clock not in (Type.INT, Type.TIME) or not schema.is_temporal(name) or goes_on(name):
            return None
        far = rng.choice([1, 2, 10])
        by = Const(far, Type.INT, span=first.span)
        if clock is Type.TIME:
            by = Const(far * 1_000_000, Type.DURATION, span=first.span)
        time = BinOp("+", first, by, span=first.span)
        return evolve(rule, head=evolve(rule.head, args=(time, *rule.head.args[1:])))

    return _with_rule(case, program, rng, change)


def _crowded(case: Case, program: Program, rng: Random) -> Case | None:
    schema = program.schema

    def change(rule: Rule) -> Rule | None:
        goals = [
            a
            for a in rule.body
            if isinstance(a, Atom)
            and a.pred in schema.streams
            and isinstance(a.args[0], Var)
            and all(not isinstance(v, Var) or v.name != "_" for v in a.args)  # or they multiply
        ]
        if not goals or any(isinstance(a, Agg) for a in rule.head.args):
            return None  # an aggregate would count the combinations
        goal = rng.choice(goals)
        blank = evolve(
            goal, args=(goal.args[0], *(Var("_", span=goal.span) for _ in goal.args[1:]))
        )
        more: list[Literal] = [goal] * rng.randint(18, 25) + [blank]
        more += (Not((Comparison("!=", v, v, span=v.span),), span=v.span) for v in goal.args[:1])
        return evolve(rule, body=(*rule.body, *more))

    return _with_rule(case, program, rng, change)


def _twice_aggregated(case: Case, program: Program, rng: Random) -> Case | None:
    """Only where nobody reads the predicate: its number of columns changes."""
    schema = program.schema
    module = program.parsed
    read = {a.pred for r in schema.rules for a in atoms(r.body)}
    heads = [n for n, rules in schema.rules_of.items() if n not in read]
    heads = [
        n
        for n in heads
        if all(any(isinstance(a, Agg) for a in r.head.args) for r in schema.rules_of[n])
    ]
    if not heads or any(isinstance(s, Query) for s in module.statements):
        return None
    name = rng.choice(heads)
    func = rng.choice(["count", "min", "max", "last", "first", "count_distinct"])

    def change(rule: Rule) -> Rule:
        agg = next(a for a in rule.head.args if isinstance(a, Agg))
        more = Agg("count" if agg.arg is None else func, agg.arg, span=agg.span)
        return evolve(rule, head=evolve(rule.head, args=(*rule.head.args, more)))

    statements = tuple(
        change(s) if isinstance(s, Rule) and s.head.pred == name else s for s in module.statements
    )
    return evolve(case, text=_text(evolve(module, statements=statements)))


def _branched(case: Case, program: Program, rng: Random) -> Case | None:
    types, schema = program.types, program.schema

    def change(rule: Rule) -> Rule | None:
        timed = [
            (a.args[0].name, types.column(a.pred, 0))
            for a in rule.body
            if isinstance(a, Atom) and a.pred in schema.predicates and schema.is_temporal(a.pred)
            if isinstance(a.args[0], Var) and a.args[0].name != "_"
        ]
        stamps = sorted({name for name, clock in timed if clock in (Type.INT, Type.TIME)})
        if len(stamps) < 2 or any(isinstance(a, Agg) for a in rule.head.args):
            return None
        unit = "s" if (stamps[0], Type.TIME) in timed else ""
        one, other = rng.sample(stamps, 2)
        near, far = sorted(rng.sample(range(1, 12), 2))
        goals = [f"{one} > {other} - {near}{unit}", f"{one} > {other} - {far}{unit}"]
        rng.shuffle(goals)
        return _with_goal(rule, rng, f"({' ; '.join(goals)})")

    return _with_rule(case, program, rng, change)


_CHANGES = (
    _branched,
    _repeated,
    _repeated,
    _without_columns,
    _ranged,
    _divided,
    _renamed,
    _in_the_future,
    _crowded,
    _twice_aggregated,
)


# --------------------------------------------------------------------------------- pieces


def _whole_numbers(rule: Rule, program: Program) -> list[str]:
    """Variables that the rule's goals bind to ints."""
    types = program.types
    return [
        arg.name
        for literal in rule.body
        if isinstance(literal, Atom) and literal.pred not in FILTERS
        for i, arg in enumerate(literal.args)
        if isinstance(arg, Var) and arg.name != "_"
        if types.column(literal.pred, i) is Type.INT
    ]


def _with_rule(
    case: Case,
    program: Program,
    rng: Random,
    change: Callable[[Rule], Rule | None],
    lines: list[str] | None = None,
) -> Case | None:
    """One rule changed, and lines put before the program."""
    module = program.parsed
    rules = [s for s in module.statements if isinstance(s, Rule)]
    rule = rng.choice(rules)
    changed = change(rule)
    if changed is None:
        return None
    statements = tuple(changed if s is rule else s for s in module.statements)
    text = _text(evolve(module, statements=statements))
    return evolve(case, text="\n".join([*(lines or ()), text]))


def _with_goal(rule: Rule, rng: Random, goal: str) -> Rule:
    """The rule with a goal more, outside or inside one of its negations."""
    parsed = compile_source(Source("goal", f"p <- {goal}."), until="parse").parsed
    (statement,) = (s for s in parsed.statements if isinstance(s, Rule))
    places = [n for n, x in enumerate(rule.body) if isinstance(x, Not)]
    if places and rng.random() < 0.4:
        place = rng.choice(places)
        negation = rule.body[place]
        assert isinstance(negation, Not)
        inner = evolve(negation, body=(*negation.body, *statement.body))
        return evolve(rule, body=(*rule.body[:place], inner, *rule.body[place + 1 :]))
    return evolve(rule, body=(*rule.body, *statement.body))


def _text(module: Module) -> str:
    """Outputs last: they name what has been defined."""
    ordered = sorted(module.statements, key=lambda s: isinstance(s, Output))
    return "".join(f"{pretty(s)}\n" for s in ordered)
