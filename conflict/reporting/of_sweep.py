"""
What a report says of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from conflict.grid.folder import Folder
from conflict.reporting.bytes_by_type import bytes_chart, format_name, listed
from conflict.reporting.growing_losses import growing_losses
from conflict.reporting.model_words import model_types, model_words, rows_at_first, travel_times, without_function
from conflict.reporting.parts import Bytes, Chart, Form, Measured, Part, Table
from conflict.reporting.sweep_answer import (
    AXES,
    axis_label,
    border_sentence,
    different_sentence,
    least_lost,
    least_of,
    without_stops,
)
from conflict.results.catalogue import refuse_damaged_result
from conflict.results.target import RESULT
from conflict.sweeping.summary import Grid, axis_value, grid_of
from conflict.sweeping.sweep import BORDERS, RESULTS

__all__ = ["sweep_part"]

Row = Mapping[str, Any]
_PERCENT = 100.0
_MOST_LINES = 6
_LINES = {
    "lost_share": ("lost-updates", "Lost updates", "% of all changes"),
    "conflicts": ("conflicts", "Conflicts", "per run"),
    "rows_that_end_different": ("differing-rows", "Rows that end different", "per run"),
    "stale_ms_p99": ("stale-time", "Stale time of rows, 99th percentile", "ms"),
}
# What a model says, and the axis that sets it instead.
_SET_BY = {
    "conflict function": "function",
    "binlog type": "binlog_type",
    "latency of links": "latency_ms",
    "rate": "transactions_per_second",
}
_BYTES = "row_event_bytes_type_"


@attrs.frozen(eq=False)
class _Sweep:
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


def sweep_part(folder: Folder) -> Part:
    """
    Return the part of a report on the folder of a sweep.

    Raises:
        HistoryError: It is not as it was written.
    """
    document = folder.read_json(RESULT)
    refuse_damaged_result(folder, document, "Delete the damaged files, and sweep again")
    results = _read(folder, RESULTS)
    borders = _read(folder, BORDERS).to_pylist() if folder.exists(BORDERS) else []
    found = _Sweep(document, results, borders)
    return Part(
        "Simulations",
        folder.uri,
        _asked(found),
        tuple(_answer(found)),
        tuple(_warnings(results)),
        _matrix(found, "lost_share", "Lost updates, % of all changes", _PERCENT),
        tuple(_charts(found)),
        tuple(_tables(found)),
        {name: document[name] for name in ("axes", "seeds", "model", "find", "over", "versions")},
        _best(found),
        _bytes(found),
        _basis(found),
        recorded=False,
    )


def _read(folder: Folder, name: str) -> pa.Table:
    return pq.read_table(f"{folder.uri}/{name}")


def _asked(sweep: _Sweep) -> dict[str, str]:
    axes = {
        name: ", ".join(map(str, values)) + (f" ({AXES[name]})" if name in AXES else "")
        for name, values in sweep.axes.items()
    }
    seeds = len(sweep.document["seeds"])
    question = f"What does this workload lose, under every combination of {listed(list(sweep.axes))}?"
    words = {
        name: text for name, text in model_words(sweep.document["model"]).items() if _SET_BY.get(name) not in sweep.axes
    }
    without = without_function(sweep.document["model"]) if "function" in axes else []
    if without:
        axes["function"] += f"; on every table, also on {listed(without)}, which the model gives none"
    each = f"{seeds:,} with different seeds, of which the figures are the medians," if seeds > 1 else "one"
    runs = f"{sweep.results.num_rows:,}: {each} for each combination"
    return {"question": question, **axes, **words, "runs": runs}


def _answer(sweep: _Sweep) -> Iterator[str]:
    lost = sweep.grid("lost_share")
    stopping = _stopping(sweep.results, lost)
    least = least_lost(lost, stopping)
    if least:
        yield least
    if lost.over is not None:
        yield from growing_losses(without_stops(lost, stopping), limited=bool(sweep.borders))
    if sweep.borders:
        yield border_sentence(sweep.borders)
    yield different_sentence(sweep.results, lost, rows_at_first(sweep.document["model"]))


def _best(sweep: _Sweep) -> tuple[str, ...]:
    """Return the function that loses least at most values of the main axis; none if functions are no axis."""
    lost = sweep.grid("lost_share")
    if "function" not in lost.axes:
        return ()
    return (str(least_of(lost, _stopping(sweep.results, lost))[lost.axes.index("function")]),)


def _basis(sweep: _Sweep) -> str:
    """Return what the losses of a sweep rest on."""
    model = sweep.document["model"]
    travel = travel_times(model)
    set_here = "latency_ms" in sweep.axes
    quiet = all(sweep.results["quiet_at_the_end"].to_pylist())
    words = ["are simulated until everything is applied" if quiet else "are simulated"]
    if travel:
        learnt = "the travel times of the binlogs that the model was learnt from, in the median "
        words.append(f"with {'latency_ms in place of ' if set_here else ''}{learnt}{listed(travel)}")
    else:
        words.append(f"with {'latency_ms' if set_here else 'the latency of the model'}")
    without = without_function(model) if "function" in sweep.axes else []
    if without:
        words.append(f"with a function also on {listed(without)}")
    return ", ".join(words)


def _bytes(sweep: _Sweep) -> Bytes | None:
    """Return what the binlog types take, related to the type of the model if it has one; None if that is not known."""
    sizes = _sizes(sweep.results)
    if not sizes:
        return None
    types = model_types(sweep.document["model"])
    known = len(types) == 1 and "binlog_type" not in sweep.axes and types[0] in sizes
    bounds = {name: (round(each), round(each)) for name, each in sizes.items()}
    base = types[0] if known else ""
    words = f"with {format_name(base)}, as in the model"
    of = "a simulated run, on all clusters (the median of all runs)"
    return Bytes(Measured.SIMULATED, bounds, base, bounds[base][0] if base else 0, words, of)


def _stopping(results: pa.Table, grid: Grid) -> set[tuple[Any, ...]]:
    """Return the rows of a table in which an applier stopped in some run."""
    rows = results.select([*grid.axes, "stopped_appliers"]).to_pylist()
    return {tuple(row[name] for name in grid.axes) for row in rows if row["stopped_appliers"]}


def _warnings(results: pa.Table) -> Iterator[str]:
    stopped = sum(map(bool, results["stopped_appliers"].to_pylist()))
    if stopped:
        yield (
            f"In {stopped:,} of {results.num_rows:,} runs an applier stopped; "
            "what it did not apply does not count as lost."
        )


def _runs_note(sweep: _Sweep, grid: Grid) -> str:
    """Return how many runs a cell stands for."""
    names = [*grid.axes, *([grid.over] if grid.over is not None else [])]
    points = {tuple(row.values()) for row in sweep.results.select(names).to_pylist()}
    if len(points) * len(sweep.document["seeds"]) >= sweep.results.num_rows:
        return ""  # the page has said how many seeds there are
    return "Medians, also over the axes that are not shown."


def _matrix(sweep: _Sweep, figure: str, title: str, scale: float = 1.0) -> Table:
    grid = sweep.grid(figure)
    rows = [
        [*key, *(None if cell is None else round(scale * cell, 2) for cell in cells)]
        for key, cells in grid.rows.items()
    ]
    headings = [*grid.axes, *("all" if value is None else f"{grid.over} {axis_value(value)}" for value in grid.values)]
    return Table(title, headings, rows, note=_runs_note(sweep, grid))


def _charts(sweep: _Sweep) -> Iterator[Chart]:
    for figure, (name, title, measure) in _LINES.items():
        grid = sweep.grid(figure)
        scale = _PERCENT if figure == "lost_share" else 1.0
        lines = dict(list(_lines(grid, scale))[:_MOST_LINES])
        if not any(any(each) for each in lines.values()):
            continue
        note = _runs_note(sweep, grid)
        if len(grid.rows) > _MOST_LINES:
            note += f" The first {_MOST_LINES} of {len(grid.rows)} lines."
        if grid.over is None:
            data = pa.table({"at": list(lines), measure: [each[0] for each in lines.values()]})
            yield Chart(name, f"{title}, {measure}", Form.STACKED, data, measure, note=note)
        else:
            data = pa.table({grid.over: list(map(float, grid.values)), **lines})
            yield Chart(name, f"{title}, {measure}, over {grid.over}", Form.LINES, data, measure, grid.over, note)
    yield from bytes_chart(_sizes(sweep.results), measure="bytes of a run, on all clusters")


def _lines(grid: Grid, scale: float) -> Iterator[tuple[str, list[float | None]]]:
    for key, cells in grid.rows.items():
        yield axis_label(key), [None if cell is None else scale * cell for cell in cells]


def _sizes(results: pa.Table) -> dict[str, float]:
    """Return the median bytes of row events by binlog type, if simulations say them."""
    names = [name for name in results.column_names if name.startswith(_BYTES)]
    return {name.removeprefix(_BYTES): float(np.median(results[name].to_numpy())) for name in names}


def _tables(sweep: _Sweep) -> Iterator[Table]:
    if sweep.borders:
        what, over = sweep.borders[0]["condition"], sweep.borders[0]["over"]
        names = [name for name in sweep.borders[0] if name not in ("only", "condition", "over")]
        rows = [[each[name] for name in names] for each in sweep.borders]
        headings = [f"{name} at" if name in ("holds", "fails") else name for name in names]
        yield Table(f"Where {what}, by {over}", headings, rows)
    for figure, (_, title, measure) in _LINES.items():
        if figure != "lost_share":
            yield _matrix(sweep, figure, f"{title}, {measure}")
