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

import json
import posixpath
import secrets
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.fs as pafs

from conflict.config.text_file import place_of
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.blocks import BlockPlace, Parts, fetch_blocks, read_block
from conflict.history.grid.folder import LOCAL, Folder
from conflict.history.grid.signs_of_life import SignOfLife
from conflict.telling.shown_text import not_utf8
from ndb_formats.scratch import scratch_folder
from ndb_formats.stored import fetch, is_address, naming, put, storage

_VERSIONS = "versions"
_THREADS = 8  # an upload waits for its storage
_WHOLE = 8 << 20  # bytes of a file that is fetched whole, though few of them are needed
_FOOTER = 1 << 16  # bytes at the end of a Parquet file, which mostly say what is in it
_TRIES, _PAUSE = 5, 0.5  # seconds; each try waits one pause more
_published: dict[str, StoredFolder] = {}  # by this process
_live: dict[str, _Contents] = {}  # of this process, if it is a driver, by what they write
_of_one_task: list[Path] = []  # files of buckets that this process fetched since its last task
_fetching: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@attrs.frozen
class StoredFile:
    """
    A file of a version.

    Attributes:
        object: Its address.
        bytes: Its size.
    """

    object: str
    bytes: int


@attrs.define(eq=False)
class _Contents:
    """
    What a folder and all folders below it hold.

    Attributes:
        root: The folder's address.
        version: Number of the version; 0 if there is none yet.
        files: Its files, by path, and those that this run has uploaded.
        began: Its files when this run began.
        left: What runs that were killed uploaded, by path, each time together.
        own: Where this run uploads.
        scratch: Where this machine has what was fetched, and what was written and is not uploaded yet.
        is_apart: Whether tasks run on other machines.
    """

    root: str
    version: int
    files: dict[str, StoredFile]
    own: str = ""
    scratch: str = attrs.field(factory=scratch_folder)
    is_apart: bool = False
    began: dict[str, StoredFile] = attrs.field(factory=dict)
    left: list[dict[str, StoredFile]] = attrs.field(factory=list)
    _listed: tuple[dict[str, StoredFile] | None, str] = (None, "")

    def __attrs_post_init__(self) -> None:
        """Remember what was there."""
        self.began = dict(self.files)
        self.own = self.own or f"{self.root}/v{self.version + 1:06d}-{secrets.token_hex(8)}"

    @property
    def is_changed(self) -> bool:
        """Whether the next version is another one."""
        return self.files != self.began

    def __reduce__(self) -> tuple[object, ...]:
        """Return what makes it again elsewhere; what was written is uploaded for who reads it there."""
        if not self.is_apart:
            return _Contents, (self.root, self.version, self.files, self.own, self.scratch)
        self.upload()
        if self._listed[0] != self.files:
            place = f"{self.own}/{secrets.token_hex(8)}.json"
            if self.version and not self.is_changed:
                place = _version(self.root, self.version)
            else:
                with naming(place):
                    storage(place).pipe_file(place, self.listing())
            self._listed = dict(self.files), place
        return _contents_at, (self.root, self.version, self.own, self._listed[1])

    def listing(self) -> bytes:
        """Return the document that says where the files are."""
        files = {path: (file.object.removeprefix(f"{self.root}/"), file.bytes) for path, file in self.files.items()}
        return json.dumps({"files": files}).encode()

    def upload(self) -> None:
        """Upload what was written here."""
        above, place = Path(self.scratch, "written"), self.own
        folder = Folder(str(above))
        written = folder.sizes() if above.is_dir() else {}
        if self.is_apart:  # more than once
            place = f"{self.own}/{secrets.token_hex(4)}"
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(lambda path: put(str(above / path), f"{place}/{path}"), written))
        for path, size in written.items():
            self.files[path] = StoredFile(f"{place}/{path}", size)
            copy = self.copy_of(self.files[path])
            copy.parent.mkdir(parents=True, exist_ok=True)
            (above / path).replace(copy)  # whoever reads it next need not fetch it

    def gather(self) -> None:
        """
        Give each file its path below where this run uploads; tasks on other machines upload each to a place of its own.

        Storage copies them itself. A task that is given up may upload again later, and changes none of them.
        """

        def moved(path: str) -> StoredFile:
            old, new = self.files[path], StoredFile(f"{self.own}/{path}", self.files[path].bytes)
            if old != new:
                with naming(old.object):
                    storage(self.root).cp_file(old.object, new.object)
                if (copy := self.copy_of(old)).exists():
                    self.copy_of(new).parent.mkdir(parents=True, exist_ok=True)
                    copy.replace(self.copy_of(new))
            return new

        with ThreadPoolExecutor(_THREADS) as threads:
            self.files.update(dict(zip(self.files, threads.map(moved, self.files), strict=True)))

    def copy_of(self, file: StoredFile) -> Path:
        """Return where a file is on this machine, if it was fetched."""
        return Path(self.scratch, "fetched", file.object.removeprefix(f"{self.root}/"))

    def fetched(self, path: str) -> str:
        """Return where a file is on this machine; it is fetched once."""
        copy = self.copy_of(self.files[path])
        with _fetching[str(copy)]:
            if not copy.exists():
                try:
                    fetch(self.files[path].object, str(copy))
                except FileNotFoundError as error:
                    raise _removed(self.root, error) from error
                if self.is_apart and "bucket=" in path:
                    _of_one_task.append(copy)
        return str(copy)


@attrs.frozen(eq=False)
class StoredFolder(Folder):
    """
    A version of a folder on object storage, and what this run writes for the next one.

    Attributes:
        contents: What it holds.
        prefix: Where this one is below the folder that has versions.
        is_result: Whether each table is to be at one place, for programs that do not know versions.
    """

    contents: _Contents = attrs.field(repr=False)
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
            raise _removed(self.uri, error) from error
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

    def here(self, path: str) -> str | list[str]:
        """Return where all files at and below a path are on this machine."""
        with ThreadPoolExecutor(_THREADS) as threads:
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
        return StoredFolder(self.uri, _Contents(self.uri, self.version, {}), is_result=True)

    def spread(self) -> None:
        """Let tasks on other machines read it, and write to it."""
        self.contents.is_apart = True
        _live[self.contents.own] = self.contents

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
        with sign.shown():
            dead = sign.dead()
            contents.left = [upload for each in dead for upload in _uploads(each.place)]
            try:
                yield
                contents.upload()
                if self.is_result:
                    contents.gather()
                if contents.is_changed:
                    self._create(contents.listing())
                    _published[self.uri] = StoredFolder(
                        self.uri, _Contents(self.uri, self.version + 1, contents.files, scratch=contents.scratch)
                    )
            except BaseException:
                _remove_others(contents.own, {})
                raise
            finally:
                _live.pop(contents.own, None)
            if contents.is_apart:
                _remove_others(contents.own, contents.files)
            for each in dead:
                # Who has published, or has not until now, cannot publish any more, should it live.
                if contents.is_changed or any(file.object.startswith(each.place) for file in contents.began.values()):
                    _remove_others(each.place, contents.began | contents.files)
                    each.remove()
        self._remove_outdated()

    def _remove_outdated(self) -> None:
        """Remove what only the version before the one that this run began with has."""
        if self.contents.is_changed and self.version > 1:
            with suppress(Exception):  # it is in nobody's way
                outdated = _files_of(self.uri, storage(self.uri).cat_file(_version(self.uri, self.version - 1)))
                kept = {*self.contents.began.values(), *self.files.values()}
                storage(self.uri).rm([each.object for each in outdated.values() if each not in kept])

    def remove_objects(self) -> None:
        """Remove the files of this version, which another one has replaced."""
        if self.files:
            with suppress(FileNotFoundError), naming(self.uri):
                storage(self.uri).rm([file.object for file in self.files.values()])

    def _create(self, data: bytes) -> None:
        """Create the next version, if nobody has; an answer that is lost on its way does not matter."""
        place = _version(self.uri, self.version + 1)
        for attempt in range(_TRIES):
            try:
                with naming(place):
                    storage(place).pipe_file(place, data, mode="create")
            except FileExistsError:
                break
            except OSError:
                if attempt == _TRIES - 1:
                    raise
                time.sleep(_PAUSE * (attempt + 1))
            else:
                return
        with naming(place):
            found = storage(place).cat_file(place)
        if found != data:
            message = (
                f"{self.uri} was written by another process meanwhile, and has what that one wrote; nothing of this "
                "run is there. Run it again to continue or replace that, or give another folder"
            )
            raise ConfigurationError(message)


def _removed(root: str, error: FileNotFoundError) -> HistoryError:
    return HistoryError(f"{root}: {error.filename} was removed while it was read, or is lost; read it again")


def forget_buckets() -> None:
    """Remove what a task has fetched of buckets, which other tasks do not need."""
    while _of_one_task:
        _of_one_task.pop().unlink(missing_ok=True)


def _remove_others(place: str, files: Mapping[str, StoredFile]) -> None:
    """Remove what is below an address, without some files."""
    with suppress(Exception):  # it is in nobody's way
        kept = {file.object.partition("://")[2] for file in files.values()}
        uploaded = storage(place).find(place)
        storage(place).rm([each for each in uploaded if each.lstrip("/") not in kept])


def _uploads(place: str) -> list[dict[str, StoredFile]]:
    """Return the files that were uploaded together, by path, of each time when a run with tasks elsewhere uploaded."""
    found: defaultdict[str, dict[str, StoredFile]] = defaultdict(dict)
    with naming(place):
        uploaded = storage(place).find(place, detail=True)
    for name, info in uploaded.items():
        below = posixpath.relpath(f"/{name.lstrip('/')}", f"/{place.partition('://')[2]}")
        together, _, path = below.partition("/")
        if path:
            found[together][path] = StoredFile(f"{place}/{below}", int(info["size"]))
    return list(found.values())


@lru_cache(maxsize=8)
def _contents_at(root: str, version: int, own: str, listing: str) -> _Contents:
    """Return what a folder holds, in a task; in its driver, the one that is there."""
    if own in _live:
        return _live[own]
    with naming(listing):
        files = _files_of(root, storage(listing).cat_file(listing))
    contents = _Contents(root, version, files, own, _scratch_of(own), is_apart=True)
    contents._listed = dict(files), listing  # noqa: SLF001  # it is made here
    return contents


@cache
def _scratch_of(own: str) -> str:  # noqa: ARG001  # one for each
    return scratch_folder()


def _files_of(root: str, listing: bytes) -> dict[str, StoredFile]:
    listed = json.loads(listing)["files"].items()
    return {path: StoredFile(f"{root}/{place}", int(size)) for path, (place, size) in listed}


def _version(uri: str, number: int) -> str:
    return f"{uri}/{_VERSIONS}/{number:06d}.json"


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
            names = storage(uri).ls(f"{uri}/{_VERSIONS}", detail=False)
        except FileNotFoundError:
            return StoredFolder(uri, _Contents(uri, 0, {}))
        number = max(int(posixpath.basename(name).removesuffix(".json")) for name in names)
        if uri in _published and _published[uri].version == number:
            return _published[uri]
        data = storage(uri).cat_file(_version(uri, number))
    try:
        files = _files_of(uri, data)
    except (ValueError, LookupError, TypeError) as error:
        message = f"{_version(uri, number)} is damaged ({error}); make the folder again"
        raise HistoryError(message) from error
    return StoredFolder(uri, _Contents(uri, number, files))


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
