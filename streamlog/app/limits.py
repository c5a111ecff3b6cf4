"""The options that say when an evaluation is stopped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from streamlog.runtime.executor import Limits

_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
NAMES = ("max_rounds", "max_rows", "max_seconds", "max_memory")

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
            self.fail(f"'{value}' is not an amount of memory: write it as 512MB or 4GB", param, ctx)
        return found


_OPTIONS = (
    click.option(
        "--max-rounds",
        metavar="N",
        type=click.IntRange(min=1),
        help="Stop a recursion after so many rounds without time moving on.  [default: no limit]",
    ),
    click.option(
        "--max-rows",
        metavar="N",
        type=click.IntRange(min=1),
        help="Stop a recursion when it has found so many rows in a step.",
    ),
    click.option(
        "--max-seconds",
        metavar="N",
        type=click.FloatRange(min=0, min_open=True),
        help="Stop a step that takes longer.",
    ),
    click.option(
        "--max-memory",
        metavar="SIZE",
        type=_Memory(),
        help="Stop when a process needs more, as in 4GB.  [default: half of what there is]",
    ),
)


def limit_options(command: F) -> F:
    """The four options; `limits_of` takes what they give."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def limits_of(options: dict[str, Any], otherwise: Limits | None = None) -> Limits:
    """The limits that options ask for, which are taken out; `otherwise` has the others."""
    from attrs import evolve

    from streamlog.runtime.executor import Limits

    given = {name.removeprefix("max_"): options.pop(name) for name in NAMES}
    wanted = {name: value for name, value in given.items() if value is not None}
    return evolve(otherwise or Limits(), **wanted)
