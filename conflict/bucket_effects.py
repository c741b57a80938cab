"""
What appliers were found to do to a bucket's rows, against what their binlogs show.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from conflict.bucket_result import BucketResult
from conflict.decision import Verdict
from conflict.resolution import Effect
from ndb_formats.events.rows_event import Operation

__all__ = ["Differing", "compare_effects"]

DELETE, APPLIED = int(Operation.DELETE_ROW), int(Verdict.APPLIED)
# Per cluster by number, own epoch and group of a take: on how many rows the two differ.
Differing = Counter[tuple[int, int, int]]


def compare_effects(result: BucketResult) -> tuple[int, Differing]:
    """Return how many rows per take were compared, and where the binlogs show something else."""
    compared = 0
    differing: Differing = Counter()
    for number in range(len(result.sites)):
        found = _effects(result, number)
        shown = result.bucket.consequences[number]
        columns = [shown.column(name).to_numpy() for name in ("epoch", "group", "key", "effect")]
        columns[1] = columns[1] + 1
        recorded = np.stack([column.astype(np.uint64) for column in columns], axis=1)
        together, times = np.unique(np.concatenate([found, np.unique(recorded, axis=0)]), axis=0, return_counts=True)
        contradicted = np.unique(together[times == 1][:, :3], axis=0)
        differing.update((number, epoch, group - 1) for epoch, group, _ in contradicted.tolist())
        compared += len(np.unique(together[:, :3], axis=0))
    return compared, differing


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
