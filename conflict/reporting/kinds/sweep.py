"""
What a report says of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from statistics import median
from typing import Any

import pyarrow as pa

from conflict.history.grid.folder import Folder
from conflict.reporting.answers.limit import (
    limit_column,
)
from conflict.reporting.answers.simulated import (
    AXES,
    point_label,
    rounded,
    share_words,
)
from conflict.reporting.kinds.sweep_answers import sweep_basis, sweep_findings, sweep_headlines
from conflict.reporting.kinds.sweep_result import SweepResult, read_sweep
from conflict.reporting.parts import Bytes, Measured, Part
from conflict.reporting.wording.bytes_by_type import bytes_chart, format_name
from conflict.reporting.wording.logs import log_of
from conflict.reporting.wording.model_words import (
    is_learnt,
    model_types,
    model_words,
    without_function,
)
from conflict.shown_text import listed
from conflict.telling.value import Chart, Form, Table, Telling
from conflict.whatif.sweeping.summary import Grid, axis_value
from conflict.whatif.sweeping.sweep import RESULTS

__all__ = ["sweep_part"]

Row = Mapping[str, Any]
_PERCENT = 100.0
_MOST_LINES = 6
_LINES = {
    "lost_share": ("lost-updates", "Lost updates", "% of the changes of users"),
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


def sweep_part(folder: Folder) -> Part:
    """
    Return the part of a report on the folder of a sweep.

    Raises:
        HistoryError: It is not as it was written.
    """
    found = read_sweep(folder)
    document, lost = found.document, found.grid("lost_share")
    return Part(
        Telling(
            "Simulations",
            sentences=tuple(sweep_findings(found)),
            tables=(_matrix(found), *_tables(found)),
            charts=tuple(_charts(found)),
            warnings=tuple(_warnings(found.results)),
        ),
        folder.uri,
        _asked(found),
        {name: document.get(name) for name in ("axes", "seeds", "model", "find", "over", "within", "versions")},
        (found.function,) if found.function else (),
        _bytes(found),
        tuple(sweep_headlines(found)),
        tuple(limit_column(found.limits, found.borders[0]["condition"])) if found.borders else (),
        () if lost.over and is_learnt(document["model"]) else tuple(sweep_basis(found)),
        recorded=False,
        log=log_of(document["model"].get("learnt_from", ())),
    )


def _asked(sweep: SweepResult) -> dict[str, str]:
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
        axes["function"] += f"; not on {listed(without)}, which the model gives none"
    each = f"{seeds:,} with different seeds, of which the figures are the medians," if seeds > 1 else "one"
    runs = f"{sweep.results.num_rows:,}: {each} for each combination"
    return {"question": question, **axes, **words, "runs": runs}


def _bytes(sweep: SweepResult) -> Bytes | None:
    """Return what the binlog types take where least is lost; None if that is not known."""
    sizes, of = _sizes(sweep)
    if not sizes:
        return None
    types = model_types(sweep.document["model"])
    known = len(types) == 1 and "binlog_type" not in sweep.axes and types[0] in sizes
    bounds = {name: (round(each), round(each)) for name, each in sizes.items()}
    base, base_bytes = (format_name(types[0]), bounds[types[0]][0]) if known else ("", 0)
    return Bytes(Measured.SIMULATED, bounds, base, base_bytes, f"a simulated run of all clusters ({of})")


def _sizes(sweep: SweepResult) -> tuple[dict[str, float], str]:
    """Return the median bytes of row events by binlog type where least is lost, and where that is."""
    lost = sweep.grid("lost_share")
    point = dict(zip(lost.axes, sweep.best, strict=True))
    if lost.over is not None:
        point[lost.over] = lost.values[0]
    names = [name for name in sweep.results.column_names if name.startswith(_BYTES)]
    rows = [
        row
        for row in sweep.results.select([*point, *names]).to_pylist()
        if all(row[name] == value for name, value in point.items())
    ]
    where = [str(value) if name == "function" else f"{name} {axis_value(value)}" for name, value in point.items()]
    runs = f"median of {len(rows):,} runs" if len(rows) > 1 else "1 run"
    sizes = {name.removeprefix(_BYTES): float(median(row[name] for row in rows)) for name in names if rows}
    return sizes, ", ".join([*where, runs])


def _warnings(results: pa.Table) -> Iterator[str]:
    stopped = sum(map(bool, results["stopped_appliers"].to_pylist()))
    if stopped:
        yield (
            f"In {stopped:,} of {results.num_rows:,} runs an applier stopped; "
            "what it did not apply does not count as lost."
        )
    unsettled = sum(map(bool, results["unsettled_changes"].to_pylist()))
    if unsettled:
        yield (
            f"≥: in {unsettled:,} of {results.num_rows:,} runs changes of users were not settled at the end; they do "
            "not count as lost, and more may be lost."
        )


def _runs_note(sweep: SweepResult, grid: Grid) -> str:
    """Return how many runs a cell stands for."""
    names = [*grid.axes, *([grid.over] if grid.over is not None else [])]
    points = {tuple(row.values()) for row in sweep.results.select(names).to_pylist()}
    if len(points) * len(sweep.document["seeds"]) >= sweep.results.num_rows:
        return ""  # the page has said how many seeds there are
    return "Medians, also over the axes that are not shown."


def _matrix(sweep: SweepResult) -> Table:
    """Return lost updates, and beside them how long rows are stale."""
    lost, stale = sweep.grid("lost_share"), sweep.grid("stale_ms_p99").rows
    most = sweep.grid("lost_share_at_most").rows
    rows = [
        [
            *key,
            *(
                f"{'≥' * (share != high)}{share_words(share)} / {rounded(time)} ms"
                for share, high, time in zip(cells, most[key], stale.get(key, [None] * len(cells)), strict=True)
            ),
        ]
        for key, cells in lost.rows.items()
    ]
    note = f"Lost changes of users / stale time of rows, 99th percentile. {_runs_note(sweep, lost)}"
    return Table("Lost updates and stale times", _headings(lost), rows, note=note)


def _grid_table(sweep: SweepResult, figure: str, title: str) -> Table:
    grid = sweep.grid(figure)
    rows = [[*key, *(None if cell is None else round(cell, 2) for cell in cells)] for key, cells in grid.rows.items()]
    return Table(title, _headings(grid), rows, note=_runs_note(sweep, grid))


def _headings(grid: Grid) -> list[str]:
    return [*grid.axes, *("all" if value is None else f"{grid.over} {axis_value(value)}" for value in grid.values)]


def _charts(sweep: SweepResult) -> Iterator[Chart]:
    for figure, (name, title, measure) in _LINES.items():
        grid = sweep.grid(figure)
        scale = _PERCENT if figure == "lost_share" else 1.0
        lines = dict(list(_lines(grid, scale))[:_MOST_LINES])
        note = _runs_note(sweep, grid)
        if figure == "lost_share" and any(sweep.results["unsettled_changes"].to_pylist()):
            note = f"{note} Where changes were not settled at the end, at least so many.".lstrip()
        if len(grid.rows) > _MOST_LINES:
            note += f" The first {_MOST_LINES} of {len(grid.rows)} lines; {RESULTS} of the sweep has all runs."
        if grid.over is None:
            data = pa.table({"at": list(lines), measure: [each[0] for each in lines.values()]})
            yield Chart(name, f"{title}, {measure}", Form.STACKED, data, measure, note=note)
        else:
            data = pa.table({grid.over: list(map(float, grid.values)), **lines})
            yield Chart(name, f"{title}, {measure}, over {grid.over}", Form.LINES, data, measure, grid.over, note)
    sizes, of = _sizes(sweep)
    yield from bytes_chart(sizes, f"simulated, {of}")


def _lines(grid: Grid, scale: float) -> Iterator[tuple[str, list[float | None]]]:
    for key, cells in grid.rows.items():
        yield point_label(grid, key), [None if cell is None else scale * cell for cell in cells]


def _tables(sweep: SweepResult) -> Iterator[Table]:
    if sweep.borders:
        what, over = sweep.borders[0]["condition"], sweep.borders[0]["over"]
        names = [name for name in sweep.borders[0] if name not in ("only", "condition", "over")]
        rows = [[each[name] for name in names] for each in sweep.borders]
        runs = " in every run" if len(sweep.document["seeds"]) > 1 else ""
        headings = [f"{name}{runs} at" if name in ("holds", "fails") else name for name in names]
        yield Table(f"Where {what}, by {over}", headings, rows)
    for figure in ("conflicts", "rows_that_end_different"):
        if sum(map(bool, chain.from_iterable(sweep.grid(figure).rows.values()))) > 1:  # else the chart is a sentence
            yield _grid_table(sweep, figure, ", ".join(_LINES[figure][1:]))
