"""
Unique and foreign keys of a cluster, by the values of its rows.

NDB checks unique keys other than the primary key when a transaction commits: two rows with the same value stop the
applier (error 1022), and no conflict function judges that.

The index of foreign keys may hold rows that have changed since; whoever looks up a value gets those rows alone that
still have it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum

import attrs

from conflict.engine.reference.row_store import Row, RowKey, RowStore
from conflict.rules.foreign_keys import KeyLink, links_on
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Table


class KeySide(Enum):
    """Whether a row is the one that refers, or the one that is referred to."""

    CHILD = 0
    PARENT = 1


@attrs.frozen
class Value:
    """
    The value of a row for a foreign key.

    Attributes:
        link: Number of the foreign key.
        side: Whether it is the row's reference or what others refer to.
        value: The value, as values compare.
    """

    link: int
    side: KeySide
    value: bytes


@attrs.define
class ForeignKeys:
    """
    The values of all rows that take part in foreign keys.

    Attributes:
        links: The foreign keys.
    """

    links: tuple[KeyLink, ...]
    _of_table: dict[str, list[tuple[int, KeySide, tuple[int, ...]]]] = attrs.field(factory=dict)
    _rows: dict[Value, set[RowKey]] = attrs.field(factory=dict)
    _values: dict[RowKey, frozenset[Value]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, setups: Mapping[str, TableSetup]) -> ForeignKeys:
        """Return the foreign keys of a cluster, without rows."""
        keys = cls(links_on(setups))
        for number, link in enumerate(keys.links):
            keys._of_table.setdefault(link.child, []).append((number, KeySide.CHILD, link.columns))
            keys._of_table.setdefault(link.parent, []).append((number, KeySide.PARENT, link.references))
        return keys

    @property
    def tables(self) -> set[str]:
        """The tables that take part."""
        return set(self._of_table)

    def update(self, rows: Iterable[RowKey], store: RowStore) -> dict[RowKey, frozenset[Value]]:
        """
        Take the values that rows have now.

        Returns:
            The values that they had before, of those that take part.
        """
        before = {}
        for row in rows:
            if row[0] not in self._of_table:
                continue
            had, has = self._values.get(row, frozenset()), self.values_of(row, store.get(row))
            before[row] = had
            for value in had - has:
                self._rows[value].discard(row)
            for value in has - had:
                self._rows.setdefault(value, set()).add(row)
            self._values[row] = has
        return before

    def values_of(self, row: RowKey, state: Row | None) -> frozenset[Value]:
        """Return the values of a row in a state."""
        if state is None:
            return frozenset()
        found = (
            (number, side, self.links[number].value(ordinals, state.payloads))
            for number, side, ordinals in self._of_table.get(row[0], ())
        )
        return frozenset(Value(number, side, value) for number, side, value in found if value is not None)

    def rows_with(self, value: Value, store: RowStore) -> list[RowKey]:
        """Return the rows that have a value, in order."""
        known = sorted(self._rows.get(value, ()))
        return [row for row in known if value in self.values_of(row, store.get(row))]

    def lacks_parent(self, reference: Value, store: RowStore) -> bool:
        """Whether the row that a value refers to is known to be missing."""
        if self.rows_with(attrs.evolve(reference, side=KeySide.PARENT), store):
            return False
        link = self.links[reference.link]
        if link.by_primary_key:
            return store.get((link.parent, reference.value)) is None
        return store.holds_all(link.parent)

    def children(self, parent: Value, store: RowStore) -> list[RowKey]:
        """Return the rows that refer to a value which no row has any more."""
        if self.rows_with(parent, store):
            return []
        return self.rows_with(attrs.evolve(parent, side=KeySide.CHILD), store)


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
