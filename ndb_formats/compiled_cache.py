"""
Where compiled kernels are kept.

They are kept beside the source. Where that cannot be written, as in an installation of another user, they are kept in a
folder of this user: below XDG_CACHE_HOME or HOME, else below the folder for temporary files. It begins with links to
what the owner of the installation has compiled. Those of a package in an archive, as `spark-submit --py-files` sends
one, are kept in a folder of this user too. What is compiled is code, so no folder is used into which another user could
write. The variable NUMBA_CACHE_DIR takes the place of all of this.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

_OPTION = "NUMBA_CACHE_DIR"
_NAME = "ndb-conflict-kernels"
_OLD_STAMPS = 2  # of a kernel, which are left
_packages: list[Path] = []
_state: dict[str, Any] = {"lasting": True, "place": None}


def is_lasting() -> bool:
    """Whether compiled kernels are there the next time."""
    return bool(_state["lasting"])


def kernels_place() -> Path | None:
    """Return the folder of this user in which compiled kernels are kept; None where they are beside their source."""
    given = os.environ.get(_OPTION)
    return Path(given) if given else None


def provide_cache(package: Path) -> None:
    """
    Make sure, before the first kernel is loaded, that there is a folder for compiled ones.

    Args:
        package: A folder with modules, some of whose folders have folders ``kernels``. Each package adds itself.
    """
    if package not in _packages:
        _packages.append(package)
    if archive_of(package) is not None:
        return  # see `cache_folder`
    given = os.environ.get(_OPTION)
    if given and given != _state["place"] and can_be_written(Path(given)):
        return
    if all(can_be_written(folder / "__pycache__") for folder in _kernel_folders()):
        return
    place = _place_of_this_user() or _place_of_this_process()
    if place is None:
        return  # what the owner compiled is read, and what this process compiles stays in its memory
    os.environ[_OPTION] = _state["place"] = place


def _kernel_folders() -> Iterator[Path]:
    for package in _packages:
        yield from package.glob("**/kernels")


def cache_folder(source: Path) -> Path | None:
    """Return the folder for what is compiled of a source file; it need not be there. None without one."""
    archive = archive_of(source)
    if archive is not None:  # which is at another place in each application
        place = lasting_folder()
        return None if place is None else place / "_".join(("sent", *source.relative_to(archive).parent.parts))
    if source.suffix != ".py":  # of a function that was typed in
        return None
    place = kernels_place()
    return source.parent / "__pycache__" if place is None else place / _subfolder(source.parent)


def _subfolder(folder: Path) -> str:
    return f"{folder.name}_{hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()}"


class KernelFiles:
    """
    What is compiled of one kernel, with one stamp: a file for each kind of arguments.

    Files with other stamps are of other releases, or of the source as it was; the newest of them are left for the way
    back, and for others who use the folder.
    """

    def __init__(self, source: Path, name: str, stamp: str) -> None:
        self.folder = cache_folder(source)
        self._every = f"{name}-"
        self._begin, self._end = f"{name}-{stamp}.", f".py{sys.version_info.major}{sys.version_info.minor}.nbc"

    def are_there(self) -> bool:
        """Return whether there is any."""
        return any(each.startswith(self._begin) and each.endswith(self._end) for each in self._names())

    def read(self, key: str) -> bytes | None:
        """Return the content of a file; None if it is not there."""
        with suppress(OSError):
            return None if self.folder is None else (self.folder / f"{self._begin}{key}{self._end}").read_bytes()
        return None

    def write(self, key: str, content: bytes) -> None:
        """Write a file as a whole, and remove old ones; where that is not possible, nothing is kept."""
        if self.folder is None:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{self._begin}{key}{self._end}"
            beside = path.with_suffix(f".{uuid4().hex}")
            try:
                beside.write_bytes(content)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
            self._remove_old(self.folder)

    def _names(self) -> list[str]:
        try:
            return [] if self.folder is None else os.listdir(self.folder)  # noqa: PTH208  # names are enough
        except OSError:
            return []

    def _remove_old(self, folder: Path) -> None:
        """Remove what this Python compiled of the kernel with other stamps, but the newest."""
        others: dict[str, list[Path]] = {}
        for name in self._names():
            if name.startswith(self._every) and not name.startswith(self._begin) and self._end[:-4] in name:
                others.setdefault(name.removeprefix(self._every).partition(".")[0], []).append(folder / name)
        newest = {stamp: max(each.lstat().st_mtime_ns for each in files) for stamp, files in others.items()}
        for stamp in sorted(others, key=newest.__getitem__)[:-_OLD_STAMPS]:
            for each in others[stamp]:
                each.unlink(missing_ok=True)


def can_be_written(place: Path) -> bool:
    """Whether a folder can be written, or made."""
    try:
        there = next((path for path in (place, *place.parents) if path.exists()), None)
    except OSError:
        return False
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def private_folders(name: str) -> Iterator[Path]:
    """Yield folders, made for a purpose, that are there the next time, and that nobody else can write."""
    for place in _places(name):
        try:
            place.mkdir(0o700, parents=True, exist_ok=True)
            if not place.is_symlink() and _is_private(place.resolve()):
                yield place
        except OSError:
            continue


def archive_of(path: Path) -> Path | None:
    """Return the archive that holds a module or package; None if it is a file or folder by itself."""
    return next((each for each in path.parents if each.is_file()), None)


def lasting_folder() -> Path | None:
    """Return a folder for compiled kernels that is there the next time: the one that is given, or one of this user."""
    return kernels_place() or next(private_folders(_NAME), None)


def _place_of_this_user() -> str | None:
    """Return a folder that is there the next time, and that nobody else can write; None without one."""
    for place in private_folders(_NAME):
        with suppress(OSError):
            return str(_begun(place))
    return None


def _places(name: str) -> Iterator[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))  # noqa: PTH111  # raises nothing
    if cache.is_absolute():  # without a home it begins with ~
        yield cache / name
    try:
        yield Path(tempfile.gettempdir()) / f"{name}-{os.geteuid()}"
    except FileNotFoundError:  # there is none
        return


def _is_private(folder: Path) -> bool:
    """Whether a folder is this user's, and nobody else but root can write into it or exchange it for another."""
    others = stat.S_IWGRP | stat.S_IWOTH
    own = folder.stat()
    if own.st_uid != os.geteuid() or own.st_mode & others:
        return False
    above = [each.stat() for each in folder.parents]
    return all(
        each.st_uid in (0, os.geteuid()) and (not each.st_mode & others or each.st_mode & stat.S_ISVTX)
        for each in above
    )


def _begun(place: Path) -> Path:
    """
    Return the folder below a place for what is installed now; a new one begins with links to what is compiled there.

    When more is compiled there, another folder is begun, so that no link ever changes what it means.
    """
    every = sorted(each for folder in _kernel_folders() for each in folder.glob("__pycache__/*.nbc"))
    compiled = [each for each in every if os.access(each, os.R_OK)]
    installation = _digest(map(str, _packages))
    folder = place / f"{installation}-{_digest(f'{each} {each.stat().st_mtime_ns}' for each in compiled)}"
    if folder.is_dir():
        return folder
    beside = Path(tempfile.mkdtemp(dir=place))
    for each in compiled:
        source = each.parent.parent
        there = beside / _subfolder(source)
        there.mkdir(exist_ok=True)
        (there / each.name).symlink_to(each)
    before = [each for each in place.glob(f"{installation}-*") if each != folder]
    try:
        beside.rename(folder)
    except OSError:  # another process has begun it
        shutil.rmtree(beside, ignore_errors=True)
    for each in before:
        shutil.rmtree(each, ignore_errors=True)
    return folder


def _digest(texts: Iterator[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _place_of_this_process() -> str | None:
    """Return a new folder that goes with this process; None where no folder for temporary files can be written."""
    _state["lasting"] = False
    try:
        folder = tempfile.mkdtemp(prefix=f"{_NAME}-")
    except OSError:
        return None
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder
