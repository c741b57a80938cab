"""
The figures of a run, and how far they spread over several seeds. docs/model.md explains each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.columnar.kernels.arrays import Bool, Decisions, Int64, OperationKind
from conflict.columnar.kernels.lost_changes import LostChanges
from conflict.model.binlogs import bytes_by_type
from conflict.model.figures import counters_of, final_decisions, lost_in, outcome_counts
from conflict.model.kernels.world import NEVER
from conflict.model.run import Simulated
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["Figures", "Interval", "figures_of", "intervals_of", "quantiles"]

Figures = dict[str, Any]  # by name: a number, or figures
Float64 = npt.NDArray[np.float64]
MILLISECOND, SECOND = 1e3, 1e6
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@attrs.frozen
class Interval:
    """The median of a figure over several seeds, and its extremes."""

    median: float
    low: float
    high: float


def intervals_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of several runs as intervals."""
    names = dict.fromkeys(name for run in runs for name in run)
    found: dict[str, Any] = {}
    for name in names:
        values = [run[name] for run in runs if run.get(name) is not None]
        if values and isinstance(values[0], Mapping):
            found[name] = intervals_of(values)
        elif values:
            found[name] = Interval(float(np.median(values)), float(min(values)), float(max(values)))
        else:
            found[name] = None
    return found


def figures_of(run: Simulated) -> Figures:
    """Return all figures of a run."""
    counters, counts = counters_of(run), outcome_counts(run, _users_decisions(run))
    lost, rejected, logged = lost_in(run), _rejected_transactions(run), bytes_by_type(run)
    sites = {
        site.name: {
            **_users(run, side),
            **_losses(lost[side]),
            **rejected[side],
            "applier": _applier(run, side, counts[side]),
            "epochs": _epochs(run, side),
            "row_event_bytes": {str(number): size for number, size in logged[site.name].items()},
            "window_ms": _window(run, side),
            "counters": {name: value for name, value in counters[site.name].items() if value},
        }
        for side, site in enumerate(run.model.sites)
    }
    return {"clusters": sites, **_common(run)}


def _users_decisions(run: Simulated) -> Decisions:
    """Return all decisions but those on the changes that loaded the tables, which came first."""
    decisions = final_decisions(run)
    names = (field.name for field in attrs.fields(Decisions))
    return Decisions(**{name: getattr(decisions, name)[run.loaded :] for name in names})


def _users(run: Simulated, side: int) -> Figures:
    totals, mine = run.world.totals[side], run.own_changes(side)
    tables = run.world.key_table[run.world.changes.rows["key"][mine]]
    return {
        "changes_by_table": {
            table.name: int(np.count_nonzero(tables == number)) for number, table in enumerate(run.model.tables)
        },
        "transactions": int(totals["committed"]),
        "failed": int(totals["failed"]),
        "tried_again": int(totals["again"]),
        "changes": mine.stop - mine.start,
        "found_no_row": int(totals["missed"]),
        "reads": int(totals["reads"]),
        "stale_reads": int(totals["stale_reads"]),
        "unsettled": run.unsettled(side),
    }


def _losses(lost: LostChanges) -> Figures:
    return {
        "rejected": int(np.count_nonzero(lost.rejected)),
        "overwritten": int(np.count_nonzero(lost.overwritten & ~lost.rejected)),
    }


def _rejected_transactions(run: Simulated) -> list[Figures]:
    """Return, per cluster, how many transactions had a change rejected, and how many of these only a part."""
    found, decisions = [], final_decisions(run)
    refused = (decisions.verdict == Verdict.REJECTED) & (decisions.source >= 0)
    appliers = run.world.schedule.applies["applier"][decisions.apply]
    for side in range(2):
        mine = run.own_changes(side)
        rejected = np.zeros(len(run.world.made.at), np.bool_)
        rejected[run.world.changes.begin[side] + decisions.source[refused & (appliers != side)]] = True
        rejected = rejected[mine]
        _, transaction = np.unique(run.world.made.transaction[mine], return_inverse=True)
        changes = np.bincount(transaction)
        gone = np.bincount(transaction[rejected], minlength=len(changes))
        partly = (gone > 0) & (gone < changes)
        found.append(
            {
                "rejected_transactions": int(np.count_nonzero(gone)),
                "partly_rejected_transactions": int(np.count_nonzero(partly)),
            }
        )
    return found


def _applier(run: Simulated, side: int, counts: Int64) -> Figures:
    """Return what an applier did; shape of `counts` (tables, operations, kinds, verdicts, causes)."""
    kinds, names = counts.sum(axis=(0, 1)), [table.name for table in run.model.tables]  # by kind, verdict and cause
    rejected = kinds[:, Verdict.REJECTED].sum(axis=0)
    sent = run.world.work.log.entries[: int(run.world.run[0]["sent"])]
    mine = sent["cluster"] == side
    own = int(kinds[OperationKind.CHANGE].sum())
    deletes = counts[:, Operation.DELETE_ROW, :, Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST].sum()
    site = run.world.site[side]
    return {
        "received": own,
        "applied": int(kinds[OperationKind.CHANGE, Verdict.APPLIED].sum()),
        "ignored": int(kinds[:, Verdict.IGNORED].sum()),
        "discarded": int(kinds[:, Verdict.DISCARDED].sum()),
        "conflicts": int(rejected.sum()),
        "conflicts_by_table": dict(
            zip(names, counts[:, :, :, Verdict.REJECTED].sum(axis=(1, 2, 3)).tolist(), strict=True)
        ),
        **{cause.name.lower(): int(rejected[cause]) for cause in Cause if cause},
        "delete_delete": int(deletes),
        "conflicts_per_second": float(rejected.sum() / (run.model.duration / SECOND)),
        "share_in_conflict": float(rejected.sum() / own) if own else 0.0,
        "refreshes": int(np.count_nonzero(mine & sent["refresh"])),
        "reflected": int(np.count_nonzero(mine & ~sent["refresh"])),
        "stopped_at_ms": float((site["begun"] - run.start) / MILLISECOND) if site["stopped"] else None,
    }


def _user_epochs(run: Simulated, side: int) -> np.ndarray:
    """Return the logged epochs of a cluster since users began. `EPOCH`."""
    epochs = run.world.epochs[side, : int(run.world.site[side]["logged"])]
    return epochs[epochs["closed"] > run.start]


def _epochs(run: Simulated, side: int) -> Figures:
    """Return what a cluster logged, and how far behind the other applier was with it."""
    epochs = _user_epochs(run, side)
    applied = epochs[epochs["applied"] < NEVER]
    applies = run.world.schedule.applies[: int(run.world.run[0]["applies"])]
    mine = applies[applies["applier"] == side]
    return {
        "logged": len(epochs),
        "logged_bytes": int(epochs["bytes"].sum()),
        "applied_without_trace": int(np.count_nonzero(~mine["traced"])),
        "never_applied": len(epochs) - len(applied),
        "behind_ms": quantiles((applied["applied"] - applied["closed"]) / MILLISECOND),
    }


def _window(run: Simulated, side: int) -> Figures:
    """
    Return how long changes of a cluster were not on the other one, and of what parts that is made.

    `back` is how long they were not known to have arrived: the window of the functions by epoch.
    """
    changes, epochs = run.world.made.at[run.own_changes(side)], _user_epochs(run, side)
    places = np.searchsorted(epochs["closed"], changes, "right")  # an epoch holds what was committed before it ends
    found = places < len(epochs)
    changes, mine = changes[found], epochs[places[found]]
    arrived: Bool = mine["applied"] < NEVER
    changes, mine = changes[arrived], mine[arrived]
    back: Bool = mine["back"] < NEVER

    def mean(values: Int64) -> float:
        return float(np.mean(values)) / MILLISECOND if len(values) else 0.0

    return {
        "epoch": mean(mine["closed"] - changes),
        "link": mean(mine["arrived"] - mine["closed"]),
        "queue": mean(mine["begun"] - mine["arrived"]),
        "apply": mean(mine["applied"] - mine["begun"]),
        "mean": mean(mine["applied"] - changes),
        **quantiles((mine["applied"] - changes) / MILLISECOND),
        "back": mean((mine["back"] - changes)[back]),
    }


def _common(run: Simulated) -> Figures:
    """Return the figures of both clusters together."""
    state, end = run.world.run[0], int(run.world.run[0]["now"])
    differing = run.world.rows.since >= 0
    # Rows that differ at the end have differed since; their time is not over.
    row_time = int(state["row_time"]) + int((end - run.world.rows.since[differing]).sum())
    differed = int(state["differed"]) + (end - int(state["since"]) if differing.any() else 0)
    elapsed = max(end - run.start, 1)
    tables = run.world.key_table[differing]
    return {
        "simulated_seconds": elapsed / SECOND,
        "quiet_at_the_end": int(run.quiet),
        "rows_that_end_different": int(differing.sum()),
        "different_by_table": {
            table.name: int(np.count_nonzero(tables == number)) for number, table in enumerate(run.model.tables)
        },
        "stale_ms": quantiles(run.world.stale[: int(state["stale"])] / MILLISECOND),
        "share_of_time_different": differed / elapsed,
        "rows_different_on_average": row_time / elapsed,
    }


def quantiles(values: Float64) -> Figures:
    """Return the quantiles of some values; 0 if there are none."""
    if not len(values):
        return dict.fromkeys(QUANTILES, 0.0)
    found = np.quantile(values, list(QUANTILES.values()))
    return {name: float(value) for name, value in zip(QUANTILES, found, strict=True)}
