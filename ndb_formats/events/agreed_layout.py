"""
The layout of a table's rows from two sources: the definition that was followed, and the log's own Table_map event.

The event is the server's own word, so it wins wherever it says something: number and types of columns, with metadata
signs, character sets, names and members. The definition gives the rest.
"""

from __future__ import annotations

from contextlib import suppress

from ndb_formats.errors import FormatError, SchemaError
from ndb_formats.events.definition_check import differences
from ndb_formats.events.hidden_hashes import with_hidden_hashes
from ndb_formats.events.row_image import RowLayout, is_unknown, layout_of
from ndb_formats.events.table_definition import definition_of
from ndb_formats.events.table_map import TableMap
from ndb_formats.schema.tables import Table
from ndb_formats.types.column_types import codec_of

__all__ = ["agreed_definition", "agreed_layout"]


def agreed_definition(table_map: TableMap, table: Table | None) -> Table | None:
    """
    Return the definition of a table, if it fits its Table_map event, else what the event's full metadata tells.

    None is a table that neither tells.
    """
    fits = table is not None and not any(each.matters and not each.of_key for each in differences(table_map, table))
    if table is not None and fits:
        return with_hidden_hashes(table, table_map)
    with suppress(FormatError):
        return definition_of(table_map)
    return None


def agreed_layout(table_map: TableMap, table: Table | None) -> tuple[RowLayout, str]:
    """
    Return the layout of a table's rows, and what is to be said about the definition; empty if it fits.

    Args:
        table_map: Its Table_map event.
        table: Its definition; None if it is not known.

    Raises:
        CorruptError: The event's metadata names more or fewer columns than it has.
        UnsupportedError: The layout of a column type is not known.
    """
    told = layout_of(table_map)
    if table is None:
        return told, _unknown_text(table_map, told)
    try:
        declared = layout_of(table_map, table)
    except SchemaError as error:
        names = "" if table_map.names is None else "; the binlog names the columns"
        return told, f"{error.message}{names}"
    found = [each for each in differences(table_map, table) if each.matters and not each.of_key]
    if not found:
        return declared, ""
    first = found[0]
    column = "" if first.column is None else f"column {first.column}: "
    return _merged(table_map, told, declared), f"{column}{first}; the binlog is right"


def _unknown_text(table_map: TableMap, told: RowLayout) -> str:
    """Return what is to be said of the first column whose collation is not known; empty if there is none."""
    for name, number in zip(told.names, table_map.collations or (), strict=False):
        if number is not None and is_unknown(number):
            return f"column {name}: collation number {number} is not known; its text comes as bytes"
    return ""


def _merged(table_map: TableMap, told: RowLayout, declared: RowLayout) -> RowLayout:
    """Return a layout with what the event says, and the rest from the definition."""
    names = declared.names if table_map.names is None else told.names
    codecs = []
    for ordinal, (event, definition) in enumerate(zip(told.codecs, declared.codecs, strict=True)):
        ours, theirs = definition.meaning, event.meaning
        assert ours is not None
        assert theirs is not None
        known = table_map.collations is not None and table_map.collations[ordinal] is not None
        codecs.append(
            codec_of(
                ours.wire,
                unsigned=ours.unsigned if table_map.unsigned is None else theirs.unsigned,
                charset=theirs.charset if known else ours.charset,
                members=theirs.members or ours.members,
            )
        )
    return RowLayout(told.table, names, told.types, tuple(codecs))
