"""
Whether the job and the reference engine come to the same result on a made History.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from benchmarks.history_reader import read_history
from conflict.applied_changes import applied_changes
from conflict.configuration import Configuration
from conflict.engine.replay import resolve
from conflict.grid import Folder
from conflict.jobs.resolve_job import resolve_history
from conflict.jobs.runner import in_process
from conflict.outputs import APPLIED, applied_path
from conflict.result_files import read_rows, summarize_resolution, write_resolution
from conflict.summary import RunSummary

__all__ = ["applied_in", "by_job", "by_reference", "differences"]

# A made History has the consequences of clusters that apply everything; the reference engine is given none.
NOT_COMPARED = ("compared_with_binlogs", "contradicted_by_binlogs")


def contents(out: Folder, run: Configuration, summary: RunSummary, history: Folder | None) -> dict[str, Any]:
    """Return everything that a result holds, in an order that does not depend on buckets (see `applied_in`)."""
    figures = {name: value for name, value in summary.to_json().items() if name not in NOT_COMPARED}
    found: dict[str, Any] = {"summary": figures, "counters": summary.counters}
    for cluster in run.clusters:
        found[f"applied by {cluster.name}"] = applied_in(out, cluster.name, history)
        path = f"outcomes/applier={cluster.name}"
        outcomes = pads.dataset(f"{out.uri}/{path}").to_table().to_pylist() if out.exists(path) else []
        found[f"outcomes of {cluster.name}"] = Counter(tuple(row.items()) for row in outcomes)
        for table in run.data_schema.tables:
            rows = read_rows(out, f"rows/{cluster.name}/{table.full_name}", table)
            found[f"rows of {cluster.name}"] = sorted(rows, key=str)
    return found


def applied_in(out: Folder, applier: str, history: Folder | None) -> Counter[tuple[int, int, int]]:
    """
    Return source epoch, ordinal, and own epoch of every change that an applier simply applied.

    Args:
        out: The result.
        applier: The applier.
        history: The History, cut into buckets; None for a result of the reference engine, which cuts nothing.
    """
    if history is None:
        stretches = out.read_table(applied_path(applier, 0), APPLIED).to_pylist()
        assert all(each["changes"] == each["last"] - each["first"] + 1 for each in stretches)
        return Counter(
            (each["source_epoch"], ordinal, each["epoch"])
            for each in stretches
            for ordinal in range(each["first"], each["last"] + 1)
        )
    names = ("source_epoch", "ordinal", "epoch")
    rows = pa.concat_tables(applied_changes(out, history, applier)).select(names)
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def by_reference(history: Folder, run: Configuration) -> dict[str, Any]:
    """Resolve with the reference engine, in memory."""
    made, setups = read_history(history, run), run.setups()
    resolution = resolve(made, setups)
    with tempfile.TemporaryDirectory() as folder:
        write_resolution(Folder(folder), made, setups, resolution)
        summary = summarize_resolution(resolution, setups, {name: {} for name in setups})
        return contents(Folder(folder), run, summary, None)


def by_job(history: Folder, run: Configuration) -> dict[str, Any]:
    """Resolve with the job, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        summary = resolve_history(in_process, run, history, Folder(folder), use_evidence=False)
        return contents(Folder(folder), run, summary, history)


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Return the names of what differs."""
    return [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]
