"""What `matches` finds, whichever engine looks: text, pattern, whether it is found."""

from __future__ import annotations

DIALECT = [
    ("stream", "r.a", True),
    ("stream", "^r", False),
    ("a\n", "a$", False),  # the end is the end, also before a line end
    ("a\nb", "^b", False),
    ("a\nb", "(?m)^b$", True),
    ("a\nb", "a.b", False),
    ("a\nb", "(?s)a.b", True),
    ("a\u2028b", "a.b", True),  # a character like others
    ("é", "^.$", True),
    ("é", r"\w", False),  # classes with a backslash are of ASCII
    ("٣", r"\d", False),
    ("é", r"\p{L}", True),
    ("É", "(?i)é", True),
    ("a\x00b", "^a.b$", True),
    ("", "^$", True),
]
