"""
The unique key that serves as the primary key of a table that declares none.

The server takes the first unique key of which no column can be NULL. NDB adds a hidden key only where there is none, so
the rows of such a table are found, logged and judged by that key.

Source: MySQL manual, "CREATE TABLE Statement": "MySQL returns the first UNIQUE index that has no NULL columns as the
PRIMARY KEY". For other engines the rules of row images take the same columns (`ndb_formats.rules.row_image_rules`).
"""

from __future__ import annotations

import attrs

from ndb_formats.schema.tables import BLOB_TYPES, Column, Table

__all__ = ["serving_key", "with_serving_key", "without_serving_key"]

_NDB = (None, "NDB", "NDBCLUSTER")


def serving_key(table: Table) -> int | None:
    """Return the place of the first unique key of whole NOT NULL columns; None if there is none."""
    for place, (key, names) in enumerate(zip(table.unique_names, table.unique_keys, strict=True)):
        whole = not any((key.lower(), name.lower()) in table.unique_prefixes for name in names)
        if whole and all(_whole_and_not_null(table.find(name)) for name in names):
            return place
    return None


def _whole_and_not_null(column: Column | None) -> bool:
    """
    Return whether a part of a unique key is a whole column and NOT NULL; None is a part that is an expression.

    A key has only a prefix of a BLOB or TEXT column, and a virtual column is not stored.
    """
    if column is None or column.generated == "virtual":
        return False
    return not column.nullable and column.type not in BLOB_TYPES


def with_serving_key(table: Table) -> Table:
    """Return an NDB table with a unique key as its primary key, if it declares no primary key and has such a key."""
    place = serving_key(table)
    if table.primary_key or table.engine not in _NDB or place is None:
        return table
    keys, names = list(table.unique_keys), list(table.unique_names)
    return attrs.evolve(
        table,
        primary_key=keys.pop(place),
        serving=names.pop(place),
        unique_keys=tuple(keys),
        unique_names=tuple(names),
    )


def without_serving_key(table: Table) -> Table:
    """Return a table with its keys as declared, so that statements can change them."""
    if not table.serving:
        return table
    return attrs.evolve(
        table,
        primary_key=(),
        serving="",
        unique_keys=(table.primary_key, *table.unique_keys),
        unique_names=(table.serving, *table.unique_names),
    )
