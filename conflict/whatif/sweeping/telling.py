"""
A sweep: what is told of it, and its part of a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import pyarrow as pa

from conflict.history.grid.folder import Folder
from conflict.telling.bytes_by_type import bytes_chart, format_name
from conflict.telling.part import Bytes, Headline, Measured, Part, Topic, log_of
from conflict.telling.shown_text import counted, listed, percent
from conflict.telling.value import Chart, Form, Table, Telling
from conflict.whatif.estimates import LEAST_RUNS, METHOD, Estimate, estimate
from conflict.whatif.simulating.words import (
    against_recording,
    is_learnt,
    learnt_from_the_middle,
    model_types,
    model_words,
    recorded_epochs,
    without_function,
)
from conflict.whatif.sweeping.border import parse_condition
from conflict.whatif.sweeping.differences import values_of
from conflict.whatif.sweeping.result import RESULTS, SweepResult, limit_column, limit_question, read_sweep
from conflict.whatif.sweeping.summary import Grid, axis_value, point_label, value_words

_PERCENT = 100.0
_MOST_LINES = 6
_MOST_SPANS = 3  # columns with intervals beside that of the average, which 80 characters have room for
_MOST_VALUES = 4  # of an axis in a sentence
_LINES = {
    "lost_share": ("lost-updates", "Lost updates", "% of all changes"),
    "conflicts": ("conflicts", "Conflicts", "per run"),
    "rows_that_end_different": ("differing-rows", "Rows that end different", "per run"),
    "stale_ms_p99": ("stale-time", "Stale time of rows, 99th percentile", "ms"),
}
# What the values of an axis are; others say it by their name.
_AXES = {
    "latency_ms": "one way, on each of both links, in milliseconds",
    "clock_skew_ms": "how far the second cluster's clock is ahead, in milliseconds",
    "outage_seconds": "how long both links are down",
    "transactions_per_second": "of each cluster",
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
    document = found.document
    return Part(
        tell_sweep(found),
        folder.uri,
        _asked(found),
        {name: each for name, each in document.items() if name not in ("kind", "versions")},
        found.functions,
        _bytes(found),
        tuple(_headlines(found)),
        tuple(limit_column(found.limits, found.borders[0]["condition"])) if found.borders else (),
        tuple(against_recording(document["model"])) if not is_learnt(document["model"]) else (),
        recorded=False,
        log=log_of(document["model"].get("learnt_from", ())),
    )


def tell_sweep(sweep: SweepResult) -> Telling:
    """Return what is told of a sweep; of several runs, medians."""
    return Telling(
        "A sweep",
        sentences=tuple(_sentences(sweep)),
        tables=tuple(_tables(sweep)),
        charts=tuple(_charts(sweep)),
        alarms=tuple(_alarms(sweep)),
        warnings=tuple(_warnings(sweep)),
    )


def _sentences(sweep: SweepResult) -> Iterator[str]:
    """Yield where rows end different in some run, which a median does not show, and what to do next."""
    different = sum(map(bool, sweep.results["rows_that_end_different"].to_pylist()))
    yield f"Rows end different in {different:,} of {counted(sweep.results.num_rows, 'run')} of the grid."
    yield from learnt_from_the_middle(sweep.document["model"])
    over = sweep.grid("lost_share").over
    if over is not None and not sweep.borders:
        yield f"With `--find 'lost_share < 0.05' --over {over}`, sweep finds where 5 % begin to be lost."


def _alarms(sweep: SweepResult) -> Iterator[str]:
    if sweep.borders:
        figure = parse_condition(sweep.borders[0]["condition"]).figure
        unknown = sweep.results[figure].null_count
        if unknown:
            runs = counted(unknown, "run")
            yield f"{figure} is empty in {runs} of the grid; the condition does not hold there."
    stopped = sum(map(bool, sweep.results["stopped_appliers"].to_pylist()))
    if stopped:
        yield (
            f"In {counted(stopped, 'run')} an applier stopped: see stopped_appliers; "
            "what it did not apply does not count as lost."
        )


def _warnings(sweep: SweepResult) -> Iterator[str]:
    unsettled = sum(map(bool, sweep.results["unsettled_changes"].to_pylist()))
    if unsettled:
        yield (
            f"≥: in {counted(unsettled, 'run')} changes were not settled at the end, and more may be lost: see "
            "unsettled_changes."
        )


# -----------------------------------------------------------------------------------------------------------
# Tables and charts
# -----------------------------------------------------------------------------------------------------------


def _tables(sweep: SweepResult) -> Iterator[Table]:
    yield _lost(sweep)
    yield from _more_lost(sweep)
    if sweep.borders:
        yield _border_table(sweep)
    yield from recorded_epochs(sweep.document["model"], sweep.latency)
    for figure in _LINES:
        if figure != "lost_share" and any(map(any, sweep.grid(figure).rows.values())):
            yield _grid_table(sweep, figure)


def _lost(sweep: SweepResult) -> Table:
    """Return the shares that are lost, with ≥ where more may be; the row that loses least is marked."""
    grid, most = sweep.grid("lost_share"), sweep.grid("lost_share_at_most").rows
    cells = {
        key: [
            None if cell is None else f"{'≥' * (cell != high)}{percent(cell, 2, '')}"
            for cell, high in zip(shares, most[key], strict=True)
        ]
        for key, shares in grid.rows.items()
    }
    return _over(sweep, grid, "lost_share", cells, f"{_told_apart(sweep)} {_seeds(sweep)}".strip(), _winner(sweep))


def _winner(sweep: SweepResult) -> tuple[Any, ...] | None:
    """Return the row that loses least; None if there is nothing to compare it with, or another may lose as little."""
    return sweep.best if len(sweep.rows) > 1 and len(sweep.least) == 1 else None


def _told_apart(sweep: SweepResult) -> str:
    """Return in a sentence which row loses least, or that this is not sure; nothing of one row alone."""
    grid = sweep.grid("lost_share")
    if len(grid.rows) == 1:
        return ""
    if _winner(sweep) is not None:
        return f"* loses least{_on_average(grid)}: 95 % intervals of differences paired by seed leave out 0."
    if len(sweep.rows) == 1:
        return f"Under all but {point_label(grid.axes, sweep.best)} an applier stopped, or changes were not settled."
    if len(sweep.document["seeds"]) < LEAST_RUNS:
        return f"Which loses least is not sure: that takes {LEAST_RUNS} seeds."
    names = [point_label(grid.axes, key) for key in sweep.least]
    return f"Not told apart{_on_average(grid)}: {listed(names)}; intervals of differences paired by seed cover 0."


def _on_average(grid: Grid) -> str:
    return "" if grid.over is None else f" on average over {grid.over}"


def _seeds(sweep: SweepResult) -> str:
    """Return how far seeds are apart, and how intervals come about."""
    seeds = len(sweep.document["seeds"])
    if seeds == 1:
        return "One seed: how much others differ is not known."
    extremes = f"Extremes: seeds of one point differ by up to {percent(sweep.seeds_differ, 2)} of all changes."
    return extremes if seeds < LEAST_RUNS else f"{extremes} Intervals of {seeds:,} seeds: {METHOD}."


def _more_lost(sweep: SweepResult) -> Iterator[Table]:
    """Yield by how much the other rows lose more than the first one; nothing if the seeds are too few for intervals."""
    grid, others = sweep.grid("lost_share"), sweep.rows[1:]
    if not others or len(sweep.document["seeds"]) < LEAST_RUNS:
        return
    places: list[tuple[str, Any]] = [("all" if grid.over is None else f"on average over {grid.over}", None)]
    along = ""
    if grid.over is not None and len(grid.values) <= _MOST_SPANS:
        along = f", by {grid.over}"
        places = [*((axis_value(value), value) for value in grid.values), ("on average", None)]
    title = f"More lost than under {point_label(grid.axes, sweep.best)}, % of all changes{along}"
    rows = [[*key, *(_percents(sweep.more_than_best(key, value)) for _, value in places)] for key in others]
    note = "Means of differences paired by seed, with their 95 % intervals."
    yield Table(title, [*grid.axes, *(name for name, _ in places)], rows, note=note, texts=len(grid.axes))


def _percents(found: Estimate | None) -> str | None:
    """Return a difference of shares with its interval."""
    if found is None or found.mean_interval is None:
        return None
    mean, low, high = (f"{_PERCENT * each:.2f}" for each in (found.mean, *found.mean_interval))
    return f"{mean} ({low} to {high})"


def _grid_table(sweep: SweepResult, figure: str) -> Table:
    grid = sweep.grid(figure)
    cells = {key: [None if cell is None else round(cell, 2) for cell in row] for key, row in grid.rows.items()}
    return _over(sweep, grid, figure, cells)


def _over(
    sweep: SweepResult,
    grid: Grid,
    figure: str,
    cells: Mapping[tuple[Any, ...], list[Any]],
    note: str = "",
    marked: tuple[Any, ...] | None = None,
) -> Table:
    """Return a table with a row for each point, and a column for each value of the main axis."""
    rows = [[*(key or ("",)), *row] for key, row in cells.items()]
    headings = (*(grid.axes or ("",)), *("all" if value is None else axis_value(value) for value in grid.values))
    mark = None if marked is None else (list(cells).index(marked), None)
    title = ", ".join(_LINES[figure][1:]) + _along(sweep, grid)
    return Table(title, headings, rows, mark, note, texts=max(len(grid.axes), 1))


def _along(sweep: SweepResult, grid: Grid) -> str:
    """Return along what the figures are, and that they are medians where several runs make one of them."""
    cells = sum(cell is not None for row in sweep.grid("lost_share").rows.values() for cell in row)
    along = "" if grid.over is None else f", by {grid.over}"
    return f"{along}{' (median)' * (sweep.results.num_rows > cells)}"


def _border_table(sweep: SweepResult) -> Table:
    first = sweep.borders[0]
    axes = [name for name in first if name not in ("only", "condition", "over", "holds", "fails")]
    rows = [
        [
            *([each[name] for name in axes] or [""]),
            *("nowhere" if each[side] is None else axis_value(each[side]) for side in ("holds", "fails")),
            *([] if all(each["only"] for each in sweep.borders) else ["" if each["only"] else "the first of several"]),
        ]
        for each in sweep.borders
    ]
    runs = " in every run" if len(sweep.document["seeds"]) > 1 else ""
    headings = [*(axes or [""]), f"holds at{runs}", f"fails at{runs}", "border"][: len(rows[0])]
    return Table(f"{first['condition']}, by {first['over']}", headings, rows, texts=max(len(axes), 1))


def _charts(sweep: SweepResult) -> Iterator[Chart]:
    for figure, (name, title, measure) in _LINES.items():
        grid = sweep.grid(figure)
        scale = _PERCENT if figure == "lost_share" else 1.0
        every = {
            point_label(grid.axes, key): [None if cell is None else scale * cell for cell in cells]
            for key, cells in grid.rows.items()
        }
        lines = dict(list(every.items())[:_MOST_LINES])
        spans = _spans(sweep, grid, figure, scale) if grid.over is not None else {}
        note = "The upright lines are 95 % intervals of the medians." * any(map(any, spans.values()))
        if figure == "lost_share" and any(sweep.results["unsettled_changes"].to_pylist()):
            note += " Where changes were not settled at the end, at least so many."
        if len(every) > _MOST_LINES:
            note += f" The first {_MOST_LINES} of {len(every)} lines; {RESULTS} of the sweep has all runs."
        shown_title = f"{title}, {measure}{_along(sweep, grid)}"
        if grid.over is None:
            data = pa.table({"at": list(lines), measure: [each[0] for each in lines.values()]})
            yield Chart(name, shown_title, Form.STACKED, data, measure, note=note.strip())
        else:
            data = pa.table({grid.over: list(map(float, grid.values)), **lines})
            drawn = {label: each for label, each in spans.items() if label in lines}
            yield Chart(name, shown_title, Form.LINES, data, measure, grid.over, note.strip(), drawn)
    sizes, of = _sizes(sweep)
    yield from bytes_chart(sizes, f"simulated, {of}")


def _spans(sweep: SweepResult, grid: Grid, figure: str, scale: float) -> dict[str, list[tuple[float, float] | None]]:
    """Return the intervals of the medians of a grid, by line; none of points that stand for several of the sweep."""
    assert grid.over is not None
    values = values_of(sweep.results, sweep.axes, (*grid.axes, grid.over), figure)
    found = {}
    for key in grid.rows:
        points = [[*values.get((*key, value), {}).values()] for value in grid.values]
        known = [estimate([*at[0].values()]).median_interval if len(at) == 1 else None for at in points]
        spans = [None if each is None else (scale * each[0], scale * each[1]) for each in known]
        found[point_label(grid.axes, key)] = spans
    return found


# -----------------------------------------------------------------------------------------------------------
# What a report says besides
# -----------------------------------------------------------------------------------------------------------


def _headlines(sweep: SweepResult) -> Iterator[Headline]:
    """Yield which function loses least, and which value of the main axis is too much, or what it costs."""
    lost, best = sweep.grid("lost_share"), point_label(sweep.grid("lost_share").axes, sweep.best)
    setting = (f"From {counted(sweep.results.num_rows, 'simulation')}.", _seeds(sweep))
    loses = f"With {best}, {_shares(sweep, lost)} of the changes of users are lost."
    if len(lost.rows) > 1:
        question = f"Which {listed(lost.axes)} lose{'s' * (len(lost.axes) == 1)} least?"
        names = [point_label(lost.axes, key) for key in sweep.least]
        winner = names[0] if _winner(sweep) is not None else ""
        sure = f"Of {len(lost.rows)} that were simulated, {winner} loses least{_on_average(lost)}." if winner else ""
        told = (sure or _told_apart(sweep), *([loses] if lost.over is None else []))
        yield Headline(Topic.FUNCTION, question, winner or "not sure", told, setting)
    if sweep.borders:
        condition, limit = sweep.borders[0]["condition"], sweep.limits[sweep.function]
        where = f"There `{condition}` ceases to hold for {best}."
        yield Headline(Topic.LIMIT, limit_question(limit.over, condition), limit.words, (where, loses), setting)
    elif lost.over is not None:
        question = f"What does {'latency' if lost.over == 'latency_ms' else lost.over} cost?"
        yield Headline(Topic.LIMIT, question, "", (loses,), setting)


def _shares(sweep: SweepResult, lost: Grid) -> str:
    """Return what is lost where least is, at each value of the main axis; of many, at the first and the last one."""
    shares = [
        f"{percent(share, None)}{f' at {value_words(lost.over, value)}' if lost.over else ''}"
        for value, share in zip(lost.values, lost.rows[sweep.best], strict=True)
        if share is not None
    ]
    return listed(shares if len(shares) <= _MOST_VALUES else [shares[0], shares[-1]])


def _asked(sweep: SweepResult) -> dict[str, str]:
    axes = {
        name: ", ".join(map(str, values)) + (f" ({_AXES[name]})" if name in _AXES else "")
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
