"""How data write times: `time(ms)`, `time("%d.%m.%Y %H:%M", "Europe/Berlin")` in a declaration."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from streamlog.diagnostics import did_you_mean, finding
from streamlog.syntax import literals
from streamlog.syntax.scan import TEXT
from streamlog.syntax.time_form import OF_TWO, TIME_UNITS, TimeForm
from streamlog.syntax.tokens import Refused, Tokens

# Python's, without those that depend on the place or on each other.
DIRECTIVES = tuple(f"%{letter}" for letter in "YymbBdjaAHIpMSfz%")
KNOWN_DIRECTIVES = f"what it may have is {' '.join(DIRECTIVES)}"
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_UNIT_SLIPS = {**literals.UNIT_SLIPS, "nanos": "ns", "nanoseconds": "ns", "nsec": "ns"}


class Form(NamedTuple):
    """A form, and the token behind it."""

    form: TimeForm
    end: int


def form(tokens: Tokens, start: int, found: list[Any]) -> Form:
    """`found`: the tokens between the parentheses, and the closing one."""
    *parts, last = found
    end = last + 1
    texts = [at for at in parts if tokens[at] == TEXT]
    if len(parts) == 1 and not texts:
        return Form(TimeForm(unit=_unit(tokens, parts[0])), end)
    of_two = ""
    if len(parts) == 3 and len(texts) == 2 and parts[2] not in texts:
        of_two = _of_two(tokens, parts.pop())
    if len(texts) != len(parts) or len(parts) > 2:
        example = '`time("%d.%m.%Y %H:%M", "Europe/Berlin")`'
        raise _refused(
            tokens,
            start,
            end,
            "a time has a unit, or a format and perhaps a zone",
            f"write `time(ms)` or {example}",
        )
    format_ = _format(tokens, parts[0])
    zone = _zone(tokens, parts[1]) if len(parts) == 2 else ""
    if zone and "%z" in directives(format_):
        reason = "the format has the offset `%z`, so there is nothing for a zone to say"
        raise _refused(tokens, parts[1], parts[1] + 1, reason, "leave out the zone, or `%z`")
    return Form(TimeForm(format=format_, zone=zone, of_two=of_two), end)


def directives(format_: str) -> list[str]:
    return [f"%{match[1]}" for match in _DIRECTIVE.finditer(format_)]


def unknown_directive(format_: str) -> str | None:
    return next((d for d in directives(format_) if d not in DIRECTIVES), None)


def zone_of(name: str) -> ZoneInfo | None:
    """A zone by its name; None if there is none. Names are those of IANA."""
    return ZoneInfo(name) if name in _names() else None


def near_zone(name: str) -> str:
    """What may be meant by the name of a zone that does not exist."""
    guess = did_you_mean(name, _names())
    return f'did you mean "{guess}"?' if guess else 'write it like "Europe/Berlin", or "UTC"'


@cache
def _names() -> frozenset[str]:
    """Listing them reads folders, which takes milliseconds."""
    return frozenset(available_timezones())


def _unit(tokens: Tokens, at: int) -> str:
    word = tokens.text(at)
    if word in TIME_UNITS:
        return word
    guess = _UNIT_SLIPS.get(word)
    if guess not in TIME_UNITS:
        guess = did_you_mean(word, TIME_UNITS)
    known = f"the units of a time are {', '.join(TIME_UNITS)}; a format is in quotes"
    help = f"did you mean `time({guess})`?" if guess else known
    raise _refused(tokens, at, at + 1, f"a time is not counted in `{word}`", help)


def _format(tokens: Tokens, at: int) -> str:
    format_ = literals.unquoted(tokens.text(at), tokens.span(at, at + 1))
    used = directives(format_)
    reason = help = ""
    if unknown := unknown_directive(format_):
        reason = f"`{unknown}` means nothing in the format of a time"
        help = KNOWN_DIRECTIVES
    elif twice := [d for d in dict.fromkeys(used) if d != "%%" and used.count(d) > 1]:
        reason = f"`{twice[0]}` is in this format twice"
    elif not {"%Y", "%y"} & {*used}:
        reason, help = "a time in this format has no year", "add `%Y`"
    elif "%j" not in used and not ("%d" in used and {"%m", "%b", "%B"} & {*used}):
        reason, help = "a time in this format has no day", "add `%m` and `%d`"
    elif ("%I" in used) != ("%p" in used):
        reason = "`%I`, an hour up to 12, needs `%p`, and `%p` needs `%I`"
        help = "an hour up to 23 is `%H`"
    if reason:
        raise _refused(tokens, at, at + 1, reason, help)
    return format_


def _zone(tokens: Tokens, at: int) -> str:
    name = literals.unquoted(tokens.text(at), tokens.span(at, at + 1))
    if zone_of(name) is None:
        raise _refused(tokens, at, at + 1, f'there is no time zone "{name[:40]}"', near_zone(name))
    return name


def _of_two(tokens: Tokens, at: int) -> str:
    word = tokens.text(at)
    if word not in OF_TWO:
        reason = f"`{word}` does not say which of two times is meant"
        raise _refused(tokens, at, at + 1, reason, "write `first` or `last`")
    return word


def _refused(tokens: Tokens, start: int, end: int, message: str, help: str) -> Refused:
    span = tokens.span(start, end)
    return Refused(finding("SL0105", message, span, help=(help,) if help else ()))
