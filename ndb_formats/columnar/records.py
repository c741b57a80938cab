"""
Row changes as records: the columns of the `ndb_binlog` data source, of Parquet and CSV output.

Records come from single rows (`record_batches`), or from batches (`records_of`); values become text there as
`value_text` gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.columnar.batches import RowBatch
from ndb_formats.columnar.commits import MICROSECONDS
from ndb_formats.columnar.map_entries import Entries
from ndb_formats.columnar.mixed_rows import IMAGE, MixedRows
from ndb_formats.columnar.value_texts import texts_of, value_text, value_texts
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag
from ndb_formats.row_reader import LoggedRow

_BATCH_ROWS = 10_000
_UNSIGNED_64 = pa.decimal128(20)  # unsigned 64-bit numbers do not fit Spark's long

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
        ("before", IMAGE),
        ("after", IMAGE),
    ]
)


def _flags_of(row: LoggedRow) -> list[str]:
    """Return the names of a row change's conflict flags."""
    flags = row.extra.flags if row.extra and row.extra.flags else ConflictFlag(0)
    return [flag.name or "" for flag in flags]


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


def records_of(batches: Sequence[RowBatch], file: str, schema: pa.Schema = RECORDS) -> pa.RecordBatch:
    """
    Return row changes of a block in the order of the file.

    Args:
        batches: The changes of the block, or some of them, one batch or more; without images, they need have none.
        file: Path of the file that they are from.
        schema: `RECORDS`, or some of its columns; epochs and ids of transactions can be unsigned integers.
    """
    places = np.concatenate([batch.places for batch in batches])
    order = None if len(batches) == 1 else np.argsort(places, kind="stable")
    block = _RecordBlock(batches, file, order, _lines_of(batches, order))
    return pa.record_batch([block.column(field.name, field.type) for field in schema], schema=schema)


def block_records(changes: Sequence[RowBatch | MixedRows], file: str, schema: pa.Schema = RECORDS) -> pa.RecordBatch:
    """Return row changes of a block in the order of the file, as maps or batches; arguments as of `records_of`."""
    batches = [each for each in changes if isinstance(each, RowBatch)]
    if batches:
        return records_of(batches, file, schema)
    (rows,) = (each for each in changes if isinstance(each, MixedRows))
    return mixed_records(rows, file, schema)


def mixed_records(rows: MixedRows, file: str, schema: pa.Schema = RECORDS) -> pa.RecordBatch:
    """Return row changes of a block; arguments as of `records_of`."""
    return pa.record_batch([_mixed_column(rows, file, field.name, field.type) for field in schema], schema=schema)


def _mixed_column(rows: MixedRows, file: str, name: str, kind: pa.DataType) -> pa.Array:
    if name == "file":
        return _repeated(file, len(rows))
    if name in ("gtid", "committed"):
        return rows.commits.gtids(rows.events) if name == "gtid" else rows.commits.times(rows.events)
    if name in ("database", "table", "operation"):
        texts = [
            shape.operation.name if name == "operation" else getattr(shape.table_map, name) for shape in rows.shapes
        ]
        if len(set(texts)) == 1:
            return _repeated(texts[0], len(rows))
        return pa.array(map(_shown, texts), pa.string()).take(pa.array(rows.shape_of))
    return _converted(rows.records.column(name), name, kind)


def _converted(column: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    """Return a column of a batch as one of the records."""
    if name == "timestamp":
        return pc.multiply(column.cast(pa.int64()), 1_000_000).cast(kind)
    return _flags(column) if name == "flags" else column.cast(kind)


def _lines_of(batches: Sequence[RowBatch], order: npt.NDArray[np.int64] | None) -> list[npt.NDArray[np.int64]]:
    """Return the line of each row of each batch among all of them."""
    if order is None:
        return [np.arange(len(batches[0]))]
    lines = np.empty(len(order), np.int64)
    lines[order] = np.arange(len(order))
    return np.split(lines, np.cumsum([len(batch) for batch in batches])[:-1])


@attrs.frozen(eq=False)
class _RecordBlock:
    """
    Changes that become records.

    Attributes:
        batches: The changes.
        file: Path of the file that they are from.
        order: Number of each row among those of all batches, in the order of the file; None if they are in order.
        lines: The line of each row of each batch in that order.
    """

    batches: Sequence[RowBatch]
    file: str
    order: npt.NDArray[np.int64] | None
    lines: Sequence[npt.NDArray[np.int64]]

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column."""
        if name in ("before", "after"):
            return self._images(name)
        if name == "file":
            return _repeated(self.file, len(self))
        if name in ("database", "table"):
            return self._sorted([_repeated(getattr(batch, name), len(batch)) for batch in self.batches])
        if name in ("gtid", "committed"):
            return self._sorted([batch.gtids if name == "gtid" else batch.committed for batch in self.batches])
        return _converted(self._sorted([batch.records.column(name) for batch in self.batches]), name, kind)

    def _sorted(self, arrays: Sequence[pa.Array]) -> pa.Array:
        if self.order is None:
            return arrays[0]
        return pa.concat_arrays(arrays).take(pa.array(self.order))

    def _images(self, name: str) -> pa.Array:
        """Return images as maps from column name to text."""
        images = [batch.before if name == "before" else batch.after for batch in self.batches]
        widths, there = np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        for lines, columns in zip(self.lines, images, strict=True):
            if columns is not None:
                widths[lines], there[lines] = len(columns), True
        bounds = np.concatenate([[0], np.cumsum(widths)])
        entries = Entries(bounds)
        for batch, lines, columns in zip(self.batches, self.lines, images, strict=True):
            if columns:
                values = batch.records.column(name).flatten()
                texts = [texts_of(value_texts(each, batch.types[of])) for each, of in zip(values, columns, strict=True)]
                entries.add(lines, columns, texts)
        validity = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
        parts = [validity, pa.py_buffer(bounds.astype(np.int32))]
        missing = len(there) - int(np.count_nonzero(there))
        return pa.Array.from_buffers(IMAGE, len(self), parts, missing, children=[entries.array()])


def _repeated(text: str, count: int) -> pa.Array:
    """Return a name in every row."""
    return pa.repeat(pa.scalar(_shown(text), pa.string()), count)


def _shown(text: str) -> str:
    """Return a name; bytes of it that are not UTF-8 are shown, as in the folders of tables."""
    return text.encode("utf-8", "backslashreplace").decode()


def _flags(flags: pa.Array) -> pa.ListArray:
    """Return the names of conflict flags; most rows have none."""
    if flags.null_count == len(flags):
        return pa.ListArray.from_arrays(np.zeros(len(flags) + 1, np.int32), pa.array([], pa.string()))
    encoded = flags.fill_null(0).dictionary_encode()
    names = [[flag.name or "" for flag in ConflictFlag(number)] for number in encoded.dictionary.to_pylist()]
    return pa.array(names, RECORDS.field("flags").type).take(encoded.indices)
