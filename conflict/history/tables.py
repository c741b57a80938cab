"""
The tables of a History: their numbers, compared columns and definitions, and arriving changes as they take them.

An applier goes by the places of columns, not by their names. Columns that only the source has, at its end, are left
out; those that only the applier has keep their values or get their defaults. A type that may not be converted stops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Self

import attrs

from conflict.history.model import RowChange
from conflict.rules.stops import Misfit
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.image_conversion import converted_image
from ndb_formats.events.row_image import RowImage
from ndb_formats.rules.replica.conversions import conversion, is_allowed
from ndb_formats.schema.tables import Table

__all__ = ["TableNumbers", "fitted", "misfit", "table_definitions"]


@attrs.frozen
class TableNumbers:
    """
    The tables of a History by number, and the resolve column of each.

    Attributes:
        tables: In the order of their numbers.
        resolve_columns: Name of the column that a conflict function compares, by table name; a table whose function
            compares no column is not in it.
    """

    tables: tuple[Table, ...]
    resolve_columns: Mapping[str, str]

    @classmethod
    def of(
        cls,
        tables: Sequence[Table],
        setups: Iterable[Mapping[str, Sequence[TableSetup]]],
        kept: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """
        Number tables.

        Args:
            tables: All tables, exceptions tables not among them.
            setups: Per cluster, every setup of each table, one after the other.
            kept: By table, the column that counts as its resolve column if no function compares one.
        """
        wholes, compared = {table.full_name: table for table in tables}, dict(kept)
        for own in setups:
            for name, over_time in own.items():
                for setup in over_time:
                    if setup.function is not None and setup.function.column is not None:
                        # A table of that time has the columns of the whole one, under the names of its time.
                        compared[name] = wholes[name].columns[setup.table.ordinal(setup.function.column)].name
        return cls(tuple(tables), compared)

    def number(self, name: str) -> int:
        """Return a table's number."""
        return next(number for number, table in enumerate(self.tables) if table.full_name == name)

    def resolve_ordinal(self, name: str) -> int | None:
        """Return the position of a table's resolve column; None if it has none."""
        column = self.resolve_columns.get(name)
        table = self.tables[self.number(name)]
        return None if column is None or table.find(column) is None else table.ordinal(column)


def table_definitions(numbers: TableNumbers) -> dict[str, tuple[str, ...]]:
    """Return everything that decides how rows of each table are read and identified, as text."""
    return {table.full_name: tuple(_definition(table)) for table in numbers.tables}


def _definition(table: Table) -> Iterator[str]:
    for column in table.columns:
        collation = f" collate {column.collation}" if column.collation else ""
        yield f"{column.name} {column.sql_type}{collation}{' inexact key' if column.inexact_key else ''}"
    prefixes = (f"({column.key_prefix})" if column.key_prefix else "" for column in table.key_columns)
    yield f"primary key {', '.join(map(str.__add__, table.primary_key, prefixes))}"


def misfit(source: TableSetup, replica: TableSetup) -> Misfit | None:
    """Return the first column that an applier may not convert; None if there is none."""
    theirs, mine = (setup.shown[0] for setup in (source, replica))
    if theirs == mine:
        return None
    for place, (column, other) in enumerate(zip(theirs.columns, mine.columns, strict=False), start=1):
        if not is_allowed(conversion(column, other), replica.conversions):
            return Misfit(place, other.name, column.sql_type, other.sql_type)
    return None


def fitted(change: RowChange, source: TableSetup, replica: TableSetup) -> RowChange:
    """Return a change with the values where the applier has its columns, which `misfit` has checked."""
    pairs = zip(source.shown[1], replica.shown[1], strict=False)
    moved = {place: other for place, other in pairs if place != other}
    if not moved and len(source.shown[1]) <= len(replica.shown[1]):
        return change
    kept = dict(zip(source.shown[1], replica.shown[1], strict=False))
    return attrs.evolve(change, before=_moved(change.before, kept), after=_moved(change.after, kept))


def _moved(image: RowImage | None, kept: dict[int, int]) -> RowImage | None:
    if image is None:
        return None
    chosen = [(place, payload) for place, payload in zip(image.present, image.payloads, strict=True) if place in kept]
    part = RowImage(image.layout, tuple(place for place, _ in chosen), tuple(payload for _, payload in chosen))
    places = [kept.get(place, place) for place in range(len(image.layout.codecs))]
    return converted_image(part, places, image.layout)
