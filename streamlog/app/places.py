"""Where a run reads and writes: no two of these places may be the same, or one inside the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import click

from streamlog.diagnostics import did_you_mean
from streamlog.runtime.addresses import DELTA, JDBC
from streamlog.runtime.data_files import can_match, is_pattern

Named = Sequence[tuple[str, str]]  # what it is for, and the place


def pairs(
    given: Sequence[str], option: str, known: Sequence[str], *, once: bool = False
) -> list[tuple[str, str]]:
    """The names and places of an option; `once`: each name at most once."""
    found: list[tuple[str, str]] = []
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise click.UsageError(f"{option} takes NAME=PATH, not '{text}'")
        check_known([name], option, known)
        if once and name in dict(found):
            raise click.UsageError(f"{option} {name} is given twice")
        found.append((name, path))
    return found


def check_known(names: Iterable[str], option: str, known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            what = "output" if option == "--output" else "input"
            hint = f"did you mean '{near}'?" if near else f"it has {', '.join(known) or 'none'}"
            raise click.UsageError(f"{option}: the program has no {what} '{name}'; {hint}")


def check_places(inputs: Named, outputs: Named, checkpoint: str | None) -> None:
    """Refuse to write where something else is read or written."""
    written = list(outputs)
    if checkpoint is not None:
        written.append(("--checkpoint", checkpoint))
    for (one, place), (other, elsewhere) in combinations(written, 2):
        if _meet(place, elsewhere):
            raise click.UsageError(f"{one} and {other} both write to '{elsewhere}'")
    for option, place in written:
        for source, elsewhere in inputs:
            if _meet(place, elsewhere):
                raise click.UsageError(f"{option} would write to '{place}', where {source} is read")


def _meet(place: str, other: str) -> bool:
    one, two = _located(place), _located(other)
    if isinstance(one, str) or isinstance(two, str):
        both = f"{one}/", f"{two}/"
        return both[0].startswith(both[1]) or both[1].startswith(both[0])
    if one.is_relative_to(two) or two.is_relative_to(one):
        return True
    if any(is_pattern(a) and can_match(a, b) for a, b in ((one, two), (two, one))):
        return True
    try:
        return one.samefile(two)  # also by another hard link
    except OSError:
        return False


def _located(place: str) -> Path | str:
    """A path of this machine without links, or an address without options."""
    if place.startswith("file:/"):
        place = unquote(urlsplit(place).path)
    if place.startswith(JDBC):
        base, _, options = place.partition("?")
        return f"{base}/{dict(parse_qsl(options)).get('table', '')}"
    place = place.removeprefix(DELTA)
    if "://" not in place:
        try:
            return Path(place).resolve()
        except (OSError, RuntimeError):
            raise click.UsageError(
                f"'{place}' is not a valid path: its links are a cycle"
            ) from None
    return place.partition("?")[0].rstrip("/")
