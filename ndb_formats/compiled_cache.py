"""
Where compiled kernels are kept.

numba keeps them beside the source, else below HOME. Where neither can be written, as for a system user or in a
container, it would refuse to load the kernels; then they are compiled for this process alone.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["cache_folders", "is_lasting", "provide_cache"]

_OPTION = "NUMBA_CACHE_DIR"
_state = {"lasting": True}


def is_lasting() -> bool:
    """Whether compiled kernels are there the next time."""
    return _state["lasting"]


def provide_cache() -> None:
    """Make sure, before the first kernel is loaded, that there is a folder for compiled ones."""
    given = os.environ.get(_OPTION)
    places = [Path(given)] if given else [Path(__file__).parent / "__pycache__", _home()]
    if any(map(_can_be_written, places)):
        return
    folder = tempfile.mkdtemp(prefix="ndb-conflict-kernels-")
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    os.environ[_OPTION] = folder
    _state["lasting"] = False


def cache_folders(source: Path) -> list[Path]:
    """Return the folders in which numba may keep what it compiled of a source file, whether they are there or not."""
    subfolder = f"{source.parent.name}_{hashlib.sha1(str(source.parent).encode(), usedforsecurity=False).hexdigest()}"
    given = os.environ.get(_OPTION)
    if given:
        return [Path(given) / subfolder]
    return [source.parent / "__pycache__", _home() / subfolder]


def _home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"  # noqa: PTH111  # no error


def _can_be_written(place: Path) -> bool:
    try:
        there = next((path for path in (place, *place.parents) if path.exists()), None)
    except OSError:
        return False
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)
