"""
Row changes as records: the columns of the `ndb_binlog` data source, of Parquet and CSV output.

Records come from single rows (`record_batches`), or from batches (`records_of`). There values become the text that
`value_text` gives: integers and strings by Arrow, all others once per distinct value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.columnar.batches import RowBatch
from ndb_formats.columnar.commits import MICROSECONDS
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag
from ndb_formats.row_reader import LoggedRow
from ndb_formats.types.decimals import decimal_text
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange
from ndb_formats.types.values import Geometry, Value, Vector

_BATCH_ROWS = 10_000
_UNSIGNED_64 = pa.decimal128(20)  # unsigned 64-bit numbers do not fit Spark's long
_IMAGE = pa.map_(pa.string(), pa.string())

RECORDS = pa.schema(
    [
        ("file", pa.string()),
        ("position", pa.int64()),
        ("payload_position", pa.int64()),
        ("row", pa.int32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("server_id", pa.int64()),
        ("epoch", _UNSIGNED_64),
        ("transaction_id", _UNSIGNED_64),
        ("gtid", pa.string()),
        ("committed", MICROSECONDS),
        ("flags", pa.list_(pa.string())),
        ("database", pa.string()),
        ("table", pa.string()),
        ("operation", pa.string()),
        ("before", _IMAGE),
        ("after", _IMAGE),
    ]
)


def _flags_of(row: LoggedRow) -> list[str]:
    """Return the names of a row change's conflict flags."""
    flags = row.extra.flags if row.extra and row.extra.flags else ConflictFlag(0)
    return [flag.name or "" for flag in flags]


def value_text(value: Value) -> str | None:
    """Return a value as text; NULL is None, bytes are hexadecimal."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, JsonDocument | JsonChange | Vector):
        return value.text
    if isinstance(value, Geometry):
        return "0x" + value.data.hex().upper()
    if isinstance(value, Decimal):
        return decimal_text(value)
    return "0x" + value.hex().upper() if isinstance(value, bytes) else str(value)


def _image(image: RowImage | None) -> list[tuple[str, str | None]] | None:
    return None if image is None else [(name, value_text(value)) for name, value in image.by_name().items()]


def _record(row: LoggedRow) -> tuple[object, ...]:
    return (
        row.file,
        row.position,
        row.payload_position,
        row.row,
        row.timestamp * 1_000_000,
        row.server_id,
        row.epoch,
        row.extra.transaction_id if row.extra else None,
        row.gtid,
        row.committed,
        _flags_of(row),
        row.database,
        row.table,
        row.operation.name,
        _image(row.before),
        _image(row.after),
    )


def record_batches(rows: Iterable[LoggedRow]) -> Iterator[pa.RecordBatch]:
    """Yield row changes as Arrow record batches of the schema `RECORDS`."""
    records = (_record(row) for row in rows)
    while batch := list(islice(records, _BATCH_ROWS)):
        columns = zip(*batch, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
        yield pa.record_batch(arrays, schema=RECORDS)


_PLAIN_PLACES = 6  # to so many digits after the point, Arrow's own text has no exponent
_SAME_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def records_of(batch: RowBatch, file: str, names: Sequence[str] = RECORDS.names) -> pa.RecordBatch:
    """Return row changes of a file as `RECORDS`, or some of its columns; without images, the batch need have none."""
    schema = pa.schema([RECORDS.field(name) for name in names])
    return pa.record_batch([_column(batch, file, name) for name in names], schema=schema)


def _column(batch: RowBatch, file: str, name: str) -> pa.Array:
    texts = {"file": file, "database": batch.database, "table": batch.table}
    if name in texts:
        return _repeated(texts[name], len(batch))
    if name in ("before", "after"):
        return _images(batch, name)
    if name in ("gtid", "committed"):
        return batch.gtids if name == "gtid" else batch.committed
    column, kind = batch.records.column(name), RECORDS.field(name).type
    if name == "timestamp":
        return pc.multiply(column.cast(pa.int64()), 1_000_000).cast(kind)
    return _flags(column) if name == "flags" else column.cast(kind)


def _repeated(text: str, count: int) -> pa.Array:
    """Return a name in every row; bytes of it that are not UTF-8 are shown, as in the folders of tables."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _flags(flags: pa.Array) -> pa.ListArray:
    """Return the names of conflict flags."""
    encoded = flags.fill_null(0).dictionary_encode()
    names = [[flag.name or "" for flag in ConflictFlag(number)] for number in encoded.dictionary.to_pylist()]
    return pa.array(names, RECORDS.field("flags").type).take(encoded.indices)


def _images(batch: RowBatch, name: str) -> pa.Array:
    """Return images as maps from column name to text; all rows of a batch have the same columns."""
    kind, count = RECORDS.field(name).type, len(batch)
    columns = batch.before if name == "before" else batch.after
    if columns is None:
        return pa.nulls(count, kind)
    width = len(columns)
    if not width:
        return pa.array([[]] * count, kind)
    values = batch.records.column(name).flatten()
    texts = [value_texts(array, batch.types[column]) for column, array in zip(columns, values, strict=True)]
    by_row = np.arange(width * count).reshape(width, count).T.ravel()
    names = pa.DictionaryArray.from_arrays(np.tile(np.arange(width, dtype=np.int32), count), pa.array(columns))
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    return pa.MapArray.from_arrays(offsets, names.cast(pa.string()), pa.concat_arrays(texts).take(by_row)).cast(kind)


def decimal_texts(values: pa.Array) -> pa.StringArray:
    """Return decimal numbers as text with all their digits after the point; Arrow's own text may have an exponent."""
    scale = values.type.scale
    if 0 <= scale <= _PLAIN_PLACES:
        return values.cast(pa.string())
    whole = pa.decimal256(76) if pa.types.is_decimal256(values.type) else pa.decimal128(38)
    unscaled = pa.Array.from_buffers(whole, len(values), values.buffers(), values.null_count, values.offset)
    texts = unscaled.cast(pa.string())
    digits = pc.utf8_lpad(pc.utf8_ltrim(texts, "-"), scale + 1, "0")
    sign = pc.if_else(pc.starts_with(texts, "-"), "-", "")
    point = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, point[0], ""), point[1], ".")


def value_texts(values: pa.Array, code: ColumnCode | None = None) -> pa.StringArray:
    """Return values of a column as text; its type matters for VECTOR alone."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_decimal(kind):
        return decimal_texts(values)
    if pa.types.is_integer(kind) or pa.types.is_string(kind):
        return values.cast(pa.string())
    # 0.0 and -0.0 are equal, but their texts differ.
    bits = _SAME_BITS.get(kind)
    encoded = (values if bits is None else values.view(bits)).dictionary_encode()
    distinct = (encoded.dictionary if bits is None else encoded.dictionary.view(kind)).to_pylist()
    texts = [value_text(Vector(value) if code is ColumnCode.VECTOR else value) for value in distinct]
    return pa.array(texts, pa.string()).take(encoded.indices)
