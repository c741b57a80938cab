"""
A sweep as a report reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.reporting.answers.limit import Limit, limits_of
from conflict.results.files import RESULT
from conflict.results.layout import refuse_damaged_result
from conflict.whatif.sweeping.summary import Grid, grid_of
from conflict.whatif.sweeping.sweep import BORDERS, RESULTS

__all__ = ["SweepResult", "read_sweep"]

Row = Mapping[str, Any]


@attrs.frozen(eq=False)
class SweepResult:
    """A sweep as it was read: document, rows, rows of borders."""

    document: Row
    results: pa.Table
    borders: Sequence[Row]

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        """By name, the values that were tried."""
        axes: Mapping[str, Sequence[Any]] = self.document["axes"]
        return axes

    def grid(self, figure: str) -> Grid:
        """Return medians of a figure."""
        return grid_of(self.results, self.axes, figure)

    @property
    def limits(self) -> dict[str, Limit]:
        """Where the condition of the search ceases to hold, by function; empty without a search."""
        return limits_of(self.borders, self.axes) if self.borders else {}

    @property
    def stopping(self) -> set[tuple[Any, ...]]:
        """The rows of a table in which an applier stopped in some run, or changes were not settled at its end."""
        axes = self.grid("lost_share").axes
        rows = self.results.select([*axes, "stopped_appliers", "unsettled_changes"]).to_pylist()
        return {
            tuple(row[name] for name in axes) for row in rows if row["stopped_appliers"] or row["unsettled_changes"]
        }

    @property
    def best(self) -> tuple[Any, ...]:
        """The row of a table that loses least at most values of the main axis; of equal ones, least in all."""
        rows, stopping = self.grid("lost_share").rows, self.stopping
        going = {key: cells for key, cells in rows.items() if key not in stopping} or rows
        least = [
            min((cell for cell in at if cell is not None), default=None) for at in zip(*going.values(), strict=True)
        ]

        def rank(key: tuple[Any, ...]) -> tuple[int, float]:
            alike = sum(cell is not None and cell == low for cell, low in zip(going[key], least, strict=True))
            return -alike, sum(cell or 0.0 for cell in going[key])

        return min(going, key=rank)

    @property
    def seeds_differ(self) -> float:
        """How far the shares that are lost differ at most where only seeds do."""
        points: dict[tuple[Any, ...], list[float]] = {}
        for row in self.results.select([*self.axes, "lost_share"]).to_pylist():
            *point, share = row.values()
            points.setdefault(tuple(point), []).append(share)
        return max(max(each) - min(each) for each in points.values())

    @property
    def latency(self) -> float | None:
        """The latency up to which the condition of the search holds; None where it is about something else."""
        limit = self.limits.get(self.function)
        return limit.holds if limit is not None and limit.over == "latency_ms" and limit.rises else None

    @property
    def function(self) -> str:
        """The function that loses least at most values of the main axis; nothing if functions are no axis."""
        axes = self.grid("lost_share").axes
        return str(self.best[axes.index("function")]) if "function" in axes else ""


def read_sweep(folder: Folder) -> SweepResult:
    """
    Read the folder of a sweep.

    Raises:
        HistoryError: It is not as it was written.
    """
    document = folder.read_json(RESULT)
    refuse_damaged_result(folder, document, "Delete the damaged files, and sweep again")
    results = _read(folder, RESULTS)
    if "unsettled_changes" not in results.column_names:
        message = f"{folder.uri} was made by an earlier version of ndb-conflict; sweep again"
        raise HistoryError(message)
    borders = _read(folder, BORDERS).to_pylist() if folder.exists(BORDERS) else []
    return SweepResult(document, results, borders)


def _read(folder: Folder, name: str) -> pa.Table:
    return pq.read_table(f"{folder.uri}/{name}")
