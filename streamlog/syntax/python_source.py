"""The text of a Python file from which a program has a function."""

from __future__ import annotations

from attrs import frozen

from streamlog.syntax.ast import Function


@frozen
class PythonSource:
    """It is read when a program is about to run, and goes to other machines as text."""

    function: Function
    text: str
