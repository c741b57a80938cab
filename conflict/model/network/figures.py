"""
The figures of a simulation of more than two clusters, under the names of `conflict.model.report`.

Besides, `everywhere_ms` is how long changes took until all clusters had them. There are no bytes in other formats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from conflict.model.connections import followers_of
from conflict.model.kernels.world import NEVER
from conflict.model.network.run import Network
from conflict.model.network.station import Epoch, Made, Station
from conflict.model.report import MILLISECOND, SECOND, Figures, quantiles
from conflict.rules.decision import Cause, Verdict, is_delete_delete

__all__ = ["network_figures"]


def network_figures(run: Network) -> Figures:
    """Return all figures of a run."""
    sites = {}
    for station in run.stations:
        made, followers = station.made[station.loaded :], followers_of(run.model, station.side)
        sites[station.site.name] = {
            **_users(run, station, made),
            **_losses(station, made),
            "applier": _applier(run, station),
            "epochs": _epochs(run, station, followers),
            "window_ms": _window(station, made, followers),
            "everywhere_ms": quantiles(np.array(list(_until_everywhere(run, station, made))) / MILLISECOND),
            "counters": {name: value for name, value in station.replayed.result.counters.items() if value},
        }
    return {"clusters": sites, **_common(run)}


def _users(run: Network, station: Station, made: Sequence[Made]) -> Figures:
    totals, tables = station.totals, [each.table for each in made]
    return {
        "changes_by_table": {table.name: tables.count(number) for number, table in enumerate(run.model.tables)},
        "transactions": totals.committed,
        "failed": totals.failed,
        "tried_again": totals.again,
        "changes": len(made),
        "found_no_row": totals.missed,
        "reads": totals.reads,
        "stale_reads": totals.stale_reads,
        "unsettled": run.unsettled(station),
    }


def _losses(station: Station, made: Sequence[Made]) -> Figures:
    rejected = {number for number in station.rejected if number >= station.loaded}
    refused = {number for number in station.refused if number >= station.loaded}
    gone = Counter(station.made[number].transaction for number in refused)
    changes = Counter(each.transaction for each in made)
    return {
        "rejected": len(rejected),
        "overwritten": len({number for number in station.overwritten if number >= station.loaded} - rejected),
        "rejected_transactions": len(gone),
        "partly_rejected_transactions": sum(gone[each] < changes[each] for each in gone),
    }


def _applier(run: Network, station: Station) -> Figures:
    """Return what an applier did."""
    outcomes = station.replayed.outcomes[station.decided :]
    rejected = [each for each in outcomes if each.verdict is Verdict.REJECTED]
    names = [run.model.schema.tables[number].full_name for number in range(len(run.model.tables))]
    conflicts = [each.table for each in rejected]

    def count(verdict: Verdict) -> int:
        return sum(each.verdict is verdict for each in outcomes)

    return {
        "received": len(outcomes),
        "applied": count(Verdict.APPLIED),
        "ignored": count(Verdict.IGNORED),
        "discarded": count(Verdict.DISCARDED),
        "conflicts": len(rejected),
        "conflicts_by_table": {
            table.name: conflicts.count(name) for table, name in zip(run.model.tables, names, strict=True)
        },
        **{cause.name.lower(): sum(each.cause is cause for each in rejected) for cause in Cause if cause},
        "delete_delete": sum(is_delete_delete(each.operation, each.cause) for each in rejected),
        "conflicts_per_second": len(rejected) / (run.model.duration / SECOND),
        "share_in_conflict": len(rejected) / len(outcomes) if outcomes else 0.0,
        "refreshes": 0,
        "reflected": 0,
        "stopped_at_ms": None if station.stopped_at is None else (station.stopped_at - run.start) / MILLISECOND,
    }


def _user_epochs(run: Network, station: Station) -> list[Epoch]:
    """Return the logged epochs of a cluster since users began."""
    return [epoch for epoch in station.epochs if epoch.closed > run.start]


def _epochs(run: Network, station: Station, followers: Sequence[int]) -> Figures:
    """Return what a cluster logged, and how far behind the appliers next to it were with that."""
    epochs = _user_epochs(run, station)
    behind = [epoch.came[side] - epoch.closed for epoch in epochs for side in followers if side in epoch.came]
    return {
        "logged": len(epochs),
        "logged_bytes": sum(epoch.bytes for epoch in epochs),
        "applied_without_trace": sum(not traced for *_, traced in station.applies),
        "never_applied": len(epochs) * len(followers) - len(behind),
        "behind_ms": quantiles(np.array(behind) / MILLISECOND),
    }


def _window(station: Station, made: Sequence[Made], followers: Sequence[int]) -> Figures:
    """Return how long changes were not on the next clusters, and of what parts that is made; see `report._window`."""
    arrived = [(each.at, each.epoch, side) for each in made for side in followers if side in each.epoch.came]

    def mean(values: Iterator[int]) -> float:
        found = list(values)
        return sum(found) / len(found) / MILLISECOND if found else 0.0

    return {
        "epoch": mean(epoch.closed - at for at, epoch, _ in arrived),
        "link": mean(epoch.arrived - epoch.closed for _, epoch, _ in arrived),
        "queue": mean(epoch.begun[side] - epoch.arrived for _, epoch, side in arrived),
        "apply": mean(epoch.came[side] - epoch.begun[side] for _, epoch, side in arrived),
        "mean": mean(epoch.came[side] - at for at, epoch, side in arrived),
        **quantiles(np.array([epoch.came[side] - at for at, epoch, side in arrived]) / MILLISECOND),
        "back": mean(each.epoch.came[station.side] - each.at for each in made if station.side in each.epoch.came),
    }


def _until_everywhere(run: Network, station: Station, made: Sequence[Made]) -> Iterator[int]:
    """Yield how long changes took until each cluster had applied the epochs that brought them."""
    others = {each.side for each in run.stations} - {station.side}
    for each in made:
        if each.epoch.closed < NEVER and others <= each.epoch.came.keys():
            yield max(each.epoch.came[side] for side in others) - each.at


def _common(run: Network) -> Figures:
    """Return the figures of all clusters together."""
    differences, elapsed = run.differences, max(run.now - run.start, 1)
    # Rows that differ at the end have differed since; their time is not over.
    row_time = differences.row_time + sum(run.now - since for since in differences.since.values())
    differed = differences.differed + (run.now - differences.began if differences.since else 0)
    tables = [table for table, _ in differences.since]
    names = [table.full_name for table in run.model.schema.tables]
    return {
        "simulated_seconds": elapsed / SECOND,
        "quiet_at_the_end": int(run.quiet),
        "rows_that_end_different": len(tables),
        "different_by_table": {
            table.name: tables.count(name) for table, name in zip(run.model.tables, names, strict=True)
        },
        "stale_ms": quantiles(np.array(differences.stale) / MILLISECOND),
        "share_of_time_different": differed / elapsed,
        "rows_different_on_average": row_time / elapsed,
    }
