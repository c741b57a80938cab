"""
Changes of a table in the shape in which Debezium gives them: ``op``, ``before``, ``after``, ``source`` and ``ts_ms``.

An image has every column of the table, and null also where it does not carry one; so ``before_columns``,
``after_columns`` and, of a table with JSON columns, ``after_diffs`` stay beside them.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

_COLUMNS = ("op", "before", "before_columns", "after", "after_columns", "after_diffs", "source", "ts_ms")
_MADE = ("op", "source", "ts_ms")
_FACTS = ("file", "position", "payload_position", "row", "timestamp", "server_id", "gtid", "committed", "operation")
_OPS = pa.array(["c", "u", "d"])
_OPERATIONS = pa.array(["WRITE_ROW", "UPDATE_ROW", "DELETE_ROW"])


def envelope_schema(columns: pa.Schema) -> pa.Schema:
    """Return the columns of an envelope of a table's changes."""
    names = [name for name in _COLUMNS if name in (*_MADE, *columns.names)]
    return enveloped(pa.RecordBatch.from_pylist([], facts_of(columns, names)), "", names).schema


def facts_of(columns: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return the columns of a table's changes that some columns of an envelope are made of."""
    return pa.schema([field for field in columns if field.name in _FACTS or field.name in names])


def enveloped(rows: pa.RecordBatch, table: str, names: Collection[str]) -> pa.RecordBatch:
    """
    Return columns of an envelope.

    Args:
        rows: Changes of the table, with the columns of `facts_of`.
        table: ``database.table``.
        names: The columns that are wanted.
    """
    database, _, name = table.partition(".")
    seconds, committed = (_milliseconds(rows.column(each)) for each in ("timestamp", "committed"))
    source = {
        "db": pa.repeat(database, len(rows)),
        "table": pa.repeat(name, len(rows)),
        "server_id": rows.column("server_id"),
        "gtid": rows.column("gtid"),
        "file": rows.column("file"),
        "pos": rows.column("position"),
        "payload_pos": rows.column("payload_position"),
        "row": rows.column("row"),
        "ts_ms": seconds,
    }
    operations = _OPS.take(pc.index_in(rows.column("operation"), _OPERATIONS))
    structs = pa.StructArray.from_arrays(list(source.values()), list(source))
    made = dict(zip(_MADE, (operations, structs, pc.coalesce(committed, seconds)), strict=True))
    return pa.record_batch({each: made[each] if each in made else rows.column(each) for each in names})


def _milliseconds(moments: pa.TimestampArray) -> pa.Int64Array:
    return pc.divide(moments.cast(pa.int64()), 1000)
