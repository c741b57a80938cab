"""
A folder whose tables stay in memory as long as they fit: for a History that nobody wants to keep.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.history.grid.blocks import BlockPlace, Parts, ranges_of
from conflict.history.grid.folder import Folder

_MOST_BYTES = 4 << 30


def memory_limit() -> int:
    """Return how many bytes of tables this process may hold: a quarter of the machine's memory, at most 4 GiB."""
    return min(_MOST_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)


@attrs.define(eq=False)
class _Held:
    """
    The tables in memory.

    Attributes:
        limit: Most bytes that they may have; buffers that tables share count once.
        tables: By their full path.
    """

    limit: int
    tables: dict[str, pa.Table] = attrs.field(factory=dict, repr=False)
    _size: int = 0
    _shared: Counter[int] = attrs.field(factory=Counter, repr=False)
    _lock: Lock = attrs.field(factory=Lock, repr=False)

    def put(self, tables: Mapping[str, pa.Table]) -> bool:
        """Hold tables in place of earlier ones of these paths, and return True; or return False if they do not fit."""
        with self._lock:
            for path in tables:
                self._drop(path)
            sizes = _buffers(tables.values())
            if self._size + sum(size for address, size in sizes.items() if address not in self._shared) > self.limit:
                return False
            self.tables.update(tables)
            for table in tables.values():
                for address, size in _buffers([table]).items():
                    self._size += 0 if self._shared[address] else size
                    self._shared[address] += 1
            return True

    def delete(self, path: str) -> None:
        """Delete a table, or all tables below a path."""
        with self._lock:
            for name in [name for name in self.tables if name == path or name.startswith(path + "/")]:
                self._drop(name)

    def _drop(self, path: str) -> None:
        known = self.tables.pop(path, None)
        for address, size in _buffers([] if known is None else [known]).items():
            self._shared[address] -= 1
            if not self._shared[address]:
                del self._shared[address]
                self._size -= size


def _buffers(tables: Iterable[pa.Table]) -> dict[int, int]:
    """Return the bytes of the different buffers of tables, by their addresses; slices share those of the whole."""
    chunks = (chunk for table in tables for column in table.columns for chunk in column.chunks)
    return {buffer.address: buffer.size for chunk in chunks for buffer in chunk.buffers() if buffer}


@attrs.frozen
class _HeldParts:
    """Tables in memory, by bucket."""

    tables: Mapping[int, pa.Table]

    def of(self, bucket: int) -> pa.Table:
        """Return the table of a bucket."""
        return self.tables[bucket]


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

    def write_table(self, path: str, table: pa.Table, group_rows: int | None = None) -> None:
        """Keep a table; write it to disk only if it does not fit."""
        if not self._held.put({self._full(path): table}):
            super().write_table(path, table, group_rows)

    def write_parts(self, path: str, parts: Sequence[pa.Table]) -> npt.NDArray[np.int64]:
        """Keep the tables of all buckets; write them to disk only if they do not fit."""
        if self._held.put({self._part(path, number): table for number, table in enumerate(parts)}):
            return np.zeros(len(ranges_of(len(parts))) + 1, np.int64)
        return super().write_parts(path, parts)

    def _block(self, place: BlockPlace) -> Parts:
        """Return the tables of a block."""
        held = {bucket: self._held.tables.get(self._part(place.path, bucket)) for bucket in place.buckets}
        return super()._block(place) if None in held.values() else _HeldParts(held)

    def _part(self, path: str, number: int) -> str:
        return f"{self._full(path)}/{number}"

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

    def read_rows(self, path: str, schema: pa.Schema, first: int, count: int) -> pa.Table:
        """Return some rows of a table."""
        held = self._full(path) in self._held.tables
        return (
            self.read_table(path, schema).slice(first, count) if held else super().read_rows(path, schema, first, count)
        )

    def read_groups(self, path: str, schema: pa.Schema, rows: range | None = None) -> Iterator[pa.Table]:
        """Yield rows of a table, by default all."""
        if self._full(path) in self._held.tables:
            table = self.read_table(path, schema)
            yield table if rows is None else table.slice(rows.start, len(rows))
        else:
            yield from super().read_groups(path, schema, rows)

    def rows_within(self, path: str, column: str, least: int, greatest: int) -> tuple[int, int]:
        """Return the first row whose value of an ascending column is in a range, and how many rows that are."""
        table = self._held.tables.get(self._full(path))
        if table is None:
            return super().rows_within(path, column, least, greatest)
        values = table.column(column).to_numpy()
        first, stop = np.searchsorted(values, np.uint64(least)), np.searchsorted(values, np.uint64(greatest), "right")
        return int(first), max(int(stop - first), 0)

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
