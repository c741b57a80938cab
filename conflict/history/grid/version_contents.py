"""
The files of a version of a folder on object storage: where they are there and here, what goes up, what is left over.

A driver has one for a folder and all folders below it; a task elsewhere makes its own from the list of its driver.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path

import attrs

from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.folder import Folder
from ndb_formats.scratch import for_all, scratch_folder
from ndb_formats.stored import fetch, naming, put, storage

VERSIONS = "versions"
THREADS = 8  # an upload waits for its storage
_TRIES, _PAUSE = 5, 0.5  # seconds; each try waits one pause more
live: dict[str, Contents] = {}  # of this process, if it is a driver, by what they write
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
class Contents:
    """
    What a folder and all folders below it hold.

    Attributes:
        root: The folder's address.
        version: Number of the version; 0 if there is none yet.
        files: Its files, by path, and those that this run has uploaded.
        began: Its files when this run began.
        left: What runs that were killed, or failed, uploaded after this version, by path, each time together.
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

    def has_same_base(self, place: str) -> bool:
        """Whether another run, which uploads at that place, began with the same version."""
        return posixpath.basename(place).startswith(f"v{self.version + 1:06d}-")

    def __reduce__(self) -> tuple[object, ...]:
        """Return what makes it again elsewhere; what was written is uploaded for who reads it there."""
        if not self.is_apart:
            return Contents, (self.root, self.version, self.files, self.own, self.scratch)
        self.upload()
        if self._listed[0] != self.files:
            place = f"{self.own}/{secrets.token_hex(8)}.json"
            if self.version and not self.is_changed:
                place = version_place(self.root, self.version)
            else:
                with naming(place):
                    storage(place).pipe_file(place, self.listing())
            self._listed = dict(self.files), place
        return contents_at, (self.root, self.version, self.own, self._listed[1])

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
        with ThreadPoolExecutor(THREADS) as threads:
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

        with ThreadPoolExecutor(THREADS) as threads:
            self.files.update(dict(zip(self.files, threads.map(moved, self.files), strict=True)))

    def create(self) -> None:
        """
        Create the next version, if nobody has; an answer that is lost on its way does not matter.

        Raises:
            ConfigurationError: Another writer has created it.
            OSError: The storage does not answer.
        """
        data, place = self.listing(), version_place(self.root, self.version + 1)
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
                f"{self.root} was written by another process meanwhile, and has what that one wrote; nothing of this "
                "run is there. Run it again to continue or replace that, or give another folder"
            )
            raise ConfigurationError(message)

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
                    raise removed(self.root, error) from error
                if self.is_apart and "bucket=" in path:
                    _of_one_task.append(copy)
        return str(copy)

    def fetched_for_all(self, path: str) -> str:
        """Return where a file is that all processes of this machine map; one of them fetches it."""
        file = self.files[path]
        try:
            return for_all(_name_of(self.own), posixpath.basename(path), partial(fetch, file.object))
        except FileNotFoundError as error:
            raise removed(self.root, error) from error


def _name_of(address: str) -> str:
    return hashlib.sha256(address.encode()).hexdigest()[:16]


def removed(root: str, error: FileNotFoundError) -> HistoryError:
    """Return the error of a folder whose file was not found."""
    return HistoryError(f"{root}: {error.filename} was removed while it was read, or is lost; read it again")


def forget_buckets() -> None:
    """Remove what a task has fetched of buckets, which other tasks do not need."""
    while _of_one_task:
        _of_one_task.pop().unlink(missing_ok=True)


def remove_others(place: str, files: Mapping[str, StoredFile]) -> None:
    """Remove what is below an address, without some files."""
    with suppress(Exception):  # it is in nobody's way
        kept = {file.object.partition("://")[2] for file in files.values()}
        uploaded = storage(place).find(place)
        storage(place).rm([each for each in uploaded if each.lstrip("/") not in kept])


def uploads(place: str) -> list[dict[str, StoredFile]]:
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
def contents_at(root: str, version: int, own: str, listing: str) -> Contents:
    """Return what a folder holds, in a task; in its driver, the one that is there."""
    if own in live:
        return live[own]
    with naming(listing):
        files = files_of(root, storage(listing).cat_file(listing))
    contents = Contents(root, version, files, own, _scratch_of(own), is_apart=True)
    contents._listed = dict(files), listing  # noqa: SLF001  # it is made here
    return contents


@cache
def _scratch_of(own: str) -> str:  # noqa: ARG001  # one for each
    return scratch_folder()


def files_of(root: str, listing: bytes) -> dict[str, StoredFile]:
    """Return the files that a document of a version lists, by path; it raises what JSON does if that is damaged."""
    listed = json.loads(listing)["files"].items()
    return {path: StoredFile(f"{root}/{place}", int(size)) for path, (place, size) in listed}


def version_place(uri: str, number: int) -> str:
    """Return where the document of a version is."""
    return f"{uri}/{VERSIONS}/{number:06d}.json"
