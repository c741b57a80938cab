"""
Where compiled kernels of a package in an archive are kept, as `spark-submit --py-files` sends one.

An archive is at another place in each application. So they are kept by what the archive holds: a machine compiles them
once for each user and release.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from ndb_formats.compiled_cache import archive_of, lasting_folder

__all__ = ["KernelsOfArchive", "keep_by_content"]


class KernelsOfArchive:
    """Says to numba where it keeps a compiled function of an archive: what numba calls a cache locator."""

    def __init__(self, folder: Path, stamp: str, line: int) -> None:
        self._folder, self._stamp, self._line = folder, stamp, line

    @classmethod
    def from_function(cls, function: Any, file: str) -> Self | None:
        """Return it for a function in an archive of which something can be kept; None for others."""
        place, archive = lasting_folder(), archive_of(Path(file))
        if place is None or archive is None:
            return None
        stamp = _digest_of(archive)
        within = "_".join(Path(file).relative_to(archive).parent.parts)
        return cls(place / f"sent-{stamp}" / within, stamp, function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=self._folder).close()

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return what tells one release from another."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return what tells two functions of one name apart."""
        return str(self._line)


@cache
def _digest_of(archive: Path) -> str:
    """Return a digest of the modules in an archive, whatever else it holds; their checksums are in its directory."""
    with zipfile.ZipFile(archive) as opened:
        modules = sorted((each.filename, each.CRC, each.file_size) for each in opened.infolist())
    return hashlib.sha256(repr([each for each in modules if each[0].endswith(".py")]).encode()).hexdigest()[:16]


def keep_by_content() -> None:
    """Make numba ask `KernelsOfArchive` first."""
    caching: Any = import_module("numba.core.caching")
    implementation = getattr(caching, "CacheImpl", None) or caching._CacheImpl  # noqa: SLF001  # its name until 0.61
    if KernelsOfArchive not in implementation._locator_classes:  # noqa: SLF001  # there is no other way to say it
        implementation._locator_classes.insert(0, KernelsOfArchive)  # noqa: SLF001
