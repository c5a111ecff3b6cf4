"""Relations between the columns of an input: `where begin <= end, end <= begin + 1h`.

Each comparison is a difference between two columns, so the clause is a difference-bound matrix
over them. Rows that break it are rejected, so wherever a fact of the predicate is matched the
matrix holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from streamlog.analysis.time.dbm import Difference
from streamlog.diagnostics import Diagnostic, Span, finding
from streamlog.syntax.ast import (
    BinOp,
    Column,
    Comparison,
    Const,
    Fact,
    Literal,
    Stream,
    Table,
    Term,
    Type,
    Var,
)
from streamlog.syntax.pretty import pretty

_ORDERED = ("<", "<=", "=", ">=", ">")


def at(position: int) -> str:
    """The name of a column in matrices; no variable has such a name."""
    return f"#{position}"


@frozen
class ColumnRelation:
    """A comparison between two columns, as `left - right <= most` for one or two pairs."""

    text: str  # as it is written
    differences: tuple[tuple[int, int, int], ...]  # columns, and the most

    def is_broken_by(self, row: Sequence[object]) -> bool:
        """By a row whose values have the types of their columns."""
        return any(
            row[left] - row[right] > most  # type: ignore[operator]  # both are whole numbers
            for left, right, most in self.differences
        )

    def without(self, column: int) -> ColumnRelation:
        """For rows that lack a column, which is none of these."""

        def moved(position: int) -> int:
            return position - (position > column)

        found = ((moved(left), moved(right), most) for left, right, most in self.differences)
        return evolve(self, differences=tuple(found))

    @property
    def columns(self) -> tuple[int, int]:
        left, right, _ = self.differences[0]
        return left, right


def differences(relations: Sequence[ColumnRelation]) -> Iterator[Difference]:
    for relation in relations:
        for left, right, most in relation.differences:
            yield Difference(at(left), at(right), most)


class _Unfit(Exception):  # noqa: N818  (a reason, not an error of ours)
    def __init__(self, message: str, span: Span, help: str = "") -> None:
        self.diagnostic = finding("SL0105", message, span, help=(help,) if help else ())


def relations_of(declaration: Stream | Table | None) -> tuple[ColumnRelation, ...]:
    """Those that a declaration has; a comparison that cannot be one is left out."""
    found = _read(declaration) if declaration is not None else ()
    return tuple(r for r in found if isinstance(r, ColumnRelation))


def unfit(declaration: Stream | Table) -> Iterator[Diagnostic]:
    """What is wrong with a `where` clause."""
    return (d for d in _read(declaration) if isinstance(d, Diagnostic))


def broken_by(facts: Sequence[Fact], declaration: Stream | Table) -> Iterator[Diagnostic]:
    """Facts of the program that break the clause."""
    for fact in facts:
        args = fact.atom.args
        row = [a.value for a in args if isinstance(a, Const)]
        if len(row) != len(declaration.columns):
            continue
        for relation in relations_of(declaration):
            if all(type(row[c]) is int for c in relation.columns) and relation.is_broken_by(row):
                yield finding(
                    "SL0301",
                    f"this fact breaks `where {relation.text}`",
                    fact.atom.span,
                    related=[(declaration.span, "declared here")],
                    help="correct the fact, or the declaration",
                )


def _read(declaration: Stream | Table) -> Iterator[ColumnRelation | Diagnostic]:
    for literal in declaration.where:
        try:
            yield _relation(literal, declaration.columns)
        except _Unfit as unfit:
            yield unfit.diagnostic


def _relation(literal: Literal, columns: Sequence[Column]) -> ColumnRelation:
    if not isinstance(literal, Comparison) or literal.op not in _ORDERED:
        help = "write, for example, `where begin <= end, end <= begin + 1h`"
        raise _Unfit("`where` takes comparisons between columns", literal.span, help)
    total: dict[int, int] = {}
    offset, kinds = 0, set()
    sides = (_parts(literal.left, 1, columns), _parts(literal.right, -1, columns))
    for column, sign, constant in (part for side in sides for part in side):
        if column is not None:
            total[column] = total.get(column, 0) + sign
        else:
            offset += sign * int(constant.value)
            kinds.add(constant.type)
    pair = sorted((n for n in total if total[n]), key=lambda n: -total[n])
    if len(pair) != 2 or [total[n] for n in pair] != [1, -1]:
        raise _Unfit(
            "a comparison in `where` relates two columns",
            literal.span,
            "for the values of one column alone, declare its range: `n: int 0..9`",
        )
    left, right = pair
    if missing := [columns[n].name for n in pair if columns[n].optional]:
        raise _Unfit(
            f"column `{missing[0]}`, which may be missing, is not related to others",
            literal.span,
            f"drop the `?` behind the type of `{missing[0]}`, or the comparison",
        )
    types = {columns[n].type for n in pair}
    wanted = {Type.TIME: Type.DURATION, Type.INT: Type.INT}
    kind = types.pop()
    if types or kind not in wanted:
        raise _Unfit(
            f"`{columns[left].name}` and `{columns[right].name}` cannot be related",
            literal.span,
            "declare both as `time`, or both as `int`",
        )
    if kinds - {wanted[kind]}:
        example = "1h" if kind is Type.TIME else "5"
        raise _Unfit(
            f"columns of type {kind} differ by a {wanted[kind]}",
            literal.span,
            f"write `{columns[left].name} <= {columns[right].name} + {example}`",
        )
    below, above = (left, right, -offset), (right, left, offset)
    strict = literal.op in ("<", ">")
    chosen = {"<": (below,), "<=": (below,), ">": (above,), ">=": (above,), "=": (below, above)}
    found = tuple((x, y, most - strict) for x, y, most in chosen[literal.op])
    return ColumnRelation(pretty(literal), found)


def _parts(
    term: Term, sign: int, columns: Sequence[Column]
) -> Iterator[tuple[int, int, Const] | tuple[None, int, Const]]:
    match term:
        case BinOp("+" | "-" as op, left, right):
            yield from _parts(left, sign, columns)
            yield from _parts(right, sign if op == "+" else -sign, columns)
        case Const(int(), Type.INT | Type.DURATION):
            yield None, sign, term
        case Var(str(name)) | Const(str(name)):
            names = [c.name for c in columns]
            if name not in names:
                known = ", ".join(f"`{n}`" for n in names)
                raise _Unfit(f"there is no column `{name}`", term.span, f"there are {known}")
            yield names.index(name), sign, Const(0, Type.INT, span=term.span)
        case _:
            raise _Unfit(
                f"`{pretty(term)}` is neither a column nor an offset",
                term.span,
                "a side of a comparison is a column, plus or minus a constant",
            )
