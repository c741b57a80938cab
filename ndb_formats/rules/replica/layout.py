"""
Two versions of a table, column by column as the applier pairs them: by place, never by name.

A generated invisible primary key that only the replica has is left out; so does the server since 8.0.32.
"""

from __future__ import annotations

import attrs

from ndb_formats.rules.images import Logging
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.schema.tables import Column, Table

__all__ = ["ColumnPair", "TablePair", "has_invisible_key"]


@attrs.frozen
class ColumnPair:
    """The columns of both tables in one place; places count from 0."""

    place: int
    source: Column
    replica: Column

    @property
    def same_name(self) -> bool:
        """Whether both have the same name; letter case does not count."""
        return self.source.name.lower() == self.replica.name.lower()


@attrs.frozen
class TablePair:
    """
    One table on both sides, and how the source logs it.

    Attributes:
        source: The table on the source.
        replica: The table on the replica, with all its columns.
        logging: The settings of the source.
        ndb: Whether the source's table is an NDB table, which the binlog type rules.
    """

    source: Table
    replica: Table
    logging: Logging
    ndb: bool

    @property
    def name(self) -> str:
        """The name of the table, with its database if one is known."""
        return self.source.full_name if self.source.database else self.source.name

    @property
    def key_is_left_out(self) -> bool:
        """Whether the replica's first column is a generated invisible primary key that the source does not have."""
        return has_invisible_key(self.replica) and not has_invisible_key(self.source) and not self.source.primary_key

    @property
    def replica_columns(self) -> tuple[Column, ...]:
        """The columns of the replica that the applier pairs with those of the source."""
        return self.replica.columns[1:] if self.key_is_left_out else self.replica.columns

    @property
    def pairs(self) -> tuple[ColumnPair, ...]:
        """The columns in the same places, as far as both tables have columns."""
        both = zip(self.source.columns, self.replica_columns, strict=False)
        return tuple(ColumnPair(place, source, replica) for place, (source, replica) in enumerate(both))

    @property
    def source_names(self) -> list[str]:
        """The names of the source's columns, in small letters."""
        return [column.name.lower() for column in self.source.columns]

    @property
    def replica_names(self) -> list[str]:
        """The names of the replica's columns, in small letters."""
        return [column.name.lower() for column in self.replica_columns]

    @property
    def partial(self) -> bool:
        """Whether images can lack columns of the table."""
        if self.ndb:
            return self.logging.update_format.updated_only or self.logging.update_format.minimal
        return self.logging.row_image is not RowImageRule.FULL


def has_invisible_key(table: Table) -> bool:
    """Return whether a table has a generated invisible primary key: an invisible first column `my_row_id`."""
    first = table.columns[0] if table.columns else None
    return (
        first is not None
        and first.name.lower() == "my_row_id"
        and (first.invisible and first.auto_increment)
        and table.primary_key == (first.name,)
    )
