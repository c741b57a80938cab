"""
Binlog files as they are given: plain, compressed with gzip or Zstandard, or through a pipe.

The readers map files into memory, so what is no plain file is copied to a temporary one first. Errors and outputs name
the file that was given.
"""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import attrs
import zstandard

from conflict.config.text_file import plain_path
from conflict.discovery.found_files import GZIP, ZSTD
from conflict.discovery.logs import STANDARD_INPUT
from conflict.errors import ConfigurationError
from ndb_formats.binlog_reader import foreign_kind
from ndb_formats.columnar.kernel_mode import expect_files
from ndb_formats.errors import FormatError
from ndb_formats.stored import path_of

_MAGIC_SIZE = 4
_HEAD = 512
_PIECE = 1 << 20


@attrs.frozen
class Inputs:
    """
    Binlog files that can be mapped.

    Attributes:
        given: The files as they were given.
        paths: Where each can be read.
    """

    given: tuple[Path, ...]
    paths: tuple[str, ...]

    def name_of(self, path: str) -> str:
        """Return a file as it was given."""
        return str(dict(zip(self.paths, self.given, strict=True)).get(path, path))

    def file_of(self, path: str) -> str:
        """Return the name of a file in data."""
        given = dict(zip(self.paths, self.given, strict=True)).get(path, path_of(path))
        return str(given if given == STANDARD_INPUT else plain_path(given))

    def renamed(self, error: FormatError) -> FormatError:
        """Return an error that names the file that was given."""
        if error.file is not None:
            error.file = self.name_of(error.file)
        return error


@contextmanager
def opened_inputs(files: Sequence[Path]) -> Iterator[Inputs]:
    """
    Give files that can be mapped; temporary ones disappear.

    Raises:
        ConfigurationError: Standard input is named twice, or a compressed file cannot be read.
    """
    if sum(file == STANDARD_INPUT for file in files) > 1:
        message = "standard input (-) can be given once"
        raise ConfigurationError(message)
    with tempfile.TemporaryDirectory(prefix="ndb-conflict-") as folder:
        paths = []
        for number, file in enumerate(files):
            copy = Path(folder) / f"{number}"
            if _copied(file, copy):
                _refuse_archive(file, copy)
                paths.append(str(copy))
            else:
                paths.append(str(file))
        expect_files(paths)
        yield Inputs(tuple(files), tuple(paths))


def _copied(file: Path, copy: Path) -> bool:
    """Copy a file that cannot be mapped as it is; return whether it was copied."""
    if file == STANDARD_INPUT:
        _copy(sys.stdin.buffer, copy, "standard input")
        return True
    with file.open("rb") as stream:
        if file.is_file() and stream.read(_MAGIC_SIZE)[:_MAGIC_SIZE].startswith((GZIP, ZSTD)):
            stream.seek(0)
            _copy(stream, copy, str(file))
            return True
        if not file.is_file():
            _copy(stream, copy, str(file))
            return True
    return False


def _refuse_archive(file: Path, copy: Path) -> None:
    """
    Refuse an archive that was compressed; one that is not compressed is refused as it is read.

    Raises:
        ConfigurationError: It is one.
    """
    with copy.open("rb") as stream:
        kind = foreign_kind(stream.read(_HEAD))
    if kind is not None:
        message = f"{file} is no binlog but {kind}"
        raise ConfigurationError(message)


def _copy(stream: BinaryIO, copy: Path, name: str) -> None:
    magic = stream.read(_MAGIC_SIZE)
    joined = cast(IO[bytes], _Joined(magic, stream))
    try:
        with copy.open("wb") as out:
            if magic.startswith(GZIP):
                source = cast(IO[bytes], gzip.GzipFile(fileobj=joined))
            elif magic.startswith(ZSTD):
                source = zstandard.ZstdDecompressor().stream_reader(joined, read_across_frames=True)
            else:
                source = joined
            shutil.copyfileobj(source, out, _PIECE)
    except (EOFError, gzip.BadGzipFile, zstandard.ZstdError) as error:
        message = f"{name}: the compressed file cannot be read: {error}"
        raise ConfigurationError(message) from error


class _Joined(io.RawIOBase):
    """A stream whose first bytes have been read."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._first = first
        self._rest = rest

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes; return how many."""
        data = self._first[: len(buffer)] or self._rest.read(len(buffer))
        self._first = self._first[len(data) :]
        buffer[: len(data)] = data
        return len(data)
