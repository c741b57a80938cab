"""
How many rows appliers log. Computes docs/compare.md, "Figures".

An epoch is applied as one transaction, so the binlog has one row change for each row of it: what its operations come to
together. A row that was not there before and is not there afterwards has none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conflict.columnar.kernels.arrays import Bool, EpochApplies, Int8, Int32, each_read_only
from conflict.columnar.kernels.fold import Folded
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernel import kernel
from ndb_formats.events.rows_event import Operation

__all__ = ["logged_rows"]

APPLIED, DELETE = int(Verdict.APPLIED), int(Operation.DELETE_ROW)


class Made(NamedTuple):
    """
    All decisions in order; see `Decisions`. Shape (operations,).

    Attributes:
        apply: Number of the epoch apply. int32.
        key: Its row. int32.
        operation: `Operation`. int8.
        verdict: `Verdict`. int8.
        existed: Whether the row existed before. bool.
    """

    apply: Int32
    key: Int32
    operation: Int8
    verdict: Int8
    existed: Bool


def logged_rows(applies: EpochApplies, keys: int, folded: Folded) -> tuple[int, int]:
    """
    Return, per cluster, how many rows its applier logs: applied, refreshed and reflected ones.

    Args:
        applies: As given to `fold`.
        keys: Number of keys.
        folded: What `fold` returned.
    """
    decisions, logged = folded.decisions, folded.logged
    made = Made(*each_read_only(*(getattr(decisions, name) for name in Made._fields)))
    sent = tuple(each_read_only(logged.apply, logged.key))
    (applier,) = each_read_only(applies.applier)
    first, second = _logged_rows(made, sent, applier, keys)
    return int(first), int(second)


@kernel
def _logged_rows(made, sent, applier, keys):
    """Return how many rows each of two appliers logs; `sent`: epoch apply and row of what is refreshed or reflected."""
    found = np.zeros(2, np.int64)
    # Per row: the last epoch apply that changed it, whether it was there before that, and whether it is there now.
    last, before, now = np.full(keys, -1, np.int32), np.zeros(keys, np.bool_), np.zeros(keys, np.bool_)
    changed = np.empty(keys, np.int32)
    place, entry = 0, 0
    while place < len(made.apply) or entry < len(sent[0]):
        apply = _next_apply(made.apply, place, sent[0], entry)
        count = 0
        while place < len(made.apply) and made.apply[place] == apply:
            key = made.key[place]
            if made.verdict[place] == APPLIED:
                if last[key] != apply:
                    last[key], before[key] = apply, made.existed[place]
                    changed[count] = key
                    count += 1
                now[key] = made.operation[place] != DELETE
            place += 1
        while entry < len(sent[0]) and sent[0][entry] == apply:
            key = sent[1][entry]
            if last[key] != apply:
                last[key] = apply
                changed[count] = key
                count += 1
            before[key] = True  # it is logged whatever became of the row
            entry += 1
        for key in changed[:count]:
            found[applier[apply]] += before[key] or now[key]
    return found[0], found[1]


@kernel
def _next_apply(decided, place, sent, entry):
    """Return the earlier one of the epoch applies of the next decision and of the next row that is sent back."""
    if place == len(decided):
        return sent[entry]
    if entry == len(sent):
        return decided[place]
    return min(decided[place], sent[entry])
