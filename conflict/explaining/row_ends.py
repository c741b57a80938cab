"""
How rows end on each cluster, and which do not end the same on all.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from conflict.engine.ledger.table_keys import TableKey
from conflict.explaining.row_changes import WantedRow
from conflict.explaining.story import StoryEnd
from conflict.results.conflicts import numbered
from conflict.results.result import Result
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import Value


def _by_identity(rows: pa.Table, key: TableKey) -> dict[bytes, dict[str, Value]]:
    """Return rows by their identities."""
    return {key.identity([row[name] for name in key.names]): row for row in rows.to_pylist()}


def _without_equal(first: pa.Table, second: pa.Table, key: TableKey) -> tuple[pa.Table, pa.Table]:
    """Return the final rows of two clusters without most of those that are the same in all columns of both."""
    common = {*first.column_names} & {*second.column_names}
    names = [each.name for each in first.schema if each in second.schema]
    if common != {*names} or not common.issuperset(key.names):
        return first, second  # a column has two types
    codes = numbered(pa.concat_tables([first.select(names), second.select(names)]), names)
    here, there = codes[: len(first)], codes[len(first) :]
    return first.filter(pa.array(~np.isin(here, there))), second.filter(pa.array(~np.isin(there, here)))


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
    first, *others = (result.rows(cluster, table) for cluster in result.clusters)
    whole = [not any(result.run["not_known"].get(cluster, {}).get(table, {}).values()) for cluster in result.clusters]
    found: dict[WantedRow, None] = {}
    for number, other in enumerate(others, start=1):
        mine, theirs = (_by_identity(rows, key) for rows in _without_equal(first, other, key))
        for row in (*mine, *theirs):
            if row in mine and row in theirs:
                same = all(value == theirs[row][name] for name, value in mine[row].items() if name in theirs[row])
            else:
                same = not whole[0 if row in theirs else number]
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
