"""Terms and tests as SQL expressions, with the meaning of `plan.python.terms` and
`runtime.functions`.

The kernel computes with Python's values. Whole numbers are BIGINT here: what leaves 64 bits on the
way to a result that fits is an error, not the result (so is -2^63 % -1). Floats are DOUBLE;
dividing whole numbers beyond 2^53 may round twice, and a zero has no sign.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping

from attrs import evolve, frozen
from sqlglot import exp

from streamlog.analysis.builtins import FUNCTIONS, OPERATORS, WHOLE
from streamlog.plan.sql.context import Unsupported, Untyped
from streamlog.syntax.ast import (
    COMPARISONS,
    INT64_MAX,
    INT64_MIN,
    Agg,
    Atom,
    BinOp,
    Call,
    Comparison,
    Const,
    Neg,
    Term,
    Type,
    Var,
)
from streamlog.syntax.nothing import Nothing
from streamlog.syntax.pretty import pretty

_COMPARISONS: dict[str, type[exp.Binary]] = dict(
    zip(COMPARISONS, (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), strict=True)
)
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARITHMETIC: dict[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_EXACT = 2**53  # up to here every whole number is a double


@frozen
class Value:
    """An expression, what it is, and the conditions under which computing it is an error.

    The expression is NULL then, never an error itself: engines compute rows that a join or a
    test is about to drop. Whoever makes rows of it raises the error.
    """

    sql: exp.Expr
    type: Type | None
    fails: tuple[exp.Expr, ...] = ()
    const: int | float | str | bool | None = None

    @property
    def is_whole(self) -> bool:
        return self.type in WHOLE


Env = Mapping[str, Value]


def value(term: Term, env: Env) -> Value:
    match term:
        case Var(name):
            return env[name]
        case Const(const, type_):
            if isinstance(const, Nothing):
                raise Unsupported("`none` is for kernels")
            return Value(_literal(const), type_, const=const)
        case Neg(operand):
            inner = _number(value(operand, env), term)
            return Value(exp.Neg(this=_paren(inner.sql)), inner.type, inner.fails)
        case BinOp(op, left, right) if op in _COMPARISONS:
            return compare(op, value(left, env), value(right, env), term)
        case BinOp(op, left, right):
            return _binary(op, value(left, env), value(right, env), term)
        case Call(name, args):
            return _call(name, tuple(value(a, env) for a in args), term)
        case Agg():
            raise ValueError("an aggregate is not a value")


def test(literal: Comparison | Atom, env: Env) -> Value:
    match literal:
        case Comparison(op, left, right):
            return compare(op, value(left, env), value(right, env), literal)
        case Atom("contains" | "starts_with" as name, (text, part)):
            kind = exp.Contains if name == "contains" else exp.StartsWith
            one, other = value(text, env), value(part, env)
            found = kind(this=one.sql.copy(), expression=other.sql.copy())
            return Value(found, Type.BOOL, one.fails + other.fails)
        case Atom("matches"):
            raise Unsupported(f"`{pretty(literal)}`: regular expressions differ between engines")
        case _:
            raise ValueError(f"{literal.pred} is not a test")


# ------------------------------------------------------------------------------ comparisons


def compare(op: str, left: Value, right: Value, where: Term | Comparison | Atom) -> Value:
    """As Python compares: a whole number and a float by their exact values."""
    fails = left.fails + right.fails
    if left.type is None or right.type is None:
        raise Untyped(f"`{pretty(where)}` compares values of unknown type")
    if left.is_whole and right.type is Type.FLOAT:
        return Value(_mixed(op, left, right), Type.BOOL, fails)
    if left.type is Type.FLOAT and right.is_whole:
        return Value(_mixed(_MIRRORED[op], right, left), Type.BOOL, fails)
    if not _alike(left, right):
        raise Unsupported(f"`{pretty(where)}` compares a {left.type} with a {right.type}")
    return Value(_binary_sql(_COMPARISONS[op], left, right), Type.BOOL, fails)


def equal(left: Value, right: Value, where: Atom) -> exp.Expr:
    """Of one variable's values in two places. Nothing that may fail is a key."""
    if left.fails or right.fails:
        raise Unsupported(f"`{pretty(where)}` looks for a value whose computation may fail")
    if left.type is None and right.type is None:
        return _binary_sql(exp.EQ, left, right)
    return compare("=", left, right, where).sql


def _alike(left: Value, right: Value) -> bool:
    return left.type is right.type or (left.is_whole and right.is_whole)


def _mixed(op: str, whole: Value, decimal: Value) -> exp.Expr:
    kind = _COMPARISONS[op]
    if isinstance(decimal.const, float):
        return _with_float(op, whole, decimal.const)
    double = as_double(whole).sql
    if isinstance(whole.const, int) and abs(whole.const) <= _EXACT:
        return kind(this=_literal(float(whole.const)), expression=decimal.sql.copy())
    same = exp.EQ(this=double.copy(), expression=decimal.sql.copy())
    # 2^63 is a double but no BIGINT; whatever rounds to it is smaller.
    fits = exp.LT(this=decimal.sql.copy(), expression=_literal(2.0**63))
    exact = kind(this=whole.sql.copy(), expression=exp.cast(decimal.sql.copy(), "BIGINT"))
    return exp.Paren(
        this=exp.Case(
            ifs=[
                exp.If(this=exp.and_(same, fits), true=exact),
                exp.If(this=same.copy(), true=kind(this=_literal(0), expression=_literal(1))),
            ],
            default=kind(this=double, expression=decimal.sql.copy()),
        )
    )


def _with_float(op: str, whole: Value, number: float) -> exp.Expr:
    """`N > 2.5` is `N >= 3`."""
    if op in ("=", "!="):
        if not (number.is_integer() and INT64_MIN <= number <= INT64_MAX):
            return exp.convert(op == "!=")
        limit = int(number)
    elif op in ("<", ">="):
        limit = math.ceil(number)
    else:
        limit = math.floor(number)
    if not INT64_MIN <= limit <= INT64_MAX:
        return exp.convert((op in ("<", "<=")) == (limit > 0))
    return _COMPARISONS[op](this=whole.sql.copy(), expression=_literal(limit))


# --------------------------------------------------------------------------------- functions


def _binary(op: str, left: Value, right: Value, term: Term) -> Value:
    fails = left.fails + right.fails
    if op == "++":
        return Value(_binary_sql(exp.DPipe, left, right), Type.STRING, fails)
    left, right = _number(left, term), _number(right, term)
    if not _has_columns(left.sql) and not _has_columns(right.sql):
        left = in_64_bits(left)
    floats = Type.FLOAT in (left.type, right.type)
    if op in ("+", "-", "*"):
        if floats:
            left, right = as_double(left), as_double(right)
        type_ = Type.FLOAT if floats else _result(op, left, right)
        return Value(_binary_sql(_ARITHMETIC[op], left, right), type_, fails)
    if op != "/" and floats:
        raise Unsupported(f"`{pretty(term)}` divides floats with a remainder")
    fails += _zero(right)
    divisor = _non_zero(right)
    if op == "/":
        sql: exp.Expr = _binary_sql(exp.Div, as_double(left), as_double(divisor))
        return Value(sql, Type.FLOAT, fails)
    sql = _remainder(left, divisor) if op == "%" else _quotient(left, divisor)
    return Value(sql, _result(op, left, right), fails)


def _result(op: str, left: Value, right: Value) -> Type | None:
    for *operands, result in OPERATORS[op]:
        if operands == [left.type, right.type]:
            return result
    return left.type  # a timestamp and a plain number


def _zero(divisor: Value) -> tuple[exp.Expr, ...]:
    """When dividing is an error."""
    if divisor.const is not None and divisor.const != 0:
        return ()
    return (exp.EQ(this=divisor.sql.copy(), expression=_literal(0)),)


def _non_zero(divisor: Value) -> Value:
    if divisor.const is not None and divisor.const != 0:
        return divisor
    sql = exp.Nullif(this=divisor.sql.copy(), expression=_literal(0))
    return evolve(divisor, sql=sql, const=None)


def _falls_short(left: Value, right: Value) -> exp.Expr:
    """Whether SQL's remainder has the sign that Python's has not: that of the dividend."""
    rest = _binary_sql(exp.Mod, left, right)
    if isinstance(right.const, int) and right.const > 0:
        return exp.LT(this=rest, expression=_literal(0))
    return exp.and_(
        exp.NEQ(this=rest, expression=_literal(0)),
        exp.NEQ(
            this=exp.paren(exp.LT(this=rest.copy(), expression=_literal(0))),
            expression=exp.paren(exp.LT(this=right.sql.copy(), expression=_literal(0))),
        ),
    )


def _remainder(left: Value, right: Value) -> exp.Expr:
    rest = _binary_sql(exp.Mod, left, right)
    more = exp.Add(this=rest.copy(), expression=_paren(right.sql))
    return _case(_falls_short(left, right), more, rest)


def _quotient(left: Value, right: Value) -> exp.Expr:
    less = _case(_falls_short(left, right), _literal(1), _literal(0))
    return exp.Sub(this=_binary_sql(exp.IntDiv, left, right), expression=less)


def quotient(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """The floor of a division by what is never zero."""
    return _quotient(Value(left, Type.INT), Value(right, Type.INT))


def _call(name: str, args: tuple[Value, ...], term: Term) -> Value:
    fails = tuple(f for a in args for f in a.fails)
    match name:
        case "max" | "min":
            return _largest(name, args, term)
        case "if":
            return _choice(args, term)
        case "in":
            return _among(args, term)
        case "abs":
            number = _number(args[0], term)
            return Value(exp.Abs(this=number.sql.copy()), number.type, fails)
        case "floor" | "ceil":
            return _rounded(name, args[0], args[1], term)
        case "length":
            return Value(exp.cast(exp.Length(this=args[0].sql.copy()), "BIGINT"), Type.INT, fails)
        case "substr":
            return Value(_substr(args), Type.STRING, fails)
        case "lower" | "upper":
            raise Unsupported(f"`{pretty(term)}`: letters beyond ASCII differ between engines")
        case _ if name not in FUNCTIONS:  # of the program, or what finds errors
            raise Unsupported("it calls Python")
        case _:
            raise Unsupported(f"`{pretty(term)}`: `{name}` differs between engines")


def _choice(args: tuple[Value, ...], term: Term) -> Value:
    """Only what is chosen can fail."""
    condition, then, other = args
    if then.type is None or other.type is None:
        raise Untyped(f"`{pretty(term)}` chooses between values of unknown type")
    if Type.FLOAT in (then.type, other.type):
        then, other = as_double(then), as_double(other)
    then, other = in_64_bits(then), in_64_bits(other)
    fails = (
        *condition.fails,
        *(exp.and_(condition.sql.copy(), f) for f in then.fails),
        *(exp.and_(exp.not_(exp.paren(condition.sql.copy())), f) for f in other.fails),
    )
    sql = _case(condition.sql.copy(), then.sql.copy(), other.sql.copy())
    return Value(exp.paren(sql), then.type, fails)


def _among(args: tuple[Value, ...], term: Term) -> Value:
    first, *others = args
    tests = [compare("=", first, other, term) for other in others]
    sql = exp.or_(*(test.sql for test in tests))
    return Value(exp.paren(sql), Type.BOOL, tuple(f for a in args for f in a.fails))


def _largest(name: str, args: tuple[Value, ...], term: Term) -> Value:
    if any(a.type is None for a in args):
        raise Untyped(f"`{pretty(term)}` compares values of unknown type")
    if any(a.type is Type.FLOAT for a in args):
        args = tuple(map(as_double, args))
    first, *others = args
    if not all(_alike(first, o) for o in others):
        raise Unsupported(f"`{pretty(term)}` compares values of different types")
    kind = exp.Greatest if name == "max" else exp.Least
    sql = kind(this=first.sql.copy(), expressions=[o.sql.copy() for o in others], ignore_nulls=True)
    return Value(sql, first.type, tuple(f for a in args for f in a.fails))


def _rounded(name: str, number: Value, step: Value, term: Term) -> Value:
    if not (number.is_whole and step.is_whole):
        raise Unsupported(f"`{pretty(term)}` rounds what is not known to be a whole number")
    fails = number.fails + step.fails
    if not (isinstance(step.const, int) and step.const > 0):
        fails += (exp.LTE(this=step.sql.copy(), expression=_literal(0)),)
    if not _has_columns(number.sql):
        number = in_64_bits(number)
    step = _non_zero(step)
    rest = _binary_sql(exp.Mod, number, step)
    zero = _literal(0)
    if name == "floor":
        down = exp.Add(this=rest.copy(), expression=_paren(step.sql))
        away = _case(exp.LT(this=rest.copy(), expression=zero), down, rest)
        return Value(exp.Sub(this=_paren(number.sql), expression=away), number.type, fails)
    up = exp.Sub(this=rest.copy(), expression=_paren(step.sql))
    away = _case(exp.GT(this=rest.copy(), expression=zero), up, rest)
    return Value(exp.Sub(this=_paren(number.sql), expression=away), number.type, fails)


def _substr(args: tuple[Value, ...]) -> exp.Expr:
    """Characters count from 1 in SQL; a start before the text takes from the length."""
    text, start, *more = args
    begin = _at_least_zero(start)
    first = _plus_one(begin)
    if not more:
        return exp.Substring(this=text.sql.copy(), start=_position(first))
    if isinstance(start.const, int) and isinstance(more[0].const, int):
        count = max(max(start.const + more[0].const, 0) - max(start.const, 0), 0)
        length = Value(_literal(count), Type.INT, const=count)
    else:
        end = Value(_binary_sql(exp.Add, in_64_bits(start), more[0]), Type.INT)
        left = Value(_binary_sql(exp.Sub, _at_least_zero(end), begin), Type.INT)
        length = _at_least_zero(left)
    return exp.Substring(this=text.sql.copy(), start=_position(first), length=_position(length))


def _at_least_zero(number: Value) -> Value:
    if isinstance(number.const, int):
        const = max(number.const, 0)
        return Value(_literal(const), Type.INT, const=const)
    zero = _literal(0)
    sql = exp.Greatest(this=number.sql.copy(), expressions=[zero], ignore_nulls=True)
    return Value(sql, Type.INT)


def _plus_one(number: Value) -> Value:
    if isinstance(number.const, int):
        return Value(_literal(number.const + 1), Type.INT, const=number.const + 1)
    return Value(exp.Add(this=number.sql.copy(), expression=_literal(1)), Type.INT)


def _position(number: Value) -> exp.Expr:
    """No text is longer than what an INT can count."""
    most = 2**31 - 1
    if isinstance(number.const, int):
        return _literal(min(number.const, most))
    sql = exp.Least(this=number.sql.copy(), expressions=[_literal(most)], ignore_nulls=True)
    return exp.cast(sql, "INT")


# -------------------------------------------------------------------------------- expressions


def _literal(const: int | float | str | bool) -> exp.Expr:
    match const:
        case bool():
            return exp.convert(const)
        case int():
            number: exp.Expr = exp.Literal.number(abs(const))
            return exp.Neg(this=number) if const < 0 else number
        case float():
            text = repr(abs(const))  # without an exponent it would be a decimal
            number = exp.Literal.number(text if "e" in text else f"{text}e0")
            return exp.Neg(this=number) if math.copysign(1.0, const) < 0 else number
        case str():
            return _text(const)


def _text(const: str) -> exp.Expr:
    """Spark puts settings in the place of `${…}`, inside of texts too."""
    if "\0" in const:
        raise Unsupported("a text has a character that no engine takes")
    parts = const.split("${")
    result: exp.Expr = exp.Literal.string(parts[0] + "$" * (len(parts) > 1))
    for number, part in enumerate(parts[1:], 2):
        piece = exp.Literal.string("{" + part + "$" * (number < len(parts)))
        result = exp.DPipe(this=result, expression=piece)
    return result


def as_double(number: Value) -> Value:
    if number.type is Type.FLOAT:
        return number
    if isinstance(number.const, int) and abs(number.const) <= _EXACT:
        const = float(number.const)
        return Value(_literal(const), Type.FLOAT, const=const)
    return Value(exp.cast(number.sql.copy(), "DOUBLE"), Type.FLOAT, number.fails)


def finite(number: Value) -> Value:
    """A computed float, and that it is an error where it is none of the numbers there are."""
    is_known = number.const is not None or isinstance(number.sql, exp.Column)
    if number.type is not Type.FLOAT or is_known:
        return number
    most = _literal(sys.float_info.max)
    inside = exp.Between(this=number.sql.copy(), low=exp.Neg(this=most), high=most.copy())
    return evolve(number, fails=(*number.fails, exp.Not(this=exp.paren(inside))))


def in_64_bits(number: Value) -> Value:
    """A constant in SQL has the smallest type that holds it."""
    if number.is_whole and not _has_columns(number.sql):
        return evolve(number, sql=exp.cast(number.sql.copy(), "BIGINT"))
    return number


def _has_columns(sql: exp.Expr) -> bool:
    return sql.find(exp.Column) is not None


def _number(operand: Value, term: Term) -> Value:
    if operand.is_whole or operand.type is Type.FLOAT:
        return operand
    raise Untyped(f"`{pretty(term)}` computes with values of unknown type")


def _case(condition: exp.Expr, then: exp.Expr, other: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=other)


def _paren(sql: exp.Expr) -> exp.Expr:
    is_compound = isinstance(sql, exp.Binary | exp.Unary) and not isinstance(sql, exp.Paren)
    return exp.Paren(this=sql.copy()) if is_compound else sql.copy()


def _binary_sql(kind: type[exp.Binary], left: Value, right: Value) -> exp.Binary:
    return kind(this=_paren(left.sql), expression=_paren(right.sql))
