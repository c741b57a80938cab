"""
What a report answers from a sweep: which function loses least and where, what seeds tell, where rows differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import pyarrow as pa

from conflict.shown_text import listed
from conflict.telling.value import shown
from conflict.whatif.sweeping.summary import Grid, axis_value

__all__ = [
    "AXES",
    "different_sentence",
    "least_lost",
    "least_of",
    "point_label",
    "rounded",
    "seed_ranges",
    "seeds_sentence",
    "share_words",
    "value_words",
    "without_stops",
]

Row = Mapping[str, Any]
Point = tuple[Any, ...]
Shares = Mapping[Point, Sequence[float | None]]
Ranges = Mapping[Point, tuple[float, float]]  # by point and value of the main axis
# What the values of an axis are; others say it by their name.
AXES = {
    "latency_ms": "one way, on each of both links, in milliseconds",
    "clock_skew_ms": "how far the second cluster's clock is ahead, in milliseconds",
    "outage_seconds": "how long both links are down",
    "transactions_per_second": "of each cluster",
}
_UNITS = {"_ms": " ms", "_seconds": " s"}  # by how the name of an axis ends
_PERCENT = 100.0
_MOST_VALUES = 4  # of an axis in a sentence


def least_lost(lost: Grid, stopping: set[Point], ranges: Ranges = MappingProxyType({})) -> str:
    """
    Return which point of the other axes loses least, at which values of the main one.

    The text is empty if there is but one.

    Args:
        lost: The share of the changes of users that is lost.
        stopping: Points at which an applier stops; what it does not apply does not count as lost.
        ranges: What `seed_ranges` returned: points whose seeds lose as much as those of the least one lose as little.
    """
    rows = without_stops(lost, stopping).rows
    if len(rows) == 1:
        return ""  # there is nothing to compare it with
    main, places = least_of(lost, stopping, ranges), _least_at(lost, rows, ranges)
    compared = f"{point_label(lost, main)} loses least of the {len(rows)} that were simulated"
    if lost.over is None:
        alike = [point_label(lost, key) for key in places if key != main]
        also = f"; {listed(alike)} as little" if alike else ""
        return f"{compared}, {share_words(rows[main][0])} of the changes of users{also}."
    tied = {key: [each for each in own if each in places[main]] for key, own in places.items() if key != main}
    alone = {key: [each for each in own if each not in places[main]] for key, own in places.items() if key != main}
    others = [f"{point_label(lost, key)} {_places(lost, own)}" for key, own in alone.items() if own]
    others += [f"{point_label(lost, key)} loses as little {_places(lost, own)}" for key, own in tied.items() if own]
    return "; ".join([f"{compared}, {_places(lost, places[main])}", *others]) + "."


def least_of(lost: Grid, stopping: set[Point], ranges: Ranges = MappingProxyType({})) -> Point:
    """Return the point of the other axes that loses least at most values of the main one; of equal ones, the least."""
    rows = without_stops(lost, stopping).rows
    places = _least_at(lost, rows, ranges)
    return min(places, key=lambda key: (-len(places[key]), sum(cell or 0.0 for cell in rows[key])))


def without_stops(lost: Grid, stopping: set[Point]) -> Grid:
    """Return the shares without points at which an applier stops; all of them if it does everywhere."""
    rows = {key: cells for key, cells in lost.rows.items() if key not in stopping}
    return attrs.evolve(lost, rows=rows or lost.rows)


def seed_ranges(results: pa.Table, lost: Grid, seeds: int) -> Ranges:
    """Return the least and the most share at each point and value, where runs differ by their seeds alone."""
    names = [*lost.axes, *([lost.over] if lost.over is not None else []), "lost_share"]
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in results.select(names).to_pylist():
        *point, share = row.values()
        found.setdefault(tuple(point), []).append(share)
    if any(len(shares) > seeds for shares in found.values()):
        return {}
    return {point: (min(shares), max(shares)) for point, shares in found.items()}


def _least_at(lost: Grid, rows: Shares, ranges: Ranges) -> dict[Point, list[int]]:
    """Return at which places of the main axis points lose least, or no more than seeds differ, if at any."""
    found: dict[Point, list[int]] = {}
    for place, value in enumerate(lost.values):
        known = {key: cell for key, cells in rows.items() if (cell := cells[place]) is not None}
        least = min(known, key=lambda key: known[key], default=())
        at = () if lost.over is None else (value,)
        low, high = ranges.get((*least, *at), (0.0, -1.0))
        for key, cell in known.items():
            within = (*key, *at) in ranges and low <= ranges[*key, *at][0] <= high
            if within or share_words(cell) == share_words(known[least]):
                found.setdefault(key, []).append(place)
    return found or {next(iter(rows)): []}


def _places(lost: Grid, places: Sequence[int]) -> str:
    """Return some values of the main axis."""
    if len(places) == len(lost.values):
        return f"at every {lost.over}"
    if len(places) > _MOST_VALUES:
        return f"at {len(places)} of {len(lost.values)} {lost.over}"
    return f"at {listed([value_words(lost.over, lost.values[place]) for place in places])}"


def seeds_sentence(results: pa.Table, axes: Iterable[str], seeds: int) -> str:
    """Return how far figures can be told apart with so many seeds; runs differ by them alone at a point of all axes."""
    if seeds == 1:
        return "With 1 seed, differences that are smaller than those between seeds cannot be told from chance."
    runs: dict[Point, list[float]] = {}
    for row in results.select([*axes, "lost_share"]).to_pylist():
        *point, share = row.values()
        runs.setdefault(tuple(point), []).append(share)
    most = max(max(each) - min(each) for each in runs.values())
    return f"Figures are medians of {seeds:,} seeds, which differ by up to {share_words(most)} of the changes."


def different_sentence(results: pa.Table) -> str:
    """Return in how many runs of a sweep rows end different."""
    rows = results.select(["rows_that_end_different", "quiet_at_the_end"]).to_pylist()
    different = [row for row in rows if row["rows_that_end_different"]]
    applied = ", when everything is applied" if all(row["quiet_at_the_end"] for row in rows) else ""
    if not different:
        return f"No row ends different in any simulation{applied}."
    return f"Rows end different in {len(different):,} of {len(rows):,} simulations{applied}."


def value_words(over: str | None, value: object) -> str:
    """Return a value of an axis with its unit, or else with the name of the axis."""
    unit = next((words for end, words in _UNITS.items() if over and over.endswith(end)), "")
    return f"{axis_value(value)}{unit}" if unit or not over else f"{over} {axis_value(value)}"


def share_words(share: float | None) -> str:
    """Return a share in percent, with three digits."""
    return "?" if share is None else f"{rounded(_PERCENT * share)} %"


def rounded(number: float | None) -> str:
    """Return a simulated number with three digits: a run with another seed has others from there on."""
    return shown(None if number is None else float(f"{number:.3g}"))


def point_label(grid: Grid, key: Sequence[Any]) -> str:
    """Return a point of the axes that the rows of a grid stand for, as text."""
    return ", ".join(map(_named_value, grid.axes, key)) or "this model"


def _named_value(axis: str, value: object) -> str:
    if axis == "function":
        return str(value)
    return f"{'type' if axis == 'binlog_type' else axis} {axis_value(value)}"
