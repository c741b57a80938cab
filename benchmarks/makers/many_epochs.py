"""
Histories of very many epochs, quickly: that of a small pair of logs, whose epochs go on, without rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.makers.pair_maker import CLUSTERS, make_pair
from conflict.config.run_file import load_run_file
from conflict.history.grid.epoch_files import EPOCHS
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import log_part
from conflict.runs.ingesting import ingest

__all__ = ["make_epochs"]

_ROWS = 1 << 20  # of a part
_MICROSECONDS = 100_000  # from epoch to epoch


def make_epochs(folder: Path, epochs: int, *, changes: int = 1_000_000) -> None:
    """
    Write the logs of a pair of clusters, and ``history``, which holds more epochs than they do.

    Args:
        folder: Where; it is made.
        epochs: How many epochs each cluster has in the History; its schedule is that of the logs, and to be derived.
        changes: Row changes in the logs.
    """
    make_pair(folder, changes, rows=1)
    small, history = Folder(str(folder / "small")), Folder(str(folder / "history"))
    ingest(load_run_file(folder / "run.toml"), small, engine="local")
    shutil.copytree(small.uri, history.uri)
    for cluster in CLUSTERS:
        path = log_part("epochs", cluster, 0)
        history.write_rows(path, _continued(small.read_table(path, EPOCHS), epochs))


def _continued(known: pa.Table, epochs: int) -> Iterator[pa.Table]:
    """Yield epochs, and as many more; each shows the epoch of the other cluster before it."""
    yield known
    (last,) = known.slice(len(known) - 1).to_pylist()
    for first in range(len(known), epochs, _ROWS):
        yield _like(last, np.arange(first - len(known) + 1, min(first + _ROWS, epochs) - len(known) + 1))


def _like(last: dict[str, Any], later: npt.NDArray[np.int64]) -> pa.Table:
    """Return epochs like the last one, so many epochs later."""
    columns, count = list[pa.Array](), len(later)
    for field in EPOCHS:
        value, kind = last[field.name], getattr(field.type, "value_type", field.type)
        numbers = np.atleast_1d(value)[None, :] + np.zeros((count, 1), np.int64)
        if field.name in ("number", "applied_epoch"):
            numbers += later[:, None]
        elif field.name == "committed":
            numbers += later[:, None] * _MICROSECONDS
        flat = pa.array(numbers.ravel()).cast(kind)
        ends = pa.array(np.arange(count + 1) * numbers.shape[1], pa.int32())
        columns.append(pa.ListArray.from_arrays(ends, flat) if pa.types.is_list(field.type) else flat)
    return pa.table(columns, schema=EPOCHS)
