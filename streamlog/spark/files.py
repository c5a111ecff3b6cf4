"""Files wherever Spark keeps them, through Hadoop's file systems."""

from __future__ import annotations

import hashlib
import os
from glob import has_magic
from pathlib import Path
from typing import Any

from attrs import frozen
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamlog.runtime.envelope import CheckpointError
from streamlog.runtime.sources import SourceError


def _cause(error: Py4JJavaError | UnicodeDecodeError) -> str:
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getSimpleName())
    return "it is not text"


@frozen
class Print:
    """By what a file is known again."""

    size: int
    checksum: str | None  # None: its file system has none


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
        # Local disks have a file beside each, with a checksum for every 512 bytes of it.
        self._has_crc = is_instance_of(
            context._gateway, self._system, "org.apache.hadoop.fs.ChecksumFileSystem"
        )

    @property
    def local(self) -> Path | None:
        """The root as a path of this machine, if it is one."""
        is_here = self._system.getScheme() == "file"
        return Path(str(self._root.toUri().getPath())) if is_here else None

    def path(self, name: str) -> str:
        return str(self._path(name).toString())

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root

    def names(self, folder: str) -> list[str]:
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        found = (str(s.getPath().getName()) for s in self._system.listStatus(path))
        return sorted(n for n in found if not n.startswith("."))

    def numbers(self, folder: str, ending: str = "") -> list[int]:
        """The files of a folder that have numbers for names, in order."""
        found = (n.removesuffix(ending) for n in self.names(folder) if n.endswith(ending))
        return sorted(int(n) for n in found if n.isdecimal())

    def make(self, folder: str) -> None:
        self._system.mkdirs(self._path(folder))

    def below(self) -> list[str]:
        """The files of the root that are not hidden, by name; the root, if it is a file; those
        that it matches, if it is a pattern."""
        found = [self._root]
        if not self._system.exists(self._root):
            if not has_magic(self.root):
                raise SourceError(f"there is no file '{self.root}'")
            found = [s.getPath() for s in self._system.globStatus(self._root) or ()]
        listed = (s for path in found for s in self._system.listStatus(path))
        found = [s.getPath() for s in listed if s.isFile()]
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

    def create(self, name: str, text: str) -> bool:
        """Write a file unless there is one; whether it was written."""
        try:
            stream = self._system.create(self._path(name), False)
        except Py4JJavaError:
            if self._system.exists(self._path(name)):
                return False
            raise
        try:
            stream.write(bytearray(text.encode()))
            stream.hsync()
        finally:
            stream.close()
        return True

    def delete(self, name: str) -> None:
        self._system.delete(self._path(name), True)

    # ------------------------------------------------------------------------- what is in them

    def size(self, name: str) -> int | None:
        """The bytes of a file, or of all files below a folder; None: there is none."""
        path = self._path(name)
        if not self._system.exists(path):
            return None
        return int(self._system.getContentSummary(path).getLength())

    def lost(self, folder: str) -> list[str]:
        """Files of a folder of which the checksums alone are left."""
        here = self.local
        if here is None or not (here / folder).is_dir():
            return []
        crcs = (here / folder).glob(".*.crc")
        names = (crc.name.removeprefix(".").removesuffix(".crc") for crc in crcs)
        return sorted(name for name in names if not (here / folder / name).exists())

    def times(self) -> dict[str, int]:
        """When the files of the root were last changed, in milliseconds."""
        here = self.local
        if here is not None and here.is_dir():
            with os.scandir(here) as found:
                return {entry.name: entry.stat().st_mtime_ns // 1_000_000 for entry in found}
        if not self._system.exists(self._root):
            return {}
        found = self._system.listStatus(self._root)
        return {str(s.getPath().getName()): int(s.getModificationTime()) for s in found}

    def prints(self, folder: str) -> dict[str, Print]:
        """The files below a folder that Spark would read, by their names in the root. No file is
        read for it."""
        start = len(str(self._root.toUri().getPath()).rstrip("/")) + 1
        found = self._system.listFiles(self._path(folder), True)
        prints = {}
        while found.hasNext():
            status = found.next()
            path = status.getPath()
            if str(path.getName())[0] not in "._":
                name = str(path.toUri().getPath())[start:]
                prints[name] = Print(int(status.getLen()), self._checksum(path))
        return prints

    def problem(self, name: str, known: Print) -> str | None:
        """What is wrong with a file that should be the one that is known."""
        path = self._path(name)
        if not self._system.exists(path):
            return f"'{name}' is missing"
        size = int(self._system.getFileStatus(path).getLen())
        if size != known.size:
            return f"'{name}' is damaged: it has {size:,} bytes, and had {known.size:,}"
        if known.checksum is None:
            return None
        try:
            checksum = self._checksum(path)
            if checksum is None and self._has_crc:
                return f"the checksums of '{name}' are missing: '{self._crc(path).getName()}'"
            if checksum != known.checksum:
                return f"'{name}' is damaged: its checksum is wrong"
            if self._has_crc:
                self._read_through(path)
        except Py4JJavaError as error:
            return f"'{name}' is damaged: {_cause(error)}"
        return None

    def fingerprint(self, name: str) -> str:
        """A file's content, as short as its file system can tell it; else its size and time."""
        path = self._path(name)
        if self._has_crc:
            stream = self._system.open(path)
            try:
                return str(self._jvm.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream))
            finally:
                stream.close()
        status = self._system.getFileStatus(path)
        return self._checksum(path) or f"{status.getLen()} {status.getModificationTime()}"

    def _checksum(self, path: Any) -> str | None:
        """What the file system knows of a file's content: tasks have written it with the file."""
        if not self._has_crc:
            known = self._system.getFileChecksum(path)  # HDFS has one
            return None if known is None else str(known.toString())
        raw, crc = self._system.getRawFileSystem(), self._crc(path)
        if not raw.exists(crc):
            return None
        stream = raw.open(crc)
        try:
            data = bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()
        return hashlib.sha256(data).hexdigest()

    def _crc(self, path: Any) -> Any:
        return self._system.getChecksumFile(path)

    def _read_through(self, path: Any) -> None:
        """Hadoop compares what it reads with the checksums beside it."""
        stream = self._system.open(path)
        try:
            self._jvm.org.apache.commons.io.IOUtils.consume(stream)
        finally:
            stream.close()
