"""
Whether the job and the reference engine come to the same result on a made History.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

import pyarrow.dataset as pads

from benchmarks.makers.history_reader import read_history
from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.layout import APPLIED_EPOCHS, ResultOptions, applied_epochs_path, rows_folder
from conflict.engine.ledger.resolution_ledger import ReferenceLedger, write_resolution
from conflict.engine.ledger.summary import RunSummary
from conflict.history.grid.folder import Folder
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.results.files import read_rows
from conflict.runs.resolving.resolve_job import resolve_history

__all__ = ["by_job", "by_reference", "differences"]

# A made History has the consequences of clusters that apply everything; the reference engine is given none.
NOT_COMPARED = ("compared_with_binlogs", "contradicted_by_binlogs", "contradictions", "converged", "counter_ranges")


def contents(out: Folder, run: Run, summary: RunSummary) -> dict[str, Any]:
    """Return everything that a result holds, in an order that does not depend on buckets."""
    figures = {name: value for name, value in summary.to_json().items() if name not in NOT_COMPARED}
    found: dict[str, Any] = {"summary": figures, "counters": summary.counters}
    for cluster in run.clusters:
        found[f"taken by {cluster.name}"] = out.read_table(
            applied_epochs_path(cluster.name), APPLIED_EPOCHS
        ).to_pylist()
        path = f"outcomes/applier={cluster.name}"
        outcomes = pads.dataset(f"{out.uri}/{path}").to_table().to_pylist() if out.exists(path) else []
        found[f"outcomes of {cluster.name}"] = Counter(tuple(row.items()) for row in outcomes)
        for table in run.data_schema.tables:
            rows = read_rows(out, rows_folder(cluster.name, table.full_name), table)
            found[f"rows of {cluster.name}"] = sorted(rows, key=str)
    return found


def by_reference(history: Folder, run: Run) -> dict[str, Any]:
    """Resolve with the reference engine, in memory."""
    made, setups = read_history(history, run), run.setups.at_end
    resolution = resolve(made, setups)
    with tempfile.TemporaryDirectory() as folder:
        ledger = ReferenceLedger(made, setups, resolution, options=ResultOptions(all_outcomes=True))
        return contents(Folder(folder), run, write_resolution(Folder(folder), ledger))


def by_job(history: Folder, run: Run) -> dict[str, Any]:
    """Resolve with the job, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        options = ResultOptions(all_outcomes=True)
        summary = resolve_history(in_process, run, history, Folder(folder), options, use_evidence=False)
        return contents(Folder(folder), run, summary)


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Return the names of what differs."""
    return [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]
