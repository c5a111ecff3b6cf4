"""What went wrong in Spark, in the words of the rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streamlog.runtime.executor import LimitError
from streamlog.runtime.functions import EvaluationError
from streamlog.runtime.rounds import WITH_RULE
from streamlog.runtime.sources import SourceError

# The last line of the traceback of a task.
_RAISED = re.compile(r"^[\w.]*\b(EvaluationError|LimitError): (.*)$", re.MULTILINE)

# By a query, where a rule cannot be computed.
_QUERY_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE.*)?$", re.MULTILINE)

# Of a broker that is not there, or does not let us in.
_KAFKA = re.compile(r"org\.apache\.kafka\.common\.(?:errors\.)?\w+Exception: (.*)")

# What a task was reading, and why that failed.
_FILE = re.compile(r"\[FAILED_READ_FILE\S* .* reading file (\S+?)\.? +SQLSTATE")
_DAMAGED = re.compile(r"Caused by: (java\.(?:io|util\.zip)\.\w+)(?:: (.+))?")

# Of a database that is not there, does not let us in, or has no such table.
_DATABASE = re.compile(r"(?:java\.sql|org\.postgresql\.util)\.\w*Exception: (.*)")

_ANSI = {
    "DIVIDE_BY_ZERO": "division by zero",
    "ARITHMETIC_OVERFLOW": "a number does not fit into 64 bits",
    "BINARY_ARITHMETIC_OVERFLOW": "a number does not fit into 64 bits",
    "CAST_OVERFLOW": "a number does not fit into 64 bits",
}


# Of Java; the last where so large a value cannot be at all.
_MEMORY = re.compile(
    r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|COLLECTION_SIZE_LIMIT_EXCEEDED"
    r"|Cannot grow BufferHolder|_CANNOT_GROW_"
)


def lacks_memory(error: BaseException) -> bool:
    """Whether Java has not had enough memory."""
    return _MEMORY.search(str(error)) is not None


def out_of_memory(what: str) -> LimitError:
    return LimitError(
        "stopped for lack of memory (--max-memory, or --conf spark.driver.memory and "
        f"spark.executor.memory): Java needed more for {what}"
    )


@contextmanager
def explained(blame: Callable[[], EvaluationError | None] = lambda: None) -> Iterator[None]:
    """Errors of rules, raised in a task or by a query, as those that the kernel raises. A query
    does not know its rule; `blame` finds that."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = in_our_words(error) if isinstance(error, PySparkException) else _outside(str(error))
        if isinstance(found, EvaluationError) and WITH_RULE not in str(found):
            found = blame() or found
        if found is None and lacks_memory(error):
            found = out_of_memory("a query")
        raise found or error from error


def in_our_words(error: PySparkException) -> Exception | None:
    """What the rules did wrong, or what a broker said, if that is what the error is about."""
    text = str(error)
    found = _RAISED.search(text)
    if found is not None:
        said = found[2].strip()
        return LimitError(said) if found[1] == "LimitError" else EvaluationError.from_text(said)
    if (raised := _QUERY_RAISED.search(text)) is not None:
        return EvaluationError(raised[1])
    for condition, words in _ANSI.items():
        if f"[{condition}" in text:
            return EvaluationError(words)
    broker = _KAFKA.search(text)
    return _outside(text) if broker is None else SourceError(f"Kafka: {broker[1].strip()}")


def _outside(text: str) -> SourceError | None:
    """What a database said, or which file could not be read."""
    database = _DATABASE.search(text)
    return _unread(text) if database is None else SourceError(database[1].strip())


def _unread(text: str) -> SourceError | None:
    """Which file could not be read to its end."""
    file = _FILE.search(text)
    cause = _DAMAGED.search(text)
    if file is None or cause is None:
        return None
    path = unquote(file[1]).removeprefix("file://")
    early = cause[1].endswith("EOFException")
    reason = "the compressed data end too early" if early else str(cause[2]).strip()
    return SourceError(f"'{path}' cannot be read: {reason}")
