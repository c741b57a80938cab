"""
How rows end on each cluster, and which do not end the same on all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from conflict.explaining.asked import key_as_it_compares
from conflict.explaining.row_changes import WantedRow
from conflict.explaining.story import StoryEnd
from conflict.result import Result
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import Value

__all__ = ["differing_rows", "differing_without_key", "end_of", "tables_not_known"]


def _rows(result: Result, cluster: str, table: Table) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield the final rows of a table on a cluster, each after its key."""
    for row in result.rows(cluster, table.full_name).to_pylist():
        yield _key_of(table, row), row


def _key_of(table: Table, row: Mapping[str, Value]) -> str:
    return key_as_it_compares(table, {name: row[name] for name in table.primary_key})


def end_of(result: Result, cluster: str, table: Table, key: str) -> StoryEnd:
    """Return how a row ends on a cluster."""
    rows = result.rows(cluster, table.full_name)
    if rows.num_columns:
        chosen = _candidates(rows, table, key)
        for row in chosen.to_pylist():
            if _key_of(table, row) == key:
                return StoryEnd(row)
    elif result.run["rows"].get(cluster, {}).get(table.full_name):
        return StoryEnd(None, known=False)  # final rows were not wanted
    unknown = result.run["not_known"].get(cluster, {}).get(table.full_name, {})
    return StoryEnd(None, known=not any(unknown.values()))


def _candidates(rows: pa.Table, table: Table, key: str) -> pa.Table:
    """Return rows without most of those that have another key."""
    for column in table.key_columns:
        kind = rows[column.name].type
        if pat.is_integer(kind):
            found = re.search(rf"(?:^|, ){re.escape(column.name)}=(-?\d+)(?:, |$)", key)
            if found:
                try:
                    number = pa.scalar(int(found[1]), kind)
                except (OverflowError, ValueError):  # beyond the type
                    return rows.slice(0, 0)
                rows = rows.filter(pc.equal(rows[column.name], number))
    return rows


def differing_rows(result: Result, tables: Mapping[str, Table]) -> list[WantedRow]:
    """
    Return the rows that do not end the same on all clusters, in the columns that these have in common.

    A row that is missing where not all rows are known is left out.
    """
    found: list[WantedRow] = []
    for name, count in result.run["differing_rows"].items():
        table = tables.get(name)
        if count and table is not None and table.primary_key:
            found += ((name, key) for key in _differing_keys(result, table))
    return found


def _differing_keys(result: Result, table: Table) -> list[str]:
    ends: list[dict[str, Any]] = [dict(_rows(result, cluster, table)) for cluster in result.clusters]
    whole = [
        not any(result.run["not_known"].get(cluster, {}).get(table.full_name, {}).values())
        for cluster in result.clusters
    ]
    first, *others = ends
    keys: dict[str, None] = {}
    for number, rows in enumerate(others, start=1):
        for key in (*first, *rows):
            if key in first and key in rows:
                same = all(value == rows[key][name] for name, value in first[key].items() if name in rows[key])
            else:
                same = not whole[0 if key in rows else number]
            if not same:
                keys[key] = None
    return list(keys)


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
