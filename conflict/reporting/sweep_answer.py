"""
What a report answers from a sweep: which function loses least and where, what is too much, where rows differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from conflict.reporting.bytes_by_type import listed
from conflict.sweeping.summary import Grid, axis_value

__all__ = ["AXES", "axis_label", "border_sentence", "different_sentence", "least_lost", "least_of", "without_stops"]

Row = Mapping[str, Any]
Point = tuple[Any, ...]
Shares = Mapping[Point, Sequence[float | None]]
# What the values of an axis are; others say it by their name.
AXES = {
    "latency_ms": "one way, on each of both links, in milliseconds",
    "clock_skew_ms": "how far the second cluster's clock is ahead, in milliseconds",
    "outage_seconds": "how long both links are down",
    "transactions_per_second": "of each cluster",
}
_PERCENT = 100.0
_MOST_PLACES = 6
_MOST_VALUES = 4  # of an axis in a sentence


def least_lost(lost: Grid, stopping: set[Point]) -> str:
    """
    Return which point of the other axes loses least, at which values of the main one, and what the next one loses.

    The text is empty if there is but one.

    Args:
        lost: The share of the changes of users that is lost.
        stopping: Points at which an applier stops; what it does not apply does not count as lost.
    """
    rows = _compared(lost, stopping)
    if lost.over is None:
        order = sorted(rows, key=lambda key: rows[key][0] or 0.0)
        rest = "; ".join(f"{axis_label(key)} {_share(rows[key][0])}" for key in order[1:5])
        least = f"{axis_label(order[0])} loses least: {_share(rows[order[0]][0])} of the changes of users"
        return f"{least}; {rest}." if rest else f"{least}."
    if len(rows) == 1:
        return ""  # there is nothing to compare it with
    winners = _winners(lost, rows)
    main = max(dict.fromkeys(winners), key=winners.count)
    others = "".join(
        f"; {axis_label(key)} does {_places(lost, rows, winners, key)}" for key in dict.fromkeys(winners) if key != main
    )
    return f"Of the changes of users, {axis_label(main)} loses least {_places(lost, rows, winners, main)}{others}."


def least_of(lost: Grid, stopping: set[Point]) -> Point:
    """Return the point of the other axes that loses least at most values of the main one."""
    winners = _winners(lost, without_stops(lost, stopping).rows)
    return max(dict.fromkeys(winners), key=winners.count)


def without_stops(lost: Grid, stopping: set[Point]) -> Grid:
    """Return the shares without points at which an applier stops; all of them if it does everywhere."""
    return attrs.evolve(lost, rows=_compared(lost, stopping))


def _compared(lost: Grid, stopping: set[Point]) -> Shares:
    return {key: cells for key, cells in lost.rows.items() if key not in stopping} or lost.rows


def _winners(lost: Grid, rows: Shares) -> list[Point]:
    return [_best_at(rows, place) for place in range(len(lost.values))]


def _best_at(rows: Shares, place: int) -> Point:
    known = {key: cell for key, cells in rows.items() if (cell := cells[place]) is not None}
    return min(known or rows, key=lambda key: known.get(key, 0.0))


def _places(lost: Grid, rows: Shares, winners: Sequence[Point], key: Point) -> str:
    """Return at which values of the main axis a point loses least, what it loses there, and what the next one does."""
    places = [place for place, winner in enumerate(winners) if winner == key]
    found = []
    for place in places if len(places) <= _MOST_VALUES else (places[0], places[-1]):
        others = {each: cells for each, cells in rows.items() if each != key and cells[place] is not None}
        second = _best_at(others, place) if others else None
        against = "" if second is None else f" against {_share(others[second][place])} of {axis_label(second)}"
        found.append(f"{_share(rows[key][place])} at {axis_value(lost.values[place])}{against}")
    many = f"all {len(winners)}" if len(places) == len(winners) else f"{len(places)} of {len(winners)}"
    return f"at {many} values of {lost.over} ({', '.join(found)})"


def different_sentence(results: pa.Table, grid: Grid, at_first: int = 0) -> str:
    """
    Return in which runs rows end different.

    Args:
        results: The rows of the sweep.
        grid: The axes by which they are told.
        at_first: How many rows the tables have at first; 0 if that is not known.
    """
    names = [*grid.axes, *([grid.over] if grid.over is not None else [])]
    runs: dict[tuple[Any, ...], list[int]] = {}
    for row in results.select([*names, "rows_that_end_different"]).to_pylist():
        runs.setdefault(tuple(row[name] for name in names), []).append(row["rows_that_end_different"])
    different = {point: [each for each in found if each] for point, found in runs.items() if any(found)}
    if not different:
        return "No row ends different in any run."
    count = sum(map(len, different.values()))
    parts = []
    for point, found in list(different.items())[:_MOST_PLACES]:
        least, most = min(found), max(found)
        rows = f"{least:,} {'row' if most == 1 else 'rows'}" if least == most else f"{least:,} to {most:,} rows"
        often = f", {len(found):,} of {len(runs[point]):,} runs" if len(runs[point]) > 1 else ""
        parts.append(f"{_point(grid, point)} ({rows}{often})")
    if len(different) > _MOST_PLACES:
        parts.append(f"{len(different) - _MOST_PLACES:,} more points")
    rows = f", of tables that have {at_first:,} rows at first" if at_first else ""
    return f"Rows end different in {count:,} of {results.num_rows:,} runs{rows}: {'; '.join(parts)}."


def _point(grid: Grid, point: Sequence[Any]) -> str:
    if grid.over is None:
        return axis_label(point)
    where = f"at {grid.over} {axis_value(point[-1])}"
    return f"{axis_label(point[:-1])} {where}" if len(point) > 1 else where


def border_sentence(borders: Sequence[Row]) -> str:
    """Return up to where a condition holds, for each function."""
    what, over = borders[0]["condition"], borders[0]["over"]
    if all(each["fails"] is None for each in borders):
        return f"{what} holds at all {over} that were tried."
    if all(each["holds"] is None for each in borders):
        return f"{what} holds at no {over} that was tried."
    found: dict[str, list[Row]] = {}
    for each in borders:
        found.setdefault(str(each.get("function", "")), []).append(each)
    alike: dict[str, list[str]] = {}
    for name, own in found.items():
        alike.setdefault(_between(own), []).append(name)
    parts = [f"{words}{f' with {listed(names)}' if any(names) else ''}" for words, names in alike.items()]
    return f"{what} holds {'; '.join(parts)}."


def _between(borders: Sequence[Row]) -> str:
    """Return where a condition holds, at all points of the axes besides the function."""
    over = borders[0]["over"]
    crossed = [each for each in borders if each["holds"] is not None and each["fails"] is not None]
    if any(each["holds"] is None for each in borders):
        return f"at some points at no {over}"
    if not crossed:
        return f"at all {over}"
    below = [each["holds"] for each in crossed if each["holds"] < each["fails"]]
    above = [each["holds"] for each in crossed if each["holds"] > each["fails"]]
    words = [f"up to {over} {axis_value(min(below))}"] if below else []
    return " and ".join([*words, *([f"from {over} {axis_value(max(above))}"] if above else [])])


def axis_label(key: Sequence[Any]) -> str:
    """Return a point of the axes that are not the main one, as text."""
    return ", ".join(map(axis_value, key)) or "this model"


def _share(share: float | None) -> str:
    return "?" if share is None else f"{_PERCENT * share:.2f} %"
