"""
Applies logged row changes to the rows of a table, without any conflict function.
"""

from __future__ import annotations

from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import LoggedRow
from ndb_formats.schema.default_values import default_value, zero_value
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange, apply_diffs
from ndb_formats.types.values import Value

__all__ = ["Row", "apply_change"]

Row = dict[int, Value]  # values by column position


def apply_change(rows: list[Row], table: Table, change: LoggedRow) -> None:
    """Apply one row change to the rows of its table, in place; the before image finds the row."""
    if change.operation is Operation.WRITE_ROW:
        assert change.after is not None
        new = change.after.values()
        # NDB logs updates as writes under some formats; another engine never writes an existing key.
        row = next((row for row in rows if _same_key(table, change.after, row)), None) if table.primary_key else None
        if row is None:
            rows.append({place: _initial(column) for place, column in enumerate(table.columns)} | new)
        else:
            row.update(new)
        return
    assert change.before is not None
    row = _find(rows, change.before.values())
    if row is None:
        return
    if change.after is None:
        rows.remove(row)
    else:
        row.update(_after(row, change.after))


def _same_key(table: Table, image: RowImage, row: Row) -> bool:
    """Whether a written image and a row have the same primary key, as the key's collations compare it."""
    codecs = [image.layout.codecs[place] for place in table.key_ordinals]
    written = [image.payloads[image.present.index(place)] for place in table.key_ordinals]
    stored = [codec.encode(row[place]) for codec, place in zip(codecs, table.key_ordinals, strict=True)]
    return key_of(table.key_columns, written) == key_of(table.key_columns, stored)


def _find(rows: list[Row], wanted: Row) -> Row | None:
    return next((row for row in rows if all(row[place] == value for place, value in wanted.items())), None)


def _after(row: Row, image: RowImage) -> Row:
    """Return the values of an after image, its JSON diffs applied to the documents of the row."""
    values = image.values()
    for place in image.partial:
        document, change = row[place], values[place]
        if isinstance(change, JsonChange) and isinstance(document, JsonDocument):
            values[place] = apply_diffs(document, change.diffs)
    return values


def _initial(column: Column) -> Value:
    default = default_value(column)
    return zero_value(column) if default is None and not column.nullable else default
