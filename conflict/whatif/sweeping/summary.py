"""
A sweep in a table: a figure by some axes and along another one.

The figures of a run as the columns of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from conflict.whatif.simulating.totals import total, totals_of


def flat_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the figures of both clusters together, and all others by a name with underscores.

    Args:
        figures: As `conflict.whatif.simulating.report.figures_of` returns them.
    """
    sites, totals = figures["clusters"], totals_of(figures)
    sizes = {name: site.get("row_event_bytes", {}) for name, site in sites.items()}
    stopped = totals.pop("stopped_appliers")
    return {
        **totals,
        **{f"row_event_bytes_type_{name}": total(sizes, name) for name in next(iter(sizes.values()))},
        "stopped_appliers": stopped,
        **dict(_flat("", {name: each for name, each in figures.items() if name != "clusters"})),
        **dict(_flat("", {name: _without_counters(site) for name, site in sites.items()})),
    }


def _without_counters(site: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the status counters: runs have different ones."""
    return {name: each for name, each in site.items() if name != "counters"}


def _flat(before: str, figures: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in figures.items():
        whole = f"{before}_{name}" if before else str(name)
        if isinstance(value, Mapping):
            yield from _flat(whole, value)
        else:
            yield whole, value


_UNITS = {"_ms": " ms", "_seconds": " s"}  # by how the name of an axis ends
_FIRST = ("latency_ms", "clock_skew_ms", "outage_seconds", "transactions_per_second")


@attrs.frozen
class Grid:
    """
    Medians of a figure.

    Attributes:
        axes: The axes that the rows represent.
        over: The axis that goes to the right; None if the grid has none with numbers.
        values: Its values, in order; one, None, without such an axis.
        rows: By the values of `axes`, the median at each of `values`, over all seeds and other axes; None where there
            is no run.
    """

    axes: tuple[str, ...]
    over: str | None
    values: tuple[Any, ...]
    rows: Mapping[tuple[Any, ...], Sequence[float | None]]


def axis_value(value: object) -> str:
    """Return a value of an axis as people read it: a number with commas and without an exponent."""
    return f"{value:,.10g}" if _is_number(value) else str(value)


def value_words(over: str | None, value: object) -> str:
    """Return a value of an axis with its unit, or else with the name of the axis."""
    unit = next((words for end, words in _UNITS.items() if over and over.endswith(end)), "")
    return f"{axis_value(value)}{unit}" if unit or not over else f"{over} {axis_value(value)}"


def point_label(axes: Sequence[str], key: Sequence[Any]) -> str:
    """Return a point of some axes as text: a function by its name, any other value with its axis."""
    short = {"function": "", "binlog_type": "type "}
    labels = (f"{short.get(axis, f'{axis} ')}{axis_value(value)}" for axis, value in zip(axes, key, strict=True))
    return ", ".join(labels) or "this model"


def main_axis(axes: Mapping[str, Sequence[Any]]) -> str | None:
    """Return the axis with numbers that a sweep is most likely about; None if there is none with two."""
    numeric = [name for name, values in axes.items() if len(values) > 1 and all(map(_is_number, values))]
    numeric = [name for name in numeric if name != "binlog_type"]
    return next((name for name in _FIRST if name in numeric), numeric[0] if numeric else None)


def grid_of(results: pa.Table, axes: Mapping[str, Sequence[Any]], figure: str) -> Grid:
    """
    Return medians of a figure, by the axes that are no numbers, along the main one.

    Args:
        results: The rows of a sweep.
        axes: Its axes.
        figure: A column of `results`.
    """
    over = main_axis(axes)
    values = tuple(sorted(axes[over])) if over is not None else (None,)
    named = tuple(
        name
        for name, tried in axes.items()
        if name != over and (name in ("function", "binlog_type") or not all(map(_is_number, tried)))
    )
    found: dict[tuple[Any, ...], dict[Any, list[float]]] = {}
    wanted = dict.fromkeys((*named, *([] if over is None else [over]), figure))
    for row in results.select(list(wanted)).to_pylist():
        if row[figure] is not None:
            cells = found.setdefault(tuple(row[name] for name in named), {})
            cells.setdefault(None if over is None else row[over], []).append(row[figure])
    rows = {
        key: [float(np.median(cells[value])) if value in cells else None for value in values]
        for key, cells in found.items()
    }
    return Grid(named, over, values, rows)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
