"""
The tables of a History: their numbers, the columns that conflict functions compare, and their definitions as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from conflict.history.run import Run
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.tables import Table

__all__ = ["TableNumbers", "resolve_columns", "table_definitions", "table_numbers"]


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

    def number(self, name: str) -> int:
        """Return a table's number."""
        return next(number for number, table in enumerate(self.tables) if table.full_name == name)

    def resolve_ordinal(self, name: str) -> int | None:
        """Return the position of a table's resolve column; None if it has none."""
        column = self.resolve_columns.get(name)
        table = self.tables[self.number(name)]
        return None if column is None or table.find(column) is None else table.ordinal(column)


def table_numbers(run: Run) -> TableNumbers:
    """Number the tables of a run."""
    if not run.definitions:
        compared = resolve_columns(run.setups())
        return TableNumbers(run.data_schema.tables, {**run.kept_columns, **compared})
    tables = run.data_schema.tables
    compared = dict(run.kept_columns)
    for known in run.definitions.values():
        for moment in known.moments:
            for name, setup in moment.setups.items():
                if setup.function is not None and setup.function.column is not None:
                    whole = next(table for table in tables if table.full_name == name)
                    compared[name] = whole.columns[setup.table.ordinal(setup.function.column)].name
    return TableNumbers(tables, compared)


def resolve_columns(setups: Mapping[str, Mapping[str, TableSetup]]) -> dict[str, str]:
    """Return the column that a conflict function compares, by table; from the setup of each table, by cluster."""
    return {
        name: setup.function.column
        for tables in setups.values()
        for name, setup in tables.items()
        if setup.function is not None and setup.function.column is not None
    }


def table_definitions(numbers: TableNumbers) -> dict[str, tuple[str, ...]]:
    """Return everything that decides how rows of each table are read and identified, as text."""
    return {table.full_name: tuple(_definition(table)) for table in numbers.tables}


def _definition(table: Table) -> Iterator[str]:
    for column in table.columns:
        collation = f" collate {column.collation}" if column.collation else ""
        yield f"{column.name} {column.sql_type}{collation}{' inexact key' if column.inexact_key else ''}"
    prefixes = (f"({column.key_prefix})" if column.key_prefix else "" for column in table.key_columns)
    yield f"primary key {', '.join(map(str.__add__, table.primary_key, prefixes))}"
