"""The options that say when an evaluation is stopped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from streamlog.runtime.executor import Limits

_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}

F = TypeVar("F", bound=Callable[..., Any])


def bytes_of(text: str) -> int | None:
    """The number in `512MB`, `1.5GB`; None if it is not an amount of memory."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]+)", text.strip(), re.IGNORECASE | re.ASCII)
    factor = _UNITS.get(match[2].upper()) if match else None
    return int(float(match[1]) * factor) or None if match and factor else None


class _Memory(click.ParamType):  # type: ignore[type-arg]  # only newer click has one
    name = "memory"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        found = bytes_of(value)
        if found is None:
            self.fail(f"'{value}' is not a valid size: write 512MB or 4GB", param, ctx)
        return found


_NUMBER = click.IntRange(min=1)
_MEMORY = "Stop a process that needs more memory, as in 4GB.  [default: half of what there is]"
_OPTIONS = (
    ("max_rounds", "N", _NUMBER, "Stop a recursion after N rounds at one timestamp."),
    ("max_rows", "N", _NUMBER, "Stop a recursion that finds N rows in one step."),
    ("max_seconds", "N", click.FloatRange(min=0, min_open=True), "Stop a step that takes longer."),
    ("max_memory", "SIZE", _Memory(), _MEMORY),
)


def limit_options(command: F) -> F:
    """The four options; `limits_of` takes what they give."""
    for name, metavar, kind, text in reversed(_OPTIONS):
        option = f"--{name.replace('_', '-')}"
        command = click.option(option, metavar=metavar, type=kind, help=text)(command)
    return command


def limits_of(options: dict[str, Any], otherwise: Limits | None = None) -> Limits:
    """The limits that options ask for, which are taken out; `otherwise` has the others."""
    from attrs import evolve

    from streamlog.runtime.executor import Limits

    given = {name.removeprefix("max_"): options.pop(name) for name, *_ in _OPTIONS}
    wanted = {name: value for name, value in given.items() if value is not None}
    return evolve(otherwise or Limits(), **wanted)
