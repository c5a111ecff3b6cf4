"""Terms and tests as Python expressions; what they call is in `runtime.functions`."""

from __future__ import annotations

from streamlog.analysis.builtins import FAILURE, FUNCTIONS, INTERNAL
from streamlog.plan.steps import Index
from streamlog.syntax.ast import (
    Agg,
    Atom,
    BinOp,
    Call,
    Comparison,
    Const,
    Neg,
    Term,
    Var,
)
from streamlog.syntax.nothing import NONE
from streamlog.syntax.walk import variables

_COMPARISONS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def spelled(prefix: str, name: str) -> str:
    """A name in generated code, different for every name in the program. Python takes names for
    equal that look alike (`ﬁ` and `fi`), so those outside of ASCII are written in hexadecimal, and
    so are those of used files (`auth.failed`)."""
    plain = name.isascii() and "." not in name
    return f"{prefix}_{name}" if plain else f"{prefix}x_{name.encode().hex()}"


def name(var: Var) -> str:
    """A variable's name in generated code."""
    return var.name.replace("_#", "a_") if "#" in var.name else spelled("v", var.name)


def identifier(pred: str) -> str:
    """A predicate's name in generated code, behind `on_`, `new_` and the like."""
    return spelled("p", pred)


def stored(index: Index) -> str:
    """The name of what an index holds."""
    return spelled("index", index.name)


def python(term: Term) -> str:
    match term:
        case Var():
            return name(term)
        case Const(value):
            return repr(value)
        case Neg(operand):
            return f"(-{python(operand)})"
        case BinOp("++", left, right):
            return f"({python(left)} + {python(right)})"
        case BinOp("/", left, right):  # of whole numbers too, as floats
            return f"(float({python(left)}) / {python(right)})"
        case BinOp(op, left, right):
            return f"({python(left)} {_COMPARISONS.get(op, op)} {python(right)})"
        case Call("in", (value, *items)):
            return f"({python(value)} in ({', '.join(map(python, items))},))"
        case Call("default", (Const() as value, other)):  # where a constant has replaced a variable
            return python(other) if value.value is NONE else python(value)
        case Call("default", (value, other)):
            return f"({python(other)} if {python(value)} is NONE else {python(value)})"
        case Call("length", (text,)):
            return f"len({python(text)})"
        case Call("lower" | "upper" as method, (text,)):
            return f"{python(text)}.{method}()"
        case Call("max" | "min" as function, (Var() as one, Var() as other)):
            sign = ">=" if function == "max" else "<="  # twice as fast as a call
            return f"({name(one)} if {name(one)} {sign} {name(other)} else {name(other)})"
        case Call("if", (condition, then, other)):
            return f"({python(then)} if {python(condition)} else {python(other)})"
        case Call("max" | "min" | "abs" | "floor" | "ceil" | "substr" as function, args):
            return f"{function}({', '.join(map(python, args))})"
        case Call(function, args) if function == FAILURE:
            names = ", ".join(sorted({name(v) for v in variables(args)}))
            parts = ", ".join(f"lambda: {python(arg)}" for arg in args)
            return f"(lambda {names}: failure({parts}))({names})"
        case Call(function, args) if function.startswith(INTERNAL):
            return f"{function.removeprefix(INTERNAL)}({', '.join(map(python, args))})"
        case Call(function, args) if function not in FUNCTIONS:
            return f"{spelled('python', function)}({', '.join(map(python, args))})"
        case Call(function, args):
            return f"call_{function}({', '.join(map(python, args))})"
        case Agg():
            raise ValueError("an aggregate is not a value")


def test(literal: Comparison | Atom) -> str:
    match literal:
        case Comparison(op, left, right):
            return f"{python(left)} {_COMPARISONS[op]} {python(right)}"
        case Atom("contains", (text, part)):
            return f"{python(part)} in {python(text)}"
        case Atom("starts_with", (text, start)):
            return f"{python(text)}.startswith({python(start)})"
        case Atom("matches", (text, pattern)):
            return f"matches({python(text)}, {python(pattern)})"
        case _:
            raise ValueError(f"{literal.pred} is not a test")
