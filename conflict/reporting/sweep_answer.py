"""
What a report answers from a sweep: which function loses least and where, what is too much, where rows differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from conflict.reporting.bytes_by_type import listed
from conflict.sweeping.summary import Grid, axis_value

__all__ = ["AXES", "axis_label", "border_sentence", "different_sentence", "least_lost", "share_limits"]

Row = Mapping[str, Any]
# What the values of an axis are; others say it by their name.
AXES = {
    "latency_ms": "one way, on each of both links, in milliseconds",
    "clock_skew_ms": "how far the second cluster's clock is ahead, in milliseconds",
    "outage_seconds": "how long both links are down",
    "transactions_per_second": "of each cluster",
}
_PERCENT = 100.0
_LIMIT = 0.01  # of the changes of users: where to say that a share is passed if nobody asked for a border
_MOST_PLACES = 6


def least_lost(lost: Grid, stopping: set[tuple[Any, ...]]) -> str:
    """
    Return which point of the other axes loses least, at which values of the main one.

    Args:
        lost: The share of the changes of users that is lost.
        stopping: Points at which an applier stops; what it does not apply does not count as lost.
    """
    rows = {key: cells for key, cells in lost.rows.items() if key not in stopping} or lost.rows
    if lost.over is None:
        order = sorted(rows, key=lambda key: rows[key][0] or 0.0)
        rest = "; ".join(f"{axis_label(key)} {_share(rows[key][0])}" for key in order[1:5])
        least = f"{axis_label(order[0])} loses least: {_share(rows[order[0]][0])} of the changes of users"
        return f"{least}; {rest}." if rest else f"{least}."
    winners = [_best_at(rows, place) for place in range(len(lost.values))]
    if len(rows) == 1:
        first, last = (_share(next(iter(rows.values()))[place]) for place in (0, -1))
        ends = [axis_value(lost.values[place]) for place in (0, -1)]
        return f"Lost of the changes of users: {first} at {lost.over} {ends[0]}, {last} at {ends[1]}."
    main = max(dict.fromkeys(winners), key=winners.count)
    others = "".join(
        f"; {axis_label(key)} does {_places(lost, rows, winners, key)}" for key in dict.fromkeys(winners) if key != main
    )
    where = _places(lost, rows, winners, main)
    return f"Of the changes of users, {axis_label(main)} loses least {where}{others}."


def _best_at(rows: Mapping[tuple[Any, ...], Sequence[float | None]], place: int) -> tuple[Any, ...]:
    known = {key: cell for key, cells in rows.items() if (cell := cells[place]) is not None}
    return min(known or rows, key=lambda key: known.get(key, 0.0))


def _places(
    lost: Grid,
    rows: Mapping[tuple[Any, ...], Sequence[float | None]],
    winners: Sequence[tuple[Any, ...]],
    key: tuple[Any, ...],
) -> str:
    """Return at which values of the main axis a point loses least, what it loses there, and what the next one does."""
    places = [place for place, winner in enumerate(winners) if winner == key]
    if len(places) > _MOST_PLACES:
        shares = [_share(rows[key][place]) for place in (places[0], places[-1])]
        ends = [axis_value(lost.values[place]) for place in (places[0], places[-1])]
        every = "all" if len(places) == len(winners) else f"{len(places)} of"
        return f"at {every} {len(winners)} values of {lost.over}: {shares[0]} at {ends[0]}, {shares[1]} at {ends[1]}"
    values = listed([axis_value(lost.values[place]) for place in places])
    found = []
    for place in places:
        others = {each: cells for each, cells in rows.items() if each != key and cells[place] is not None}
        against = f" against {_share(others[_best_at(others, place)][place])}" if others else ""
        found.append(f"{_share(rows[key][place])}{against}")
    return f"at {lost.over} {values} ({', '.join(found)})"


def share_limits(lost: Grid) -> str:
    """Return at which values of the main axis more than a small share of the changes is lost."""
    limit = f"more than {_PERCENT * _LIMIT:g} % of the changes"
    above = {key: [cell is not None and cell > _LIMIT for cell in cells] for key, cells in lost.rows.items()}
    if not any(map(any, above.values())):
        return f"No {lost.over} that was tried loses {limit}."
    meaning = f" {lost.over} is the delay of a link, one way, in milliseconds." if lost.over == "latency_ms" else ""
    if all(map(all, above.values())):
        least = axis_value(lost.values[0])
        every = f", whatever the {listed(lost.axes)}" if len(above) > 1 else ""
        border = f": if there is a border, it is below {least}" if lost.values[0] > 0 else ""
        where = f"at every {lost.over} that was tried, from {least} on{every}{border}"
        return f"{limit.capitalize()} are lost {where}.{meaning}"
    found = "; ".join(f"{axis_label(key)} {_where_above(cells, lost.values)}" for key, cells in above.items())
    return f"{limit.capitalize()} are lost, along {lost.over}: {found}.{meaning}"


def _where_above(above: Sequence[bool], values: Sequence[Any]) -> str:
    """Return at which values, in order, something is above a limit."""
    if not any(above):
        return "nowhere"
    if all(above):
        return "at every value"
    first = above.index(True)
    value = axis_value(values[first])
    return f"from {value} on" if all(above[first:]) else f"first at {value}"


def different_sentence(results: pa.Table, grid: Grid) -> str:
    """Return in which runs rows end different."""
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
    return f"Rows end different in {count:,} of {results.num_rows:,} runs: {'; '.join(parts)}."


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
