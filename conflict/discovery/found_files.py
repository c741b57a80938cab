"""
Binlog files in what a user names, with the header of the first event of each.

A folder represents the binlogs in it and below it, without relay logs; an index file the files that it lists; a pattern
what it matches. Compressed ones are among them.
"""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import attrs
import zstandard

from conflict.config.text_file import place_of, plain_path, what_commands_wrote
from conflict.errors import ConfigurationError
from ndb_formats.binlog_reader import Event, first_event, foreign_kind
from ndb_formats.constants import BINLOG_MAGIC, ENCRYPTED_MAGIC
from ndb_formats.errors import CutFileError, FormatError
from ndb_formats.events.header import EventHeader
from ndb_formats.stored import matches, path_of

INDEX = ".index"  # of a file that lists binlogs, as servers keep one
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # the first bytes of compressed files
_HEAD = 1 << 16  # bytes of a compressed file that hold its first event
_RELAY_LOG = 0x40  # LOG_EVENT_RELAY_LOG_F


@attrs.frozen
class BinlogFile:
    """A binlog file, the header of its first event, and whether it is compressed."""

    path: Path
    header: EventHeader
    packed: bool = False

    @property
    def plain(self) -> Path:
        """Its path without what a compression adds."""
        return self.path.with_suffix("") if self.packed and not self.path.suffix[1:].isdecimal() else self.path

    @property
    def base(self) -> Path:
        """Its path without the number at its end."""
        return self.plain.with_suffix("") if self.plain.suffix[1:].isdecimal() else self.plain

    @property
    def number(self) -> int:
        """The number at the end of its name; -1 if it has none."""
        return int(self.plain.suffix[1:]) if self.plain.suffix[1:].isdecimal() else -1


def binlog_files(given: Path) -> Iterator[BinlogFile]:
    """Yield the binlog files that a path represents."""
    given = place_of(given)
    if given.is_dir():
        yield from _below(given)
        return
    for path in named_files(given):
        if path.is_dir():
            yield from _below(path)
            continue
        if (file := _binlog(path)) is None:
            message = f"{path} is {_what_else(path)}"
            raise ConfigurationError(message)
        yield file


def named_files(given: Path) -> list[Path]:
    """Return the files and folders that an index file, a file or a pattern represents; at least one."""
    if given.is_file() and given.suffix == INDEX:
        paths = list(_listed(given))
    else:
        paths = [given] if given.exists() else _matched(given)
    if not paths:
        message = f"{given}: no such file or folder"
        raise ConfigurationError(message)
    return paths


def _below(folder: Path) -> list[BinlogFile]:
    """Return the binlogs in a folder and below it."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [file for path in paths if (file := _binlog(path)) is not None]
    _refuse_cut(paths, files)
    give = "the run file or the binlogs that it was made of"
    if not files and (written := what_commands_wrote(folder, "binlogs", give)) is not None:
        raise ConfigurationError(written)
    if not files:
        message = f"{folder} holds no binlog; give the folder, the files or the index file of a server's binlogs"
        raise ConfigurationError(message)
    return files


def _refuse_cut(paths: Iterable[Path], binlogs: Iterable[BinlogFile]) -> None:
    """
    Refuse a file that ends in its first event, if there are later ones: the last one can be of a server that begins it.

    Raises:
        CutFileError: There is one.
    """
    last: dict[Path, int] = {}
    for file in binlogs:
        last[file.base] = max(last.get(file.base, -1), file.number)
    for path in paths:
        if path.suffix[1:].isdecimal() and int(path.suffix[1:]) < last.get(path.with_suffix(""), -1):
            try:
                first_event(path, verify=False)
            except CutFileError:
                raise
            except FormatError:  # it is no binlog
                continue


def _matched(pattern: Path) -> list[Path]:
    try:
        return matches(Path(), str(pattern))
    except (ValueError, NotImplementedError, OSError, RecursionError):  # no pattern, or a name that is too long
        return []


def _listed(index: Path) -> Iterator[Path]:
    """Yield the files that an index file lists: where it says, or beside it if the folder was moved."""
    for line in index.read_text("utf-8").splitlines():
        path = path_of(line.strip())
        if line.strip():
            there = index.parent / path
            yield there if there.exists() else index.parent / path.name


def _binlog(path: Path) -> BinlogFile | None:
    """Return a file if it is a binlog with events in it, and no relay log."""
    if path.exists() and not path.is_file():
        message = f"{path} is no regular file; give copies of the binlogs"
        raise ConfigurationError(message)
    try:
        with path.open("rb") as file:
            magic = file.read(len(BINLOG_MAGIC))
        if packed := magic.startswith((GZIP, ZSTD)):
            first = _first_unpacked(path)
        elif magic in (BINLOG_MAGIC, ENCRYPTED_MAGIC):
            first = first_event(path, verify=False)
        else:
            return None
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise ConfigurationError(message) from error
    except CutFileError:
        return None
    if first is None or first.header.flags & _RELAY_LOG:
        return None
    return BinlogFile(plain_path(path), first.header, packed)


def _what_else(path: Path) -> str:
    """Return what a file is that `_binlog` does not take, for a message."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    packed = head.startswith((GZIP, ZSTD))
    if packed:
        head = _unpacked_head(path)
    with suppress(FormatError):
        first = _first_unpacked(path) if packed else first_event(path, verify=False)
        if first is not None and first.header.flags & _RELAY_LOG:
            return "a relay log: what its server received from another one; give the binlogs of the servers themselves"
    kind = foreign_kind(head)
    if kind is not None:
        return f"no binlog but {'compressed: ' * packed}{kind}"
    return "compressed, and holds no binlog" if packed else "no binlog with events in it"


def _first_unpacked(path: Path) -> Event | None:
    """Return the first event of a compressed file; None if it holds something else."""
    head = _unpacked_head(path)
    if not head.startswith((BINLOG_MAGIC, ENCRYPTED_MAGIC)):
        return None
    with tempfile.TemporaryDirectory(prefix="ndb-conflict-") as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(head)
        return first_event(copy, verify=False)


def _unpacked_head(path: Path) -> bytes:
    """Return the first bytes of what a compressed file holds."""
    with path.open("rb") as file:
        packed = gzip.GzipFile(fileobj=file) if file.read(len(GZIP)) == GZIP else None
        file.seek(0)
        try:
            return (packed or zstandard.ZstdDecompressor().stream_reader(file)).read(_HEAD)
        except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
            message = f"{path}: the compressed file cannot be read: {error}"
            raise ConfigurationError(message) from error
