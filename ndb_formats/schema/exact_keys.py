"""
Keys under collations of which equality is not known exactly: refused, or allowed on demand. See docs/keys.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ndb_formats.errors import UnsupportedError
from ndb_formats.schema.row_keys import comparison_of_column, is_text
from ndb_formats.schema.tables import Schema, Table

__all__ = ["refuse_inexact_keys", "with_inexact_columns", "with_inexact_keys"]


def refuse_inexact_keys(tables: Iterable[Table]) -> None:
    """
    Refuse primary and unique keys with a collation under which equality is not known exactly.

    Raises:
        UnsupportedError: There is one that its column does not allow; the error names table, column and collation.
    """
    for table in tables:
        names = {*table.primary_key, *(name for key in table.unique_keys for name in key)}
        for column in table.columns:
            if column.name in names and is_text(column):
                try:
                    comparison_of_column(column)
                except UnsupportedError as error:
                    raise error.located(table=table.full_name) from None


def with_inexact_keys(schema: Schema) -> Schema:
    """Return a schema of which all columns are allowed in keys."""
    own = tuple((server, with_inexact_keys(each)) for server, each in schema.of_servers)
    return Schema(tuple(map(with_inexact_columns, schema.tables)), inexact_keys=True, of_servers=own)


def with_inexact_columns(table: Table) -> Table:
    """Return a table of which all columns are allowed in keys."""
    return attrs.evolve(table, columns=tuple(attrs.evolve(column, inexact_key=True) for column in table.columns))
