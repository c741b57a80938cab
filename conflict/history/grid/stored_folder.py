"""
Folders on object storage, where nothing can be renamed or locked: each version is there whole or not at all.

A writer works on a local copy, uploads what it wrote under a name that no other writer has, and then creates one small
file, ``versions/000001.json``, which says where the files of the folder are. Storage creates it only if it is not there
(a conditional put), so of several writers that began with the same version one publishes the next one. Nothing that
was published is written again. Readers take the last version, and fetch the files that they use. Files that are in no
later version stay until the version after the next one is published, for readers who are not done.

Tasks on other machines do the same: each attempt uploads what it wrote under a name of its own, and the driver takes
the objects of one attempt of each task for the files.
"""

from __future__ import annotations

import mmap
import posixpath
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.fs as pafs

from conflict.config.text_file import place_of
from conflict.errors import ConfigurationError, ConflictError, HistoryError
from conflict.history.grid.blocks import BlockPlace, Parts, fetch_blocks, read_block
from conflict.history.grid.folder import LOCAL, Folder
from conflict.history.grid.signs_of_life import SignOfLife
from conflict.history.grid.version_contents import (
    THREADS,
    VERSIONS,
    Contents,
    StoredFile,
    files_of,
    live,
    remove_others,
    removed,
    uploads,
    version_place,
)
from conflict.telling.shown_text import not_utf8
from ndb_formats.errors import FormatError
from ndb_formats.stored import is_address, naming, put, storage

_WHOLE = 8 << 20  # bytes of a file that is fetched whole, though few of them are needed
_FOOTER = 1 << 16  # bytes at the end of a Parquet file, which mostly say what is in it
_published: dict[str, StoredFolder] = {}  # by this process


@attrs.frozen(eq=False)
class StoredFolder(Folder):
    """
    A version of a folder on object storage, and what this run writes for the next one.

    Attributes:
        contents: What it holds.
        prefix: Where this one is below the folder that has versions.
        is_result: Whether each table is to be at one place, for programs that do not know versions.
    """

    contents: Contents = attrs.field(repr=False)
    prefix: str = ""
    is_result: bool = False

    @property
    def version(self) -> int:
        """Number of the version; 0 if there is none yet."""
        return self.contents.version

    @property
    def files(self) -> dict[str, StoredFile]:
        """The files of the folder that has versions."""
        return self.contents.files

    @property
    def is_apart(self) -> bool:
        """Whether tasks run on other machines."""
        return self.contents.is_apart

    def _key(self, path: str) -> str:
        return posixpath.normpath(f"{self.prefix}/{path}").lstrip("/.") if self.prefix else path

    def _keys(self, path: str, files: Mapping[str, StoredFile] | None = None) -> list[str]:
        """Return the files at and below a path, of those that the folder has, or of others."""
        key, known = self._key(path), self.files if files is None else files
        return [each for each in known if not key or each == key or each.startswith(f"{key}/")]

    def place(self, path: str = "") -> tuple[pafs.FileSystem, str]:
        """Return where a file is written."""
        return LOCAL, posixpath.join(self.contents.scratch, "written", self._key(path)).rstrip("/")

    def _resolve(self, path: str = "") -> tuple[pafs.FileSystem, str]:
        filesystem, full = self._now(path)
        return filesystem, full if self._is_written(path) else self.contents.fetched(self._key(path))

    def _is_written(self, path: str) -> bool:
        """Whether a file was written here, and not uploaded yet; or it is nowhere."""
        return self._key(path) not in self.files or Path(self._now(path)[1]).exists()

    def _is_here(self, path: str) -> bool:
        """Whether nothing has to be fetched for a file."""
        return self._is_written(path) or self.contents.copy_of(self.files[self._key(path)]).exists()

    @contextmanager
    def parts(self, places: Sequence[BlockPlace]) -> Iterator[list[Parts]]:
        """Give tables of some buckets; of a file that is not here, their block alone is fetched."""
        away = {each: self.files[self._key(each.path)].object for each in places if not self._is_here(each.path)}
        try:
            fetched = fetch_blocks(away, self.contents.scratch)
        except FileNotFoundError as error:
            raise removed(self.uri, error) from error
        yield [self._fetched_block(each, fetched[each]) if each in fetched else self._block(each) for each in places]

    def _fetched_block(self, place: BlockPlace, data: pa.Buffer) -> Parts:
        with self._readable(place.path):
            return read_block(data, place.buckets.start)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Read some bytes of a file; of a large one that is not here, or that tasks elsewhere read, these alone."""
        file = self.files.get(self._key(path))
        if (
            file is None
            or file.bytes <= (4 * length if self.is_apart else _WHOLE)
            or self.contents.copy_of(file).exists()
        ):
            return super().read_range(path, start, length)
        with naming(file.object):
            found: bytes = storage(self.uri).cat_file(file.object, start=start, end=start + length)
        return found

    @contextmanager
    def _footer(self, path: str) -> Iterator[pa.NativeFile]:
        if not self.is_apart or self._is_here(path):
            with super()._footer(path) as source:
                yield source
            return
        size, length = self.files[self._key(path)].bytes, _FOOTER
        while True:
            data = self.read_range(path, max(size - length, 0), min(length, size))
            needed = int.from_bytes(data[-8:-4], "little") + 8  # Parquet says so before its last four bytes
            if needed <= length:
                break
            length = needed
        with self._readable(path):
            yield pa.BufferReader(data)

    def mapped(self, path: str) -> mmap.mmap:
        """Return a file that is not empty, mapped: one that is elsewhere is fetched once for all processes here."""
        if not self.is_apart or self._is_here(path):
            return super().mapped(path)
        return self._mapped(self.contents.fetched_for_all(self._key(path)))

    def here(self, path: str) -> str | list[str]:
        """Return where all files at and below a path are on this machine."""
        with ThreadPoolExecutor(THREADS) as threads:
            return list(threads.map(self.contents.fetched, sorted(self._keys(path))))

    def address(self, path: str) -> str:
        """
        Return where a file or folder of this version is, which no later version changes.

        Raises:
            HistoryError: There is nothing, or an earlier version of the program wrote it to several places.
        """
        key = self._key(path)
        found = {self.files[each].object.removesuffix(each.removeprefix(key)) for each in self._keys(path)}
        if len(found) != 1:
            message = f"{self.uri} has no {path} at one place; resolve again"
            raise HistoryError(message)
        return found.pop()

    def forget(self) -> None:
        """Remove what was fetched."""
        shutil.rmtree(self.contents.scratch, ignore_errors=True)

    def below(self, path: str) -> StoredFolder:
        """Return a folder below this one."""
        return StoredFolder(posixpath.join(self.uri, path), self.contents, self._key(path))

    def exists(self, path: str = "") -> bool:
        """Whether a file or folder exists; one that has versions does if there is one."""
        if not self._key(path):
            return self.version > 0
        return bool(self._keys(path)) or super().exists(path)

    def sizes(self, paths: Iterable[str] | None = None) -> dict[str, int]:
        """Return the sizes of files by their paths, as of any folder."""
        wanted = None if paths is None else list(paths)
        if wanted is None:
            above = f"{self.prefix}/" if self.prefix else ""
            found = {key.removeprefix(above): self.files[key].bytes for key in self._keys("")}
        else:
            found = {path: self.files[key].bytes for path in wanted if (key := self._key(path)) in self.files}
        return {**found, **super().sizes(wanted)} if Path(self.place()[1]).is_dir() else found

    def delete(self, path: str = "") -> None:
        """Delete a file or folder, if it exists, from the next version, and from what killed runs left."""
        for key in self._keys(path):
            del self.files[key]
        for upload in self.contents.left:
            for key in self._keys(path, upload):
                del upload[key]
        super().delete(path)

    def take_left(self, paths: Iterable[str]) -> None:
        """Take what killed runs uploaded: for each of these files one upload with it, with all that came with it."""
        missing = set() if self.prefix else set(paths)  # a folder of a result is of that run alone
        for upload in self.contents.left:
            if missing & upload.keys():
                self.files.update(upload)
                missing -= upload.keys()

    def emptied(self) -> StoredFolder:
        """Return a folder whose next version holds nothing of this one."""
        return StoredFolder(self.uri, Contents(self.uri, self.version, {}), is_result=True)

    def spread(self) -> None:
        """Let tasks on other machines read it, and write to it."""
        self.contents.is_apart = True
        live[self.contents.own] = self.contents

    def uploaded(self, files: Iterable[tuple[str, str]]) -> list[tuple[str, StoredFile]]:
        """Upload what an attempt of a task wrote, whose files here are given with their paths; return what that is."""
        place = f"{self.contents.own}/{secrets.token_hex(8)}"
        done = [(path, StoredFile(f"{place}/{path}", Path(file).stat().st_size), file) for file, path in files]
        for _, stored, file in done:
            put(file, stored.object)
        return [(path, stored) for path, stored, _ in done]

    def take(self, path: str, file: StoredFile) -> None:
        """Take what an attempt uploaded for a file."""
        self.files[self._key(path)] = file
        Path(self.place(path)[1]).unlink(missing_ok=True)

    def refuse_unwritable(self) -> None:
        """
        Make sure that something can be written here.

        Raises:
            OSError: It cannot.
        """
        probe = f"{self.uri}/.{secrets.token_hex(8)}"
        with naming(self.uri):
            storage(self.uri).pipe_file(probe, b"")
            storage(self.uri).rm_file(probe)

    @contextmanager
    def published(self) -> Iterator[None]:
        """
        Make what is written in the block the next version, with what is left of this one; nothing if nothing is new.

        Raises:
            ConfigurationError: Another writer has published the next version.
            OSError: The storage does not answer; nothing was published.
        """
        contents, sign = self.contents, SignOfLife(self.contents.own)
        with sign.shown(self._leave):
            dead = sign.dead()
            contents.left = [
                upload for each in dead if contents.has_same_base(each.place) for upload in uploads(each.place)
            ]
            try:
                yield
                contents.upload()
                if self.is_result:
                    contents.gather()
                if contents.is_changed:
                    contents.create()
                    _published[self.uri] = StoredFolder(
                        self.uri, Contents(self.uri, self.version + 1, contents.files, scratch=contents.scratch)
                    )
            finally:
                live.pop(contents.own, None)
            if contents.is_apart:
                remove_others(contents.own, contents.files)
            for each in dead:
                # Who has published, or has not until now, cannot publish any more, should it live.
                if contents.is_changed or any(file.object.startswith(each.place) for file in contents.began.values()):
                    remove_others(each.place, contents.began | contents.files)
                    each.remove()
        self._remove_outdated()

    def _leave(self, error: BaseException) -> bool:
        """
        Leave what a run that failed has uploaded to the next one, if that can go on with it; else remove it.

        What the run itself refuses, the next one would refuse, too.
        """
        leaves = self.contents.is_apart and not self.is_result and not isinstance(error, ConflictError | FormatError)
        if not leaves:
            remove_others(self.contents.own, {})
        return leaves

    def _remove_outdated(self) -> None:
        """Remove what only the version before the one that this run began with has."""
        if self.contents.is_changed and self.version > 1:
            with suppress(Exception):  # it is in nobody's way
                outdated = files_of(self.uri, storage(self.uri).cat_file(version_place(self.uri, self.version - 1)))
                kept = {*self.contents.began.values(), *self.files.values()}
                storage(self.uri).rm([each.object for each in outdated.values() if each not in kept])

    def remove_objects(self) -> None:
        """Remove the files of this version, which another one has replaced."""
        if self.files:
            with suppress(FileNotFoundError), naming(self.uri):
                storage(self.uri).rm([file.object for file in self.files.values()])


def stored_folder(given: Path | str) -> StoredFolder:
    """
    Return the last version of a folder on object storage.

    Raises:
        ConfigurationError: The address cannot be opened here.
        HistoryError: What is there is no such folder.
        OSError: The storage does not answer.
    """
    uri = str(place_of(given, "the folder"))
    with naming(uri):
        try:
            names = storage(uri).ls(f"{uri}/{VERSIONS}", detail=False)
        except FileNotFoundError:
            return StoredFolder(uri, Contents(uri, 0, {}))
        number = max(int(posixpath.basename(name).removesuffix(".json")) for name in names)
        if uri in _published and _published[uri].version == number:
            return _published[uri]
        data = storage(uri).cat_file(version_place(uri, number))
    try:
        files = files_of(uri, data)
    except (ValueError, LookupError, TypeError) as error:
        message = f"{version_place(uri, number)} is damaged ({error}); make the folder again"
        raise HistoryError(message) from error
    return StoredFolder(uri, Contents(uri, number, files))


def folder_of(given: Folder | Path | str) -> Folder:
    """
    Return a folder; a path is made absolute, because Spark's tasks run elsewhere.

    Raises:
        ConfigurationError: It is an address that cannot be opened here, or no UTF-8, which Parquet files need.
        OSError: It is one, and the storage does not answer.
    """
    if isinstance(given, Folder):
        return given
    if is_address(str(given)):
        return stored_folder(given)
    path = str(Path(given).absolute())
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(not_utf8(error)) from error
    return Folder(path)
