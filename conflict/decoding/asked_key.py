"""
The values that `decode --key` asks for, in every form in which `explain` takes and prints a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conflict.config.table_names import values_by_column
from conflict.errors import ConfigurationError
from ndb_formats.columnar.table_search import ColumnNames, table_columns
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.errors import did_you_mean
from ndb_formats.events.table_map import TableMap
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection

__all__ = ["asked_key"]


def asked_key(
    given: Sequence[str], selection: Selection, binlogs: Sequence[str], schema: Schema, *, follows: bool
) -> tuple[tuple[str, str], ...]:
    """
    Return columns and values as a `Selection` takes them.

    Args:
        given: Each ``COLUMN=VALUE``, or several with commas between, or the value alone of a key of one column.
        selection: Which tables are selected.
        binlogs: The files as they can be read; they are looked through for columns only if anything is given.
        schema: Definitions at the start of the log.
        follows: Whether statements in the log change definitions.

    Raises:
        ConfigurationError: No selected table has such a column, or the names of columns are not known.
        FormatError: A file cannot be read at all.
    """
    if not given:
        return ()

    def wanted(table_map: TableMap) -> bool:
        name = table_map.full_name
        return selection.has_table(table_map) and (name != APPLY_STATUS or name in selection.tables)

    tables = table_columns(binlogs, wanted, schema, follows=follows)
    return tuple(pair for text in given for pair in _pairs(text, tables))


def _pairs(given: str, tables: Mapping[str, ColumnNames]) -> Iterator[tuple[str, str]]:
    """
    Yield the columns and values of one ``--key``.

    Raises:
        ConfigurationError: As for `asked_key`.
    """
    names = [*dict.fromkeys(name for table in tables.values() for name in table.all)]
    column, equals, value = given.partition("=")
    keys = [table.primary_key for table in tables.values()]
    if not equals and len(keys) == 1 and len(keys[0]) == 1:
        yield keys[0][0], given
    elif found := values_by_column(given, names):
        yield from found.items()
    elif tables and all(name.startswith("@") for name in names):
        message = (
            f"--key {given}: the names of the columns of {', '.join(sorted(tables))} are not known: give --schema "
            f"FILE, or @1={value if equals else given} for the first one"
        )
        raise ConfigurationError(message)
    elif not equals or not column:
        message = f"--key {given}: give a column and its value, as in --key id=7"
        raise ConfigurationError(message)
    elif len(tables) == 1:
        (table,) = tables
        message = (
            f"--key {given}: table {table} has no column {column}; its columns are {', '.join(names)}"
            f"{did_you_mean(column, names)}"
        )
        raise ConfigurationError(message)
    elif tables:
        message = (
            f"--key {given}: none of the tables {', '.join(sorted(tables))} has a column {column}"
            f"{did_you_mean(column, names)}"
        )
        raise ConfigurationError(message)
    else:
        yield column, value  # no such table is there, which is said instead
