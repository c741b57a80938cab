"""
Reads results from their files. `conflict.results.layout` has the files and folders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from conflict.history.grid.folder import Folder
from conflict.results.arrow_rows import row_schema
from conflict.results.contradictions import CONTRADICTIONS
from conflict.results.layout import (
    APPLIED_EPOCHS,
    OUTCOMES,
    UNDECIDED,
    applied_epochs_path,
    open_places_path,
    open_rows_path,
)
from conflict.rules.decision import Verdict
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import Value

__all__ = [
    "contradicted_example",
    "count_rejected",
    "read_applied_epochs",
    "read_rows",
    "read_tracked",
    "rejected_examples",
]


def rejected_examples(out: Folder, clusters: Sequence[str], count: int) -> list[dict[str, Any]]:
    """
    Return the first rejected outcomes of each applier, at most `count`, as dictionaries.

    They are the first in the order of the log, among as many as are looked at; the files have another order.
    """
    order = ("epoch", "source_epoch", "group", "ordinal", "table", "key")
    rejected = pads.field("verdict") == Verdict.REJECTED.name
    return [each for name in clusters for each in _first(out, "outcomes", name, OUTCOMES, rejected, order, count)]


def contradicted_example(out: Folder, clusters: Sequence[str], tables: Sequence[str]) -> dict[str, Any] | None:
    """Return a row of some tables of which a binlog shows something else, the first of an applier; None without one."""
    order, chosen = ("epoch", "group", "table", "key"), pads.field("table").isin([*tables])
    found = (_first(out, "contradictions", name, CONTRADICTIONS, chosen, order, 1) for name in clusters)
    return next((rows[0] for rows in found if rows), None)


def _first(
    out: Folder, part: str, applier: str, schema: pa.Schema, chosen: pads.Expression, order: Sequence[str], count: int
) -> list[dict[str, Any]]:
    """Return the first rows of an applier's part of a result, among as many as are looked at."""
    path = f"{part}/applier={applier}"
    if not out.exists(path):
        return []
    dataset = pads.dataset(f"{out.uri}/{path}", schema=schema, format="parquet", partitioning=None)
    found = dataset.head(_MOST_LOOKED_AT, filter=chosen).sort_by([(name, "ascending") for name in order])
    return [{**each, "applier": applier} for each in found.slice(0, count).to_pylist()]


_MOST_LOOKED_AT = 10_000


def read_rows(out: Folder, path: str, table: Table) -> list[tuple[Value, ...]]:
    """Return the rows of a table, or of an exceptions table, of a result; none if `path` does not exist."""
    if not out.exists(path):
        return []
    schema = row_schema(table)
    data = pads.dataset(f"{out.uri}/{path}", schema=schema, format="parquet", partitioning=None).to_table()
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True))


def read_applied_epochs(out: Folder, applier: str) -> list[dict[str, Any]]:
    """Return the foreign epochs that an applier applied, in order, as dictionaries."""
    applied: list[dict[str, Any]] = out.read_table(applied_epochs_path(applier), APPLIED_EPOCHS).to_pylist()
    return applied


def count_rejected(out: Folder, applier: str) -> Counter[tuple[int, int, str]]:
    """Return how many operations an applier rejected, by foreign epoch, own epoch, and table."""
    path = f"outcomes/applier={applier}"
    if not out.exists(path):
        return Counter()
    dataset = pads.dataset(f"{out.uri}/{path}", schema=OUTCOMES, format="parquet", partitioning=None)
    rejected = dataset.to_table(
        ["source_epoch", "epoch", "table"], filter=pads.field("verdict") == Verdict.REJECTED.name
    )
    return Counter(zip(*(column.to_pylist() for column in rejected.columns), strict=True))


def read_tracked(out: Folder, applier: str) -> list[dict[str, Any]]:
    """Return the open decisions of an applier's pass TRACK, without those that hang on open places and moments."""
    path = f"undecided/applier={applier}"
    if not out.exists(path):
        return []
    dataset = pads.dataset(f"{out.uri}/{path}", schema=UNDECIDED, format="parquet", partitioning=None)
    others = (open_places_path(applier), open_rows_path(applier))
    files = [file for file in dataset.files if not file.endswith(others)]
    kept = pads.dataset(files, schema=UNDECIDED, format="parquet", partitioning=None) if files else None
    return [] if kept is None else kept.to_table().to_pylist()
