"""
Rows that their own cluster changed while its applier may have been judging an epoch.

Where such a row came to nothing, or was refreshed, it may have been judged before the change (see
`conflict.reference.moments`, which looks at the epochs that are found here). Computes docs/concepts.md, "What binlogs
leave open".
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Bool, Int64, read_only
from conflict.columnar.kernels.records import packed_changes, packed_schedule
from conflict.columnar.kernels.search import open_starts
from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["contested_applies"]


def contested_applies(result: BucketResult) -> Int64:
    """Return the numbers of the epoch applies with such rows, of functions that judge row by row. Sorted."""
    found = [_contested(result, number) for number in range(len(result.clusters))]
    return np.unique(np.concatenate(found))


def _contested(result: BucketResult, number: int) -> Int64:
    """Return those of one applier."""
    apply, key = _not_simply_applied(result, number)
    own = result.bucket.rows[number]
    asked = np.zeros(len(result.bucket.key_table), np.bool_)
    asked[key] = True
    changes = np.flatnonzero(asked[own.key])  # in order of time
    changes = changes[np.argsort(own.key[changes], kind="stable")]
    # Key and place of a change in one number, so that those of a key between two places are a stretch.
    width = len(own) + 1
    places = own.key[changes].astype(np.int64) * width + changes
    begins, ends = _windows(result, number, apply)
    first = np.searchsorted(places, key.astype(np.int64) * width + begins)
    last = np.searchsorted(places, key.astype(np.int64) * width + ends)
    return np.unique(apply[first < last])


def _not_simply_applied(result: BucketResult, number: int) -> tuple[Int64, Int64]:
    """Return epoch apply and key of the operations that came to nothing, and of deletes, which can undo a write."""
    decisions, applies = result.folded.decisions, result.applies
    judged = np.array(
        [
            setup.function is not None and not setup.function.spec.transactional
            for setup in result.clusters[number].setups
        ],
        np.bool_,
    )
    chosen = (decisions.verdict != Verdict.APPLIED) | (decisions.operation == Operation.DELETE_ROW)
    rows = np.flatnonzero(chosen)
    rows = rows[(applies.applier == number)[decisions.apply[rows]] & applies.traced[decisions.apply[rows]]]
    rows = rows[_judged_keys(result, judged)[decisions.key[rows]]]
    return decisions.apply[rows].astype(np.int64), decisions.key[rows].astype(np.int64)


def _judged_keys(result: BucketResult, judged: Bool) -> Bool:
    """Return which keys are of some tables. Shape (keys,)."""
    return judged[result.bucket.key_table]


def _windows(result: BucketResult, number: int, apply: Int64) -> tuple[Int64, Int64]:
    """Return the first own change after an applier began with each epoch apply, and the first one after its commit."""
    schedule, changes = packed_schedule(result.applies), packed_changes(result.bucket.rows)
    distinct, place = np.unique(apply, return_inverse=True)
    begins = open_starts(read_only(distinct), schedule, changes) - changes.begin[number]
    return begins[place], result.folded.own_end[distinct][place]
