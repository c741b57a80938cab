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
from conflict.reporting.bytes_by_type import bytes_chart
from conflict.reporting.parts import Chart, Form, Part, Table, shown
from conflict.results.catalogue import refuse_damaged_result
from conflict.results.target import RESULT
from conflict.sweeping.summary import Grid, grid_of
from conflict.sweeping.sweep import BORDERS, RESULTS

__all__ = ["border_sentence", "sweep_part"]

Row = Mapping[str, Any]
_PERCENT = 100.0
_LIMIT = 0.01  # of the changes of users: where to say that a share is passed if nobody asked for a border
_MOST_LINES = 6
_LINES = {
    "lost_share": ("lost-updates", "Lost updates", "% of all changes"),
    "conflicts": ("conflicts", "Conflicts", "per run (median)"),
    "rows_that_end_different": ("differing-rows", "Rows that end different", "per run (median)"),
    "stale_ms_p99": ("stale-time", "Stale time of rows, 99th percentile", "ms"),
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
    refuse_damaged_result(folder, document)
    results = _read(folder, RESULTS)
    borders = _read(folder, BORDERS).to_pylist() if folder.exists(BORDERS) else []
    found = _Sweep(document, results, borders)
    return Part(
        "A grid of simulations",
        folder.uri,
        _asked(found),
        tuple(_answer(found)),
        tuple(_warnings(results)),
        _matrix(found.grid("lost_share"), "Lost updates, % of all changes", _PERCENT),
        tuple(_charts(found)),
        tuple(_tables(found)),
        {name: document[name] for name in ("axes", "seeds", "model", "find", "over", "versions")},
    )


def _read(folder: Folder, name: str) -> pa.Table:
    return pq.read_table(f"{folder.uri}/{name}")


def _asked(sweep: _Sweep) -> dict[str, str]:
    axes = {name: ", ".join(map(str, values)) for name, values in sweep.axes.items()}
    seeds = len(sweep.document["seeds"])
    question = "What does this workload lose, at every point of a grid?"
    return {"question": question, **axes, "runs": f"{sweep.results.num_rows:,}, {seeds} seeds at each point"}


def _answer(sweep: _Sweep) -> Iterator[str]:
    lost = sweep.grid("lost_share")
    means = {key: float(np.mean([cell for cell in cells if cell is not None])) for key, cells in lost.rows.items()}
    stopping = _stopping(sweep.results, lost)
    means = {key: mean for key, mean in means.items() if key not in stopping} or means
    best = min(means, key=lambda key: means[key])
    over = (
        ""
        if lost.over is None
        else f" on average over {lost.over} {_value(lost.values[0])} to {_value(lost.values[-1])}"
    )
    others = sorted((key for key in means if key != best), key=lambda key: means[key])
    rest = f"; {', '.join(f'{_label(key)} {_share(means[key])}' for key in others[:4])}" if others else ""
    yield f"{_label(best)} loses least: {_share(means[best])} of the changes of users{over}{rest}."
    yield from _limits(sweep, lost)
    different = np.count_nonzero(sweep.results["rows_that_end_different"].to_numpy())
    yield (
        f"Rows end different in {different:,} of {sweep.results.num_rows:,} runs."
        if different
        else ("No row ends different in any run.")
    )
    sizes = _sizes(sweep.results)
    if sizes:
        small, large = (choose(sizes, key=lambda name: sizes[name]) for choose in (min, max))
        yield (
            f"Row events of a run take {shown(sizes[small])} bytes with binlog type {small}, which takes least, and "
            f"{shown(sizes[large])} with type {large}."
        )


def _stopping(results: pa.Table, grid: Grid) -> set[tuple[Any, ...]]:
    """Return the rows of a table in which an applier stopped in some run."""
    rows = results.select([*grid.axes, "stopped_appliers"]).to_pylist()
    return {tuple(row[name] for name in grid.axes) for row in rows if row["stopped_appliers"]}


def _limits(sweep: _Sweep, lost: Grid) -> Iterator[str]:
    """Yield how far along the main axis losses stay small: by the border that was looked for, or within the grid."""
    if sweep.borders:
        yield border_sentence(sweep.borders)
    elif lost.over is not None:
        passed = []
        for key, cells in lost.rows.items():
            first = next((place for place, cell in enumerate(cells) if cell is not None and cell > _LIMIT), None)
            where = "nowhere" if first is None else f"{'at' if first else 'already at'} {_value(lost.values[first])}"
            passed.append(f"{_label(key)} {where}")
        yield f"More than {_PERCENT * _LIMIT:g} % of the changes are lost at {lost.over}: {'; '.join(passed)}."


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
    parts = [f"{_between(each)}{f' with {name}' if name else ''}" for name, each in found.items()]
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
    words = [f"up to {over} {_value(min(below))}"] if below else []
    return " and ".join([*words, *([f"from {over} {_value(max(above))}"] if above else [])])


def _label(key: Sequence[Any]) -> str:
    return ", ".join(map(_value, key)) or "this model"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _share(share: float) -> str:
    return f"{_PERCENT * share:.2f} %"


def _warnings(results: pa.Table) -> Iterator[str]:
    stopped = sum(map(bool, results["stopped_appliers"].to_pylist()))
    if stopped:
        yield (
            f"In {stopped:,} of {results.num_rows:,} runs an applier stopped; "
            "what it did not apply does not count as lost."
        )


def _matrix(grid: Grid, title: str, scale: float = 1.0) -> Table:
    rows = [
        [*key, *(None if cell is None else round(scale * cell, 2) for cell in cells)]
        for key, cells in grid.rows.items()
    ]
    headings = [*grid.axes, *("all" if value is None else f"{grid.over} {_value(value)}" for value in grid.values)]
    return Table(title, headings, rows, note="Medians over all seeds and over the axes that are not shown.")


def _charts(sweep: _Sweep) -> Iterator[Chart]:
    for figure, (name, title, measure) in _LINES.items():
        grid = sweep.grid(figure)
        scale = _PERCENT if figure == "lost_share" else 1.0
        lines = dict(list(_lines(grid, scale))[:_MOST_LINES])
        if not any(any(each) for each in lines.values()):
            continue
        note = f"The first {_MOST_LINES} of {len(grid.rows)} lines." if len(grid.rows) > _MOST_LINES else ""
        if grid.over is None:
            data = pa.table({"at": list(lines), measure: [each[0] for each in lines.values()]})
            yield Chart(name, title, Form.STACKED, data, measure, note=note)
        else:
            data = pa.table({grid.over: list(map(float, grid.values)), **lines})
            yield Chart(name, f"{title} over {grid.over}", Form.LINES, data, measure, grid.over, note)
    yield from bytes_chart(_sizes(sweep.results))


def _lines(grid: Grid, scale: float) -> Iterator[tuple[str, list[float | None]]]:
    for key, cells in grid.rows.items():
        yield _label(key), [None if cell is None else scale * cell for cell in cells]


def _sizes(results: pa.Table) -> dict[str, float]:
    """Return the median bytes of row events by binlog type, if simulations say them."""
    names = [name for name in results.column_names if name.startswith(_BYTES)]
    return {name.removeprefix(_BYTES): float(np.median(results[name].to_numpy())) for name in names}


def _tables(sweep: _Sweep) -> Iterator[Table]:
    if sweep.borders:
        names = [name for name in sweep.borders[0] if name != "only"]
        rows = [[each[name] for name in names] for each in sweep.borders]
        yield Table("Borders", names, rows)
    for figure, (_, title, measure) in _LINES.items():
        if figure != "lost_share":
            yield _matrix(sweep.grid(figure), f"{title}, {measure}")
