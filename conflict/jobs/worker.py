"""
What a process does with its memory while it runs task after task.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache

import pyarrow as pa

__all__ = ["keep_memory", "keep_what_is_loaded"]

_MANY_OBJECTS = 30_000
# Names of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


@cache
def keep_memory() -> None:
    """
    Have this process keep the memory that a task gave back, for the next one.

    By default every large array is fresh memory from the system, which clears it page by page: a fifth of the time of
    resolving a bucket. Where the C library is not glibc, all stays as it is.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_M_MMAP_MAX, 0)
    mallopt(_M_TRIM_THRESHOLD, -1)
    pa.set_memory_pool(pa.system_memory_pool())


def keep_what_is_loaded() -> None:
    """
    Tell Python not to look through modules and compiled code for garbage again and again.

    Spark's worker collects garbage after every task. With numba loaded that takes longer than a small bucket.
    """
    if len(gc.get_objects()) > _MANY_OBJECTS:
        gc.collect()
        gc.freeze()
