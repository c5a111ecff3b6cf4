"""Addresses (`kafka://host:port/topic?option=value`), and in messages: options may be secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl

JDBC, DELTA = "jdbc:", "delta:"
HIDDEN = "…"
_LOGIN = re.compile(r"://([^/@\s]+)@")
# Parts of a value such as `…LoginModule required username="u" password="p";`
_QUOTED = re.compile(r"""["']([^"']+)["']|=([^\s"';]+)""")
_SECRET = re.compile(r"pass|secret|token|key|credential", re.IGNORECASE)
_SHORTEST = 3  # what is shorter would be found everywhere


def is_address(place: str) -> bool:
    """Whether it is not a path of this machine."""
    return "://" in place or place.startswith((JDBC, DELTA))


def redacted(message: str, addresses: Iterable[str]) -> str:
    """The message without the options of these addresses, the settings of clients in them, and
    what stands before the `@` of a host."""
    found: set[str] = set()
    for address in addresses:
        _, _, options = address.partition("?")
        found |= {options, *_LOGIN.findall(address)}
        for key, value in parse_qsl(options):
            # Those of Spark's connectors have no dots; those of databases are no secrets by name.
            if "." in key or _SECRET.search(key):
                found |= {value, *(one or other for one, other in _QUOTED.findall(value))}
    for secret in sorted(found, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            message = message.replace(secret, HIDDEN)
    return message
