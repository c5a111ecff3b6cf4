"""The page of a code as Markdown, and all of them: `python -m streamlog.app.pages`."""

from __future__ import annotations

import sys

from streamlog.codes import CODES, Code

_GROUPS = {
    "SL01": "Reading the text",
    "SL02": "Names",
    "SL03": "Types and safety",
    "SL04": "Time",
    "SL05": "Worth knowing",
    "SL06": "Tests",
    "SL07": "Review",
    "SL08": "States",
}

_INTRODUCTION = """\
<!-- Generated from streamlog/pages by `python -m streamlog.app.pages`. Do not edit. -->

# Diagnostics

Every finding of `streamlog check` has one of these codes; `streamlog explain CODE` prints the
same page in the terminal. Errors refuse the program; warnings do not.
"""


def page(code: Code, heading: str = "#") -> str:
    """Title, explanation, a program that gives the code and one that does not."""
    parts = [f"{heading} {code.code}: {code.title}", f"*{code.severity}*", code.explanation.strip()]
    for title, program in (("Gives this code", code.bad), ("Does not", code.good)):
        if program.strip():
            parts += [f"{title}:", f"```\n{program.strip()}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


def all_pages() -> str:
    """The text of docs/diagnostics.md."""
    parts = [_INTRODUCTION]
    group = ""
    for code in CODES.values():
        if (prefix := code.code[:4]) != group:
            group = prefix
            parts.append(f"## {prefix}: {_GROUPS[prefix]}\n")
        parts.append(page(code, "###"))
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(all_pages())
