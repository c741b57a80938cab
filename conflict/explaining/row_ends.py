"""
How rows end on each cluster, and which do not end the same on all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from conflict.engine.ledger.table_keys import TableKey
from conflict.explaining.row_changes import WantedRow
from conflict.explaining.story import StoryEnd
from conflict.results.result import Result
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import Value


def _rows(result: Result, cluster: str, table: str, key: TableKey) -> Iterator[tuple[bytes, dict[str, Value]]]:
    """Yield the final rows of a table on a cluster, each after its identity."""
    for row in result.rows(cluster, table).to_pylist():
        yield key.identity([row[name] for name in key.names]), row


def end_of(result: Result, cluster: str, row: WantedRow, key: TableKey) -> StoryEnd:
    """Return how a row ends on a cluster; `key` is that of its table."""
    table, identity = row
    rows = result.rows(cluster, table)
    if rows.num_columns:
        for each in _candidates(rows, key, identity).to_pylist():
            if key.identity([each[name] for name in key.names]) == identity:
                return StoryEnd(each)
    elif result.run["rows"].get(cluster, {}).get(table):
        return StoryEnd(None, known=False)  # final rows were not wanted
    unknown = result.run["not_known"].get(cluster, {}).get(table, {})
    return StoryEnd(None, known=not any(unknown.values()))


def _candidates(rows: pa.Table, key: TableKey, identity: bytes) -> pa.Table:
    """Return rows without most of those that have another key."""
    for name, value in zip(key.names, key.values(identity), strict=True):
        kind = rows[name].type
        if pat.is_integer(kind):
            rows = rows.filter(pc.equal(rows[name], pa.scalar(value, kind)))
    return rows


def differing_rows(result: Result, table: str, key: TableKey) -> list[WantedRow]:
    """
    Return the rows of a table that do not end the same on all clusters, in the columns that these have in common.

    A row that is missing where not all rows are known is left out. `key` is the key of the table.
    """
    if not result.run["differing_rows"].get(table):
        return []
    ends: list[dict[bytes, Any]] = [dict(_rows(result, cluster, table, key)) for cluster in result.clusters]
    whole = [not any(result.run["not_known"].get(cluster, {}).get(table, {}).values()) for cluster in result.clusters]
    first, *others = ends
    found: dict[WantedRow, None] = {}
    for number, rows in enumerate(others, start=1):
        for row in (*first, *rows):
            if row in first and row in rows:
                same = all(value == rows[row][name] for name, value in first[row].items() if name in rows[row])
            else:
                same = not whole[0 if row in rows else number]
            if not same:
                found[table, row] = None
    return list(found)


def differing_without_key(result: Result, tables: Mapping[str, Table], asked: str | None = None) -> dict[str, int]:
    """
    Return how many rows differ of each table without a primary key, whose rows have no stories.

    Args:
        result: The result.
        tables: Its tables by name.
        asked: Of this table alone, ``database.table``.
    """
    counts: dict[str, int | None] = result.run["differing_rows"]
    named = {name: count for name, count in counts.items() if count and asked in (None, name)}
    return {name: count for name, count in named.items() if name in tables and not tables[name].primary_key}


def tables_not_known(result: Result, tables: Mapping[str, Table], asked: str | None = None) -> list[str]:
    """
    Return the tables of which the result does not hold all rows at the end, so that more may differ.

    Args:
        result: As for `differing_without_key`, as are the others.
        tables: See there.
        asked: See there.
    """
    counts, gaps = result.run["differing_rows"], result.run["not_known"].values()
    return [
        name
        for name, each in tables.items()
        if each.primary_key
        and asked in (None, name)
        and (counts.get(name, 0) is None or any(any(gap.get(name, {}).values()) for gap in gaps))
    ]
