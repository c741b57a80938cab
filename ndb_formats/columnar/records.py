"""
Batches of row changes as the records of `row_records`.

Values become the text that `row_records.value_text` gives: integers and strings by Arrow, all others once per distinct
value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.columnar.batches import RowBatch
from ndb_formats.constants import ColumnCode
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.row_records import RECORDS, value_text
from ndb_formats.types.vector import Vector

__all__ = ["decimal_texts", "records_of", "value_texts"]

_PLAIN_PLACES = 6  # to so many digits after the point, Arrow's own text has no exponent
_SAME_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def records_of(batch: RowBatch, file: str) -> pa.RecordBatch:
    """Return row changes of a file as `RECORDS`."""
    rows, found = batch.records, len(batch)

    def plain(name: str) -> pa.Array:
        return rows.column(name).cast(RECORDS.field(name).type)

    columns = [
        _repeated(file, found),
        plain("position"),
        plain("payload_position"),
        plain("row"),
        pc.multiply(rows.column("timestamp").cast(pa.int64()), 1_000_000).cast(RECORDS.field("timestamp").type),
        plain("server_id"),
        plain("epoch"),
        plain("transaction_id"),
        _flags(rows.column("flags")),
        _repeated(batch.database, found),
        _repeated(batch.table, found),
        plain("operation"),
        _images(batch, "before"),
        _images(batch, "after"),
    ]
    return pa.record_batch(columns, schema=RECORDS)


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


def value_texts(values: pa.Array, code: ColumnCode) -> pa.StringArray:
    """Return values of a column as text."""
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
