"""
What a report says of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from conflict.grid.folder import Folder
from conflict.reporting.answers.limit import (
    Limit,
    limit_column,
    limit_question,
    limit_sentences,
    limits_of,
    losses_sentence,
    search_sentence,
    stale_sentence,
    waits_sentence,
)
from conflict.reporting.answers.simulated import (
    AXES,
    different_sentence,
    least_lost,
    least_of,
    point_label,
    rounded,
    seed_ranges,
    seeds_sentence,
    share_words,
    without_stops,
)
from conflict.reporting.parts import Bytes, Chart, Form, Headline, Measured, Part, Table, Topic
from conflict.reporting.wording.bytes_by_type import bytes_chart, format_name, listed
from conflict.reporting.wording.model_words import (
    against_recording,
    beyond_limit,
    is_learnt,
    model_types,
    model_words,
    without_function,
)
from conflict.results.catalogue import refuse_damaged_result
from conflict.results.target import RESULT
from conflict.shown_text import counted
from conflict.sweeping.summary import Grid, axis_value, grid_of
from conflict.sweeping.sweep import BORDERS, RESULTS

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

    @property
    def limits(self) -> dict[str, Limit]:
        """Where the condition of the search ceases to hold, by function; empty without a search."""
        return limits_of(self.borders, self.axes) if self.borders else {}

    @property
    def stopping(self) -> set[tuple[Any, ...]]:
        """The rows of a table in which an applier stopped in some run."""
        axes = self.grid("lost_share").axes
        rows = self.results.select([*axes, "stopped_appliers"]).to_pylist()
        return {tuple(row[name] for name in axes) for row in rows if row["stopped_appliers"]}

    @property
    def best(self) -> tuple[Any, ...]:
        """The row of a table in which least is lost."""
        return least_of(self.grid("lost_share"), self.stopping, self.ranges)

    @property
    def ranges(self) -> Mapping[tuple[Any, ...], tuple[float, float]]:
        """How far the shares that are lost differ between seeds."""
        return seed_ranges(self.results, self.grid("lost_share"), len(self.document["seeds"]))


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
        _matrix(found),
        tuple(_charts(found)),
        tuple(_tables(found)),
        {name: document[name] for name in ("axes", "seeds", "model", "find", "over", "within", "versions")},
        _best(found),
        _bytes(found),
        tuple(_headlines(found)),
        tuple(limit_column(found.limits, found.borders[0]["condition"])) if found.borders else (),
        () if found.grid("lost_share").over and is_learnt(document["model"]) else tuple(_basis(found)),
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
        axes["function"] += f"; not on {listed(without)}, which the model gives none"
    each = f"{seeds:,} with different seeds, of which the figures are the medians," if seeds > 1 else "one"
    runs = f"{sweep.results.num_rows:,}: {each} for each combination"
    return {"question": question, **axes, **words, "runs": runs}


def _headlines(sweep: _Sweep) -> Iterator[Headline]:
    lost, stopping, seeds = sweep.grid("lost_share"), sweep.stopping, len(sweep.document["seeds"])
    least = least_lost(lost, stopping, sweep.ranges)
    if least:
        of_function = lost.axes == ("function",)
        question = "Which function loses least?" if of_function else f"Which {' and '.join(lost.axes)} lose least?"
        sentences = (least, seeds_sentence(sweep.results, sweep.axes, seeds))
        yield Headline(Topic.FUNCTION, question, point_label(lost, sweep.best), sentences)
    if lost.over is not None:
        question = f"What does {'latency' if lost.over == 'latency_ms' else lost.over} cost?"
        if sweep.borders:
            question = limit_question(sweep.borders[0]["over"], sweep.borders[0]["condition"])
        limit = sweep.limits.get(_function(sweep))
        answer = "" if limit is None else limit.words
        yield Headline(Topic.LIMIT, question, answer, tuple(_told(sweep)), tuple(_setting(sweep, lost.over)))


def _told(sweep: _Sweep) -> Iterator[str]:
    """Yield where it is too much, what is lost along the axis, and how that is in the recording."""
    going, seeds = without_stops(sweep.grid("lost_share"), sweep.stopping), len(sweep.document["seeds"])
    if sweep.borders:
        condition = sweep.borders[0]["condition"]
        yield from limit_sentences(sweep.limits, _function(sweep), condition, seeds)
        yield from _recorded(sweep)
    yield losses_sentence(going, sweep.best, seeds)
    stale = stale_sentence(going, sweep.grid("stale_ms_p99"), sweep.best)
    if stale and not sweep.borders:
        yield stale


def _function(sweep: _Sweep) -> str:
    """Return the function that loses least; nothing if functions are no axis."""
    return next(iter(_best(sweep)), "")


def _setting(sweep: _Sweep, over: str) -> Iterator[str]:
    """Yield what was simulated, what the axis is, and how that differs from the recording."""
    runs = counted(sweep.results.num_rows, "simulation")
    work = model_words(sweep.document["model"]).get("simulated", "")
    yield f"From {runs}{f' of {work}' if work else ''}; {over} is {AXES[over]}." if over in AXES else f"From {runs}."
    if over == "latency_ms":
        yield waits_sentence(sweep.results)
    if sweep.borders:
        yield f"The limit, `{sweep.borders[0]['condition']}`, was given with `--find`, and found with more simulations."
    elif is_learnt(sweep.document["model"]):
        yield from _basis(sweep)


def _recorded(sweep: _Sweep) -> Iterator[str]:
    """Yield how many epochs took longer in the recording than a latency that is too much."""
    limit = sweep.limits[_function(sweep)]
    if limit.over == "latency_ms" and limit.rises and limit.holds is not None:
        yield from beyond_limit(sweep.document["model"], limit.holds)


def _basis(sweep: _Sweep) -> Iterator[str]:
    return against_recording(sweep.document["model"], sweep.axes.get("latency_ms", ()))


def _answer(sweep: _Sweep) -> Iterator[str]:
    lost = without_stops(sweep.grid("lost_share"), sweep.stopping)
    if lost.over is not None and not sweep.borders:
        yield from search_sentence(lost, sweep.best)
    yield different_sentence(sweep.results)


def _best(sweep: _Sweep) -> tuple[str, ...]:
    """Return the function that loses least at most values of the main axis; none if functions are no axis."""
    axes = sweep.grid("lost_share").axes
    return (str(sweep.best[axes.index("function")]),) if "function" in axes else ()


def _bytes(sweep: _Sweep) -> Bytes | None:
    """Return what the binlog types take where least is lost; None if that is not known."""
    sizes, of = _sizes(sweep)
    if not sizes:
        return None
    types = model_types(sweep.document["model"])
    known = len(types) == 1 and "binlog_type" not in sweep.axes and types[0] in sizes
    bounds = {name: (round(each), round(each)) for name, each in sizes.items()}
    base, base_bytes = (format_name(types[0]), bounds[types[0]][0]) if known else ("", 0)
    return Bytes(Measured.SIMULATED, bounds, base, base_bytes, f"a simulated run of all clusters ({of})")


def _sizes(sweep: _Sweep) -> tuple[dict[str, float], str]:
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


def _runs_note(sweep: _Sweep, grid: Grid) -> str:
    """Return how many runs a cell stands for."""
    names = [*grid.axes, *([grid.over] if grid.over is not None else [])]
    points = {tuple(row.values()) for row in sweep.results.select(names).to_pylist()}
    if len(points) * len(sweep.document["seeds"]) >= sweep.results.num_rows:
        return ""  # the page has said how many seeds there are
    return "Medians, also over the axes that are not shown."


def _matrix(sweep: _Sweep) -> Table:
    """Return lost updates, and beside them how long rows are stale."""
    lost, stale = sweep.grid("lost_share"), sweep.grid("stale_ms_p99").rows
    rows = [
        [
            *key,
            *(
                f"{share_words(share)} / {rounded(time)} ms"
                for share, time in zip(cells, stale.get(key, [None] * len(cells)), strict=True)
            ),
        ]
        for key, cells in lost.rows.items()
    ]
    note = f"Lost changes of users / stale time of rows, 99th percentile. {_runs_note(sweep, lost)}"
    return Table("Lost updates and stale times", _headings(lost), rows, note=note)


def _grid_table(sweep: _Sweep, figure: str, title: str) -> Table:
    grid = sweep.grid(figure)
    rows = [[*key, *(None if cell is None else round(cell, 2) for cell in cells)] for key, cells in grid.rows.items()]
    return Table(title, _headings(grid), rows, note=_runs_note(sweep, grid))


def _headings(grid: Grid) -> list[str]:
    return [*grid.axes, *("all" if value is None else f"{grid.over} {axis_value(value)}" for value in grid.values)]


def _charts(sweep: _Sweep) -> Iterator[Chart]:
    for figure, (name, title, measure) in _LINES.items():
        grid = sweep.grid(figure)
        scale = _PERCENT if figure == "lost_share" else 1.0
        lines = dict(list(_lines(grid, scale))[:_MOST_LINES])
        note = _runs_note(sweep, grid)
        if len(grid.rows) > _MOST_LINES:
            note += f" The first {_MOST_LINES} of {len(grid.rows)} lines."
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


def _tables(sweep: _Sweep) -> Iterator[Table]:
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
