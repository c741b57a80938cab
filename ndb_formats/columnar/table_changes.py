"""
Row changes of one table as rows of Arrow, with a field for every column of the table.

Both images are structs with all columns. A column that an image does not carry is null in it, as NULL is; the columns
that it carries are named beside it, in ``before_columns`` and ``after_columns``. `CHANGE_FACTS` come first.

Names are one text, separated by commas, as MySQL's SET values are: such a column costs next to nothing in Parquet,
where a list costs more than most columns of the table. A name that has a comma or a backtick itself stands in
backticks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.columnar.block_reader import OPERATIONS
from ndb_formats.columnar.commits import MICROSECONDS
from ndb_formats.columnar.table_rows import RowKind, TableRows
from ndb_formats.columnar.tables import reader_of
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.rows_event import ConflictFlag

_TEXT = pa.dictionary(pa.int32(), pa.string())
CHANGE_FACTS = pa.schema(
    [
        ("file", _TEXT),
        ("position", pa.int64()),
        ("payload_position", pa.uint32()),
        ("row", pa.int32()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("server_id", pa.uint32()),
        ("epoch", pa.uint64()),
        ("transaction_id", pa.uint64()),
        ("gtid", _TEXT),
        ("committed", MICROSECONDS),
        ("flags", _TEXT),
        ("operation", _TEXT),
    ]
)
IMAGES = ("before", "after")


def change_schema(layout: RowLayout, *, moments: bool = True) -> pa.Schema:
    """
    Return the schema of the changes of a table.

    Args:
        layout: The table.
        moments: As for `read_batches`.

    Raises:
        FormatError: Arrow has no type for a column; the error names table and column.
    """
    columns = [
        pa.field(name, reader_of(layout, ordinal, text=True, moments=moments).type)
        for ordinal, name in enumerate(layout.names)
    ]
    fields = list(CHANGE_FACTS)
    for image in IMAGES:
        fields += [pa.field(image, pa.struct(columns)), pa.field(f"{image}_columns", _TEXT)]
    if any(wire.code is ColumnCode.JSON for wire in layout.types):
        # Names of the columns of `after` that hold not the document but its change.
        fields.append(pa.field("after_diffs", _TEXT))
    return pa.schema(fields)


def table_changes(changes: TableRows, file: str, schema: pa.Schema) -> pa.RecordBatch:
    """
    Return changes of a table.

    Args:
        changes: The changes, with all columns of their images.
        file: Path of the file that they are from.
        schema: What `change_schema` gives for the table, with or without ``gtid`` and ``committed``.
    """
    rows, found = changes.records, len(changes)
    columns = {
        "file": _constant(file, found),
        "position": rows.column("position").view(pa.int64()),
        "payload_position": rows.column("payload_position"),
        "row": rows.column("row"),
        "timestamp": _seconds(rows.column("timestamp")),
        "server_id": rows.column("server_id"),
        "epoch": rows.column("epoch"),
        "transaction_id": rows.column("transaction_id"),
        "flags": _flag_names(rows.column("flags")),
        "operation": pa.DictionaryArray.from_arrays(rows.column("operation").indices.cast(pa.int32()), OPERATIONS),
        "before_columns": _names(changes, lambda kind: kind.before),
        "after_columns": _names(changes, lambda kind: kind.after),
    }
    if "gtid" in schema.names:
        columns["gtid"] = changes.commits.gtids(changes.events).dictionary_encode()
    if "committed" in schema.names:
        columns["committed"] = changes.commits.times(changes.events)
    for image in IMAGES:
        columns[image] = _whole_image(rows.column(image), schema.field(image).type)
    if "after_diffs" in schema.names:
        columns["after_diffs"] = _names(changes, lambda kind: kind.diffs)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def in_order(rows: Sequence[pa.RecordBatch], places: Sequence[npt.NDArray[np.int64]]) -> pa.RecordBatch:
    """
    Return rows of a block as one batch, in the order of the log.

    Args:
        rows: Batches of the same schema, one or more.
        places: Numbers of the rows of each in the block.
    """
    if len(rows) == 1:
        return rows[0]
    order = pc.sort_indices(pa.array(np.concatenate(places)))
    (found,) = pa.Table.from_batches(rows).combine_chunks().take(order).to_batches()
    return found


def _constant(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([text], pa.string()))


def _seconds(timestamps: pa.UInt32Array) -> pa.Array:
    millis = timestamps.to_numpy(zero_copy_only=False).astype(np.int64) * 1000
    return pa.Array.from_buffers(CHANGE_FACTS.field("timestamp").type, len(millis), [None, pa.py_buffer(millis)])


def _whole_image(image: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Return an image with a null field for every column that no row of it carries."""
    carried = {field.name: number for number, field in enumerate(image.type)}
    arrays = [
        image.field(carried[field.name]) if field.name in carried else pa.nulls(len(image), field.type)
        for field in kind
    ]
    if not arrays:
        return image
    return pa.Array.from_buffers(kind, len(image), image.buffers()[:1], image.null_count, children=arrays)


def _names(changes: TableRows, of: Callable[[RowKind], Sequence[str] | None]) -> pa.DictionaryArray:
    """Return the names of columns that each kind has, in every row of it; null if it has no image to have columns."""
    every = [of(kind) for kind in changes.kinds]
    texts = ["" if names is None else joined_names(names) for names in every]
    different = list(dict.fromkeys(texts))
    numbers = np.array([different.index(text) for text in texts], np.int32).take(changes.kind_of)
    lacking = np.array([names is None for names in every])
    indices = pa.array(numbers, mask=lacking.take(changes.kind_of) if lacking.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(different, pa.string()))


def joined_names(names: Sequence[str]) -> str:
    """Return names as one text, separated by commas."""
    return ",".join(f"`{name.replace('`', '``')}`" if {",", "`"} & set(name) else name for name in names)


def _flag_names(flags: pa.UInt16Array) -> pa.DictionaryArray:
    """Return the names of conflict flags; most rows have none."""
    if flags.null_count == len(flags):
        return _constant("", len(flags))
    encoded = flags.fill_null(0).dictionary_encode()
    names = [
        joined_names([flag.name or "" for flag in ConflictFlag(number)]) for number in encoded.dictionary.to_pylist()
    ]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names, pa.string()))
