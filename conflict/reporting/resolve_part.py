"""
What a report says of a result of `resolve`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from conflict.config.option_values import By, Grid
from conflict.operating.repairing.lost import lost_tables
from conflict.operating.window.pictures import charts_of
from conflict.operating.window.window import window_of_result
from conflict.reporting.example import example_of, reads_binlogs
from conflict.results.conflicts import count_conflicts, read_conflicts, read_refresh_times
from conflict.results.result import Result
from conflict.results.telling import function_of
from conflict.results.told_conflicts import conflicts_table
from conflict.rules.decision import Cause
from conflict.telling.part import Part, log_of
from conflict.telling.shown_text import percent
from conflict.telling.value import Chart, Form

_BINS = 40  # of a timeline, at most
_STEPS = [
    timedelta(seconds=each)
    for each in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400)
]
_FEW_EPOCHS = 10_000  # up to which the window of each is looked at
_MOST_ROWS = 20  # of the tables by key and of lost changes


def resolve_part(result: Result, source: str) -> Part:
    """Return the part of a report on a result of `resolve`, read from `source`."""
    run, conflicts = result.run, read_conflicts(result.folder, result.clusters)
    told = result.summary.telling
    kinds, names = (By.TABLE, By.KEY) if len(conflicts) else (), result.databases
    counts = [(by, count_conflicts(conflicts, by, names)) for by in kinds]
    return Part(
        attrs.evolve(
            told,
            tables=(
                *told.tables,
                *(conflicts_table(by, table, _MOST_ROWS, source) for by, table in counts),
                *lost_tables(result, _MOST_ROWS, source),
            ),
            charts=(*_charts(result, conflicts), *_window_charts(result)),
        ),
        source,
        _asked(run),
        {name: run[name] for name in ("configuration", "engine", "versions", "inputs") if name in run},
        log=_log(run),
        example=example_of(result, conflicts, source),
    )


def _log(run: Mapping[str, Any]) -> dict[str, str]:
    """Return the binlog files that it was made of; the run file and other files are none."""
    binlogs = {Path(file).name for cluster in run["configuration"]["clusters"].values() for file in cluster["binlogs"]}
    files = (run.get("inputs") or {}).get("files", ())
    return log_of(file for file in files if Path(file["path"]).name in binlogs)


def _asked(run: Mapping[str, Any]) -> dict[str, str]:
    configuration = run["configuration"]
    clusters = configuration["clusters"]
    roles = {name: "" if each["role"] == "NONE" else f", {each['role']}" for name, each in clusters.items()}
    found = {
        "question": "What did each cluster's applier do with the changes of the other one?",
        "clusters": "; ".join(
            f"{name} (server {each['server_id']}{roles[name]}, binlog files: {len(each['binlogs'])})"
            for name, each in clusters.items()
        ),
    }
    functions: dict[str, list[str]] = {}
    for cluster, tables in configuration["functions"].items():
        for table in tables:
            functions.setdefault(f"{function_of(configuration, table, [cluster])} on {cluster}", []).append(table)
    found["functions"] = "; ".join(f"{name}: {', '.join(tables)}" for name, tables in functions.items()) or "none"
    return found


def _charts(result: Result, conflicts: pa.Table) -> Iterator[Chart]:
    refreshes = read_refresh_times(result.folder, result.clusters)
    moments = {"conflicts": _moments(conflicts), "refreshed rows": _moments(refreshes)}
    if any(map(len, moments.values())):
        step, data = timeline(moments)
        note = "Conflicts when the rejected change was committed, refreshes when the refreshed row was."
        yield Chart(
            "timeline", f"Conflicts and refreshes in each {_words(step)}", Form.TIMELINE, data, "count", "UTC", note
        )
    if len(conflicts):
        counts = conflicts.group_by(["table", "cause"]).aggregate([([], "count_all")]).to_pylist()
        tables = sorted({each["table"] for each in counts})
        found = {(each["table"], each["cause"]): each["count_all"] for each in counts}
        columns = {
            cause.name.lower().replace("_", " "): [found.get((table, cause.name), 0) for table in tables]
            for cause in Cause
            if cause and any(found.get((table, cause.name)) for table in tables)
        }
        data = pa.table({"table": tables, **columns})
        measure = "conflicts" if len(columns) > 1 else f"conflicts, all of cause “{next(iter(columns))}”"
        yield Chart("conflicts-by-table", "Conflicts by table and cause", Form.STACKED, data, measure)
    differing = {} if result.summary.unrelated else {name: n for name, n in result.run["differing_rows"].items() if n}
    if differing:
        data = pa.table({"table": list(differing), "rows": list(differing.values())})
        ends = [
            _part_of_rows(rows, [own.get(name, 0) for own in result.run["rows"].values()])
            for name, rows in differing.items()
        ]
        note = "The part is of the rows on the cluster that has more of them."
        yield Chart("differing-rows", "Rows that end different", Form.STACKED, data, "rows", note=note, ends=ends)


def _window_charts(result: Result) -> Iterator[Chart]:
    """Yield pictures of the window of conflicts over time, if the binlogs can be read."""
    epochs = sum(len(result.applied_epochs(each)) for each in result.clusters)
    by = Grid.EPOCH if epochs <= _FEW_EPOCHS else Grid.MINUTE
    found = window_of_result(result, by) if reads_binlogs(result) else None
    if found is not None:
        yield from charts_of(found.document())


def _part_of_rows(differing: int, rows: Sequence[int]) -> str:
    """Return how many rows differ, and which part of all rows that is."""
    most = max(*rows, differing)
    return f"{differing:,} of {most:,} ({percent(differing / most, unit=' %')})"


def _moments(outcomes: pa.Table) -> np.ndarray:
    """Return when operations were committed, in microseconds since 1970; those that are not known are left out."""
    found: np.ndarray = outcomes["time"].drop_null().cast(pa.int64()).to_numpy()
    return found


def timeline(moments: Mapping[str, np.ndarray]) -> tuple[timedelta, pa.Table]:
    """
    Count moments in steps of time.

    Args:
        moments: By name, moments in microseconds since 1970.

    Returns:
        The step, and a table: the start of each step, and how many moments of each name are in it.
    """
    every = np.concatenate(list(moments.values()))
    first, last = int(every.min()), int(every.max())
    span = timedelta(microseconds=last - first)
    step = next((each for each in _STEPS if span / each <= _BINS), max(_STEPS[-1], span / _BINS))
    width = max(round(step / timedelta(microseconds=1)), 1)
    begin = first // width
    count = last // width - begin + 1
    columns = {name: np.bincount(each // width - begin, minlength=count) for name, each in moments.items()}
    starts = [datetime.fromtimestamp((begin + number) * width / 1e6, UTC) for number in range(count)]
    return step, pa.table({"from": starts, **columns})


def _words(step: timedelta) -> str:
    seconds = step.total_seconds()
    if seconds < 60:
        return f"{seconds:g} s"
    return f"{seconds / 60:g} min" if seconds < 3600 else f"{seconds / 3600:g} h"
