"""
The unique key that serves as the primary key of a table that declares none.

The server takes the first unique key of which no column can be NULL. NDB adds a hidden key only where there is none, so
the rows of such a table are found, logged and judged by that key.

Source: MySQL manual, "CREATE TABLE Statement": "MySQL returns the first UNIQUE index that has no NULL columns as the
PRIMARY KEY". For other engines the rules of row images take the same columns (`ndb_formats.rules.row_image_rules`).
"""

from __future__ import annotations

import attrs

from ndb_formats.schema.tables import Table

__all__ = ["with_serving_key", "without_serving_key"]

_NDB = (None, "NDB", "NDBCLUSTER")


def with_serving_key(table: Table) -> Table:
    """Return an NDB table with a unique key as its primary key, if it declares no primary key and has such a key."""
    if table.primary_key or table.engine not in _NDB:
        return table
    for place, names in enumerate(table.unique_keys):
        columns = [table.find(name) for name in names]
        if all(column is not None and not column.nullable for column in columns):
            keys, key_names = list(table.unique_keys), list(table.unique_names)
            return attrs.evolve(
                table,
                primary_key=keys.pop(place),
                serving=key_names.pop(place),
                unique_keys=tuple(keys),
                unique_names=tuple(key_names),
            )
    return table


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
