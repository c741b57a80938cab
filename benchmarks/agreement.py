"""
Whether the job and the reference engine come to the same result on a made History.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from benchmarks.history_reader import read_history
from conflict.config.configuration import Configuration
from conflict.grid.folder import Folder
from conflict.jobs.resolve_job import resolve_history
from conflict.jobs.runner import in_process
from conflict.reference.replay import resolve
from conflict.results.applied_changes import applied_changes
from conflict.results.files import read_rows, summarize_resolution, write_resolution
from conflict.results.layout import APPLIED_EPOCHS, applied_epochs_path
from conflict.results.model import Resolution
from conflict.results.summary import RunSummary
from conflict.rules.decision import Verdict

__all__ = ["Applied", "applied_by_job", "applied_by_reference", "by_job", "by_reference", "differences"]

# A made History has the consequences of clusters that apply everything; the reference engine is given none.
NOT_COMPARED = ("compared_with_binlogs", "contradicted_by_binlogs")


# Source epoch, ordinal, and own epoch of every change that an applier simply applied, per applier.
Applied = dict[str, Counter[tuple[int, int, int]]]


def contents(out: Folder, run: Configuration, summary: RunSummary, applied: Applied) -> dict[str, Any]:
    """Return everything that a result holds, in an order that does not depend on buckets."""
    figures = {name: value for name, value in summary.to_json().items() if name not in NOT_COMPARED}
    found: dict[str, Any] = {"summary": figures, "counters": summary.counters, "applied": applied}
    for cluster in run.clusters:
        found[f"taken by {cluster.name}"] = out.read_table(
            applied_epochs_path(cluster.name), APPLIED_EPOCHS
        ).to_pylist()
        path = f"outcomes/applier={cluster.name}"
        outcomes = pads.dataset(f"{out.uri}/{path}").to_table().to_pylist() if out.exists(path) else []
        found[f"outcomes of {cluster.name}"] = Counter(tuple(row.items()) for row in outcomes)
        for table in run.data_schema.tables:
            rows = read_rows(out, f"rows/{cluster.name}/{table.full_name}", table)
            found[f"rows of {cluster.name}"] = sorted(rows, key=str)
    return found


def applied_by_reference(resolution: Resolution) -> Applied:
    """Return what the reference engine says of it, decision by decision."""
    return {
        applier: Counter(
            (outcome.source_epoch, outcome.ordinal, outcome.epoch)
            for outcome in resolution.outcomes
            if outcome.applier == applier and outcome.verdict is Verdict.APPLIED and outcome.ordinal >= 0
        )
        for applier in resolution.clusters
    }


def applied_by_job(out: Folder, history: Folder, appliers: Iterable[str]) -> Applied:
    """Return what follows from the epochs that were taken, and from the outcomes."""
    names = ("source_epoch", "ordinal", "epoch")
    found = {}
    for applier in appliers:
        rows = pa.concat_tables(applied_changes(out, history, applier)).select(names)
        found[applier] = Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return found


def by_reference(history: Folder, run: Configuration) -> dict[str, Any]:
    """Resolve with the reference engine, in memory."""
    made, setups = read_history(history, run), run.setups()
    resolution = resolve(made, setups)
    with tempfile.TemporaryDirectory() as folder:
        write_resolution(Folder(folder), made, setups, resolution)
        summary = summarize_resolution(resolution, setups, {name: {} for name in setups})
        return contents(Folder(folder), run, summary, applied_by_reference(resolution))


def by_job(history: Folder, run: Configuration) -> dict[str, Any]:
    """Resolve with the job, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        summary = resolve_history(in_process, run, history, Folder(folder), use_evidence=False)
        applied = applied_by_job(Folder(folder), history, [cluster.name for cluster in run.clusters])
        return contents(Folder(folder), run, summary, applied)


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Return the names of what differs."""
    return [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]
