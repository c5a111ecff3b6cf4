"""Every code the compiler can give, and its page: `streamlog explain SL0401`.

Severities and titles stand here; the pages, each with a program that gives the code and one that
does not, are files in `pages/`, read when someone asks for them. `docs/diagnostics.md` is
generated from both, and a test compiles every program.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from attrs import frozen


class Severity(enum.Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    def __str__(self) -> str:
        return self.value


@frozen
class Code:
    code: str
    severity: Severity
    title: str
    explanation: str
    bad: str
    good: str


_TABLE = (
    # ---- SL01: reading the text
    ("SL0101", "error", "the text is not a statement"),
    ("SL0102", "error", "a string or comment that never ends"),
    ("SL0103", "error", "nested too deeply"),
    ("SL0104", "error", "an invalid literal"),
    ("SL0105", "error", "a declaration that contradicts itself"),
    ("SL0106", "error", "an aggregate outside a rule head"),
    ("SL0107", "error", "a file that cannot be used"),
    ("SL0108", "error", "a variable beside an aggregate that is not grouped by"),
    ("SL0109", "error", "a limit that does not rank"),
    # ---- SL02: names
    ("SL0201", "error", "a predicate with two arities"),
    ("SL0202", "error", "a predicate declared twice"),
    ("SL0203", "error", "a rule for an input"),
    ("SL0204", "error", "an unknown predicate"),
    ("SL0205", "error", "an unknown function, or one called wrongly"),
    ("SL0206", "error", "a built-in redefined"),
    ("SL0207", "warning", "an undeclared input that looks like a typo"),
    ("SL0208", "error", "a name with two meanings"),
    ("SL0209", "error", "a name that another file does not offer"),
    # ---- SL03: types and safety
    ("SL0301", "error", "mismatched types"),
    ("SL0302", "error", "a variable that nothing binds"),
    ("SL0303", "error", "an answer with an open position"),
    ("SL0304", "error", "a call that leaves an open position open"),
    ("SL0305", "error", "a fact with a variable"),
    ("SL0306", "error", "a head without a timestamp"),
    ("SL0307", "error", "an aggregate as the timestamp"),
    ("SL0308", "error", "a timestamp of the wrong type"),
    ("SL0309", "error", "a pattern that is not a regular expression"),
    ("SL0310", "error", "a value that may be missing"),
    # ---- SL04: time
    ("SL0401", "error", "a rule that would wait forever"),
    ("SL0402", "error", "a cycle through negation at one instant"),
    ("SL0403", "error", "a recursion that looks ever further ahead"),
    ("SL0404", "error", "a negation that depends on its own future"),
    ("SL0405", "error", "an offset beyond 64 bits"),
    ("SL0406", "error", "too many cases"),
    ("SL0407", "error", "an aggregate inside its own recursion"),
    # ---- SL05: worth knowing
    ("SL0501", "warning", "a recursion that may never end"),
    ("SL0502", "warning", "history that is kept forever"),
    ("SL0503", "warning", "a rule that can never fire"),
    ("SL0504", "warning", "a relation that is never read"),
    ("SL0505", "warning", "an aggregate that its trigger multiplies"),
    ("SL0506", "warning", "an absence that nothing reports in silence"),
    # ---- SL06: tests
    ("SL0601", "error", "a test that cannot be run"),
    # ---- SL07: review
    ("SL0701", "error", "an annotation that is not one of a rule"),
    ("SL0702", "warning", "a suppression that suppresses nothing"),
    ("SL0703", "warning", "a suppression without a reason"),
    # ---- SL08: states
    ("SL0801", "error", "a state read as an event, or an event as a state"),
    ("SL0802", "error", "a state that nothing begins"),
    ("SL0803", "error", "a state that rests on itself"),
    ("SL0804", "error", "a state that forgets what ends it"),
)

SEVERITIES = {code: Severity(severity) for code, severity, _ in _TABLE}
_TITLES = {code: title for code, _, title in _TABLE}
_PAGES = Path(__file__).parent / "pages"
_PAGE = re.compile(
    r"# (?P<heading>[^\n]+)\n\n"
    r"(?P<explanation>.+\n)\n"
    r"Gives this code:\n\n```\n(?P<bad>.+\n)```\n\n"
    r"Does not:\n\n```\n(?P<good>.+\n)```\n",
    re.DOTALL,
)


class _Codes(Mapping[str, Code]):
    """All codes in order; a page is read at the first look."""

    def __getitem__(self, code: str) -> Code:
        return _read(code)

    def __contains__(self, code: object) -> bool:
        return code in SEVERITIES

    def __iter__(self) -> Iterator[str]:
        return iter(SEVERITIES)

    def __len__(self) -> int:
        return len(SEVERITIES)


@cache
def _read(code: str) -> Code:
    severity, title = SEVERITIES[code], _TITLES[code]
    page = _PAGE.fullmatch((_PAGES / f"{code}.md").read_text(encoding="utf-8"))
    if page is None or page["heading"] != f"{code}: {title}":
        raise ValueError(f"the page of {code} is not in order")
    return Code(code, severity, title, page["explanation"], page["bad"], page["good"])


CODES = _Codes()
