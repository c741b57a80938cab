"""
What appliers were found to do to a bucket's rows, against what their binlogs show.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from conflict.bucket_result import BucketResult
from conflict.decision import Verdict
from conflict.evidence import MAX_CONTRADICTIONS
from conflict.resolution import Effect
from ndb_formats.events.rows_event import Operation

__all__ = ["Difference", "Differing", "compare_effects"]

DELETE, APPLIED = int(Operation.DELETE_ROW), int(Verdict.APPLIED)
# Cluster by number, own epoch and group of a take.
Place = tuple[int, int, int]


@attrs.frozen
class Difference:
    """
    A take of which the binlog shows something else.

    Attributes:
        rows: On how many rows of the bucket the two differ.
        changed_at: Where the cluster itself changed one of them while its applier may have been at work on the take,
            as (epoch, group).
    """

    rows: int = 0
    changed_at: frozenset[tuple[int, int]] = frozenset()

    def __add__(self, other: Difference) -> Difference:
        return Difference(self.rows + other.rows, self.changed_at | other.changed_at)


Differing = Mapping[Place, Difference]


def compare_effects(result: BucketResult) -> tuple[int, Differing]:
    """Return how many rows per take were compared, and where the binlogs show something else."""
    compared = 0
    differing: dict[Place, Difference] = {}
    for number in range(len(result.sites)):
        found = _effects(result, number)
        shown = result.bucket.consequences[number]
        columns = [shown.column(name).to_numpy() for name in ("epoch", "group", "key", "effect")]
        columns[1] = columns[1] + 1
        recorded = np.stack([column.astype(np.uint64) for column in columns], axis=1)
        together, times = np.unique(np.concatenate([found, np.unique(recorded, axis=0)]), axis=0, return_counts=True)
        contradicted = np.unique(together[times == 1][:, :3], axis=0)
        for epoch, group, key in contradicted.tolist():
            place = (number, epoch, group - 1)
            changed_at = _changed_at(result, place, key) if len(differing) <= MAX_CONTRADICTIONS else frozenset()
            differing[place] = differing.get(place, Difference()) + Difference(1, changed_at)
        compared += len(np.unique(together[:, :3], axis=0))
    return compared, differing


def _changed_at(result: BucketResult, place: Place, key: int) -> frozenset[tuple[int, int]]:
    """Return where a cluster changed a row while its applier may have been at work on the take at a place."""
    number, epoch, group = place
    takes, rows = result.takes, result.bucket.rows[number]
    here = (takes.applier == number) & (takes.epoch == epoch) & (takes.group == group) & takes.traced
    changed: set[tuple[int, int]] = set()
    for take in np.flatnonzero(here).tolist():
        stretch = slice(int(result.bounds.open_start[take]), int(result.bounds.local_end[take]))
        mine = np.flatnonzero(rows.key[stretch] == key) + stretch.start
        changed.update(zip(rows.epoch[mine].tolist(), rows.group[mine].tolist(), strict=True))
    return frozenset(changed)


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
