"""Results in two parts: up to a place in the order of epoch applies, and from there on; and both as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from conflict.engine.ledger.arrow_rows import row_schema
from conflict.engine.ledger.layout import ResultOptions, exceptions_path, rows_folder
from conflict.engine.ledger.summary import RunSummary
from conflict.history.grid.folder import Folder
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.rules.counters import zero_counters
from conflict.runs.resolving.keeping_state import keep_state, not_for_windows
from conflict.runs.resolving.resolve_job import SettledHistory, settle_history

OPTIONS = ResultOptions(all_outcomes=True)
# What tells the epoch of the other cluster that an applier applied, by part of a result.
_APPLIED = {"outcomes": "source_epoch", "overwritten": "winner_epoch"}


def decided(run: Run, history: Folder, out: Folder, options: ResultOptions = OPTIONS, **how: Any) -> SettledHistory:
    """Decide a History with the kernels, and write all but the figures."""
    settled = settle_history(in_process, run, history, out, options, **how)
    assert isinstance(settled, SettledHistory), settled
    return settled


def contents(out: Folder, run: Run, summary: RunSummary, since: Mapping[str, int] | None = None) -> dict[str, Any]:
    """
    Return all that a result tells of epoch applies, and its final rows, in an order that does not depend on buckets.

    Args:
        out: Its folder.
        run: The run.
        summary: Its figures.
        since: Per applier, the last epoch of the other cluster of which nothing is wanted; None to return all.
    """
    zeros = zero_counters(run.configuration.functions)
    found: dict[str, Any] = {"differing": summary.differing_rows, "rows": summary.rows, "stops": summary.stops}
    for name in summary.counters:
        for kind, column in _APPLIED.items():
            path = f"{kind}/{'applier' if kind == 'outcomes' else 'cluster'}={name}"
            found[f"{kind} {name}"] = _rows(out, path, pc.field(column), (since or {}).get(name))
        found[f"epochs {name}"] = _rows(
            out, f"applied_epochs/applier={name}", pc.field("source_epoch"), (since or {}).get(name)
        )
        found[f"undecided {name}"] = _rows(
            out, f"undecided/applier={name}", pc.field("source_epoch"), (since or {}).get(name)
        )
        for table in run.schema.tables:
            if table.full_name in run.setups.at_end[name]:
                found[f"final {name} {table.name}"] = _rows(out, rows_folder(name, table.full_name))
            else:
                epoch = pc.field("NDB$outcome", "source_epoch")
                path = exceptions_path(name, table.full_name)
                found[f"exceptions {name} {table.name}"] = _rows(out, path, epoch, (since or {}).get(name))
    if since is None:
        found["counters"] = {name: {**zeros, **each} for name, each in summary.counters.items()}
    return found


def _rows(out: Folder, path: str, epoch: pc.Expression | None = None, since: int | None = None) -> Counter[str]:
    if not out.exists(path):
        return Counter()
    rows = pads.dataset(f"{out.uri}/{path}", partitioning=None).to_table(
        filter=None if since is None else epoch > pa.scalar(since, pa.uint64())
    )
    return Counter(map(str, rows.to_pylist()))
