"""
The tables of a History: their numbers, the columns that conflict functions compare, and their definitions as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Self

import attrs

from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.tables import Table

__all__ = ["TableNumbers", "table_definitions"]


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
