"""A test in other orders: whatever the declared slack allows must give the same answers.

Rows move only between one barrier (`advance`, `end`, `expect`, a row that must be late or
rejected) and the next. Within a stream a row comes after a later one only if it is not more than
the slack earlier; the rows of different streams interleave freely, as far as `idle` and `horizon`
let them. And what has come is evaluated at random moments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from random import Random

from attrs import frozen

from streamlog.app.test_script import Answers, Check, Cut, Event, Push, Script, StepError
from streamlog.runtime.executor import Row
from streamlog.runtime.progress import Clock, Progress
from streamlog.runtime.query import in_order

ORDERS = 6  # of a test of ordinary size,
FEW_ORDERS = 2  # and of one with more rows than
MANY = 2_000
CUTS = 300  # on average at most; each costs a step
DRAWS = 10  # for each of them at most, until it is a permitted one
SHRINKING = 500  # runs at most, to find a shorter order


@frozen
class Disorder:
    """An order that gives other answers than the one written, as short as it could be made."""

    order: tuple[Event, ...]  # up to where the answers differ
    check: Check | None  # the expectation that sees it; None at the end of the test
    missing: tuple[tuple[str, Row], ...] = ()
    unexpected: tuple[tuple[str, Row], ...] = ()
    error: str = ""


def shuffled(script: Script, written: Sequence[Answers], seed: str) -> int | Disorder:
    """How many other orders gave the answers of the written one; or one that did not."""
    random = Random(seed)  # a text gives the same numbers in every process
    pushes = sum(isinstance(e, Push) for e in script.events)
    if not pushes:
        return 0
    tried = 0
    for _ in range(DRAWS * ORDERS):
        order = _drawn(script, random)
        try:
            found = _difference(script, order, written)
        except _ForbiddenError:
            continue
        if found:
            return _Shrinking(script, order, found).shortest()
        tried += 1
        if tried == (FEW_ORDERS if pushes > MANY else ORDERS):
            break
    return tried


class _ForbiddenError(Exception):
    """An order that makes rows late, or unbelievable, which as written were not."""


# ------------------------------------------------------------------------------ drawing one


def _drawn(script: Script, random: Random) -> list[Event]:
    order: list[Event] = []
    often = min(random.choice((0.0, 0.2, 0.5, 1.0)), CUTS / len(script.events))
    for movable, events in groupby(script.events, _is_movable):
        pushes = [e for e in events if isinstance(e, Push)] if movable else []
        for event in _mixed(script, pushes, random) if movable else events:
            order.append(event)
            if random.random() < often:
                order.append(Cut())
    return order


def _is_movable(event: Event) -> bool:
    return isinstance(event, Push) and event.fate == "accepted"


def _mixed(script: Script, pushes: Sequence[Push], random: Random) -> Iterator[Push]:
    clocks = Progress.of(script.program).clocks
    queues = {s: _queue(clocks[s], pushes, random) for s in sorted({p.pred for p in pushes})}
    while queues:
        free = [s for s in queues if _may_come(s, queues, clocks)]
        stream = random.choice(free) if free else min(queues, key=lambda s: queues[s][-1][1])
        push, _ = queues[stream].pop()
        if not queues[stream]:
            del queues[stream]
        yield push


_Queue = list[tuple[Push, int]]  # last first, each row with the earliest time from it on


def _queue(clock: Clock, pushes: Sequence[Push], random: Random) -> _Queue:
    """A stream's rows, each delayed by up to the slack."""
    mine = [p for p in pushes if p.pred == clock.stream]
    drawn = [(p.row[0] + random.randint(0, clock.slack), random.random(), p) for p in mine]
    drawn.sort(key=lambda d: d[:2], reverse=True)
    backwards = [p for _, _, p in drawn]
    return list(zip(backwards, accumulate((p.row[0] for p in backwards), min), strict=True))


def _may_come(stream: str, queues: dict[str, _Queue], clocks: dict[str, Clock]) -> bool:
    """Whether no other stream would be taken to be silent while it still has rows to come."""
    clock = clocks[stream]
    progress = queues[stream][-1][0].row[0] - clock.slack
    return all(
        other.idle is None or other.type is not clock.type or progress - other.idle <= queue[-1][1]
        for other, queue in ((clocks[s], q) for s, q in queues.items() if s != stream)
    )


# ---------------------------------------------------------------------------- comparing two


def _played(script: Script, order: Sequence[Event]) -> Iterator[tuple[list[Event], Event, Answers]]:
    """The answers at each expectation and at the end, and what has happened until then."""
    done: list[Event] = []
    for played in script.play([*order, end := Cut()]):
        event = played.event
        if done or not isinstance(event, Cut):  # with nothing there is nothing to evaluate
            done.append(event)
        if isinstance(event, Push) and played.fate != event.fate:
            raise _ForbiddenError
        if isinstance(event, Check) or event is end:
            yield done, event, script.answers(played.engine)


def _difference(
    script: Script, order: Sequence[Event], written: Sequence[Answers]
) -> Disorder | None:
    done: list[Event] = []
    try:
        for (done, event, answers), wanted in zip(_played(script, order), written, strict=True):
            if answers != wanted:
                return Disorder(
                    tuple(e for e in done[:-1] if not isinstance(e, Check)),
                    event if isinstance(event, Check) else None,
                    _less(wanted, answers),
                    _less(answers, wanted),
                )
    except StepError as error:
        happened = tuple(e for e in order if not isinstance(e, Check))
        return Disorder(happened, None, error=error.reason)
    return None


def _less(these: Answers, those: Answers) -> tuple[tuple[str, Row], ...]:
    return tuple((p, row) for p in sorted(these) for row in in_order(these[p] - those[p]))


# --------------------------------------------------------------------------- making it short


class _Shrinking:
    """Leaves out rows and evaluations, then puts rows back in order, while the answers differ."""

    def __init__(self, script: Script, order: list[Event], found: Disorder) -> None:
        self.script, self.order, self.found = script, order, found
        self.runs = 0

    def shortest(self) -> Disorder:
        size = len(self.order)
        while size := size // 2:
            self._leave_out(size)
        while self._leave_out(1):
            pass
        while self._put_in_order():
            pass
        return self.found

    def _leave_out(self, size: int) -> bool:
        smaller, at = False, 0
        while at < len(self.order):
            part = self.order[at : at + size]
            kept = [e for e in part if not (isinstance(e, Cut) or _is_movable(e))]
            rest = [*self.order[:at], *kept, *self.order[at + size :]]
            if len(kept) < len(part) and self._still(rest):
                smaller = True
                at += len(kept)
            else:
                at += size
        return smaller

    def _put_in_order(self) -> bool:
        for at, (one, two) in enumerate(pairwise(self.order)):
            if not (isinstance(one, Push) and isinstance(two, Push)):
                continue
            if _is_movable(one) and _is_movable(two) and one.place > two.place:
                swapped = [*self.order[:at], two, one, *self.order[at + 2 :]]
                if self._still(swapped):
                    return True
        return False

    def _still(self, order: list[Event]) -> bool:
        """Whether this order, too, differs from the same events as written."""
        self.runs += 1
        if self.runs > SHRINKING:
            return False
        try:
            events = self.script.as_written(order)
            written = [answers for _, _, answers in _played(self.script, events)]
            found = _difference(self.script, order, written)
        except (_ForbiddenError, StepError):
            return False
        if found:
            self.order, self.found = order, found
        return found is not None
