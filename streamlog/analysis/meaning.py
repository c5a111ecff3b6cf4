"""What predicates mean, as fingerprints: equal for equal rules over equal inputs, however they are
written.

An input is its name, its columns and its facts. A derived predicate is its rules, with the
fingerprint of what they read in place of each name: so the name of a predicate in between is no
part of what those that read it mean, and a change reaches all that rests on it.

How rows reach an input (`slack`, `from`, where data have a column) changes none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from attrs import frozen

from streamlog.analysis.builtins import TICK
from streamlog.analysis.canonical import canonical_goals, canonical_query, canonical_rules
from streamlog.analysis.dependency import strong_components
from streamlog.analysis.schema import Kind, Schema
from streamlog.analysis.types import TypeTable
from streamlog.syntax.ast import Function, Rule
from streamlog.syntax.walk import atoms

_Names = Mapping[str, str]  # by predicate, and by function as `f()`


@frozen
class Meaning:
    """`fingerprint` is of all that the predicate means, `own` of what its own statements say."""

    fingerprint: str
    own: str
    rules: Mapping[str, Rule]  # its rules by what they say
    reads: tuple[str, ...]


def meanings(schema: Schema, types: TypeTable) -> dict[str, Meaning]:
    """By predicate."""
    functions = {f"{name}()": _signature(f) for name, f in schema.functions.items()}
    reads = {name: _read_by(name, schema) for name in (*schema.predicates, TICK)}
    parts = _parts(schema, functions)
    found: dict[str, str] = {}

    def again(nodes: Collection[str]) -> dict[str, str]:
        return {n: _fingerprint(n, schema, types, {**functions, **found}) for n in nodes}

    for nodes in strong_components(sorted(reads), reads.__getitem__):
        found |= dict.fromkeys(nodes, "recursion")
        found |= again(nodes)
        if len(nodes) > 1:
            found |= _told_apart(found, nodes, again)
    result = {}
    for name in schema.predicates:
        texts = [
            (text, rule)
            for rule in schema.rules_of.get(name, ())
            for text in canonical_rules(rule, {**functions, **parts})
        ]
        own = _digest([_stated(name, schema, types), *(text for text, _ in texts)])
        result[name] = Meaning(found[name], own, dict(texts), reads[name])
    return result


def _told_apart(
    found: dict[str, str],
    nodes: Collection[str],
    again: Callable[[Collection[str]], dict[str, str]],
) -> dict[str, str]:
    """The predicates of a recursion by what they read of it, and that by what it reads, until no
    more of them differ. Into the fingerprints goes what the last step has made of each: so those
    of two recursions that have the same would be the same after any number of steps."""
    now = {name: found[name] for name in nodes}
    while True:
        before = now
        found |= again(nodes)
        now = {name: found[name] for name in nodes}
        if len({*now.values()}) == len({*before.values()}):
            break
    step = _digest({f"{before[name]} {now[name]}" for name in nodes})
    return {name: _digest([now[name], step]) for name in nodes}


def meaning_of_queries(schema: Schema, meant: Mapping[str, Meaning]) -> str:
    """What the program asks itself."""
    names = {name: meaning.fingerprint for name, meaning in meant.items()}
    return _digest({canonical_query(query, names) for query in schema.queries})


def _read_by(name: str, schema: Schema) -> tuple[str, ...]:
    if name == TICK:
        return schema.streams
    read = {a.pred for rule in schema.rules_of.get(name, ()) for a in atoms(rule.body)}
    return tuple(sorted(n for n in read if n in schema.predicates or n == TICK))


def _parts(schema: Schema, functions: _Names) -> dict[str, str]:
    """Names for predicates that were made from parts of rules: what their rules say."""
    found: dict[str, str] = {}
    # Those of a limit may read those of an aggregate, which come first.
    for rule in schema.parts.values():
        name = rule.head.pred
        found[name] = _digest(canonical_rules(rule, {**functions, **found, name: "part"}))
    return found


def _fingerprint(name: str, schema: Schema, types: TypeTable, names: _Names) -> str:
    if name == TICK:
        return _digest(names[stream] for stream in schema.streams)
    texts = {
        text
        for rule in schema.rules_of.get(name, ())
        for text in canonical_rules(rule, {**names, name: "recursion"})
    }
    return _digest([_stated(name, schema, types), *texts])


def _stated(name: str, schema: Schema, types: TypeTable) -> str:
    """What is said of a predicate without rules: its facts, and what a declaration promises."""
    predicate = schema[name]
    parts = [str(fact.row) for fact in schema.facts_of.get(name, ())]
    if predicate.kind is not Kind.DERIVED:
        columns = [
            (types.column(name, p), (name, p) in schema.optional) for p in range(predicate.arity)
        ]
        ranges = [(c.low and c.low.value, c.high and c.high.value) for c in predicate.columns]
        where = predicate.declaration.where if predicate.declaration else ()
        parts += [name, str(predicate.kind), str(columns), str(ranges), canonical_goals(where)]
    return _digest(parts)


def _signature(function: Function) -> str:
    """With the text of its file, which is what it computes."""
    file = Path(function.file) if function.file else None
    text = file.read_bytes() if file is not None and file.is_file() else b""
    types = [*map(str, function.args), str(function.result)]
    return f"{function.name}({types}) {sha256(text).hexdigest()}"


def _digest(texts: Iterable[str]) -> str:
    return sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]
