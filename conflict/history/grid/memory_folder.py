"""
A folder whose tables stay in memory as long as they fit: for a History that nobody wants to keep.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from threading import Lock

import attrs
import pyarrow as pa

from conflict.history.grid.folder import Folder

__all__ = ["MemoryFolder", "memory_limit"]

_MOST_BYTES = 4 << 30


def memory_limit() -> int:
    """Return how many bytes of tables this process may hold: a quarter of the machine's memory, at most 4 GiB."""
    return min(_MOST_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)


@attrs.define(eq=False)
class _Held:
    """
    The tables in memory.

    Attributes:
        limit: Most bytes that they may have, added up table by table; buffers that tables share count for each.
        tables: By their full path.
    """

    limit: int
    tables: dict[str, pa.Table] = attrs.field(factory=dict, repr=False)
    _size: int = 0
    _lock: Lock = attrs.field(factory=Lock, repr=False)

    def put(self, path: str, table: pa.Table) -> bool:
        """Hold a table in place of an earlier one of that path, and return True; or return False if it does not fit."""
        with self._lock:
            self._drop(path)
            if self._size + table.nbytes > self.limit:
                return False
            self.tables[path] = table
            self._size += table.nbytes
            return True

    def delete(self, path: str) -> None:
        """Delete a table, or all tables below a path."""
        with self._lock:
            for name in [name for name in self.tables if name == path or name.startswith(path + "/")]:
                self._drop(name)

    def _drop(self, path: str) -> None:
        known = self.tables.pop(path, None)
        self._size -= 0 if known is None else known.nbytes


@attrs.frozen(eq=False)
class MemoryFolder(Folder):
    """
    A folder whose tables are in memory, as many as fit; other tables and all other files are on disk.

    Only this process sees what is in memory, and it cannot be moved elsewhere.
    """

    _held: _Held

    @property
    def lasts(self) -> bool:
        """Whether what is written is there after this process: it is not."""
        return False

    @classmethod
    def at(cls, uri: str, limit: int | None = None) -> MemoryFolder:
        """
        Return an empty folder.

        Args:
            uri: Where on disk the rest goes.
            limit: Most bytes of tables in memory; None for `memory_limit`.
        """
        return cls(uri, _Held(memory_limit() if limit is None else limit))

    def below(self, path: str) -> MemoryFolder:
        """Return a folder below this one."""
        return attrs.evolve(self, uri=self._full(path))

    def exists(self, path: str = "") -> bool:
        """Whether a file or folder exists."""
        full = self._full(path)
        held = self._held.tables
        return full in held or super().exists(path) or any(name.startswith(full + "/") for name in tuple(held))

    def write_table(self, path: str, table: pa.Table) -> None:
        """Keep a table; write it to disk only if it does not fit."""
        if not self._held.put(self._full(path), table):
            super().write_table(path, table)

    def read_table(self, path: str, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table; one that does not exist is empty."""
        table = self._held.tables.get(self._full(path))
        if table is None:
            return super().read_table(path, schema, columns)
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        chosen = table.select(wanted.names)
        if chosen.schema.types == wanted.types:  # usual, and much faster than a cast
            return pa.Table.from_arrays(chosen.columns, schema=wanted)
        return chosen.cast(wanted)

    def rows(self, path: str) -> int:
        """Return the number of rows of a table."""
        table = self._held.tables.get(self._full(path))
        return super().rows(path) if table is None else int(table.num_rows)

    def may_be_null(self, path: str, column: str) -> bool:
        """Whether the schema of a table lets a column be NULL; False if it does not exist."""
        table = self._held.tables.get(self._full(path))
        return super().may_be_null(path, column) if table is None else bool(table.schema.field(column).nullable)

    def delete(self, path: str = "") -> None:
        """Delete a table, file or folder, if it exists."""
        self._held.delete(self._full(path))
        super().delete(path)

    def _full(self, path: str) -> str:
        return posixpath.join(self.uri, path) if path else self.uri
