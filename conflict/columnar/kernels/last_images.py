"""
Where every column of a row comes from at the end, for rows of which no applier logged anything itself.

Such a row is made of images of its own cluster's changes and of those that were applied to it, later ones over
earlier ones. So the changes are walked from the end: most rows are whole after one image, and what is earlier is passed
over.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["last_images"]

ABSENT = -1
APPLIED, DELETE = int(Verdict.APPLIED), int(Operation.DELETE_ROW)


@njit(cache=True, nogil=True)
def _order_on(side, traced):
    """Return the changes that were done on a cluster, its own and those that it applied, in order."""
    base, end = traced.begin[side], traced.end[side]
    order = np.empty(end - base + len(traced.apply), np.int32)
    count, done, decision = 0, base, 0
    for number in range(len(traced.applier)):
        if traced.applier[number] != side:
            continue
        for place in range(done, base + traced.own_end[number]):
            order[count] = place
            count += 1
        done = max(done, base + traced.own_end[number])
        while decision < len(traced.apply) and traced.apply[decision] < number:
            decision += 1
        while decision < len(traced.apply) and traced.apply[decision] == number:
            if traced.verdict[decision] == APPLIED and traced.source[decision] >= 0:
                order[count] = traced.begin[1 - side] + traced.source[decision]
                count += 1
            decision += 1
    for place in range(done, end):
        order[count] = place
        count += 1
    return order[:count]


@njit(inline="always")
def _fill(final, side, columns, key, chosen, image):
    """Set the columns of a row that an image carries and no later image did; return how many are set now."""
    count, start = 0, columns.slots[key]
    if chosen >= 0:
        for place in range(columns.offsets[chosen], columns.offsets[chosen + 1]):
            slot = start + columns.columns[place]
            if final[side, slot] == ABSENT:
                final[side, slot] = image
                count += 1
    return count


@njit(cache=True, nogil=True)
def last_images(traced, columns, left_out):
    """
    Return which rows there are at the end, and where their columns come from.

    Args:
        traced: `Traced` of `conflict.columnar.kernels.provenance`.
        columns: `Columns` of the same.
        left_out: Rows that are not looked at: of them an applier logged something itself. Shape (keys,).

    Returns:
        Whether each row is there, shape (clusters, keys), and the image of each column, shape (clusters, slots); see
        `FinalRows`.
    """
    slots = columns.slots
    keys = len(slots) - 1
    exists = np.zeros((2, keys), np.bool_)
    final = np.full((2, slots[keys]), ABSENT, np.int64)
    for side in range(2):
        order = _order_on(side, traced)
        known, made_by, missing = left_out.copy(), np.full(keys, ABSENT, np.int32), np.diff(slots)
        for place in range(len(order) - 1, -1, -1):
            number = order[place]
            change = traced.changes[number]
            key = change["key"]
            if known[key]:
                continue
            if change["operation"] == DELETE:
                known[key] = True
                continue
            exists[side, key], made_by[key] = True, number
            missing[key] -= _fill(final, side, columns, key, change["after"], 2 * number + 1)
            known[key] = missing[key] == 0
        # If nothing but a delete came before it, an operation made the row, and its before image counts too.
        for key in range(keys):
            if made_by[key] != ABSENT:
                _fill(final, side, columns, key, traced.changes[made_by[key]]["before"], 2 * made_by[key])
    return exists, final
