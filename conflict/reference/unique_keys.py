"""
Unique keys other than the primary key, which NDB checks when a transaction commits.

Two rows with the same value stop the applier (error 1022): no conflict function judges that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import attrs

from conflict.reference.row_store import Row, RowKey, RowStore
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Table

__all__ = ["UniqueKeys"]

# (table, number of the unique key, value)
_Entry = tuple[str, int, bytes]


@attrs.define
class UniqueKeys:
    """
    Which row has which value of a unique key.

    Attributes:
        tables: All tables, by ``database.table``.
    """

    tables: dict[str, Table]
    _rows: dict[_Entry, RowKey] = attrs.field(factory=dict)
    _entries: dict[RowKey, tuple[_Entry, ...]] = attrs.field(factory=dict)

    def update(self, changed: Collection[RowKey], store: RowStore) -> RowKey | None:
        """
        Record the values of the rows that a transaction changed.

        Args:
            changed: The rows.
            store: All rows, as the transaction leaves them.

        Returns:
            The first row with a value that another row has too, and then nothing is recorded; None if there is none.
        """
        rows = [row for row in changed if self.tables[row[0]].unique_keys]
        moved = set(rows)
        wanted: dict[_Entry, RowKey] = {}
        for row in rows:
            for entry in self._entries_of(row, store.get(row)):
                other = self._rows.get(entry)
                if entry in wanted or (other is not None and other not in moved):
                    return row
                wanted[entry] = row
        self._record(rows, wanted)
        return None

    def _record(self, rows: Collection[RowKey], wanted: dict[_Entry, RowKey]) -> None:
        for row in rows:
            for entry in self._entries.pop(row, ()):
                if self._rows.get(entry) == row:
                    del self._rows[entry]
        self._rows.update(wanted)
        for entry, row in wanted.items():
            self._entries[row] = (*self._entries.get(row, ()), entry)

    def _entries_of(self, row: RowKey, state: Row | None) -> Iterator[_Entry]:
        """Yield the values of a row; a value that contains NULL equals no other value."""
        if state is None:
            return
        table = self.tables[row[0]]
        for number, names in enumerate(table.unique_keys):
            columns = [table.columns[table.ordinal(name)] for name in names]
            payloads = [state.payloads.get(table.ordinal(name)) for name in names]
            if None not in payloads:
                yield row[0], number, key_of(columns, payloads)
