"""
Row changes as records: the columns of the `ndb_binlog` data source, of Parquet and CSV output, and JSON lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa

from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage
from ndb_formats.row_reader import LoggedRow
from ndb_formats.types.decimals import decimal_text
from ndb_formats.types.geometry import Geometry
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange
from ndb_formats.types.values import Value
from ndb_formats.types.vector import Vector

__all__ = ["RECORDS", "json_line", "record_batches", "value_text"]

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
        ("flags", pa.list_(pa.string())),
        ("database", pa.string()),
        ("table", pa.string()),
        ("operation", pa.string()),
        ("before", _IMAGE),
        ("after", _IMAGE),
    ]
)


def flags_of(row: LoggedRow) -> list[str]:
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
        flags_of(row),
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


def json_line(row: LoggedRow) -> str:
    """Return a row change as one JSON object: absent columns are left out, NULL is null."""
    document: dict[str, Any] = {
        "file": row.file,
        "position": row.position,
        **({"payload_position": row.payload_position} if row.payload_position else {}),
        "row": row.row,
        "timestamp": row.timestamp,
        "server_id": row.server_id,
        "epoch": row.epoch,
        "transaction_id": row.extra.transaction_id if row.extra else None,
        "flags": flags_of(row),
        "database": row.database,
        "table": row.table,
        "operation": row.operation.name,
    }
    for name, image in (("before", row.before), ("after", row.after)):
        if image is not None:
            document[name] = {column: _json_value(value) for column, value in image.by_name().items()}
    return json.dumps(document, ensure_ascii=False)


def _json_value(value: Value) -> object:
    """Return integers and floats as numbers, and all other values, DECIMAL among them, as text."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, Decimal)):
        return value
    return value_text(value)
