"""
Files in memory that ends where they end: reading one byte past the end of the data kills the process.

A mapped file can be read up to the end of its last page, so a kernel that looks too far would not be noticed.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

__all__ = ["guard_pages"]

_LIBC = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
_PROT_NONE = 0


def guarded(data: bytes) -> memoryview:
    """Return the bytes, directly before a page that cannot be read."""
    page = mmap.PAGESIZE
    size = (len(data) + page - 1) // page * page
    area = mmap.mmap(-1, size + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    area[size - len(data) : size] = data
    if _LIBC.mprotect(ctypes.c_void_p(start + size), ctypes.c_size_t(page), _PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    return memoryview(area)[size - len(data) : size].toreadonly()


@contextmanager
def guard_pages() -> Iterator[None]:
    """Map files in this way inside the block."""

    def map_file(path: str | Path) -> memoryview | bytes:
        data = Path(path).read_bytes()
        return guarded(data) if data else b""

    with patch("ndb_formats.columnar.event_index.map_file", map_file):
        yield
