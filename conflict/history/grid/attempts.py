"""
Attempts of a task: each writes under names of its own, and the driver gives its files theirs.

Spark may run two attempts of a task at the same time, and one that it gave up may wake up hours later. So an attempt
writes to a folder that no other one has, ``.attempts/STAGE/ATTEMPT``, and the driver moves the files of the attempt
whose result it takes. The folder of the stage goes with the stage: who writes there later finds no place.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import shutil
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import cast

import attrs
import pyarrow.fs as pafs

from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder, running
from conflict.history.grid.stored_folder import StoredFolder
from conflict.history.grid.version_contents import StoredFile, forget_buckets

ATTEMPTS = ".attempts"
_DONE = "done.json"  # what a finished attempt wrote
_THREADS = 8  # a move waits for its storage


@attrs.frozen
class Written:
    """
    What an attempt wrote below one folder.

    Attributes:
        folder: The folder.
        place: Where its files are below it.
        files: Name there, and path below the folder, of each file in the order in which they were written.
        uploaded: Of a folder on object storage, what that is there, by path.
    """

    folder: Folder
    place: str
    files: list[tuple[str, str]] = attrs.field(factory=list)
    uploaded: list[tuple[str, StoredFile]] = attrs.field(factory=list)


@attrs.define
class Attempt:
    """
    One attempt, in the process that makes it.

    Attributes:
        written: What it wrote, by folder.
    """

    written: list[Written]
    _own: dict[str, str] = attrs.field(factory=dict)

    def own_file(self, full: str) -> str:
        """Return where a file is for this attempt, given its full path."""
        return self._own.get(full, full)

    @contextmanager
    def new_file(self, full: str) -> Iterator[str | None]:
        """Give a place for a file, given its full path; None for a file that is in none of the folders."""
        for each in self.written:
            root = each.folder.place()[1]
            if full.startswith(f"{root}/"):
                name = uuid.uuid4().hex
                place = posixpath.join(root, each.place, name)
                yield place
                self._own[full] = place
                each.files.append((name, posixpath.relpath(full, root)))
                return
        yield None


@attrs.frozen
class Seen:
    """
    A file that driver and executors must see alike, because tasks read the folder that it is in.

    Attributes:
        folder: The folder.
        path: The file.
        digest: SHA-256 of what the driver sees.
    """

    folder: Folder
    path: str
    digest: str

    @classmethod
    def of(cls, folder: Folder, path: str) -> Seen:
        """Look at a file."""
        return cls(folder, path, hashlib.sha256(folder.read_bytes(path)).hexdigest())


@attrs.frozen
class Stage:
    """
    Tasks that run together.

    Attributes:
        folders: Where they write.
        seen: What they must see as the driver does.
        name: Name of the folder of their attempts, which no other stage has.
    """

    folders: Sequence[Folder]
    seen: Sequence[Seen] = ()
    name: str = attrs.field(factory=lambda: uuid.uuid4().hex)

    @property
    def _place(self) -> str:
        return posixpath.join(ATTEMPTS, self.name)

    def open(self) -> None:
        """Make the folders of the stage."""
        for folder in self.folders:
            filesystem, full = folder.place(self._place)
            filesystem.create_dir(full, recursive=True)

    def close(self) -> None:
        """Remove what attempts left whose results nobody took."""
        for folder in self.folders:
            with suppress(OSError):  # one of them may be writing
                folder.delete(self._place)
                filesystem, full = folder.place(ATTEMPTS)
                if not filesystem.get_file_info(pafs.FileSelector(full, allow_not_found=True)):
                    folder.delete(ATTEMPTS)

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """
        Let what is written in the block be that of an attempt.

        Raises:
            ConfigurationError: The folders are not those of the driver.
        """
        for seen in self.seen:
            _look(seen)
        attempt = Attempt([Written(each, posixpath.join(self._place, uuid.uuid4().hex)) for each in self.folders])
        try:
            for each in attempt.written:
                _make(each)
            running.append(attempt)
            try:
                yield attempt
            finally:
                running.remove(attempt)
            for each in attempt.written:
                if each.files:
                    _finish(each)
        finally:
            for each in attempt.written:
                if each.folder.is_apart:
                    shutil.rmtree(each.folder.place(each.place)[1], ignore_errors=True)
            forget_buckets()


def _make(written: Written) -> None:
    filesystem, full = written.folder.place(written.place)
    try:
        # Not above it, so that nothing is made after the end of the stage.
        filesystem.create_dir(full, recursive=written.folder.is_apart)
    except OSError as error:
        raise ConfigurationError(_not_shared(written.folder, f"it cannot write there: {error}")) from error


def _finish(written: Written) -> None:
    if written.folder.is_apart:
        folder = cast("StoredFolder", written.folder)
        root = posixpath.join(folder.place()[1], written.place)
        written.uploaded.extend(folder.uploaded((posixpath.join(root, name), path) for name, path in written.files))
        return
    filesystem, full = written.folder.place(posixpath.join(written.place, _DONE))
    with filesystem.open_output_stream(full) as stream:
        stream.write(json.dumps(written.files).encode())


@lru_cache(maxsize=8)
def _look(seen: Seen) -> None:
    try:
        same = Seen.of(seen.folder, seen.path) == seen
    except OSError as error:
        raise ConfigurationError(_not_shared(seen.folder, str(error))) from error
    if not same:
        raise ConfigurationError(_not_shared(seen.folder, f"its {seen.path} is another file"))


def _not_shared(folder: Folder, why: str) -> str:
    return (
        f"{folder.uri} is not the same folder for the driver and for the executor on {socket.gethostname()}, as it "
        f"must be: {why}. Give a folder on storage that all of them share under one path"
    )


def publish(written: Iterable[Written]) -> None:
    """Give the files of finished attempts their names; those of one attempt in the order in which it wrote them."""
    everything = list(written)
    for each in everything:
        for path, file in each.uploaded:
            cast("StoredFolder", each.folder).take(path, file)
    everything = [each for each in everything if not each.uploaded]
    made = set[str]()
    for each in everything:
        filesystem, root = each.folder.place()
        for folder in {posixpath.dirname(posixpath.join(root, path)) for _, path in each.files} - made:
            filesystem.create_dir(folder, recursive=True)
            made.add(folder)
    with ThreadPoolExecutor(_THREADS) as threads:
        for _ in threads.map(_move, everything):
            pass


def _move(written: Written) -> None:
    filesystem, root = written.folder.place()
    for name, path in written.files:
        filesystem.move(posixpath.join(root, written.place, name), posixpath.join(root, path))


def publish_finished(folder: Folder, wanted: Iterable[str]) -> None:
    """
    Publish what attempts finished whose driver was killed.

    Args:
        folder: Where they wrote.
        wanted: Paths of files; an attempt is taken for each that one wrote, with all that it wrote.
    """
    missing = set(wanted)
    if isinstance(folder, StoredFolder):
        folder.take_left(missing)
        return
    for written in _finished(folder):
        paths = {path for _, path in written.files}
        if paths & missing:
            publish([written])
            missing -= paths


def _finished(folder: Folder) -> Iterator[Written]:
    """Yield what finished attempts wrote, of those whose files are all there still."""
    filesystem, full = folder.place(ATTEMPTS)
    everything = filesystem.get_file_info(pafs.FileSelector(full, allow_not_found=True, recursive=True))
    there = {info.path for info in everything}
    for path in sorted(there):
        place, name = posixpath.split(path)
        if name == _DONE:
            with filesystem.open_input_stream(path) as stream:
                files = [(own, given) for own, given in json.loads(stream.read())]
            if all(posixpath.join(place, own) in there for own, _ in files):
                yield Written(folder, posixpath.relpath(place, folder.place()[1]), files)
