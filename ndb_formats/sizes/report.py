"""
The sizes of a log, as values: what `LogSizer` added up, by table and kind of change.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ndb_formats.constants import APPLY_STATUS, BINLOG_MAGIC, EventType
from ndb_formats.rules.formats import FORMATS
from ndb_formats.sizes.compression import Compression
from ndb_formats.sizes.log_sizes import LEAST, MOST, LogSizer
from ndb_formats.sizes.tables import CHANGES


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
