"""
Unique keys besides the primary key, which NDB checks when a transaction commits.

Two rows with the same value stop the applier (error 1022): it is no conflict that a function could judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import attrs

from conflict.reference.row_store import Row, RowKey, RowStore
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Table

__all__ = ["UniqueKeys"]

# (table, number of the key, value)
_Entry = tuple[str, int, bytes]


@attrs.define
class UniqueKeys:
    """
    Which row holds which value, for the tables that have unique keys.

    Attributes:
        tables: All tables, by ``database.table``.
    """

    tables: dict[str, Table]
    _holders: dict[_Entry, RowKey] = attrs.field(factory=dict)
    _held: dict[RowKey, tuple[_Entry, ...]] = attrs.field(factory=dict)

    def update(self, touched: Collection[RowKey], store: RowStore) -> RowKey | None:
        """
        Take over the rows that a transaction touched.

        Args:
            touched: The rows.
            store: All rows as the transaction leaves them.

        Returns:
            The first row whose value another row holds too; then nothing is taken over. None if all is well.
        """
        rows = [row for row in touched if self.tables[row[0]].unique_keys]
        moved = set(rows)
        wanted: dict[_Entry, RowKey] = {}
        for row in rows:
            for entry in self._entries(row, store.get(row)):
                holder = self._holders.get(entry)
                if entry in wanted or (holder is not None and holder not in moved):
                    return row
                wanted[entry] = row
        self._take_over(rows, wanted)
        return None

    def _take_over(self, rows: Collection[RowKey], wanted: dict[_Entry, RowKey]) -> None:
        for row in rows:
            for entry in self._held.pop(row, ()):
                if self._holders.get(entry) == row:
                    del self._holders[entry]
        self._holders.update(wanted)
        for entry, row in wanted.items():
            self._held[row] = (*self._held.get(row, ()), entry)

    def _entries(self, row: RowKey, state: Row | None) -> Iterator[_Entry]:
        """Yield the values of a row; one with a NULL in it is equal to none."""
        if state is None:
            return
        table = self.tables[row[0]]
        for number, names in enumerate(table.unique_keys):
            columns = [table.columns[table.ordinal(name)] for name in names]
            payloads = [state.payloads.get(table.ordinal(name)) for name in names]
            if None not in payloads:
                yield row[0], number, key_of(columns, payloads)
