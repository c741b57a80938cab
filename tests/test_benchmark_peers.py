"""
What peers are given to do: DuckDB sees every file of a History, and every value that its images carry.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from benchmarks.makers.history_maker import configuration
from benchmarks.makers.history_reader import read_history
from benchmarks.makers.history_values import values_of
from benchmarks.peer_duckdb import COLUMNS, order_query
from benchmarks.resolve import history_of, small_shape
from conflict.history.grid.folder import Folder
from conflict.history.timeline import Transaction


def test_the_order_of_changes_is_asked_of_every_file(tmp_path: Path) -> None:
    history = history_of(small_shape(2000, 7), tmp_path, 1)
    files = sorted((history / "changes").rglob("*.parquet"))
    text = order_query(history)
    assert len(files) == 4
    assert all(text.count(str(file)) == 1 for file in files)


@pytest.mark.parametrize(("binlog_type", "function"), [(7, "NDB$MAX"), (8, "NDB$EPOCH")])
def test_values_stand_beside_a_history_as_its_images_have_them(tmp_path: Path, binlog_type: int, function: str) -> None:
    history = history_of(small_shape(2000, binlog_type), tmp_path, 1)
    found = defaultdict(list)
    for row in ds.dataset(values_of(history), partitioning="hive").to_table().sort_by("ordinal").to_pylist():
        carried = {name: row[name] for place, name in enumerate(COLUMNS) if row["carried"] >> place & 1}
        found[row["cluster"], row["epoch"], row["group"]].append(carried)
    logged = {
        (cluster.name, entry.epoch, entry.group): [
            {} if each.after is None else each.after.by_name() for each in entry.changes
        ]
        for cluster in read_history(Folder(str(history)), configuration(function)).clusters
        for entry in cluster.timeline
        if isinstance(entry, Transaction)
    }
    assert sum(map(len, logged.values())) == 2000
    assert found == logged
