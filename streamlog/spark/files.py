"""Files wherever Spark keeps them, through Hadoop's file systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamlog.runtime.checkpoint import CheckpointError
from streamlog.runtime.sources import SourceError


def _cause(error: Py4JJavaError | UnicodeDecodeError) -> str:
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getSimpleName())
    return "it is no text"


class Files:
    """Small files below a folder. A file is there whole, or not at all."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        configuration = context._jsc.hadoopConfiguration()
        path = self._jvm.org.apache.hadoop.fs.Path(root)
        try:
            self._system = path.getFileSystem(configuration)
        except Py4JJavaError as error:
            why = error.java_exception.getMessage()
            raise SourceError(f"'{root}' is nowhere that this Spark can read: {why}") from None
        if self._system.getScheme() == "file" and not path.isAbsolute():
            # Java's working folder stays where it was started, whatever Python does.
            path = self._jvm.org.apache.hadoop.fs.Path(str(Path(root).absolute()))
        self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._system.getUri(), configuration
        )
        self._root = self._system.makeQualified(path)
        self.root = root

    def path(self, name: str) -> str:
        return str(self._path(name).toString())

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def names(self, folder: str) -> list[str]:
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        found = (str(s.getPath().getName()) for s in self._system.listStatus(path))
        return sorted(n for n in found if not n.startswith("."))

    def below(self) -> list[str]:
        """The files of the root that are not hidden, by name; the root, if it is a file."""
        if not self._system.exists(self._root):
            raise SourceError(f"there is no file '{self.root}'")
        found = [s.getPath() for s in self._system.listStatus(self._root) if s.isFile()]
        return sorted(str(p.toString()) for p in found if str(p.getName())[0] not in "._")

    def head(self, path: str, size: int) -> bytes:
        """How a file of `below` begins."""
        stream = self._system.open(self._jvm.org.apache.hadoop.fs.Path(path))
        try:
            return bytes(stream.readNBytes(size))
        finally:
            stream.close()

    def read(self, name: str) -> str | None:
        path = self._path(name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            data = self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)
            return bytes(data).decode()
        except (Py4JJavaError, UnicodeDecodeError) as error:
            # Local disks have a checksum beside each file, which Hadoop looks at.
            raise CheckpointError(f"'{name}' is damaged: {_cause(error)}") from None
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Beside its place first, then renamed into it."""
        path = self._path(name)
        new = self._path(f"{name.rpartition('/')[0] or '.'}/.{name.rpartition('/')[2]}.new")
        stream = self._system.create(new, True)
        try:
            stream.write(bytearray(text.encode()))
            stream.hsync()
        finally:
            stream.close()
        overwrite = self._jvm.org.apache.hadoop.fs.Options.Rename.OVERWRITE
        renames = self._jvm.java.lang.reflect.Array.newInstance(overwrite.getClass(), 1)
        renames[0] = overwrite
        self._context.rename(new, path, renames)

    def delete(self, name: str) -> None:
        self._system.delete(self._path(name), True)
