"""
The image that each column of a final row comes from, for rows that no applier refreshed or reflected.

Such a row consists of images of own changes and of applied changes, later ones over earlier ones. So the changes are
read from the end: one image completes most rows, and earlier changes of these are skipped.
"""

from __future__ import annotations

import numpy as np

from conflict.history.grid.schemas import RowStep
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.events.rows_event import Operation

ABSENT = -1
BEFORE, AFTER = 0, 1  # added to twice the number of a change, the number of its image
CHANGED, EMPTIED = int(RowStep.CHANGED), int(RowStep.EMPTIED)
APPLIED, DELETE = int(Verdict.APPLIED), int(Operation.DELETE_ROW)


@kernel
def _order_on(side, traced):
    """Return the numbers of the changes that a cluster made or applied, in order. int32."""
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


@inlined
def _fill(final, side, columns, key, chosen, image):
    """Set the columns of a row that an image carries and no later image did; return how many it set."""
    count, start = 0, columns.slots[key]
    if chosen >= 0:
        for place in range(columns.offsets[chosen], columns.offsets[chosen + 1]):
            slot = start + columns.columns[place]
            if final[side, slot] == ABSENT:
                final[side, slot] = image
                count += 1
    return count


@kernel
def last_images(traced, columns, left_out):
    """
    Return which rows exist at the end, and the image of each of their columns.

    Args:
        traced: `Traced` of `conflict.engine.kernels.provenance`.
        columns: `Columns` of the same.
        left_out: Rows to leave out, because an applier logged them. Shape (keys,).

    Returns:
        Whether each row exists, bool, shape (clusters, keys); and the image of each column, int64, shape
        (clusters, slots), numbered as in `FinalRows`.
    """
    slots = columns.slots
    keys = len(slots) - 1
    exists = np.zeros((2, keys), np.bool_)
    final = np.full((2, slots[keys]), ABSENT, np.int64)
    for side in range(2):
        order = _order_on(side, traced)
        known, made_by, missing = left_out.copy(), np.full(keys, ABSENT, np.int32), slots[1:] - slots[:-1]
        for place in range(len(order) - 1, -1, -1):
            number = order[place]
            change = traced.changes[number]
            key = change["key"]
            if known[key]:
                continue
            if change["operation"] == CHANGED:
                continue
            if change["operation"] == DELETE or change["operation"] == EMPTIED:
                known[key] = True
                continue
            exists[side, key], made_by[key] = True, number
            missing[key] -= _fill(final, side, columns, key, change["after"], 2 * number + AFTER)
            known[key] = missing[key] == 0
        # The operation that made the row: the before image of an update counts too.
        for key in range(keys):
            if made_by[key] != ABSENT:
                _fill(final, side, columns, key, traced.changes[made_by[key]]["before"], 2 * made_by[key] + BEFORE)
    return exists, final
