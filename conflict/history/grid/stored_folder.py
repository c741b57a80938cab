"""
Folders on object storage, where nothing can be renamed or locked: versions, each of which is there whole or not at all.

A writer works on a local copy, uploads what it wrote under a name that no other writer has, and then creates one small
file, ``versions/000001.json``, which says where the files of the folder are. Storage creates it only if it is not there
(a conditional put), so of several writers that began with the same version one publishes the next one. Nothing that
was published is written again. Readers take the last version, and fetch the files that they use.
"""

from __future__ import annotations

import json
import posixpath
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import attrs
import pyarrow.fs as pafs

from conflict.config.text_file import place_of
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.folder import LOCAL, Folder
from ndb_formats.stored import fetch, naming, scratch_folder, storage

__all__ = ["StoredFolder", "stored_folder"]

_VERSIONS = "versions"
_THREADS = 8  # an upload waits for its storage
_WHOLE = 8 << 20  # bytes of a file that is fetched whole, though few of them are needed
_TRIES, _PAUSE = 5, 0.5  # seconds, of which each try waits one more
_published: dict[str, StoredFolder] = {}  # by this process
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


@attrs.frozen(eq=False)
class StoredFolder(Folder):
    """
    A version of a folder on object storage, and what this run writes for the next one, which is on this machine.

    Attributes:
        version: Its number; 0 if there is none yet.
        files: Its files, by path.
        scratch: Where this machine has what was fetched and what was written.
    """

    version: int
    files: dict[str, StoredFile] = attrs.field(repr=False)
    scratch: str = attrs.field(factory=scratch_folder)

    def place(self, path: str = "") -> tuple[pafs.FileSystem, str]:
        """Return where a file is written."""
        return LOCAL, posixpath.join(self.scratch, "written", path) if path else posixpath.join(self.scratch, "written")

    def _resolve(self, path: str = "") -> tuple[pafs.FileSystem, str]:
        filesystem, full = self._now(path)
        return (filesystem, self._fetched(path)) if path in self.files and not Path(full).exists() else (LOCAL, full)

    def _fetched(self, path: str) -> str:
        """Return where a file of the version is here, which is fetched once."""
        copy = posixpath.join(self.scratch, "fetched", path)
        with _fetching[copy]:
            if not Path(copy).exists():
                try:
                    fetch(self.files[path].object, copy)
                except FileNotFoundError as error:
                    message = (
                        f"{self.uri}: {path} was removed while it was read, or has been lost: {error}; read it again"
                    )
                    raise HistoryError(message) from error
        return copy

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Read some bytes of a file; of a large one that is not here, these alone."""
        file = self.files.get(path)
        copy = Path(self.scratch, "fetched", path)
        if file is None or file.bytes <= _WHOLE or copy.exists():
            return super().read_range(path, start, length)
        with naming(f"{self.uri}/{path}"):
            found: bytes = storage(self.uri).cat_file(file.object, start=start, end=start + length)
        return found

    def here(self, path: str) -> str:
        """Return where all files below a path are on this machine."""
        below = [each for each in self.files if each == path or each.startswith(f"{path}/")]
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(self._fetched, below))
        return posixpath.join(self.scratch, "fetched", path)

    def below(self, path: str) -> StoredFolder:
        """Return a folder below this one."""
        files = {
            each.removeprefix(f"{path}/"): file for each, file in self.files.items() if each.startswith(f"{path}/")
        }
        scratch = posixpath.join(self.scratch, "below", path)
        return StoredFolder(posixpath.join(self.uri, path), self.version, files, scratch)

    def exists(self, path: str = "") -> bool:
        """Whether a file or folder exists; the folder itself does if it has a version."""
        if not path:
            return self.version > 0
        return path in self.files or any(each.startswith(f"{path}/") for each in self.files) or super().exists(path)

    def sizes(self, paths: Iterable[str] | None = None) -> dict[str, int]:
        """Return the sizes of files by their paths, as of any folder."""
        wanted = None if paths is None else list(paths)
        found = {
            path: self.files[path].bytes for path in (self.files if wanted is None else wanted) if path in self.files
        }
        return {**found, **super().sizes(wanted)} if Path(self.place()[1]).is_dir() else found

    def delete(self, path: str = "") -> None:
        """Delete a file or folder, if it exists, from the next version."""
        for each in [each for each in self.files if each == path or each.startswith(f"{path}/")]:
            del self.files[each]
        super().delete(path)

    def emptied(self) -> StoredFolder:
        """Return a folder whose next version holds nothing of this one."""
        return StoredFolder(self.uri, self.version, {})

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

    def publish(self) -> None:
        """
        Make what was written the next version, with what is left of this one; nothing if nothing was written.

        Raises:
            ConfigurationError: Another writer has published the next version.
            OSError: The storage does not answer; nothing was published.
        """
        written = super().sizes() if Path(self.place()[1]).is_dir() else {}
        if not written:
            return
        own = f"{self.uri}/{secrets.token_hex(8)}"
        try:
            with ThreadPoolExecutor(_THREADS) as threads:
                list(threads.map(lambda path: self._upload(path, f"{own}/{path}"), written))
            new = {path: StoredFile(f"{own}/{path}", size) for path, size in written.items()}
            self._create(self.files | new)
        except BaseException:
            with suppress(Exception):  # what is left there is in no version
                storage(self.uri).rm(own, recursive=True)
            raise
        for path in written:  # whoever reads it next need not fetch it
            copy = Path(self.scratch, "fetched", path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            Path(self.place(path)[1]).replace(copy)
        _published[self.uri] = StoredFolder(self.uri, self.version + 1, self.files | new, self.scratch)

    def remove_objects(self) -> None:
        """Remove the files of this version, which another one has replaced."""
        if self.files:
            with suppress(FileNotFoundError), naming(self.uri):
                storage(self.uri).rm([file.object for file in self.files.values()])

    def _upload(self, path: str, address: str) -> None:
        with naming(address):
            storage(address).put_file(self.place(path)[1], address)

    def _create(self, files: dict[str, StoredFile]) -> None:
        """Create the next version, if nobody has; an answer that is lost on its way does not matter."""
        listed = {path: (file.object.removeprefix(f"{self.uri}/"), file.bytes) for path, file in files.items()}
        place, data = _version(self.uri, self.version + 1), json.dumps({"files": listed}).encode()
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
            return StoredFolder(uri, 0, {})
        number = max(int(posixpath.basename(name).removesuffix(".json")) for name in names)
        if uri in _published and _published[uri].version == number:
            return _published[uri]
        data = storage(uri).cat_file(_version(uri, number))
    try:
        listed = json.loads(data)["files"].items()
        files = {path: StoredFile(f"{uri}/{place}", int(size)) for path, (place, size) in listed}
    except (ValueError, LookupError, TypeError) as error:
        message = f"{_version(uri, number)} is damaged ({error}); make the folder again"
        raise HistoryError(message) from error
    return StoredFolder(uri, number, files)
