"""
The sizes of a log, as values: what `LogSizer` added up, by table and kind of change; and what compression would bring.

``binlog_transaction_compression`` is measured on a log's own bytes. A server that compresses a transaction writes one
Transaction_payload event in place of all events but the GTID: a zstd frame of these events without checksums. The same
is done here with transactions from all over the log, as many as a budget allows.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import zstandard

from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.constants import APPLY_STATUS, BINLOG_MAGIC, EVENT_HEADER_SIZE, EventType
from ndb_formats.events.transaction_payload import TransactionPayload, encode_transaction_payload
from ndb_formats.rules.formats import FORMATS
from ndb_formats.sizes.log_sizes import LEAST, MOST, LogSizer
from ndb_formats.sizes.tables import CHANGES

_LEVEL = 3  # the default of binlog_transaction_compression_level_zstd
_ZSTD = 0
_MARKS = np.array([EventType.QUERY_EVENT, EventType.XID_EVENT], np.uint8)
_LONGEST_MARK = 8


@attrs.frozen
class Compression:
    """
    What was measured.

    Attributes:
        transactions: Transactions that were compressed.
        plain: Bytes of their events as they are, checksums included, without the GTID event.
        compressed: Bytes of the Transaction_payload events in their place.
    """

    transactions: int
    plain: int
    compressed: int

    @property
    def ratio(self) -> float:
        """Compressed bytes per plain byte."""
        return self.compressed / self.plain


class CompressionMeter:
    """Compresses transactions of a log, chunk by chunk."""

    def __init__(self, log_bytes: int, budget: int = 1 << 22) -> None:
        """
        Start with nothing.

        Args:
            log_bytes: Bytes of all files.
            budget: Most bytes to compress; each chunk gets a part of it by its size.
        """
        self._share = min(budget / max(log_bytes, 1), 1.0)
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._found = Compression(0, 0, 0)

    @property
    def found(self) -> Compression | None:
        """What was measured; None if the log has no transaction that is not compressed."""
        return self._found if self._found.transactions else None

    def add(self, chunk: EventChunk) -> None:
        """Measure transactions of a chunk, if it is as in the file and not a copy of what was compressed there."""
        if not len(chunk.types) or not np.array_equal(chunk.positions + EVENT_HEADER_SIZE, chunk.starts):
            return
        budget = self._share * int(chunk.stops[-1] - chunk.positions[0])
        begin, used = None, 0
        for event in np.flatnonzero(np.isin(chunk.types, _MARKS)).tolist():
            if used >= budget:
                break
            mark = _mark(chunk, event)
            if mark == "BEGIN":
                begin = event
            elif mark and begin is not None:
                used += self._measure(chunk, begin, event + 1)
                begin = None

    def _measure(self, chunk: EventChunk, first: int, last: int) -> int:
        """Compress the events of a transaction; return how many bytes they have in the file."""
        data = memoryview(chunk.data.data)
        events = b"".join(
            data[start - EVENT_HEADER_SIZE : end]
            for start, end in zip(chunk.starts[first:last].tolist(), chunk.ends[first:last].tolist(), strict=True)
        )
        body = encode_transaction_payload(TransactionPayload(_ZSTD, len(events), self._compressor.compress(events)))
        plain = len(events) + (last - first) * chunk.trailer
        size = EVENT_HEADER_SIZE + len(body) + chunk.trailer
        found = self._found
        self._found = Compression(found.transactions + 1, found.plain + plain, found.compressed + size)
        return plain


def _mark(chunk: EventChunk, event: int) -> str:
    """Return how an event begins or ends a transaction; empty for any other event."""
    if chunk.types[event] == EventType.XID_EVENT:
        return "COMMIT"
    tail = chunk.data[max(chunk.ends[event] - _LONGEST_MARK, chunk.starts[event]) : chunk.ends[event]].tobytes()
    return next((word for word in ("BEGIN", "COMMIT") if tail.endswith(b"\0" + word.encode())), "")


@attrs.frozen
class Amount:
    """Bytes of events, with headers and checksums, and how many events."""

    bytes: int = 0
    events: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.bytes + other.bytes, self.events + other.events)


@attrs.frozen
class SizeBounds:
    """
    What changes would take in one format.

    Attributes:
        least: If their statements set the columns that they must have set, those that changed value among them.
        most: If they set all columns that they may have set.
        lacking: Changes for which the log lacks a value that the format logs; they count without it.
    """

    least: Amount = Amount()
    most: Amount = Amount()
    lacking: int = 0

    def __add__(self, other: SizeBounds) -> SizeBounds:
        return SizeBounds(self.least + other.least, self.most + other.most, self.lacking + other.lacking)

    @property
    def exact(self) -> bool:
        """Whether the log tells the size."""
        return self.least == self.most and not self.lacking


@attrs.frozen
class ChangeSizes:
    """
    The changes of one kind of one table, or of several.

    Attributes:
        rows: How many.
        hidden: Those where the log does not show all columns that their statements set.
        uncompared: Those of them for which it has no values before the change either.
        logged: Their rows events as they are.
        formats: What they would take in each of `FORMATS`.
    """

    rows: int = 0
    hidden: int = 0
    uncompared: int = 0
    logged: Amount = Amount()
    formats: tuple[SizeBounds, ...] = (SizeBounds(),) * len(FORMATS)

    def __add__(self, other: ChangeSizes) -> ChangeSizes:
        return ChangeSizes(
            self.rows + other.rows,
            self.hidden + other.hidden,
            self.uncompared + other.uncompared,
            self.logged + other.logged,
            tuple(first + second for first, second in zip(self.formats, other.formats, strict=True)),
        )


@attrs.frozen
class TableSizes:
    """
    One table.

    Attributes:
        name: ``database.table``.
        known: Whether its definition is known; if not, its events count in every format as they are.
        maps: Its Table_map events.
        changes: Its changes by kind, in the order of `CHANGES`.
    """

    name: str
    known: bool
    maps: Amount
    changes: tuple[ChangeSizes, ...]

    @property
    def all_changes(self) -> ChangeSizes:
        """All its changes."""
        return sum(self.changes, ChangeSizes())


@attrs.frozen
class ColumnCost:
    """The bytes of the values of a column in the images of the log, with their lengths."""

    table: str
    column: str
    before: int
    after: int

    @property
    def bytes(self) -> int:
        """In both images."""
        return self.before + self.after


@attrs.frozen
class SizeReport:
    """
    The sizes of a log.

    Attributes:
        file_bytes: Bytes of the files that were read.
        others: All events but rows events and Table_map events, by the name of their type, and all events of NDB's
            `ndb_apply_status`, by its name: the same in every format.
        tables: The tables, by name.
        columns: The columns, the most expensive first.
        compression: What ``binlog_transaction_compression`` would bring; None if nothing could be measured.
    """

    file_bytes: int
    others: dict[str, Amount]
    tables: tuple[TableSizes, ...]
    columns: tuple[ColumnCost, ...]
    compression: Compression | None = None

    @property
    def frame(self) -> Amount:
        """Everything but the changes of tables: the same in every format."""
        amounts = [*self.others.values(), *(table.maps for table in self.tables)]
        return sum(amounts, Amount())

    @property
    def changes(self) -> ChangeSizes:
        """All changes."""
        return sum((table.all_changes for table in self.tables), ChangeSizes())

    @property
    def total(self) -> int:
        """Bytes of all events as they are, if no transaction were compressed."""
        return self.frame.bytes + self.changes.logged.bytes

    def by_kind(self, kind: int) -> ChangeSizes:
        """Return the changes of one of `CHANGES`."""
        return sum((table.changes[kind] for table in self.tables), ChangeSizes())


def size_report(sizer: LogSizer, files: Sequence[int], compression: Compression | None = None) -> SizeReport:
    """
    Return what a sizer added up.

    Args:
        sizer: The sizer.
        files: Bytes of each file that was read.
        compression: What compression would bring.
    """
    others = {
        EventType.name_of(code): Amount(*amount) for code, amount in enumerate(sizer.tally.others.tolist()) if amount[1]
    }
    others["magic"] = Amount(len(BINLOG_MAGIC) * len(files))
    maps = dict(zip(sizer.map_tables, (Amount(*amount) for amount in sizer.tally.maps.tolist()), strict=True))
    names = sorted({*maps, *(table.name for table in sizer.tables.found)})
    tables = {name: _table(sizer, name, maps.get(name, Amount())) for name in names}
    epochs = tables.pop(APPLY_STATUS, None)
    if epochs is not None:
        others[APPLY_STATUS] = epochs.maps + epochs.all_changes.logged
    return SizeReport(sum(files), others, tuple(tables.values()), _columns(sizer), compression)


def _table(sizer: LogSizer, name: str, maps: Amount) -> TableSizes:
    same = [table for table in sizer.tables.found if table.name == name]
    changes = [
        sum((_changes(sizer, table.number * len(CHANGES) + kind) for table in same), ChangeSizes())
        for kind in range(len(CHANGES))
    ]
    return TableSizes(name, all(table.definition is not None for table in same), maps, tuple(changes))


def _changes(sizer: LogSizer, kind: int) -> ChangeSizes:
    tally = sizer.tally
    formats = tuple(
        SizeBounds(
            Amount(int(tally.bytes[LEAST, form, kind]), int(tally.events[LEAST, form, kind])),
            Amount(int(tally.bytes[MOST, form, kind]), int(tally.events[MOST, form, kind])),
            int(tally.lacking[MOST, form, kind]),
        )
        for form in range(len(FORMATS))
    )
    rows, hidden, uncompared = map(int, tally.rows[kind])
    return ChangeSizes(rows, hidden, uncompared, Amount(*map(int, tally.logged[kind])), formats)


def _columns(sizer: LogSizer) -> tuple[ColumnCost, ...]:
    costs: dict[tuple[str, str], tuple[int, int]] = {}
    for table in sizer.tables.found:
        if table.name == APPLY_STATUS:
            continue
        for ordinal, column in enumerate(table.columns):
            before, after = map(int, sizer.tally.columns[table.first_column + ordinal])
            old = costs.get((table.name, column), (0, 0))
            costs[table.name, column] = old[0] + before, old[1] + after
    found = [ColumnCost(*name, *cost) for name, cost in costs.items()]
    return tuple(sorted(found, key=lambda cost: (-cost.bytes, cost.table, cost.column)))
