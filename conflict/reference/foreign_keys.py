"""
Which rows of a cluster refer to which, by their values: an index over the tables that take part in foreign keys.

The index may hold rows that have changed since; whoever looks up a value gets those rows alone that still have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

import attrs

from conflict.reference.row_store import Row, RowKey, RowStore
from conflict.rules.foreign_keys import Link, links_on
from conflict.rules.table_setup import TableSetup

__all__ = ["ForeignKeys", "Side", "Value"]


class Side(Enum):
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
    side: Side
    value: bytes


@attrs.define
class ForeignKeys:
    """
    The values of all rows that take part in foreign keys.

    Attributes:
        links: The foreign keys.
    """

    links: tuple[Link, ...]
    _of_table: dict[str, list[tuple[int, Side, tuple[int, ...]]]] = attrs.field(factory=dict)
    _rows: dict[Value, set[RowKey]] = attrs.field(factory=dict)
    _values: dict[RowKey, frozenset[Value]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, setups: Mapping[str, TableSetup]) -> ForeignKeys:
        """Return the foreign keys of a cluster, without rows."""
        keys = cls(links_on(setups))
        for number, link in enumerate(keys.links):
            keys._of_table.setdefault(link.child, []).append((number, Side.CHILD, link.columns))
            keys._of_table.setdefault(link.parent, []).append((number, Side.PARENT, link.references))
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
        if self.rows_with(attrs.evolve(reference, side=Side.PARENT), store):
            return False
        link = self.links[reference.link]
        if link.by_primary_key:
            return store.get((link.parent, reference.value)) is None
        return store.holds_all(link.parent)

    def children(self, parent: Value, store: RowStore) -> list[RowKey]:
        """Return the rows that refer to a value which no row has any more."""
        if self.rows_with(parent, store):
            return []
        return self.rows_with(attrs.evolve(parent, side=Side.CHILD), store)
