"""
One row repaired: what the row is now, what it becomes, and the guarded statement that does it.

A statement names the row by its key, and asks for the values that the row ends with in the result. A row that has
moved on, or is repaired already, does not fit and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from conflict.engine.reference.cluster import merged_change
from conflict.engine.reference.row_store import Row
from conflict.history.timeline import RowChange
from conflict.operating.repairing.sql_values import SqlValue, name_in_sql, sql_value, table_in_sql
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Column

# Bytes by position in the rows of a History; None is NULL.
Payloads = Mapping[int, bytes | None]


@attrs.frozen(eq=False)
class RowTable:
    """
    A table on a cluster.

    Attributes:
        cluster: The cluster.
        database: Database of the table, by the cluster's own name.
        setup: How the cluster has it.
        layout: How its rows are read.
    """

    cluster: str
    database: str
    setup: TableSetup
    layout: RowLayout

    @property
    def columns(self) -> dict[int, Column]:
        """The columns that rows store, by position; generated ones that are not stored are left out."""
        table, places = self.setup.shown
        pairs = zip(places, table.columns, strict=True)
        return {place: column for place, column in pairs if column.generated != "virtual"}

    @property
    def key(self) -> tuple[int, ...]:
        """Positions of the columns of the primary key."""
        names = {name.lower() for name in self.setup.table.primary_key}
        return tuple(place for place, column in self.columns.items() if column.name.lower() in names)

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return table_in_sql(self.database, self.setup.table.name)

    def value(self, place: int, payloads: Payloads) -> SqlValue:
        """
        Return a value of a row in SQL.

        Raises:
            NotWritableError: No SQL text stands for it exactly.
        """
        return sql_value(self.columns[place], self.layout.codecs[place], payloads[place])

    def stored(self, row: Row | None) -> Payloads | None:
        """Return what a row stores; None for a missing row."""
        return None if row is None else row.stored(self.setup, self.layout)


@attrs.frozen(eq=False)
class RepairedRow:
    """
    A row that a statement repairs on one cluster.

    Attributes:
        table: Its table there.
        name: The run's name of the table.
        key: Identity of the row.
        before: What it stores when the logs end; None if it is missing.
        after: What it is to store; None if it is to be missing.
        written: Positions of the columns that are set, of an update.
        why: Why it is repaired, in one line.
    """

    table: RowTable
    name: str
    key: bytes
    before: Payloads | None
    after: Payloads | None
    written: frozenset[int]
    why: str

    @property
    def row(self) -> tuple[str, bytes]:
        """Table and identity of the row."""
        return self.name, self.key

    @property
    def operation(self) -> Operation:
        """What the statement does."""
        if self.before is None:
            return Operation.WRITE_ROW
        return Operation.DELETE_ROW if self.after is None else Operation.UPDATE_ROW

    @property
    def sql(self) -> str:
        """
        The statement, without a semicolon.

        Raises:
            NotWritableError: No SQL text stands exactly for one of its values.
        """
        table = self.table.name
        if self.before is None:
            return self._insert(table)
        where = " AND ".join(self._guards(self.before))
        if self.after is None:
            return f"DELETE FROM {table} WHERE {where}"  # noqa: S608  # names and values are quoted
        sets = (
            f"{self._column(place)} = {self.table.value(place, self.after).literal}" for place in sorted(self.written)
        )
        return f"UPDATE {table} SET {', '.join(sets)} WHERE {where}"  # noqa: S608  # names and values are quoted

    def change(self, transaction_id: int) -> RowChange:
        """Return the change that the statement makes, as its cluster logs it."""
        by = RowChange(self.name, self.key, self.operation, self._image(self.before), self._image(self.after))
        before, after = (
            None if each is None else Row(dict(each), local=True, epoch=0) for each in (self.before, self.after)
        )
        logged = merged_change(self.table.setup, self.table.layout, by, before, after, self.written)
        return attrs.evolve(by if logged is None else logged, transaction_id=transaction_id)

    def _insert(self, table: str) -> str:
        assert self.after is not None
        columns = [place for place, column in self.table.columns.items() if column.generated is None]
        names = ", ".join(self._column(place) for place in columns)
        values = ", ".join(self.table.value(place, self.after).literal for place in columns)
        key = " AND ".join(self._keys(self.after))
        missing = f"NOT EXISTS (SELECT * FROM {table} WHERE {key})"  # noqa: S608  # names and values are quoted
        return f"INSERT INTO {table} ({names}) SELECT {values} FROM DUAL WHERE {missing}"  # noqa: S608  # as above

    def _guards(self, before: Payloads) -> Iterator[str]:
        """Yield the conditions on the key, by which the server finds the row, and on all values."""
        yield from self._keys(before)
        for place in self.table.columns:
            value = self.table.value(place, before)
            if place not in self.table.key or value.as_bytes:
                yield value.condition(self._column(place))

    def _keys(self, payloads: Payloads) -> Iterator[str]:
        for place in self.table.key:
            yield f"{self._column(place)} = {self.table.value(place, payloads).literal}"

    def _column(self, place: int) -> str:
        return name_in_sql(self.table.columns[place].name)

    def _image(self, payloads: Payloads | None) -> RowImage | None:
        """Return an image of all columns."""
        if payloads is None:
            return None
        places = tuple(sorted(payloads))
        return RowImage(self.table.layout, places, tuple(payloads[place] for place in places))
