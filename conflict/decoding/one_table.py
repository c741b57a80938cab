"""
The changes of one table as rows with the same columns, whatever definitions the table has had in the files.

The columns are those of `ndb_formats.columnar.table_changes`. The images have every column that the table has in any of
the files; where it does not have a column, that is null and not among the names of those carried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa

from conflict.errors import ConfigurationError
from ndb_formats.columnar.stretches import table_layouts, table_names
from ndb_formats.columnar.table_changes import IMAGES, change_schema, table_changes
from ndb_formats.columnar.table_rows import TableRows
from ndb_formats.errors import did_you_mean
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.tables import Schema

# From the narrowest to the widest; one without a sign comes first, because it stays one if all are.
_INTEGERS = (
    *(pa.uint8(), pa.int8(), pa.uint16(), pa.int16()),
    *(pa.uint32(), pa.int32(), pa.uint64(), pa.int64()),
)


_ALL_64_BITS = pa.decimal128(20)  # signed and unsigned ones


def joined_schema(
    files: Sequence[str],
    table: str,
    schema: Schema,
    *,
    columns: Collection[str] | None = None,
    moments: bool = True,
    kind_of: Callable[[pa.DataType], pa.DataType] = lambda kind: kind,
) -> pa.Schema:
    """
    Return the columns of the changes of a table, with every column that it has in any of the files.

    Args:
        files: Binlog files, in order.
        table: ``database.table``.
        schema: Definitions at the start of the log, for names and types that are not in the binlog.
        columns: Columns of the table that are wanted; None for all.
        moments: As for `change_schema`.
        kind_of: Type of Arrow to the type that the column shall have.

    A column whose type changes has a type that holds all its values, if they are integers or texts.

    Raises:
        ConfigurationError: No file has changes of the table, it never has one of `columns`, or no type holds all values
            of a column.
        FormatError: A file cannot be read at all, or Arrow has no type for a column.
    """
    layouts = table_layouts(files, table, schema)
    if not layouts:
        meant = did_you_mean(table, sorted(table_names(files)))
        message = f"no file has changes of table {table}{meant}; names are database.table"
        raise ConfigurationError(message)
    missing = sorted(set(columns or ()).difference(*(layout.names for layout in layouts)))
    if missing:
        names = layouts[-1].names
        meant = did_you_mean(missing[0], names)
        message = f"table {table} has no column {missing[0]}{meant}; it has {', '.join(names)}"
        raise ConfigurationError(message)
    return pa.schema(_joined_fields(table, layouts, columns, moments, kind_of))


def _joined_fields(
    table: str,
    layouts: Sequence[RowLayout],
    columns: Collection[str] | None,
    moments: bool,
    kind_of: Callable[[pa.DataType], pa.DataType],
) -> Iterator[pa.Field]:
    every = [_chosen(change_schema(each, moments=moments), columns) for each in reversed(layouts)]
    for name in dict.fromkeys(name for schema in every for name in schema.names):
        kinds = [schema.field(name).type for schema in every if name in schema.names]
        image = pa.struct(_joined_columns(table, kinds, kind_of)) if name in IMAGES else None
        yield pa.field(name, kind_of(kinds[0]) if image is None else image)


def _joined_columns(
    table: str, images: Sequence[pa.StructType], kind_of: Callable[[pa.DataType], pa.DataType]
) -> list[pa.Field]:
    kinds: dict[str, pa.DataType] = {}
    for image in images:
        for field in image:
            last = kinds.setdefault(field.name, field.type)
            kind = last if kind_of(last) == kind_of(field.type) else _wider(last, field.type)
            if kind is None:
                message = (
                    f"column {field.name} of {table} is {field.type} in some events and {last} in others; read "
                    "the files before and after that change apart, or all tables as maps of texts, without naming one"
                )
                raise ConfigurationError(message)
            kinds[field.name] = kind
    return [pa.field(name, kind_of(kind)) for name, kind in kinds.items()]


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds all values of both: a text or an integer; None if there is none."""
    if pa.types.is_string(_plain(one)) and pa.types.is_string(_plain(other)):
        return pa.string()
    if not (pa.types.is_integer(one) and pa.types.is_integer(other)):
        return None
    bounds = [bound for kind in (one, other) for bound in _bounds(kind)]
    fitting = (kind for kind in _INTEGERS if _bounds(kind)[0] <= min(bounds) and max(bounds) <= _bounds(kind)[1])
    return next(fitting, _ALL_64_BITS)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    if pa.types.is_signed_integer(kind):
        return -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1
    return 0, (1 << kind.bit_width) - 1


def _chosen(schema: pa.Schema, columns: Collection[str] | None) -> pa.Schema:
    """Return a schema whose images have the chosen columns."""
    if columns is None:
        return schema
    return pa.schema(
        [
            pa.field(field.name, pa.struct([part for part in field.type if part.name in columns]))
            if field.name in IMAGES
            else field
            for field in schema
        ]
    )


def fitted_changes(changes: TableRows, file: str, schema: pa.Schema, *, moments: bool = True) -> pa.RecordBatch:
    """
    Return changes of a table with the columns of a joined schema, or with some of them.

    Args:
        changes: The changes; their images need only have the columns of `schema`.
        file: Path of the file that they are from.
        schema: Some fields of what `joined_schema` gives.
        moments: As for `change_schema`.
    """
    image = next((field.type for field in schema if field.name in IMAGES), None)
    wanted = {part.name for part in image or ()}
    every = _chosen(change_schema(changes.layout, moments=moments), wanted)
    unasked = {"gtid", "committed"}.difference(schema.names)
    rows = table_changes(changes, file, pa.schema([field for field in every if field.name not in unasked]))
    return pa.RecordBatch.from_arrays([_fitted(rows, field) for field in schema], schema=schema)


def _fitted(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in rows.schema.names:
        return pa.nulls(len(rows), field.type)
    values = rows.column(field.name)
    if values.type == field.type:
        return values
    if values.null_count == len(values):
        return pa.nulls(len(rows), field.type)
    if not pa.types.is_struct(field.type):
        return values.cast(field.type)
    places = {part.name: number for number, part in enumerate(values.type)}
    parts = [
        values.field(places[part.name]).cast(part.type) if part.name in places else pa.nulls(len(rows), part.type)
        for part in field.type
    ]
    return pa.Array.from_buffers(field.type, len(rows), values.buffers()[:1], values.null_count, children=parts)
