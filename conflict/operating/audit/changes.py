"""
The changes of one table in the log of one cluster, with the values of the column that its function compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.decoding.binlog_table import BinlogTable
from ndb_formats.columnar.stretches import table_names
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection

Bool = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

_PLACE = ("file", "position", "row", "epoch", "committed")
_KEY = "key"
_KEPT = pa.schema(
    [
        (_KEY, pa.binary()),
        ("file", pa.dictionary(pa.int32(), pa.string())),
        ("position", pa.int64()),
        ("row", pa.int32()),
        ("epoch", pa.uint64()),
        ("committed", pa.timestamp("us", tz="UTC")),
        ("server_id", pa.uint32()),
        ("plain", pa.bool_()),
        ("operation", pa.string()),
        ("after", pa.uint64()),
        ("after_has", pa.bool_()),
        ("before", pa.uint64()),
        ("before_has", pa.bool_()),
    ]
)


@attrs.frozen(slots=False, eq=False)
class ColumnChanges:
    """
    The changes of a table in a log, sorted by row, those of a row in the order of the log. Shape (changes,).

    Attributes:
        cluster: The cluster.
        places: Where each stands: columns ``key`` (text, in bytes), ``file``, ``position``, ``row``, ``epoch``,
            ``committed``.
        own: Whether a user of the cluster made it.
        updates: Whether it is an update of a row that exists, also one that is logged as a write.
        writes: Whether the row exists afterwards.
        given: Whether it carries the column.
        null: Whether it sets the column to NULL.
        value: The value afterwards; 0 for NULL, or if it is not known.
        known: Whether the value afterwards is known.
        before: The value before it; 0 likewise.
        before_known: Whether that is known.
    """

    cluster: str
    places: pa.Table
    own: Bool
    updates: Bool
    writes: Bool
    given: Bool
    null: Bool
    value: UInt64
    known: Bool
    before: UInt64
    before_known: Bool


def column_changes(
    cluster: str, server: int, files: Sequence[Path], table: str, key: Sequence[str], column: str, definitions: Schema
) -> ColumnChanges:
    """
    Return the changes of a table in a log.

    Args:
        cluster: The cluster.
        server: Server id of the SQL node that wrote the log.
        files: Its files, oldest first.
        table: ``database.table``, as the cluster names it.
        key: The columns of its primary key.
        column: The column that its function compares, an unsigned integer.
        definitions: The definitions of the tables.
    """
    names = frozenset({*key, column})
    read = BinlogTable(tuple(files), table, names, definitions, Selection(tables=frozenset({table})), moments=False)
    parts = [_part(batch, key, column) for batch in read] if table in table_names(map(str, files)) else []
    return _sorted(cluster, server, pa.concat_tables([_KEPT.empty_table(), *parts]).unify_dictionaries())


def _part(batch: Any, key: Sequence[str], column: str) -> pa.Table:
    """Return what is kept of some changes."""
    after, before = batch["after"], batch["before"]
    texts = [pc.coalesce(*(_text(each, name) for each in (before, after))) for name in key]
    carried = {name: _has(batch[f"{name}_columns"], column) for name in ("before", "after")}
    return pa.table(
        {
            _KEY: pc.binary_join_element_wise(*texts, b", ", null_handling="replace", null_replacement=b"?"),
            "file": batch["file"],
            **{name: batch[name] for name in _PLACE[1:]},
            "server_id": batch["server_id"],
            "plain": pc.equal(batch["flags"].cast(pa.string()), ""),
            "operation": batch["operation"].cast(pa.string()),
            "after": pc.struct_field(after, column).cast(pa.uint64()),
            "after_has": carried["after"],
            "before": pc.struct_field(before, column).cast(pa.uint64()),
            "before_has": carried["before"],
        },
        _KEPT,
    )


def _text(images: Any, name: str) -> Any:
    field = pc.struct_field(images, name)
    plain = field if pa.types.is_binary(field.type) else field.cast(pa.string()).cast(pa.binary())
    return pc.binary_join_element_wise(f"{name}=".encode(), plain, b"")


def _has(names: Any, column: str) -> Any:
    """Return whether a column is among the names of each image."""
    pattern = f",{column},"
    texts = pc.binary_join_element_wise("", names.cast(pa.string()), "", ",")
    return pc.fill_null(pc.match_substring(texts, pattern), fill_value=False)


def _sorted(cluster: str, server: int, rows: pa.Table) -> ColumnChanges:
    """Return changes by row, with the value before each as the log shows it."""
    codes = pc.fill_null(rows[_KEY].combine_chunks().dictionary_encode().indices, -1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    codes, rows = codes[order], rows.take(pa.array(order))
    first = np.ones(len(codes), np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    has, null = _flags(rows["after_has"]), _flags(rows["after"].is_null())
    deletes = _flags(pc.equal(rows["operation"], "DELETE_ROW"))
    given = has & ~deletes
    at = np.arange(len(codes))
    # The last change up to each that says what the value is: it carries it, deletes the row, or is the row's first.
    says = np.maximum.accumulate(np.where(given | deletes | first, at, 0)) if len(at) else at
    value, known = _numbers(rows["after"])[says] * given[says], given[says]
    before, before_known = _shifted(value, first), _shifted(known, first)
    imaged = _flags(rows["before_has"])
    before = np.where(imaged, _numbers(rows["before"]), before)
    before_known |= imaged
    # Of a row whose value no change carried yet, an image before says it.
    kept = ~known & ~deletes & imaged
    value, known = np.where(kept, before, value), known | kept
    there = _shifted(~deletes, first)
    updates = _flags(pc.equal(rows["operation"], "UPDATE_ROW")) | (~deletes & there)
    own = _flags(rows["plain"]) & (rows["server_id"].to_numpy() == server)
    return ColumnChanges(
        cluster,
        rows.select([_KEY, *_PLACE]),
        own,
        updates,
        ~deletes,
        given,
        given & null,
        value,
        known,
        before,
        before_known,
    )


def _shifted(values: npt.NDArray[Any], first: Bool) -> npt.NDArray[Any]:
    """Return the value of the change before each of the same row; 0 before the first one."""
    found = np.zeros_like(values)
    found[1:] = values[:-1]
    found[first] = 0
    return found


def _flags(column: Any) -> Bool:
    found: Bool = pc.fill_null(column, fill_value=False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return found


def _numbers(column: Any) -> UInt64:
    found: UInt64 = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.uint64)
    return found
