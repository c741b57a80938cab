"""
What a process and all that it started cost: processor time, and memory at its peak (Linux).

Memory is the proportional set size (PSS): a page that several processes share counts once over all of them.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Self

__all__ = ["MemoryPeak", "processor_seconds", "tree"]

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS = 0.15


def tree(root: int) -> list[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += children.get(process, ())
    return found


def _stat(process: int) -> list[str]:
    """Return the fields of a process's ``stat`` after its name; none if it has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def processor_seconds(root: int) -> float:
    """Return the processor time of a tree so far, ended children that were waited for among it."""
    fields = (_stat(process) for process in tree(root))
    return sum(sum(map(int, each[11:15])) for each in fields if each) / _TICKS


def _memory(root: int) -> int:
    """Return the PSS of a tree in bytes."""
    total = 0
    for process in tree(root):
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue  # ended meanwhile
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return 1024 * total


class MemoryPeak:
    """Watches the memory of a tree while a ``with`` block runs; `size` is the peak in bytes."""

    def __init__(self, root: int) -> None:
        self.size = 0
        self._root = root
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.size = max(self.size, _memory(self._root))
            if self._done.wait(_SAMPLE_SECONDS):
                return
