"""Text to tokens, statements and comments.

Each token has a *kind* of one character, so that a statement is also a short string of kinds and
the grammar's patterns work on that. The kinds are listed below.

`%` and `//` are operators when, on one line, a variable, a number or `)` stands before them and a
variable, a number, `(` or a function call after them that no further word follows; a `)` that
may end a goal counts only if an operator or comparison follows. Elsewhere they begin a comment.

`@severity high` where a statement may begin is an annotation, and ends with its line.
"""

from __future__ import annotations

import re

from attrs import frozen

from streamlog.diagnostics import Diagnostic, Source, Span, finding

MAX_NESTING = 32
MAX_PROBLEMS = 100

# Words with a meaning somewhere; each is an ordinary word everywhere else.
KEYWORDS = {
    "stream": "d",
    "table": "d",
    "output": "o",
    "export": "o",
    "extend": "o",
    "use": "u",
    "function": "k",
    "test": "t",
    "from": "f",
    "progress": "G",
    "where": "h",
    "arrives": "y",
    "limit": "m",
    "offset": "s",
    "by": "b",
    "asc": "c",
    "desc": "q",
    "per": "p",
    "arrive": "a",
    "late": "l",
    "reject": "r",
    "given": "g",
    "advance": "v",
    "end": "e",
    "expect": "x",
    "none": "z",
    "rejected": "j",
    "state": "K",
}
# Words of a declaration of a state; ordinary words everywhere else.
STATE_WORDS = {"since": "O", "on": "O", "while": "O", "until": "U", "for": "F"}
# Words behind a goal or a term: `burning(A) at T`, `burning(A) from S to E`, `T every 1d`.
TIME_WORDS = ("at", "from", "to", "every", "align")
# Words before `(A, B)` or `[A, B]`.
ALLEN = (
    "before",
    "meets",
    "overlaps",
    "starts",
    "during",
    "finishes",
    "equals",
    "after",
    "met_by",
    "overlapped_by",
    "started_by",
    "contains",
    "finished_by",
    "intersects",
)
WINDOW = "over"
RESERVED = {"not": "n", "true": "B", "false": "B"}
WORDS = "w" + "".join(sorted({*KEYWORDS.values(), *STATE_WORDS.values()}))
VARIABLE, NUMBER, TIME, TEXT, BOOL, STRANGE = "VNTSBX"
QUALIFIED = "D"  # a predicate of a file that is used under an alias: `auth.failed`
ARROW, QUERY, RANGE, NOT, COMPARISON, IN = "RQEn=i"
TIME_WORD, INTERVAL_WORD = "IJ"  # before a time; before an interval
STATE = "K"
ANNOTATION = "A"

_SYMBOLS = {
    **{c: c for c in "(),;.:{}[]<>=+-*"},
    **dict.fromkeys(("!=", "<=", ">=", "≤", "≥", "≠"), COMPARISON),
    **dict.fromkeys(("!", "~", "¬"), NOT),
    **dict.fromkeys(("<-", ":-"), ARROW),
    **dict.fromkeys(("?", "?-"), QUERY),
    "..": RANGE,
    "++": "+",
    "/": "*",
}
_WORD_KINDS = {**KEYWORDS, **RESERVED}

_TOKEN = re.compile(
    r"""\s*(?:
    ([^\W\d]\w*(?:\.[^\W\d]\w*)*)                            # 1 a name, perhaps qualified
  | ([(),;{}\[\]*~¬≤≥≠]|\+\+?|\.\.?|<[-=>]?|>=?|=(?:\\=|[=<>])?|!=?|:[-=]?|->?|\?-?
     |/(?![/*])|&&?|\|\|?|\\[=+]?)                            # 2 a symbol, or a slip for one
  | ([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\w*)              # 3 a number, perhaps with a unit
  | ("[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*')  # 4 a text
  | (%|//)                                                    # 5 a comment or an operator
  | (/\*[\s\S]*?\*/)                                          # 6 a comment
  | (@[0-9]+-[0-9]+-[0-9]+(?:T[0-9]+:[0-9]+(?::[0-9]+(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?
     (?![\w:])|@[\w:]*(?:[-+.][\w:]+)*)                       # 7 a timestamp
  | ("|'|/\*)                                                 # 8 what never ends
  | (\S)                                                      # 9 anything else
  )""",
    re.VERBOSE,
)
_OPERAND_FOLLOWS = re.compile(
    r"(?:[ \t]*[-(])*[ \t]*"
    r"(?:[^\W\d]\w*\(|(?:(?P<name>[^\W\d]\w*)|[0-9](?:[\w.]*\w)?|@[\w:]+(?:[-+.][\w:]+)*)"
    r"[ \t\r]*(?P<next>[^\n]?))"
)
_ANNOTATION = re.compile(r"@[^\W\d]\w*")
# `X in (a, b)`; everywhere else `in` is an ordinary word.
_IN_FOLLOWS = (VARIABLE, NUMBER, TIME, TEXT, BOOL, ")")
# A parenthesis, perhaps behind comments.
_OPENS = re.compile(r"(?:\s|(?:%|//)[^\n]*|/\*[\s\S]*?\*/)*\(")
_INTERVAL = re.compile(_OPENS.pattern.replace(r"\(", r"[\[(]"))
_QUOTED = re.compile(_OPENS.pattern.replace(r"\(", "[\"']"))
_INFIX = "+-*/%<>=!≤≥≠"
_OPERAND_ENDS = (VARIABLE, NUMBER, TIME, ")")
_OPERANDS = (*_OPERAND_ENDS, "]", TEXT, BOOL, QUALIFIED, "w", *KEYWORDS.values())
_GOAL_STARTS = (",", ";", ARROW, QUERY)


@frozen
class Comment:
    """A comment as written, with its `%`, `//` or `/* */`."""

    span: Span

    @property
    def text(self) -> str:
        return self.span.text.rstrip()


@frozen
class Scan:
    """The tokens of a text: the kinds as one string, and where each token starts and ends."""

    source: Source
    kinds: str
    starts: list[int]
    ends: list[int]
    statements: list[tuple[int, int]]  # token ranges, each with its final `.` or `}`
    comments: list[Comment]
    problems: list[tuple[int, Diagnostic]]  # what the scanner found, at which token


def scan(source: Source) -> Scan:
    """Never fails; what is wrong is in `problems`, in order of place."""
    scanner = _Scanner(source)
    scanner.run()
    return Scan(
        source,
        "".join(scanner.kinds),
        scanner.starts,
        scanner.ends,
        scanner.statements,
        scanner.comments,
        scanner.problems,
    )


class _Scanner:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.kinds: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.statements: list[tuple[int, int]] = []
        self.comments: list[Comment] = []
        self.problems: list[tuple[int, Diagnostic]] = []
        self.first = 0  # the first token of the current statement
        self.depth = 0  # open parentheses
        self.compared = False  # whether the current goal has had its comparison
        self.in_block = False
        self.in_body = False
        self.goal = 0  # the first token of the current goal or step
        self.around: list[int] = []  # of the goals around it, one for each open parenthesis

    def run(self) -> None:
        position: int | None = 1 if self.source.text.startswith("\ufeff") else 0
        while position is not None:
            position = self._run_from(position)
        if self.first < len(self.kinds):
            self._end_statement(len(self.kinds))

    def _run_from(self, position: int) -> int | None:
        """Scan up to the first line comment or broken token; where to go on, or None."""
        text, kinds, starts, ends = self.source.text, self.kinds, self.starts, self.ends
        for match in _TOKEN.finditer(text, position):
            group = match.lastindex
            if group is None:
                continue
            start, end = match.span(group)
            if self._annotation_ended(start):
                self._end_statement(len(kinds))
            if group == 1:
                word = match[1]
                if "." in word and not _is_qualified(word):
                    return self._first_word(start, word)
                kind = _WORD_KINDS.get(word) or _name_kind(word)
                if word == "in" and kinds and kinds[-1] in _IN_FOLLOWS and _OPENS.match(text, end):
                    kind = IN
                    self.compared = self.compared or self.depth == 0
                kind = self._in_place(kind, word, end)
                if kind == "v" and self.in_block:
                    self.compared = True  # `advance` is followed by a term, not by a goal
            elif group == 2:
                kind = _SYMBOLS.get(match[2], STRANGE)
                self._symbol(kind, start, end)
                continue
            elif group == 3:
                kind = NUMBER
            elif group == 4:
                kind = TEXT
            elif group == 5:
                if self._is_comment(start, end):
                    eol = text.find("\n", end)
                    end = len(text) if eol < 0 else eol
                    self.comments.append(Comment(Span(self.source, start, end)))
                    return end
                kind = "*"
            elif group == 6:
                self.comments.append(Comment(Span(self.source, start, end)))
                continue
            elif group == 7:
                kind = ANNOTATION if self._annotates(match[7]) else TIME
            elif group == 8:
                return self._unterminated(start, end)
            else:
                kind = STRANGE
            kinds.append(kind)
            starts.append(start)
            ends.append(end)
        return None

    def _in_place(self, kind: str, word: str, end: int) -> str:
        """The kind of a word that has a meaning in some places only."""
        kinds, text = self.kinds, self.source.text
        if self._declares_state() and word in STATE_WORDS and kinds[-1] in _OPERANDS:
            self.in_body = self.in_body or len(kinds) > self.first + 1
            return STATE_WORDS[word]
        if not kinds or kinds[-1] not in _OPERANDS or not (self.in_body or self.in_block):
            return kind
        if self.in_body and (word in ALLEN or word == WINDOW) and _INTERVAL.match(text, end):
            return INTERVAL_WORD
        if word == "to" and TIME_WORD not in kinds[self.goal :]:
            return kind
        expects = kinds[self.goal : self.goal + 1] == ["x"] and kinds[-1] not in "xz"
        is_time = self.in_body or (expects and word in ("from", "to"))
        if is_time and word in TIME_WORDS and not _QUOTED.match(text, end):
            return TIME_WORD
        return kind

    def _declares_state(self) -> bool:
        first = self.kinds[self.first : self.first + 2]
        return len(first) == 2 and first[0] == STATE and first[1] in WORDS + QUALIFIED

    def _first_word(self, start: int, words: str) -> int:
        """Of words and dots that are no name: a statement ends, the next begins without a blank."""
        word = words.split(".")[0]
        self.kinds.append(_WORD_KINDS.get(word) or _name_kind(word))
        self.starts.append(start)
        self.ends.append(start + len(word))
        return start + len(word)

    def _annotates(self, token: str) -> bool:
        return len(self.kinds) == self.first and _ANNOTATION.fullmatch(token) is not None

    def _annotation_ended(self, start: int) -> bool:
        """Whether what starts here stands below an annotation."""
        if self.kinds[self.first : self.first + 1] != [ANNOTATION]:
            return False
        return self.source.text.find("\n", self.ends[-1], start) >= 0

    def _symbol(self, kind: str, start: int, end: int) -> None:
        kinds = self.kinds
        if kind == "{":
            self._open_block()
        kinds.append(kind)
        self.starts.append(start)
        self.ends.append(end)
        if kind in "([":
            self.depth += 1
            self.around.append(self.goal)
            self.goal = len(kinds)
            if self.depth == MAX_NESTING + 1:
                self._problem(
                    "SL0103",
                    f"parentheses are nested more than {MAX_NESTING} deep",
                    Span(self.source, start, end),
                    "split the rule, or give the inner part a name of its own",
                )
        elif kind in ")]":
            self.depth = max(0, self.depth - 1)
            self.goal = self.around.pop() if self.around else self.goal
        elif kind == ".":
            if len(kinds) == self.first + 1 and self.statements and kinds[-2] == "}":
                self._end_statement(len(kinds), of=self.statements.pop()[0])
            elif self.in_block:
                self.depth, self.compared, self.goal = 0, False, len(kinds)
                self.around.clear()
            else:
                self._end_statement(len(kinds))
        elif kind == "}":
            self._end_statement(len(kinds))
        elif self.depth == 0:
            if kind in "<>=":
                self.compared = True
            elif kind in _GOAL_STARTS:
                self.compared = False
        if kind == ARROW or (kind == QUERY and len(kinds) == self.first + 1):
            self.in_body = True
        if kind in _GOAL_STARTS and kinds[self.goal : self.goal + 1] != ["x"]:
            self.goal = len(kinds)

    def _end_statement(self, end: int, of: int | None = None) -> None:
        self.statements.append((self.first if of is None else of, end))
        self.first, self.depth, self.compared, self.in_block = end, 0, False, False
        self.in_body, self.goal = False, end
        self.around.clear()

    def _open_block(self) -> None:
        kinds, here = self.kinds, len(self.kinds)
        if here == self.first:
            return
        if self.in_block and kinds[-2:] == ["t", TEXT] and kinds[-3] in (".", "{"):
            # A new test inside a test: the old one was not closed.
            self._end_statement(here - 2)
        self.in_block = self.in_block or kinds[-1] == TEXT or kinds[self.first] == "t"
        self.depth, self.compared, self.goal = 0, False, here + 1
        self.around.clear()

    def _is_comment(self, start: int, end: int) -> bool:
        text, kinds = self.source.text, self.kinds
        if not kinds or kinds[-1] not in _OPERAND_ENDS:
            return True
        if text.find("\n", self.ends[-1], start) >= 0:
            return True
        after = _OPERAND_FOLLOWS.match(text, end)
        if after is None or (after["name"] and _name_kind(after["name"]) != VARIABLE):
            return True
        follower = after["next"]
        if kinds[-1] == ")" and self.depth == 0 and not self.compared:
            return not follower or follower not in _INFIX
        return bool(follower) and follower not in _INFIX and follower not in "),;."

    def _unterminated(self, start: int, end: int) -> int:
        """A comment runs to the end of the file, a text to the end of its line."""
        text = self.source.text
        if text[start] == "/":
            place = Span(self.source, start, end)
            self._problem("SL0102", "this comment never ends", place, "close it with `*/`")
            return len(text)
        eol = text.find("\n", start)
        rest = text[start : len(text) if eol < 0 else eol].rstrip()
        quote = text[start]
        self._problem(
            "SL0102",
            "this text never ends",
            Span(self.source, start, end),
            f"close it with `{quote}` on the same line; write a line break as `\\n`",
        )
        self.kinds.append(STRANGE)
        self.starts.append(start)
        self.ends.append(start + len(rest))
        if rest.endswith(".") and not self.in_block:
            self._end_statement(len(self.kinds))
        return start + len(rest)

    def _problem(self, code: str, message: str, span: Span, help: str) -> None:
        if len(self.problems) > MAX_PROBLEMS:
            return
        # A problem with a comment belongs to the place behind the last token.
        at = max(0, len(self.kinds) - (code == "SL0103"))
        self.problems.append((at, finding(code, message, span, help=help)))


def _is_qualified(name: str) -> bool:
    return all(_name_kind(word) == "w" and word not in RESERVED for word in name.split("."))


def _name_kind(word: str) -> str:
    if "." in word:
        return QUALIFIED
    first = word[0]
    if not word.isascii() and not word.isidentifier():
        return STRANGE
    return VARIABLE if first == "_" or first.isupper() else "w"
