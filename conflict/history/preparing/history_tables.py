"""
History tables: for each table whose definition changes, one table with every column that it ever had.

Columns keep their order where they can, so that an image of a version is an image of the History table too, byte for
byte. A column that gets another type and keeps its values has the widest one; values of the others are converted when
they are read. One whose values a statement converts is another column from there on (see
`ndb_formats.schema.altered_values`), but for the columns of the primary key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.events.row_image import RowLayout, layout_of_types
from ndb_formats.events.table_map_of_table import wire_type_of
from ndb_formats.schema.tables import Column, Table, split_full_name
from ndb_formats.schema.value_conversions import type_of
from ndb_formats.types.values import ABSENT

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")


@attrs.define(eq=False)
class HistoryColumn:
    """A column of a History table, with the definitions that it had."""

    name: str
    incarnation: int
    definitions: list[Column]


@attrs.define(eq=False)
class HistoryTable:
    """
    A History table while it is collected.

    Attributes:
        name: Its name: that of the table when it was first met.
    """

    name: str
    _columns: list[HistoryColumn] = attrs.field(factory=list)
    _key: list[HistoryColumn] | None = None
    _narrowest: int = 0
    _first: list[HistoryColumn] = attrs.field(factory=list)
    _reordered: bool = False

    @property
    def changes(self) -> bool:
        """Whether there are versions with different columns, or with the same ones in another order."""
        narrower = self._narrowest < len(self._columns)
        return narrower or self._reordered or any(len(each.definitions) > 1 for each in self._columns)

    def continues(self, table: Table) -> bool:
        """Whether a new table of the name has the same key, so that its rows are identified alike."""
        key = [self._like(table.columns[ordinal], 0) for ordinal in table.key_ordinals]
        return None not in key and key == self._key

    def first(self, table: Table) -> list[HistoryColumn]:
        """
        Add the first version on a cluster.

        Changes go from one cluster to the other by the places of columns. So its columns are those that stand in the
        same place on the first cluster, unless their types exclude each other.
        """
        known: list[HistoryColumn | None] = [None] * len(table.columns)
        for place, (column, other) in enumerate(zip(table.columns, self._first, strict=False)):
            if _widest([*other.definitions, column]) is not None:
                known[place] = other
        chosen = self._add(table, known, {})
        self._first = self._first or chosen
        return chosen

    def next(
        self, table: Table, before: Sequence[HistoryColumn], sources: Sequence[int | None], seen: Iterable[str]
    ) -> list[HistoryColumn]:
        """
        Add a version that a statement makes of another one.

        Args:
            table: The version.
            before: Columns of the version before.
            sources: See `TableStep`; None also for a column whose values are converted.
            seen: Names of the columns that the table on this cluster had before, each as often as it was added.

        Raises:
            SchemaError: It has another primary key.
        """
        times: dict[str, int] = {}
        for name in seen:
            times[name.lower()] = times.get(name.lower(), 0) + 1
        return self._add(table, [None if each is None else before[each] for each in sources], times)

    def _add(self, table: Table, known: Sequence[HistoryColumn | None], times: dict[str, int]) -> list[HistoryColumn]:
        chosen: list[HistoryColumn] = []
        for column, given in zip(table.columns, known, strict=True):
            found = given or self._like(column, times.get(column.name.lower(), 0))
            if found is None:
                found = HistoryColumn(column.name, times.get(column.name.lower(), 0), [])
                place = self._columns.index(chosen[-1]) + 1 if chosen else 0
                self._columns.insert(place, found)
            if column not in found.definitions:
                found.definitions.append(column)
            found.name = column.name
            chosen.append(found)
        places = self.places(chosen)
        self._reordered |= list(places) != sorted(places)
        self._narrowest = min(self._narrowest or len(chosen), len(chosen))
        self._check_key([chosen[ordinal] for ordinal in table.key_ordinals], table)
        return chosen

    def _like(self, column: Column, incarnation: int) -> HistoryColumn | None:
        for each in self._columns:
            last = each.definitions[-1]
            same = last.name.lower() == column.name.lower() and each.incarnation == incarnation
            if same and _widest([*each.definitions, column]) is not None:
                return each
        return None

    def _check_key(self, key: list[HistoryColumn], table: Table) -> None:
        if self._key is None:
            self._key = key
        elif self._key != key:
            message = (
                "its primary key changes, and rows cannot be followed from one key to another; "
                "use binlogs from before the change or from after it"
            )
            raise SchemaError(message, table=table.full_name)

    def table(self, last: Table, name: str) -> Table:
        """
        Return the History table.

        Args:
            last: The last version.
            name: Its full name, ``database.table``.
        """
        shown = {column.name: column for column in last.columns}
        columns, taken = [], set(shown)
        for each in self._columns:
            column = _widest(each.definitions) or each.definitions[-1]
            if any(one.must_be_given for one in each.definitions):
                column = attrs.evolve(column, nullable=False, default=ABSENT, generated=None)
            chosen = each.name
            if chosen not in shown:
                number = 1
                while chosen in taken:
                    number += 1
                    chosen = f"{each.name} ({number})"
            taken.add(chosen)
            columns.append(attrs.evolve(column, name=chosen))
        database, table = split_full_name(name)
        key = tuple(columns[self._columns.index(each)].name for each in self._key or ())
        return attrs.evolve(last, database=database, name=table, columns=tuple(columns), primary_key=key)

    def places(self, columns: Iterable[HistoryColumn]) -> tuple[int, ...]:
        """Return the positions of a version's columns."""
        return tuple(self._columns.index(each) for each in columns)


def layout_of_history(table: Table) -> RowLayout:
    """Return how the rows of a History table are read."""
    return layout_of_types(table, tuple(wire_type_of(column) for column in table.columns))


def view_of(whole: Table, version: Table, places: Sequence[int]) -> Table:
    """
    Return a version with its columns where the History table has them.

    The other columns of the History table are there as virtual columns, which no image carries.
    """
    at = dict(zip(places, version.columns, strict=True))
    columns = tuple(
        at.get(place, Column(f"#{place + 1}", "int", generated="virtual")) for place in range(len(whole.columns))
    )
    return attrs.evolve(version, columns=columns)


def _widest(columns: Sequence[Column]) -> Column | None:
    """Return the column that can hold the values of all; None if none can."""
    last = columns[-1]
    for kinds in (_INTEGERS, _TEXTS, _BYTES):
        if all(column.type in kinds for column in columns):
            if len({(column.unsigned, column.charset) for column in columns}) > 1:
                return None
            return max(reversed(columns), key=lambda column: (kinds.index(column.type), column.length or 0))
    return last if len({type_of(each) for each in columns}) == 1 else None
