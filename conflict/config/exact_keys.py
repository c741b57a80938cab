"""
Keys under collations of which equality is not known exactly: refused, or allowed on demand.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from conflict.errors import ConfigurationError
from ndb_formats.schema.row_keys import is_text
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.collations import is_exact

__all__ = ["refuse_inexact_keys", "with_inexact_keys"]


def refuse_inexact_keys(tables: Iterable[Table]) -> None:
    """
    Refuse keys with a collation under which equality is not known exactly.

    Raises:
        ConfigurationError: There is one.
    """
    for table in tables:
        for column in _inexact_columns(table):
            message = (
                f"{table.full_name}: column {column.name} is part of a key, and its collation {column.collation} is none "
                "of which equality is known exactly (docs/collations.md); --inexact-keys, or inexact_keys = true in the "
                "run file, compares by Unicode's letters instead"
            )
            raise ConfigurationError(message)


def with_inexact_keys(table: Table) -> Table:
    """Return a table of which such columns are allowed in keys."""
    inexact = set(_inexact_columns(table))
    columns = (attrs.evolve(column, inexact_key=column in inexact) for column in table.columns)
    return attrs.evolve(table, columns=tuple(columns)) if inexact else table


def _inexact_columns(table: Table) -> list[Column]:
    names = {*table.primary_key, *(name for key in table.unique_keys for name in key)}
    return [
        column
        for column in table.columns
        if column.name in names and is_text(column) and not is_exact(column.collation or "")
    ]
