"""One History through each engine, and all that the result holds."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pyarrow.dataset as pads

from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.contradictions import Effects, contradicted_rows
from conflict.engine.ledger.layout import (
    APPLIED_EPOCHS,
    ResultOptions,
    applied_epochs_path,
    exceptions_path,
    rows_folder,
    rows_in_part_folder,
)
from conflict.engine.ledger.resolution_ledger import KeyTexts, ReferenceLedger, write_open, write_resolution
from conflict.engine.ledger.summary import RunSummary, with_open_schedule
from conflict.history.grid.epoch_files import read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.model import History
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import history_of, read_cluster
from conflict.history.run import Run
from conflict.history.tasks import Runner, in_process
from conflict.judge.case import ConflictCase
from conflict.results.files import read_rows, read_rows_in_part
from conflict.runs.ingest_job import ingest
from conflict.runs.pipeline import run_by
from conflict.runs.reference_run import place_in_memory
from conflict.runs.resolving.resolve_job import resolve_history
from conflict.runs.rows.task_inputs import LogPart
from tests.conflict.written_histories import write_history


def _contents(out: Folder, run: Run, summary: RunSummary) -> dict[str, Any]:
    """Everything that a result holds, in an order that does not depend on buckets."""
    found: dict[str, Any] = {"summary": summary.to_json(), "counters": summary.counters}
    for cluster, setups in run.setups.at_end.items():
        found[f"epochs {cluster}"] = out.read_table(applied_epochs_path(cluster), APPLIED_EPOCHS).to_pylist()
        path = f"outcomes/applier={cluster}"
        outcomes = pads.dataset(f"{out.uri}/{path}").to_table().to_pylist() if out.exists(path) else []
        found[f"outcomes {cluster}"] = Counter(tuple(row.items()) for row in outcomes)
        for part in ("undecided/applier", "contradictions/applier", "overwritten/cluster"):
            path = f"{part}={cluster}"
            rows = pads.dataset(f"{out.uri}/{path}").to_table().to_pylist() if out.exists(path) else []
            found[f"{part} {cluster}"] = sorted(str(each) for each in rows)
        for table in run.schema.tables:
            if table.full_name in setups:
                found[f"rows {cluster} {table.name}"] = sorted(
                    read_rows(out, rows_folder(cluster, table.full_name), table), key=str
                )
                found[f"rows in part {cluster} {table.name}"] = sorted(
                    read_rows_in_part(out, rows_in_part_folder(cluster, table.full_name), table), key=str
                )
            else:
                rows = read_rows(out, exceptions_path(cluster, table.full_name), table)
                found[f"exceptions {cluster} {table.name}"] = sorted(rows, key=str)
                found[f"outcomes of exceptions {cluster} {table.name}"] = _outcomes_of(out, cluster, table.full_name)
    return found


def _outcomes_of(out: Folder, cluster: str, table: str) -> list[tuple[int, str]]:
    """Return the number of each row of an exceptions table, and the outcome that it stands for."""
    path = exceptions_path(cluster, table)
    if not out.exists(path):
        return []
    rows = pads.dataset(f"{out.uri}/{path}").to_table()
    return sorted(zip(rows.column(3).to_pylist(), map(str, rows["NDB$outcome"].to_pylist()), strict=True))


def by_reference(history: History, run: Run, shown: Mapping[str, Effects] | None = None) -> dict[str, Any]:
    """Resolve with the reference engine; `shown` is what the binlogs show of the appliers' work."""
    setups = run.setups.at_end
    resolution = resolve(history, setups, skip_missing=run.configuration.skip_missing, shown=shown)
    with tempfile.TemporaryDirectory() as folder:
        # A made-up History has no consequences, so all effects are contradicted.
        compared = {
            name: contradicted_rows((result.effects, result.images), ((shown or {}).get(name, {}), {}))
            for name, result in resolution.clusters.items()
        }
        ledger = ReferenceLedger(history, setups, resolution, compared, ResultOptions(all_outcomes=True))
        return _contents(Folder(folder), run, write_resolution(Folder(folder), ledger))


def binlogs_by_reference(run: Run) -> dict[str, Any]:
    """Resolve binlogs with the reference engine; what they show of the appliers' work is left out."""
    readings = {cluster.name: read_cluster(cluster, run) for cluster in run.clusters}
    history, none = history_of(run, readings), {name: {} for name in readings}
    placed = place_in_memory(history, run.setups.at_start, none, skip_missing=run.configuration.skip_missing)
    history, setups = placed.history(history), run.setups.at_end
    resolution = resolve(history, run.setups.at_start, skip_missing=run.configuration.skip_missing)
    with tempfile.TemporaryDirectory() as folder:
        compared = {
            name: contradicted_rows((result.effects, result.images), ({}, {}))
            for name, result in resolution.clusters.items()
        }
        ledger = ReferenceLedger(history, setups, resolution, compared, ResultOptions(all_outcomes=True))
        summary = write_resolution(Folder(folder), ledger)
        keys = KeyTexts(history.layouts, {table.full_name: table for table in run.schema.tables})
        write_open(Folder(folder), placed.schedule, (), keys)
        return _contents(Folder(folder), run, with_open_schedule(summary, placed.schedule))


def binlogs_by_kernels(run: Run, *, buckets: int, segment_bytes: int) -> dict[str, Any]:
    """Ingest binlogs and resolve them with the kernels; what they show of the appliers' work is left out."""
    with tempfile.TemporaryDirectory() as folder:
        grid, out = Folder(f"{folder}/history"), Folder(f"{folder}/out")
        ingest(in_process, run, grid, buckets=buckets, segment_bytes=segment_bytes)
        options = ResultOptions(all_outcomes=True)
        summary = resolve_history(in_process, run, grid, out, options, use_evidence=False)
        return _contents(out, run, summary)


def by_kernels(history: History, run: Run, runner: Runner, **how: Any) -> dict[str, Any]:
    """Resolve with the kernels, by way of the grid on disk; `how` as for `with_care`."""
    return with_care(history, run, runner, **how)[0]


def with_care(
    history: History,
    run: Run,
    runner: Runner,
    *,
    buckets: int,
    epochs_per_segment: int,
    final_rows: bool = True,
    shown: Mapping[str, Effects] | None = None,
) -> tuple[dict[str, Any], dict[str, int]]:
    """
    Resolve with the kernels; return how many rows of each kind the reference engine resolved, too.

    `shown` is as for `by_reference`.
    """
    numbers = run.numbers
    with tempfile.TemporaryDirectory() as folder:
        grid, out = Folder(f"{folder}/history"), Folder(f"{folder}/out")
        manifest = write_history(
            history, numbers, grid, buckets=buckets, epochs_per_segment=epochs_per_segment, shown=shown
        )
        options = ResultOptions(final_rows=final_rows, all_outcomes=True)
        starts = {cluster.name: cluster.start for cluster in history.clusters if cluster.start is not None}
        shows = frozenset(name for name, effects in (shown or {}).items() if any(effects.values()))
        part = LogPart(None, starts, shows), read_schedule(grid, list(manifest.clusters)), manifest
        summary = resolve_history(runner, run, grid, out, options, use_evidence=False, part=part)
        return _contents(out, run, summary), summary.careful


def _figures(summary: RunSummary) -> tuple[Any, ...]:
    """Return all that is told of a result."""
    return summary.to_json(), summary.counters, summary.counter_ranges


def cut_anywhere(path: Path, folder: Path) -> Counter[str]:
    """Cut a recording at every epoch, and compare both engines; return why whole runs were left to the reference."""
    configuration, left = ConflictCase.load(path).configuration(), Counter[str]()
    for cluster in configuration.clusters:
        for epoch in [each.number for each in read_cluster(cluster, make_run(configuration)).epochs][1:]:
            span = attrs.evolve(configuration.span, first={cluster.name: epoch}, empty=False)
            run = make_run(attrs.evolve(configuration, span=span))
            found, expected = (
                run_by(engine, run, Folder(str(folder / f"{engine}-{cluster.name}-{epoch}")))
                for engine in ("local", "reference")
            )
            assert _figures(found.summary) == _figures(expected.summary)
            left[found.engine_reason] += 1
    return left
