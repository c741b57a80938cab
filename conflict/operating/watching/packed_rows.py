"""
Rows in little memory: those that were not changed for a while are bytes.

A row as an object takes about a kilobyte. As bytes it takes what its values take and about a hundred more, for its key
and who wrote it last.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, MutableMapping
from typing import Any

import attrs

from conflict.engine.inference.rows import OlderRow
from conflict.engine.ledger.resolution import LastWrite
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.timeline import Origin
from ndb_formats.events.rows_event import Operation


@attrs.define
class PackedRows(MutableMapping[RowKey, Row]):
    """
    Rows by key.

    Attributes:
        names: Files and clusters that rows name, each once.
    """

    names: list[str] = attrs.field(factory=list)
    _number: dict[str, int] = attrs.field(factory=dict)
    _new: dict[RowKey, Row] = attrs.field(factory=dict)  # set since the last `pack`
    _last: dict[RowKey, Row] = attrs.field(factory=dict)  # set before it, and after the one before
    _packed: dict[RowKey, bytes] = attrs.field(factory=dict)
    _read: dict[RowKey, Row] = attrs.field(factory=dict)  # of these, those that were read since then

    def __getitem__(self, key: RowKey) -> Row:
        row: Row | None = self.get(key)
        if row is None:
            raise KeyError(key)
        return row

    def get(self, key: RowKey, default: Any = None) -> Any:
        """Return a row, or the default."""
        found = self._new.get(key) or self._read.get(key) or self._last.get(key)
        if found is not None:
            return found
        data = self._packed.get(key)
        if data is None:
            return default
        found = self._read[key] = self._unpacked(data)
        return found

    def __setitem__(self, key: RowKey, row: Row) -> None:
        if key not in self._new:
            for part in (self._last, self._packed, self._read):
                part.pop(key, None)
        self._new[key] = row

    def __delitem__(self, key: RowKey) -> None:
        if self.pop(key, None) is None:
            raise KeyError(key)

    def pop(self, key: RowKey, default: Any = None) -> Any:
        """Remove a row; return it, or the default."""
        found = self.get(key, default)
        for part in (self._new, self._last, self._packed, self._read):
            part.pop(key, None)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._new or key in self._last or key in self._packed

    def __iter__(self) -> Iterator[RowKey]:
        yield from self._new
        yield from self._last
        yield from self._packed

    def __len__(self) -> int:
        return len(self._new) + len(self._last) + len(self._packed)

    def pack(self) -> None:
        """Make bytes of the rows that were set before the last call and not after it."""
        for key, row in self._last.items():
            self._packed[key] = self._bytes_of(row)
        self._last, self._new, self._read = self._new, {}, {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as one block of bytes, which is much faster than object by object."""
        fresh = ((key, self._bytes_of(row)) for part in (self._last, self._new) for key, row in part.items())
        return PackedRows.of_bytes, (marshal.dumps([*self._packed.items(), *fresh]), self.names)

    @classmethod
    def of_bytes(cls, data: bytes, names: list[str]) -> PackedRows:
        """Return rows that were pickled; `names` as they were then."""
        numbers = {name: number for number, name in enumerate(names)}
        return cls(names, numbers, packed=dict(marshal.loads(data)))  # noqa: S302  # made here

    def _numbered(self, name: str) -> int:
        number = self._number.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def _bytes_of(self, row: Row) -> bytes:
        older = (row.partial, row.dated, row.assumed) if isinstance(row, OlderRow) else None
        values = row.payloads, row.local, row.epoch, row.copies, self._writer(row.by), row.unknown or None, older
        return marshal.dumps(values)

    def _writer(self, by: LastWrite | None) -> tuple[Any, ...] | None:
        if by is None:
            return None
        origin = by.origin
        place = None
        if origin is not None:
            place = self._numbered(origin.file), origin.position, origin.payload_position, origin.row
        return self._numbered(by.cluster), by.epoch, int(by.operation), by.refresh, place, by.site, by.committed

    def _unpacked(self, data: bytes) -> Row:
        payloads, local, epoch, copies, writer, unknown, older = marshal.loads(data)  # noqa: S302  # made here
        by = None
        if writer is not None:
            cluster, own, operation, refresh, place, site, committed = writer
            origin = None if place is None else Origin(self.names[place[0]], *place[1:])
            by = LastWrite(self.names[cluster], own, Operation(operation), refresh, origin, site, committed)
        facts = payloads, local, epoch, copies, by, unknown or frozenset()
        return Row(*facts) if older is None else OlderRow(*facts, *older)
