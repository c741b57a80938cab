"""
A sweep as a report reads it: its runs, which point loses least, and where a condition ceases to hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from conflict.engine.ledger.layout import refuse_damaged_result
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.results.files import RESULT
from conflict.telling.part import FunctionFigures, Topic
from conflict.telling.shown_text import percent
from conflict.whatif.estimates import Estimate
from conflict.whatif.sweeping.differences import Key, Values, difference, values_of
from conflict.whatif.sweeping.summary import Grid, axis_value, grid_of, main_axis, value_words

RESULTS, BORDERS = "results.parquet", "borders.parquet"
Row = Mapping[str, Any]


@attrs.frozen(eq=False, slots=False)
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

    @cached_property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The rows of a table that can be compared, the one that loses least on average first."""
        values, stopping = self._lost, self.stopping
        going = [key for key in values if key not in stopping] or list(values)
        averages = {key: fmean(share for at in values[key].values() for share in at.values()) for key in going}
        return tuple(sorted(going, key=averages.__getitem__))

    @property
    def best(self) -> tuple[Any, ...]:
        """The row that loses least on average in these runs; see `least`."""
        return self.rows[0]

    @cached_property
    def least(self) -> tuple[tuple[Any, ...], ...]:
        """
        The rows that are not told apart from `best`, and it: alone, it loses least.

        Another row is told apart if the 95 % interval of the mean difference, paired by seed, leaves out 0.
        """
        more = {key: self.more_than_best(key) for key in self.rows[1:]}
        return (self.best, *(key for key, each in more.items() if each is None or not each.differs_from_0))

    def more_than_best(self, key: tuple[Any, ...], at: Any = None) -> Estimate | None:
        """
        Return the share that a row loses more than `best`, on average over the other axes; paired by seed.

        Args:
            key: The row.
            at: At this value of the main axis; None for all.
        """
        over = main_axis(self.axes)
        mine, least = (
            {point: by_seed for point, by_seed in self._lost[each].items() if at is None or (over, at) in point}
            for each in (key, self.best)
        )
        return difference(mine, least)

    @cached_property
    def _lost(self) -> dict[Key, Values]:
        """The share that is lost, by row of a table."""
        return values_of(self.results, self.axes, self.grid("lost_share").axes, "lost_share")

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
        """The function that loses least on average in these runs; nothing if functions are no axis."""
        axes = self.grid("lost_share").axes
        return str(self.best[axes.index("function")]) if "function" in axes else ""

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that lose least, or may; nothing if functions are no axis."""
        axes = self.grid("lost_share").axes
        if "function" not in axes:
            return ()
        return tuple(dict.fromkeys(str(key[axes.index("function")]) for key in self.least))


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


@attrs.frozen
class Limit:
    """
    Where a condition ceases to hold for a function, at the worst of all points of the other axes.

    Attributes:
        over: The axis.
        tried: Its least and its greatest value.
        holds: The value nearest to the limit at which it holds in every run; None if there is none.
        fails: The value nearest to the limit at which it fails in every run; None if there is none.
    """

    over: str
    tried: tuple[float, float]
    holds: float | None
    fails: float | None

    @property
    def words(self) -> str:
        """Between which values the limit lies."""
        if self.holds is not None and self.fails is not None:
            low, high = sorted((self.holds, self.fails))
            return f"{axis_value(low)} to {value_words(self.over, high)}"
        if self.holds is not None:
            return "none that was tried" if self.holds_everywhere else f"more than {self._value(self.holds)}"
        if self.fails is not None:
            return "all that were tried" if self.fails_everywhere else f"less than {self._value(self.fails)}"
        return "it depends on the run"

    @property
    def rises(self) -> bool:
        """Whether it fails above the limit, and holds below."""
        return self.holds is not None and (self.fails is None or self.fails > self.holds)

    @property
    def holds_everywhere(self) -> bool:
        """Whether it holds in every run at all values that were tried."""
        return self.fails is None and self.holds == self.tried[1]

    @property
    def fails_everywhere(self) -> bool:
        """Whether it fails in every run at all values that were tried."""
        return self.holds is None and self.fails == self.tried[0]

    def _value(self, value: float | None) -> str:
        return value_words(self.over, value)


def limits_of(borders: Sequence[Row], axes: Mapping[str, Sequence[Any]]) -> dict[str, Limit]:
    """
    Return the limit of each function; its name is empty where functions are no axis.

    Args:
        borders: Rows of ``borders.parquet``.
        axes: The axes of the sweep, with their values.
    """
    found: dict[str, list[Row]] = {}
    for each in borders:
        found.setdefault(str(each.get("function", "")), []).append(each)
    over = borders[0]["over"]
    tried = min(axes[over]), max(axes[over])
    return {name: Limit(over, tried, *_worst(own)) for name, own in found.items()}


def _worst(borders: Sequence[Row]) -> tuple[float | None, float | None]:
    """Return where a condition holds and fails where it fails first; of borders on both sides, the upper ones count."""
    sides = [(each["holds"], each["fails"]) for each in borders]
    falling = [(holds, fails) for holds, fails in sides if None not in (holds, fails) and fails < holds]
    rising = [each for each in sides if each not in falling]
    if not rising:
        return max(falling)
    holds, fails = [holds for holds, _ in rising], [fails for _, fails in rising if fails is not None]
    return None if None in holds else min(holds), min(fails, default=None)


def limit_question(over: str, condition: str) -> str:
    """Return the question that a search answers."""
    share, what = _share(condition), "latency" if over == "latency_ms" else over
    return f"At which {what} are {share} lost?" if share else f"At which {what} does {condition} fail?"


def limit_column(limits: Mapping[str, Limit], condition: str) -> Iterator[FunctionFigures]:
    """Yield between which values a condition ceases to hold, by function; nothing if functions are no axis."""
    if "" not in limits:
        share, over = _share(condition), next(iter(limits.values())).over
        heading = f"{share} are lost at {over}" if share else f"{condition} fails at {over}"
        words = {name: each.words for name, each in limits.items()}
        yield FunctionFigures(Topic.LIMIT, f"{heading}, simulated", words)


def _share(condition: str) -> str:
    """Return the share that a condition says is lost where it fails; empty if it is about something else."""
    figure, _, limit = condition.partition(" < ")
    return percent(float(limit), None) if figure == "lost_share" and limit else ""
