"""Where data have the values of a column, as a path: `meta.user`, `items[].sku`."""

from __future__ import annotations

import re

from attrs import frozen

_PLAIN = re.compile(r"[^.`\[\]\s](?:[^.`\[\]]*[^.`\[\]\s])?")
_STEP = re.compile(rf"(?:`((?:[^`]|``)+)`|({_PLAIN.pattern}))(\[\])?(\.|$)")


@frozen
class DataPath:
    """The name of a field, and the names of fields in it; perhaps in the elements of a list."""

    keys: tuple[str, ...]
    # A list lies behind so many of the names; the others are in its elements. 0: there is none.
    to_list: int = 0

    def __attrs_post_init__(self) -> None:
        if not self.keys or not all(self.keys) or not 0 <= self.to_list <= len(self.keys):
            raise ValueError("a path has names, and perhaps a list after one of them")

    @staticmethod
    def of(text: str) -> DataPath:
        """What a program writes; a ValueError says what is wrong with it."""
        keys: list[str] = []
        to_list = end = 0
        while end < len(text) or not keys or text.endswith("."):
            step = _STEP.match(text, end)
            if step is None:
                raise ValueError(_problem(text[end:]))
            quoted, plain, brackets, _ = step.groups()
            keys.append(quoted.replace("``", "`") if quoted else plain)
            if brackets and to_list:
                raise ValueError("a path leads through one list at most")
            to_list = len(keys) if brackets else to_list
            end = step.end()
            if not step[4]:
                break
        return DataPath(tuple(keys), to_list)

    @property
    def list_keys(self) -> tuple[str, ...]:
        """The path of the list."""
        return self.keys[: self.to_list]

    @property
    def inner(self) -> tuple[str, ...]:
        """The names in an element of the list."""
        return self.keys[self.to_list :]

    @property
    def flat(self) -> str:
        """The name of the column in a file that has no fields in fields."""
        return ".".join(self.keys)

    def __str__(self) -> str:
        to_list = f"{path_text(self.list_keys)}[]" if self.to_list else ""
        inner = path_text(self.inner)
        return f"{to_list}.{inner}" if to_list and inner else to_list or inner


def path_text(keys: tuple[str, ...]) -> str:
    return ".".join(map(_quoted, keys))


def _quoted(key: str) -> str:
    return key if _PLAIN.fullmatch(key) else f"`{key.replace('`', '``')}`"


def _problem(rest: str) -> str:
    if not rest or rest[0] == ".":
        return "a name is missing in this path"
    if re.match(r"[^.`]*\[[0-9*]+\]", rest):
        return "a path cannot pick one element of a list: `[]` stands for all of them"
    return f"this path cannot be read from {rest[:20]!r} on"
