"""
What appliers were found to do to a bucket's rows, against what their binlogs show.
"""

from __future__ import annotations

import attrs
import numpy as np

from conflict.bucket_result import BucketResult
from conflict.decision import Verdict
from conflict.kernels.bounds import bounds_of
from conflict.resolution import Effect
from ndb_formats.events.rows_event import Operation

__all__ = ["Differing", "compare_effects", "where_different"]

DELETE, APPLIED = int(Operation.DELETE_ROW), int(Verdict.APPLIED)
Place = tuple[int, int, int]


@attrs.define
class Differing:
    """
    What is different at one place of a binlog.

    Attributes:
        rows: How many rows.
        changed_at: Where the cluster itself changed one of them since the take before, as (epoch, group).
    """

    rows: int = 0
    changed_at: set[tuple[int, int]] = attrs.field(factory=set)


def compare_effects(result: BucketResult) -> tuple[int, list[np.ndarray]]:
    """
    Compare what the appliers did with what their binlogs show.

    Returns:
        How many rows per take were compared; and per cluster those that differ, as (own epoch, group + 1, key).
    """
    compared = 0
    differing = []
    for number in range(len(result.sites)):
        found = _effects(result, number)
        shown = result.bucket.consequences[number]
        columns = [shown.column(name).to_numpy() for name in ("epoch", "group", "key", "effect")]
        columns[1] = columns[1] + 1
        recorded = np.stack([column.astype(np.uint64) for column in columns], axis=1)
        together, times = np.unique(np.concatenate([found, np.unique(recorded, axis=0)]), axis=0, return_counts=True)
        differing.append(np.unique(together[times == 1][:, :3], axis=0))
        compared += len(np.unique(together[:, :3], axis=0))
    return compared, differing


def where_different(result: BucketResult) -> dict[Place, Differing]:
    """Return what differs, by cluster, own epoch and group of the take."""
    takes = result.takes
    bounds = bounds_of(takes, result.bucket.rows)
    places = zip(takes.applier.tolist(), takes.epoch.tolist(), takes.group.tolist(), strict=True)
    traced = {place: take for take, place in enumerate(places) if takes.traced[take]}
    found: dict[Place, Differing] = {}
    for number, rows in enumerate(compare_effects(result)[1]):
        own = result.bucket.rows[number]
        for epoch, group, key in rows.tolist():
            place = (number, epoch, group - 1)
            different = found.setdefault(place, Differing())
            different.rows += 1
            take = traced.get(place)
            if take is not None:
                between = np.arange(bounds.open_start[take], bounds.local_end[take])
                changes = between[own.key[between] == key]
                pairs = zip(own.epoch[changes].tolist(), own.group[changes].tolist(), strict=True)
                different.changed_at.update(pairs)
    return found


def _effects(result: BucketResult, number: int) -> np.ndarray:
    """Return (epoch, group + 1, key, `Effect`) of every row that an applier touched, one per take and key."""
    decisions, logged, about, takes = result.folded.decisions, result.folded.logged, result.operations, result.takes
    chosen = np.flatnonzero((about.applier == number) & (decisions.verdict == APPLIED))
    order = chosen[np.lexsort((chosen, about.key[chosen], decisions.take[chosen]))]
    pairs = np.stack([decisions.take[order], about.key[order]], axis=1)
    starts = np.flatnonzero(np.any(np.diff(pairs, axis=0, prepend=-1), axis=1))
    ends = np.append(starts[1:], len(order))[: len(starts)] - 1
    existed = decisions.existed[order[starts]]
    deleted = about.operation[order[ends]] == DELETE
    touched = {
        (int(take), int(key)): Effect.DELETED if gone else Effect.CHANGED
        for (take, key), before, gone in zip(pairs[starts].tolist(), existed, deleted, strict=True)
        if before or not gone
    }
    for entry in np.flatnonzero(logged.refresh & (logged.cluster == number)).tolist():
        gone = logged.operation[entry] == DELETE
        touched[int(logged.take[entry]), int(logged.key[entry])] = Effect.REFRESHED_ABSENT if gone else Effect.REFRESHED
    # Takes without a trace can stand at one place; what the last of them did to a row counts.
    found = {
        (int(takes.epoch[take]), int(takes.group[take]) + 1, key): int(effect)
        for (take, key), effect in sorted(touched.items())
    }
    return np.array([(*place, effect) for place, effect in found.items()], np.uint64).reshape(-1, 4)
