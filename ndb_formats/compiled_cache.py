"""
Where compiled kernels are kept.

numba keeps them beside the source. Where that cannot be written, as in an installation of another user, they are kept
in a folder of this user: below XDG_CACHE_HOME or HOME, else below the folder for temporary files. It begins with links
to what the owner of the installation has compiled. What is compiled is code, so no folder is used into which another
user could write. The variable NUMBA_CACHE_DIR takes the place of all of this.
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
from importlib import import_module
from pathlib import Path
from typing import Any

_OPTION = "NUMBA_CACHE_DIR"
_NAME = "ndb-conflict-kernels"
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
        return  # see `ndb_formats.sent_kernels`
    given = os.environ.get(_OPTION)
    if given and given != _state["place"] and can_be_written(Path(given)):
        return
    if all(can_be_written(folder / "__pycache__") for folder in _kernel_folders()):
        return
    place = _place_of_this_user() or _place_of_this_process()
    if place is None:
        _only_read()
        return
    os.environ[_OPTION] = _state["place"] = place
    # numba may have looked at the variable already; where it is not loaded, this costs nothing
    numba: Any = sys.modules.get("numba")
    if numba is not None:
        numba.config.reload_config()


def _kernel_folders() -> Iterator[Path]:
    for package in _packages:
        yield from package.glob("**/kernels")


def cache_folder(source: Path) -> Path:
    """Return the folder in which numba keeps what it compiled of a source file; it need not be there."""
    place = kernels_place()
    if place is None:
        return source.parent / "__pycache__"
    return place / _subfolder(source.parent)


def _subfolder(folder: Path) -> str:
    """Return the name that `get_suitable_cache_subpath` of numba.core.caching gives a folder of sources."""
    return f"{folder.name}_{hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()}"


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
    every = sorted(each for folder in _kernel_folders() for each in folder.glob("__pycache__/*.nb[ci]"))
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


def _only_read() -> None:
    """Make numba load what is compiled beside the source, and keep in memory what it compiles itself."""
    caching: Any = import_module("numba.core.caching")
    caching._CacheLocator.ensure_cache_path = lambda _: None  # noqa: SLF001  # there is no other way to say it
    caching.Cache.save_overload = lambda *_: None
