"""The dot commands of a session."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeAlias

from attrs import evolve, frozen
from rich.console import RenderableType
from rich.text import Text

from streamlog.analysis.schema import Kind
from streamlog.app import show
from streamlog.app.answers import columns_of, fits
from streamlog.app.formats import count
from streamlog.app.java import on_spark
from streamlog.app.limits import bytes_of
from streamlog.app.render import render_page
from streamlog.app.repl_session import Message, Session
from streamlog.app.repl_show import note
from streamlog.app.repl_timeline import arities, timeline
from streamlog.app.repl_why import why_tree
from streamlog.app.tables import flat, plain_table, titled_table
from streamlog.codes import CODES
from streamlog.compiler import Mode
from streamlog.diagnostics import did_you_mean
from streamlog.kernel import Kernel
from streamlog.runtime.data_files import is_data_file, is_pattern, stem
from streamlog.runtime.executor import BEGIN
from streamlog.runtime.memory import size
from streamlog.runtime.query import prepared
from streamlog.runtime.sources import SourceError, declared_inputs
from streamlog.runtime.values import Unfit, moment, time_of
from streamlog.runtime.why import why
from streamlog.syntax.ast import Atom
from streamlog.syntax.pretty import pretty

Printed: TypeAlias = Message | RenderableType
MOST_REASONS = 3  # facts that one `.why` explains


class CommandError(Exception):
    """A command that cannot be understood or done."""


class Leave(Exception):  # noqa: N818  (the session ends)
    pass


@frozen
class Command:
    name: str
    takes: str
    help: str
    run: Callable[[Commands, str], Iterator[Printed]]


class Commands:
    """What the commands do. `width` is that of the screen."""

    def __init__(self, session: Session, width: int) -> None:
        self.session, self.width = session, width

    def run(self, line: str) -> Iterator[Printed]:
        name, _, rest = line.strip().removeprefix(".").partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            near = did_you_mean(name, COMMANDS)
            hint = f"did you mean `.{near}`?" if near else "`.help` lists the commands"
            raise CommandError(f"there is no command `.{name}`; {hint}")
        yield from command.run(self, rest.strip())

    # --------------------------------------------------------------------- program and facts

    def load(self, rest: str) -> Iterator[Printed]:
        """A program, or rows: `.load a.csv b.csv`, `.load folder`, `.load p=a.csv`, and `.load` for
        the files that the program's streams name."""
        words = rest.split()
        if len(words) == 2 and words[1] in self.session.engine.schema.predicates:
            words = [f"{words[1]}={words[0]}"]
        if len(words) == 1 and self._is_program(words[0]):
            yield from self.session.load(Path(words[0]).expanduser())
            if waiting := self._waiting():
                names = " and ".join(f"`{name}`" for name, _ in waiting)
                yield f"the rows of {names} arrive with `.load`"
            return
        if any(map(self._is_program, words)):
            raise CommandError("`.load` takes one program, or any number of data files")
        places = [place for word in words for place in self._places(word)]
        if not words and not (places := self._waiting()):
            raise CommandError("`.load` takes a program, or data files: no stream names a file")
        yield from self.session.load_rows(places)

    def _is_program(self, word: str) -> bool:
        path = self._path(word)
        is_data = "=" in word or path.is_dir() or is_data_file(path) or is_pattern(path)
        return path.suffix == ".slog" or not is_data

    def _waiting(self) -> list[tuple[str, Path]]:
        """The files that streams name in their declarations."""
        program = self.session.program
        return [
            (source.pred, source.path)
            for source in declared_inputs(program)
            if program.schema[source.pred].kind is Kind.STREAM
        ]

    def _path(self, word: str) -> Path:
        """A path counts from the loaded program, or else from the current folder."""
        path = Path(word).expanduser()
        beside = self.session.state.folder / path
        return beside if self.session.state.files and beside.exists() else path

    def _places(self, word: str) -> list[tuple[str, Path]]:
        """The files that a word of `.load` means, each with its predicate."""
        pred, equals, place = word.partition("=")
        if equals:
            return [(pred, self._path(place))]
        path = self._path(word)
        if not path.exists():
            raise SourceError(f"there is no file '{word}'")
        if not path.is_dir() or path.name in self.session.engine.schema.predicates:
            return [(stem(path), path)]
        known = self.session.engine.schema.predicates
        found = [p for p in sorted(path.iterdir()) if p.is_dir() or is_data_file(p)]
        places = [(stem(p), p) for p in found if stem(p) in known]
        if not places:
            raise CommandError(f"no file in '{word}' has the name of a predicate")
        return places

    def save(self, rest: str) -> Iterator[Printed]:
        if not rest:
            raise CommandError("`.save` takes the name of a file")
        path = Path(rest).expanduser()
        known = {f.path.resolve() for f in self.session.state.files} | self.session.saved
        if path.exists() and path.resolve() not in known:
            raise CommandError(f"`{path}` already exists; choose another name")
        path.write_text(self.session.state.text, encoding="utf-8")
        self.session.saved.add(path.resolve())
        yield f"saved to {path}"

    def listing(self, rest: str) -> Iterator[Printed]:
        lines = self.session.state.text_of_typed.splitlines()
        for file in self.session.state.files:
            yield note(f"loaded: {file.path}", self.width)
        digits = len(str(len(lines)))
        for number, line in enumerate(lines, 1):
            yield Text.assemble((f"{number:>{digits}} ", "blue"), line)

    def facts(self, rest: str) -> Iterator[Printed]:
        engine = self.session.engine
        if rest:
            name = self._predicate(rest.rstrip("."))
            rows = engine.facts(name)
            names, types = columns_of(engine, name)
            yield titled_table(
                f"{name}: {count(len(rows), 'fact')}", names, rows, types, self.width
            )
            return
        made = plain_table("predicate", "kind", "facts", right=[2])
        for name, predicate in sorted(engine.schema.predicates.items()):
            if predicate.view is not None:
                continue
            is_open = engine.program.safety.is_open(name)
            facts = "open" if is_open else f"{len(engine.facts(name)):,}"
            made.add_row(name, predicate.kind.value, facts)
        if not made.row_count:
            yield "there is no program yet"
        else:
            yield flat(made, self.width)

    def clear(self, rest: str) -> Iterator[Printed]:
        self.session.clear()
        yield "everything is forgotten"

    # ------------------------------------------------------------------------------- time

    def advance(self, rest: str) -> Iterator[Printed]:
        """`.advance T [stream]`: no row earlier than T will come."""
        words = rest.rstrip(".").split()
        if not 1 <= len(words) <= 2:
            raise CommandError("`.advance` takes a time, as in `.advance 5`, and perhaps a stream")
        stream = self._timeline(words[1]) if len(words) > 1 else None
        text = words[0].removeprefix("@")
        if text.lstrip("-").isdigit():
            time = int(text)
        else:
            try:
                time = time_of(text)
            except Unfit as unfit:
                form = "write `@2026-11-15T08:00:00Z`, or a number on logical time"
                raise CommandError(f"{unfit}; {form}") from None
        yield from self.session.advance(time, stream)

    def end(self, rest: str) -> Iterator[Printed]:
        yield from self.session.end(self._stream(rest.rstrip(".")) if rest else None)

    def status(self, rest: str) -> Iterator[Printed]:
        engine = self.session.engine
        if not engine.progress.clocks:
            yield "no stream yet"
            return
        made = plain_table("stream", "has passed", "last seen", "rows", "late", "rejected")
        for name, clock in sorted(engine.progress.clocks.items()):
            figures, type_ = engine.report.streams.get(name), engine.clock(name)
            seen = "never" if clock.seen == BEGIN else moment(clock.seen, type_)
            # Another timeline of a stream has the same rows.
            numbers = (figures.rows, figures.late, figures.rejected) if figures else ("", "", "")
            made.add_row(name, moment(clock.progress, type_), seen, *map(str, numbers))
        yield flat(made, self.width)
        for held in engine.status():
            yield held.message

    def timeline(self, rest: str) -> Iterator[Printed]:
        states = arities(self.session)
        if not rest and len(states) != 1:
            raise CommandError("`.timeline` takes a state, as in `.timeline burning`")
        name = _known(rest, states, "state") if rest else next(iter(states))
        yield timeline(self.session, name, self.width) or f"`{name}` has not held so far"

    # ------------------------------------------------------------------------ explanations

    def why(self, rest: str) -> Iterator[Printed]:
        if not rest:
            raise CommandError("`.why` takes a fact, as in `.why p(1, red)`")
        engine = self.session.engine
        query = prepared(engine.program, rest).query
        match query.body:
            case (Atom(pred) as atom,) if pred in engine.schema.predicates:
                pass
            case _:
                raise CommandError("`.why` takes one fact, as in `.why p(1, red)`")
        if len(atom.constants) == atom.arity:
            rows = [atom.constants]
        else:
            rows = [row for row in engine.facts(pred) if fits([atom], row)]
        if not rows:
            yield f"no {pretty(atom)} holds"
            for held in self.session.held(pred):
                yield held.message
        for row in rows[:MOST_REASONS]:
            yield flat(why_tree(engine, why(engine, atom.pred, row)), self.width)
        if len(rows) > MOST_REASONS:
            yield f"… and {len(rows) - MOST_REASONS} more such facts"

    def explain(self, rest: str) -> Iterator[Printed]:
        """A predicate, a code, or else the code of what was found last."""
        wanted = [rest] if rest else list(self.session.last_codes)
        if not wanted:
            raise CommandError("`.explain` takes a predicate or a code, as in `.explain SL0401`")
        for word in wanted:
            if word.upper() in CODES:
                yield render_page(CODES[word.upper()], self.width)
                continue
            if re.fullmatch(r"sl\d+", word, re.IGNORECASE):
                raise CommandError(f"there is no code {word.upper()}")
            name = self._predicate(word.rstrip("."))
            program = self.session.program
            for rule in program.schema.rules_of.get(name, ()):
                place = show.place_of(rule, program.source)
                yield Text.assemble((f"{place}: ", "dim"), rule.span.text)
            promised = program.contract
            yield show.contract(
                evolve(promised, predicates=(promised[name],)), program.source, self.width
            )

    def view(self, name: str) -> Iterator[Printed]:
        program = self.session.program
        if not program.schema.rules:
            yield "there are no rules yet"
        else:
            yield show.view(program, name, None, self.width)

    # ----------------------------------------------------------------------------- settings

    def engine(self, rest: str) -> Iterator[Printed]:
        match rest:
            case "":
                name = "local" if self.session.executor is Kernel else "spark"
                yield f"this session runs on the engine `{name}`"
            case "local":
                self.session.set_executor(Kernel)
                yield "this session runs in one process (`local`)"
            case "spark":
                self.session.set_executor(on_spark(self.session.limits.memory))
                yield "Spark has started; each step takes about a second from now on"
            case _:
                raise CommandError(f"there is no engine `{rest}`; there are `local` and `spark`")

    def batch(self, rest: str) -> Iterator[Printed]:
        match rest:
            case "on":
                yield from self.session.set_mode(Mode.BATCH)
                yield "over stored data: what only the end of the data decides comes with `.end`"
            case "off":
                yield from self.session.set_mode(Mode.STREAM)
                yield "in a stream: every answer comes as soon as it is certain"
            case "":
                yield f"batch is {'on' if self.session.state.mode is Mode.BATCH else 'off'}"
            case _:
                raise CommandError("`.batch` takes `on` or `off`")

    def limit(self, rest: str) -> Iterator[Printed]:
        limits = self.session.limits
        if rest:
            name, _, amount = rest.partition(" ")
            number = bytes_of(amount) if name == "memory" else _positive(amount)
            if name not in ("seconds", "rows", "rounds", "memory") or number is None:
                raise CommandError(
                    "`.limit` takes `seconds`, `rows` or `rounds` and a number, or `memory` and a "
                    "size, as in `.limit memory 2GB`"
                )
            if name == "memory" and self.session.executor is not Kernel:
                raise CommandError(
                    "Spark's memory is fixed when it starts: use `streamlog repl --max-memory`"
                )
            self.session.set_limits(evolve(limits, **{name: number}))
            limits = self.session.limits
        numbers = (limits.seconds, "seconds"), (limits.rows, "rows"), (limits.rounds, "rounds")
        said = [f"after {number:,} {what}" for number, what in numbers if number is not None]
        memory = "half of the memory" if limits.memory is None else f"{size(limits.memory)}"
        yield f"an evaluation stops {', '.join(said)} or when it needs more than {memory}"

    def help(self, rest: str) -> Iterator[Printed]:
        wide = max(len(f".{c.name} {c.takes}") for c in COMMANDS.values())
        lines = [
            "Statements take effect when their final dot is typed: rules, declarations,",
            "facts `msg(1, red).` and queries `?first(T, X).`. Commands:",
            "",
        ]
        lines += (f"{f'.{c.name} {c.takes}':<{wide}}  {c.help}" for c in COMMANDS.values())
        yield Text("\n".join(lines))

    def quit(self, rest: str) -> Iterator[Printed]:
        yield from ()
        raise Leave

    # ------------------------------------------------------------------------------- names

    def _predicate(self, name: str) -> str:
        return _known(name, self.session.engine.schema.predicates, "predicate")

    def _timeline(self, name: str) -> str:
        return self.session.engine.schema.timeline(name) or self._stream(name)

    def _stream(self, name: str) -> str:
        return _known(name, self.session.engine.buffers, "stream")


def _known(name: str, known: Collection[str], what: str) -> str:
    if name in known:
        return name
    near = did_you_mean(name, known)
    hint = f"; did you mean `{near}`?" if near else ""
    raise CommandError(f"there is no {what} `{name}` in this program{hint}")


def _positive(text: str) -> int | None:
    text = text.strip()
    return int(text) or None if text.isascii() and text.isdigit() else None


def _view(name: str) -> Callable[[Commands, str], Iterator[Printed]]:
    return lambda commands, rest: commands.view(name)


# In the order of the help.
COMMANDS = {
    c.name: c
    for c in (
        Command("load", "[PATH…]", "a program, or data files, merged by time", Commands.load),
        Command("save", "FILE", "write the program and its facts", Commands.save),
        Command("list", "", "list what was typed so far", Commands.listing),
        Command("facts", "[PRED]", "the facts of a predicate, or their numbers", Commands.facts),
        Command("advance", "T [STREAM]", "nothing earlier than T will come", Commands.advance),
        Command("end", "[STREAM]", "no more rows will come", Commands.end),
        Command(
            "status", "", "how far the streams are, and what outputs wait for", Commands.status
        ),
        Command("timeline", "[STATE]", "when a state holds, drawn", Commands.timeline),
        Command("why", "P(…)", "the derivation of a fact, or why there is none", Commands.why),
        Command(
            "explain", "[PRED|CODE]", "a predicate, a code, the last finding", Commands.explain
        ),
        Command("contract", "", "delay, release and state of each predicate", _view("contract")),
        Command("plan", "", "joins, indexes and what each rule waits for", _view("plan")),
        Command("batch", "on|off", "accept what only the end of the data decides", Commands.batch),
        Command("limit", "[WHAT N]", "the limits that stop an evaluation", Commands.limit),
        Command("engine", "spark|local", "the engine that evaluates the program", Commands.engine),
        Command("clear", "", "forget everything", Commands.clear),
        Command("help", "", "this list", Commands.help),
        Command("quit", "", "leave, as Ctrl-D does", Commands.quit),
    )
}
