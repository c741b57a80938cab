"""
Files on object storage, as paths: ``s3://lake/A.000001``, and what else fsspec knows.

A path of this kind is the name of a file in messages and data. Who opens it reads a local copy, which is fetched once
and goes with the process.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import posixpath
import re
import shutil
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PosixPath
from typing import IO, Any, ClassVar

from ndb_formats.scratch import scratch_folder

# A scheme and a slash: `s3://bucket/run`, what `Path` makes of it, and short forms as `dbfs:/run`.
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_HEAD = 1 << 12  # bytes that hold the first event of a file, and those that tell it from others
_BEFORE = 1 << 12  # bytes before a piece that tell it from others
_DIGEST_BYTES = 1 << 12
# Of the first event's flags, the byte that says whether the server still writes the file.
_IN_USE_AT = 4 + 17
_BLOCK = 1 << 26  # bytes that one request asks for
_WHOLE = 8 << 20  # bytes of a file that is read whole, though few of them may be needed
_SAME = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "gcs": "gs"}  # what Hadoop and others call them


class Stored(PosixPath):
    """
    A file or folder on object storage; made by `path_of`.

    Its methods raise an `OSError` that names it if the storage does not answer, or does not know it.
    """

    __slots__ = ()

    def __str__(self) -> str:
        scheme, *parts = self.parts
        return f"{scheme}//{posixpath.normpath('/'.join(parts))}"

    def __fspath__(self) -> str:
        """Return where its local copy is, which is fetched if there is none."""
        return _Copies.of(self)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002  # there are none
        """Return whether it is a file or a folder, and its size; nothing else of it is known."""
        return _Copies.facts_of(self)

    def anew(self) -> Stored:
        """Return itself, as it is now and not when this process read it before."""
        _Copies.forget(self)
        return self

    def absolute(self) -> Stored:
        """Return itself: an address is absolute."""
        return self

    def is_absolute(self) -> bool:
        """Whether it is; an address always is."""
        return True

    def resolve(self, strict: bool = False) -> Stored:  # noqa: ARG002  # the signature of paths
        """Return it without ``..``; there are no links."""
        return Stored(str(self))

    def glob(self, pattern: str) -> Iterator[Path]:  # type: ignore[override]  # as a list would do
        """Yield the files below it that match a pattern."""
        with naming(str(self)):
            found = storage(str(self)).glob(f"{self}/{pattern}", detail=True)
        yield from self._found(found)

    def rglob(self, pattern: str) -> Iterator[Path]:  # type: ignore[override]  # as above
        """Yield all files below it; `pattern` must be ``*``."""
        assert pattern == "*", "all files, or none"
        with naming(str(self)):
            found = storage(str(self)).find(str(self), detail=True)
        yield from self._found(found)

    def iterdir(self) -> Iterator[Path]:  # type: ignore[override]  # as above
        """Yield the files in it and below it: storage has no folders."""
        return self.rglob("*")

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """Return its text, as it is now."""
        with naming(str(self)):
            data: bytes = storage(str(self)).cat_file(str(self))
        return data.decode(encoding or "utf-8", errors or "strict")

    def _found(self, infos: dict[str, dict[str, Any]]) -> Iterator[Path]:
        for key in sorted(infos):
            path = Stored(f"{self.parts[0]}//{key.lstrip('/')}")
            _Copies.forget(path, infos[key])
            yield path


def path_of(given: str | os.PathLike[str]) -> Path:
    """Return a path, or an address as one; of what `Path` made of an address, too."""
    if isinstance(given, Stored):
        return given
    text = str(given)
    found = ADDRESS.match(text)
    if found is None:
        return Path(given)
    scheme = found[1].lower()
    return Stored(f"{_SAME.get(scheme, scheme)}://{text[found.end() :].lstrip('/')}")


def is_address(text: str) -> bool:
    """Whether a path as text is an address."""
    return ADDRESS.match(text) is not None


def beside(folder: Path, name: str) -> Path:
    """Return the file that a name stands for in a file of some folder: an address, a path, or one below the folder."""
    named = path_of(name)
    return named if named.is_absolute() else folder / named


def matches(folder: Path, pattern: str) -> list[Path]:
    """
    Return the files that a pattern stands for in a file of some folder, sorted.

    Raises:
        ValueError: It is no pattern; or another error of `Path.glob`.
        OSError: The storage does not answer.
    """
    named = beside(folder, pattern)
    if isinstance(named, Stored):
        return [*Stored("//".join(named.parts[:2])).glob("/".join(named.parts[2:]))]
    base = Path(pattern)
    root = Path(base.anchor) if base.is_absolute() else folder
    return sorted(root.glob(str(base.relative_to(base.anchor))))


def storage(address: str) -> Any:
    """
    Return the filesystem of fsspec that an address is on; its credentials are where its library looks for them.

    Raises:
        ImportError: fsspec, or the package that it needs for this storage, is not installed.
        ValueError: fsspec does not know it.
    """
    return _opened(address.partition(":")[0])


@cache
def _opened(scheme: str) -> Any:
    import fsspec  # noqa: PLC0415  # only what reads addresses needs it

    return fsspec.filesystem(scheme, use_listings_cache=False)


@contextmanager
def naming(address: str) -> Iterator[None]:
    """
    Give the errors of a storage an address.

    Raises:
        OSError: For any of them.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), address) from error
    except PermissionError as error:
        raise PermissionError(errno.EACCES, " ".join(str(error).split()), address) from error
    except FileExistsError:
        raise
    except Exception as error:  # each library has its own
        cause = f"the storage does not answer as it should: {type(error).__name__}: {' '.join(str(error).split())}"
        raise OSError(errno.EIO, cause, address) from error


def fetch(address: str, target: str) -> None:
    """Fetch a whole file to a place; it appears there whole."""
    part = Path(f"{target}.{os.getpid()}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    with naming(address):
        storage(address).get_file(address, str(part))
    part.replace(target)


@contextmanager
def opened_at(address: str, size: int) -> Iterator[IO[bytes]]:
    """
    Open a file here or on object storage, to read parts of it; nothing of it stays here.

    Args:
        address: A path or an address.
        size: Its size in bytes; a small file is asked for once.
    """
    if not is_address(address):
        with open(address, "rb") as file:
            yield file
        return
    with naming(address):
        opened = (
            storage(address).open(address, "rb") if size > _WHOLE else io.BytesIO(storage(address).cat_file(address))
        )
    with opened:
        yield opened


def fetch_pieces(pieces: Sequence[tuple[str, int, int]], target: IO[bytes]) -> None:
    """
    Fetch pieces of files, some at a time, and write them to an open file one after the other.

    Args:
        pieces: Address of a file, and where a piece of it starts and ends; all on one storage.
        target: Where they go.

    Raises:
        OSError: The storage does not answer, or a file ends before.
    """
    for some in _some(pieces):
        addresses, starts, stops = map(list, zip(*some, strict=True))
        for found, (address, start, stop) in zip(
            storage(addresses[0]).cat_ranges(addresses, starts, stops), some, strict=True
        ):
            with naming(address):
                if isinstance(found, BaseException):
                    raise found
                if len(found) != stop - start:
                    message = f"it has no bytes {start} to {stop}"
                    raise ValueError(message)
            target.write(found)


def _some(pieces: Sequence[tuple[str, int, int]]) -> Iterator[Sequence[tuple[str, int, int]]]:
    """Yield pieces, so many at a time that memory holds them."""
    first, size = 0, 0
    for place, (_, start, stop) in enumerate(pieces):
        size += stop - start
        if size >= _BLOCK or place == len(pieces) - 1:
            yield pieces[first : place + 1]
            first, size = place + 1, 0


def put(source: str, address: str) -> None:
    """Upload a file, whole."""
    with naming(address):
        storage(address).put_file(source, address)


@contextmanager
def reading(path: Path, start: int = 0, stop: int = _HEAD) -> Iterator[None]:
    """
    Let a file on object storage be, in the block, what a task needs of it: its first event, and perhaps one piece.

    Its copy has a hole between the two. A reader that strays there meets an event of no size, which no event has.

    Args:
        path: The file; one on this machine, or fetched already, is read as it is.
        start: Where the piece begins.
        stop: Where it ends; the copy ends there, too.
    """
    if not isinstance(path, Stored) or _Copies.holds(path):
        yield
        return
    copy, first = Path(scratch_folder(), path.name), min(_HEAD, stop)
    pieces = [(0, first), (max(start - _BEFORE, first), stop)] if start > first else [(0, stop)]
    try:
        with copy.open("wb") as file:
            for begin, end in pieces:
                file.seek(begin)
                for place in range(begin, end, _BLOCK):
                    with naming(str(path)):
                        file.write(storage(str(path)).cat_file(str(path), start=place, end=min(place + _BLOCK, end)))
        with _Copies.holding(path, copy):
            yield
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)


class _Copies:
    """
    What this process knows of files: their facts, and local copies, by address.

    A file is as it was when it was listed, or first asked for: one that grows does not change under a reader. Pieces
    are those of a thread: another one may read another piece.
    """

    _facts: ClassVar[dict[str, os.stat_result]] = {}
    _held: ClassVar[dict[str, str]] = {}
    _lock: ClassVar[Any] = threading.RLock()
    _thread: ClassVar[Any] = threading.local()

    @classmethod
    def _pieces(cls) -> dict[str, str]:
        pieces: dict[str, str] = cls._thread.__dict__.setdefault("pieces", {})
        return pieces

    @classmethod
    def _here(cls, address: str) -> str | None:
        return cls._pieces().get(address) or cls._held.get(address)

    @classmethod
    def forget(cls, path: Stored, info: dict[str, Any] | None = None) -> None:
        """Take a file as it is now; `info` may be known. An earlier copy goes."""
        with cls._lock:
            cls._facts.pop(str(path), None)
            if info is not None:
                cls._facts[str(path)] = _facts(info)
            held = cls._held.pop(str(path), None)
        if held is not None:
            Path(held).unlink(missing_ok=True)  # whoever has mapped it goes on

    @classmethod
    def holds(cls, path: Stored) -> bool:
        return cls._here(str(path)) is not None

    @classmethod
    @contextmanager
    def holding(cls, path: Stored, copy: Path) -> Iterator[None]:
        cls._pieces()[str(path)] = str(copy)
        try:
            yield
        finally:
            del cls._pieces()[str(path)]

    @classmethod
    def facts_of(cls, path: Stored) -> os.stat_result:
        address = str(path)
        here = cls._here(address)
        if here is not None:
            return Path(here).stat()
        if address not in cls._facts:
            with naming(address):
                facts = _facts(storage(address).info(address))
            if stat.S_ISDIR(facts.st_mode):
                return facts
            cls._facts[address] = facts
        return cls._facts[address]

    @classmethod
    def of(cls, path: Stored) -> str:
        with cls._lock:
            address = str(path)
            piece = cls._pieces().get(address)
            if piece is not None:
                return piece
            if address not in cls._held:
                copy = posixpath.join(scratch_folder(), path.name)
                fetch(address, copy)
                cls._held[address] = copy
            return cls._held[address]


def _facts(info: dict[str, Any]) -> os.stat_result:
    kind = stat.S_IFDIR if info["type"] == "directory" else stat.S_IFREG
    return os.stat_result((kind | 0o444, 0, 0, 1, 0, 0, info["size"] or 0, 0, 0, 0))


def digest_of_ends(file: Path, stop: int) -> str:
    """Return a digest of the first and the last 4 KiB before a position of a file."""
    with reading(file, max(stop - _DIGEST_BYTES, 0), stop), file.open("rb") as stream:
        head = bytearray(stream.read(min(stop, _DIGEST_BYTES)))
        if len(head) > _IN_USE_AT:
            head[_IN_USE_AT] &= ~1  # the server clears this flag when it closes the file
        stream.seek(max(stop - _DIGEST_BYTES, len(head)))
        tail = stream.read(stop - stream.tell())
    return hashlib.sha256(bytes(head) + tail).hexdigest()
