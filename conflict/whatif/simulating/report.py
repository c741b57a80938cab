"""
The figures of a run, and how far they spread over several seeds. docs/model.md explains each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.kernels.arrays import Bool, Decisions, Int64, OperationKind
from conflict.rules.decision import Cause, Verdict
from conflict.whatif.estimates import estimate
from conflict.whatif.simulating.binlogs import bytes_by_type
from conflict.whatif.simulating.configuration import Model, followers_of
from conflict.whatif.simulating.figures import counters_of, final_decisions, lost_in, outcome_counts
from conflict.whatif.simulating.kernels.losses import Lost
from conflict.whatif.simulating.kernels.world import NEVER
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.spreading import Spread, spread_of
from ndb_formats.events.rows_event import Operation

Figures = dict[str, Any]  # by name: a number, or figures
Float64 = npt.NDArray[np.float64]
MILLISECOND, SECOND = 1e3, 1e6
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def intervals_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of several runs as estimates; None where no run has one. A count that a run lacks is 0."""
    names = dict.fromkeys(name for run in runs for name in run)
    found: dict[str, Any] = {}
    for name in names:
        values = [value for run in runs if (value := run.get(name, 0)) is not None]
        if values and isinstance(values[0], Mapping):
            found[name] = intervals_of(values)
        else:
            found[name] = estimate(values) if values else None
    return found


def run_seeds(
    model: Model,
    seeds: int,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    keep: Callable[[Simulated], None] = lambda run: None,
) -> list[Figures]:
    """
    Simulate with several seeds, from the model's on; return the figures of each.

    Args:
        model: What to simulate.
        seeds: How many.
        progress: Called with the name of the stage, what is done, and what there is to do.
        keep: Called with the first run.
    """
    found = []
    for number in range(seeds):

        def show(done: int, total: int, before: int = number) -> None:
            progress("simulating", before * total + done, seeds * total)

        run = simulate(model, model.seed + number, show)
        if not number:
            keep(run)
        found.append(figures_of(run))
    return found


def figures_of(run: Simulated) -> Figures:
    """Return all figures of a run."""
    counters, counts = counters_of(run), outcome_counts(run, _users_decisions(run))
    lost, logged = lost_in(run), bytes_by_type(run) if run.model.is_pair else {}
    sites, spread = {}, spread_of(run.world)
    for side, site in enumerate(run.model.sites):
        sites[site.name] = {
            **_users(run, side),
            **_losses(run, side, lost[side]),
            "applier": _applier(run, side, counts[side]),
            "epochs": _epochs(run, side),
            **_row_event_bytes(logged.get(site.name)),
            "window_ms": _window(run, side, spread),
            **({} if run.model.is_pair else {"everywhere_ms": _until_everywhere(run, side, spread)}),
            "counters": {name: value for name, value in counters[site.name].items() if value},
        }
    return {"clusters": sites, **_common(run)}


def _row_event_bytes(logged: Mapping[int, int] | None) -> Figures:
    return {} if logged is None else {"row_event_bytes": {str(number): size for number, size in logged.items()}}


def _users_decisions(run: Simulated) -> Decisions:
    """Return all decisions but those on the changes that loaded the tables, which came first to each other cluster."""
    decisions, loading = final_decisions(run), run.loaded * (len(run.model.sites) - 1)
    names = (field.name for field in attrs.fields(Decisions))
    return Decisions(**{name: getattr(decisions, name)[loading:] for name in names})


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
        "changes": len(mine),
        "found_no_row": int(totals["missed"]),
        "reads": int(totals["reads"]),
        "stale_reads": int(totals["stale_reads"]),
        "unsettled": run.unsettled(side),
    }


def _losses(run: Simulated, side: int, lost: Lost) -> Figures:
    """Return which changes were lost; a transaction is rejected in part if appliers rejected some of its changes."""
    _, transaction = np.unique(run.world.made.transaction[run.own_changes(side)], return_inverse=True)
    changes = np.bincount(transaction)
    gone = np.bincount(transaction[lost.refused], minlength=len(changes))
    return {
        "rejected": int(np.count_nonzero(lost.rejected)),
        "overwritten": int(np.count_nonzero(lost.overwritten & ~lost.rejected)),
        "rejected_transactions": int(np.count_nonzero(gone)),
        "partly_rejected_transactions": int(np.count_nonzero((gone > 0) & (gone < changes))),
    }


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
        "applied": int(kinds[OperationKind.CHANGE, [each for each in Verdict if each.writes_row]].sum()),
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
    """Return what a cluster logged, and how far behind the appliers next to it were with it."""
    world, epochs = run.world, _user_epochs(run, side)
    applies = world.schedule.applies[: int(world.run[0]["applies"])]
    mine = applies[applies["applier"] == side]
    earlier, behind = int(world.site[side]["logged"]) - len(epochs), [np.zeros(0, np.int64)]
    for each in followers_of(run.model, side):
        applied = world.taken["applied"][each, earlier : int(world.site[each]["next_foreign"])]
        behind.append(applied - epochs["closed"][: len(applied)])
    late = np.concatenate(behind)
    return {
        "logged": len(epochs),
        "logged_bytes": int(epochs["bytes"].sum()),
        "applied_without_trace": int(np.count_nonzero(~mine["traced"])),
        "never_applied": len(epochs) * (len(behind) - 1) - len(late),
        "behind_ms": _quantiles(late / MILLISECOND),
    }


def _window(run: Simulated, side: int, spread: Spread) -> Figures:
    """
    Return how long changes of a cluster were not on the next ones, and of what parts that is made.

    `back` is how long they were not known to have arrived: the window of the functions by epoch.
    """
    world, mine = run.world, run.own_changes(side)
    places = spread.epochs_of(side, mine) - spread.first[side]
    moments = list[Int64]()  # of each change and applier: of its commit, its epoch's end, arrival, turn and commit
    for each in followers_of(run.model, side):
        arrived: Bool = places < int(world.site[each]["next_foreign"])
        epochs = world.epochs[side, places[arrived]]
        taken = world.taken[each, places[arrived]]
        at = world.made.at[mine[arrived]]
        moments.append(np.stack([at, epochs["closed"], epochs["arrived"], taken["begun"], taken["applied"]]))
    found = np.concatenate([np.zeros((5, 0), np.int64), *moments], axis=1)
    back = spread.known_back(side)[places]
    parts = np.diff(found, axis=0)
    return {
        **{name: _mean(part) for name, part in zip(("epoch", "link", "queue", "apply"), parts, strict=True)},
        "mean": _mean(found[-1] - found[0]),
        **_quantiles((found[-1] - found[0]) / MILLISECOND),
        "back": _mean((back - world.made.at[mine])[back < NEVER]),
    }


def _mean(values: Int64) -> float:
    return float(np.mean(values)) / MILLISECOND if len(values) else 0.0


def _until_everywhere(run: Simulated, side: int, spread: Spread) -> Figures:
    """Return how long changes took until each cluster had applied the epochs that brought them."""
    mine = run.own_changes(side)
    last = spread.everywhere(side)[spread.epochs_of(side, mine) - spread.first[side]]
    return _quantiles((last - run.world.made.at[mine])[last < NEVER] / MILLISECOND)


def _common(run: Simulated) -> Figures:
    """Return the figures of all clusters together."""
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
        "stale_ms": _quantiles(run.world.stale[: int(state["stale"])] / MILLISECOND),
        "share_of_time_different": differed / elapsed,
        "rows_different_on_average": row_time / elapsed,
    }


def _quantiles(values: Float64) -> Figures:
    """Return the quantiles of some values; 0 if there are none."""
    if not len(values):
        return dict.fromkeys(QUANTILES, 0.0)
    found = np.quantile(values, list(QUANTILES.values()))
    return {name: float(value) for name, value in zip(QUANTILES, found, strict=True)}
