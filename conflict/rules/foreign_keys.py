"""
Foreign keys between the tables of one cluster, as both engines compare their values.

Source: MySQL manual, "FOREIGN KEY Constraints"; NDB refers to a primary or unique key of the parent alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Column, ForeignKey, Table


@attrs.frozen
class KeyLink:
    """
    A foreign key between two tables that are there.

    Attributes:
        key: The foreign key.
        child: Name of the table that has it, as the setups name it.
        parent: Name of the table that it refers to.
        columns: Ordinals of its columns.
        references: Ordinals of the columns of the parent.
        compared: The columns of the parent, by which values compare.
        by_primary_key: Whether the columns of the parent are its primary key, in the order of that.
    """

    key: ForeignKey
    child: str
    parent: str
    columns: tuple[int, ...]
    references: tuple[int, ...]
    compared: tuple[Column, ...]
    by_primary_key: bool

    @property
    def acts(self) -> bool:
        """Whether a change of the parent changes rows of the child."""
        return not (self.key.on_delete.refuses and self.key.on_update.refuses)

    def value(self, ordinals: Sequence[int], payloads: Mapping[int, bytes | None]) -> bytes | None:
        """Return the value of a row in some columns; None if one of them is NULL, which refers to nothing."""
        parts = [payloads.get(ordinal) for ordinal in ordinals]
        return None if None in parts else key_of(self.compared, parts)


def links_of(tables: Mapping[str, Table]) -> tuple[KeyLink, ...]:
    """Return the foreign keys whose tables are both among some tables, which may go by other names here."""
    names = {(table.database, table.name): name for name, table in tables.items()}
    return tuple(_links(tables, names))


def links_on(setups: Mapping[str, TableSetup]) -> tuple[KeyLink, ...]:
    """Return the foreign keys of a cluster whose tables both exist there."""
    return links_of({name: setup.table for name, setup in setups.items() if setup.refusal is None})


def linked_tables(setups: Mapping[str, TableSetup]) -> set[str]:
    """Return the tables of a cluster that take part in a foreign key, as child or parent."""
    return {name for link in links_on(setups) for name in (link.child, link.parent)}


def _links(tables: Mapping[str, Table], names: Mapping[tuple[str, str], str]) -> Iterator[KeyLink]:
    for child, table in tables.items():
        for key in table.foreign_keys:
            parent_name = names.get(table.parent_of(key))
            if parent_name is None or not all(map(table.find, key.columns)):
                continue
            parent = tables[parent_name]
            references = key.referenced(parent)
            named = {parent.columns[ordinal].name for ordinal in references}
            if named and named in (set(parent.primary_key), *map(set, parent.unique_keys)):
                yield KeyLink(
                    key,
                    child,
                    parent_name,
                    tuple(table.ordinal(name) for name in key.columns),
                    references,
                    tuple(parent.columns[ordinal] for ordinal in references),
                    references == parent.key_ordinals,
                )
