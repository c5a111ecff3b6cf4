"""Inputs that rules read and that have rows from nowhere: more likely forgotten than empty."""

from __future__ import annotations

from collections.abc import Collection

from streamlog.compiler import Program
from streamlog.diagnostics import did_you_mean
from streamlog.runtime.data_files import SourceError
from streamlog.syntax.walk import atoms


def check_inputs(program: Program, given: Collection[str], way_out: str) -> None:
    """Raise `SourceError` if rules read a stream or table that is not given and has no facts
    either. `{name}` in the way out stands for the first of them."""
    schema = program.schema
    goals = (atom for rule in program.closed.schema.rules for atom in atoms(rule.body))
    read = {schema.stream_of(atom.pred) for atom in goals}
    missing = [
        schema[name]
        for name in schema.inputs
        if name in read and name not in given and name not in schema.facts_of
    ]
    if not missing:
        return
    first, names = missing[0], " and ".join(f"`{p.name}`" for p in missing)
    kind = "stream" if first.temporal else "table"
    what = f"{kind} {names} has" if len(missing) == 1 else f"the inputs {names} have"
    near = did_you_mean(first.name, (name for name in schema.predicates if name != first.name))
    hint = f" (did you mean `{near}`?)" if near and first.declaration is None else ""
    raise SourceError(f"{what} no rows{hint}: {way_out.format(name=first.name)}")
