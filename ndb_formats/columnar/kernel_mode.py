"""
How kernels run in this process: compiled, or interpreted because all that it was asked to do is small.

Whoever begins work says how large it is (`expect_work`, `expect_files`). Without a word kernels are compiled. Work that
was said to be small and is not, or much small work, is noticed by the seconds that interpreted kernels took; see
`ndb_formats.columnar.compiling`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import ClassVar, Literal

from ndb_formats.stored import path_of

SMALL_BYTES = 4 << 20  # of binlogs; to read and resolve so many takes a few seconds interpreted
TINY_BYTES = 256 << 10  # to resolve so many interpreted takes less than to load numba and compiled kernels
LOADING_SECONDS = 0.8  # which that takes
# Of the processor, that interpreted kernels took: when they begin to be compiled beside this process, and when it waits
# for that. To compile takes longer, so who waits earlier can lose several times the work.
COMPILING_SECONDS, WAITING_SECONDS = 3.0, 10.0
WORTH_SECONDS = 0.3  # of one kernel, for it to be compiled for them


class Mode(Enum):
    """How kernels run that numba's cache does not have: compiled first, or interpreted."""

    COMPILED = auto()
    INTERPRETED = auto()


class Process:
    """What this process does."""

    mode = Mode.COMPILED
    tiny = False
    seconds = 0.0  # of the processor that interpreted kernels took so far
    fixed = False  # somebody has said how kernels run
    expected: ClassVar[dict[object, int]] = {}  # bytes, by what is read
    overflow: Literal["ignore", "raise"] = "ignore"  # what numpy does at an overflow in an interpreted kernel
    loading: ClassVar[list[Callable[[], None]]] = []  # called before the first kernel is compiled or loaded


def expect_work(size: int, of: object = None) -> None:
    """
    Say, before work begins, how large it is; without a word kernels are compiled.

    Args:
        size: Bytes of binlogs to read, or what takes as long.
        of: What is read or done; its latest size counts. With None it counts by itself.
    """
    Process.expected[object() if of is None else of] = size
    if not Process.fixed:
        whole = sum(Process.expected.values())
        Process.mode = Mode.INTERPRETED if whole <= SMALL_BYTES else Mode.COMPILED
        Process.tiny = whole <= TINY_BYTES


def expect_files(paths: Iterable[str | Path]) -> None:
    """Say which binlogs are going to be read, as `expect_work`."""
    for path in map(path_of, paths):
        if path.exists():
            expect_work(path.stat().st_size, of=path.absolute())


def are_interpreted() -> bool:
    """Return whether kernels that numba's cache does not have are interpreted, in one thread of the processor."""
    return Process.mode is Mode.INTERPRETED


def pays_to_compile(seconds: float) -> bool:
    """Return whether small work has become so long that a kernel which took so many seconds of it is to be compiled."""
    return not Process.fixed and Process.seconds > COMPILING_SECONDS and seconds > WORTH_SECONDS


def pays_to_wait(seconds: float) -> bool:
    """Return whether it is better now to wait until such a kernel is compiled than to go on without."""
    return Process.seconds > WAITING_SECONDS and seconds > COMPILING_SECONDS


def numba_is_used() -> None:
    """Say that numba is imported next; see `before_numba`."""
    while Process.loading:
        Process.loading.pop()()


def stay_interpreted() -> bool:
    """Return whether kernels are interpreted even if numba's cache has them: until that took as long as to load it."""
    return Process.fixed or (Process.tiny and Process.seconds < LOADING_SECONDS)


def set_mode(mode: Mode | None, *, overflow: Literal["ignore", "raise"] = "ignore") -> None:
    """
    Fix how kernels run, whatever numba's cache has.

    Args:
        mode: How; with None, it is again as before the first word.
        overflow: What numpy does at an overflow in an interpreted kernel; for tests.
    """
    Process.fixed, Process.overflow = mode is not None, overflow
    Process.tiny, Process.seconds = False, 0.0
    Process.expected.clear()
    Process.mode = mode or Mode.COMPILED


@contextmanager
def before_numba(callback: Callable[[], None]) -> Iterator[None]:
    """Call a function before the block compiles or loads its first kernel, when numba is imported; or never."""
    if "numba" in sys.modules:
        callback()
    else:
        Process.loading.append(callback)
    try:
        yield
    finally:
        if callback in Process.loading:
            Process.loading.remove(callback)
