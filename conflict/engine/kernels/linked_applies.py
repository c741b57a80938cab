"""
What epoch applies are to each other: the one before of the same applier, and those that receive what one logs.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel


@inlined
def _first_of_epoch(records, by_epoch, low, high, epoch):
    """Return the first place from `low` to `high` of an epoch or a later one; `high` if there is none before."""
    while low < high:
        middle = (low + high) // 2
        if records[by_epoch[middle]]["foreign_epoch"] < epoch:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def link_applies(records, by_epoch, second):
    """
    Fill in `previous` and `received_start` of epoch applies in order.

    Those that receive what one logs are looked for from where they were found for the one before: own epochs rise,
    unless the schedule says otherwise.

    Args:
        records: `EPOCH_APPLY`, filled in but for these. Shape (applies,).
        by_epoch: Their numbers by foreign epoch, the first applier's before the second's. int32, shape (applies,).
        second: Index in `by_epoch` of the second applier's first.
    """
    last = np.full(2, -1, np.int64)
    starts, stops = np.array([second, 0]), np.array([len(by_epoch), second])
    places, epochs = starts.copy(), np.zeros(2, np.uint64)
    for number in range(len(records)):
        apply = records[number]
        here, epoch = np.int64(apply["applier"]), apply["epoch"]
        if epoch < epochs[here]:
            places[here] = _first_of_epoch(records, by_epoch, starts[here], places[here], epoch)
        place = places[here]
        while place < stops[here] and records[by_epoch[place]]["foreign_epoch"] < epoch:
            place += 1
        apply["previous"], apply["received_start"] = last[here], place
        last[here], places[here], epochs[here] = number, place, epoch


@kernel
def rises(records, numbers):
    """Whether the foreign epochs of some epoch applies never fall; `numbers` are theirs, in order. Shape (numbers,)."""
    for place in range(1, len(numbers)):
        if records[numbers[place]]["foreign_epoch"] < records[numbers[place - 1]]["foreign_epoch"]:
            return False
    return True
