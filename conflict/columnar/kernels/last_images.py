"""
Where every column of a row comes from at the end, for rows of which no applier logged anything itself.

Such a row is made of images of its own cluster's changes and of those that were applied to it, later ones over
earlier ones. So it is looked at from the end: most rows are whole after one image, and what is earlier is passed over.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["last_images"]

ABSENT = -1
APPLIED, DELETE = int(Verdict.APPLIED), int(Operation.DELETE_ROW)


@njit(cache=True)
def _order_on(side, applier_of, local_end, first_rows, rows, apply, source, verdict):
    """Return the rows that were done on a cluster, its own and those that it applied, in order."""
    base, end = (0, first_rows) if side == 0 else (first_rows, rows)
    there = first_rows - base
    order = np.empty(end - base + len(apply), np.int32)
    count, done, decision = 0, base, 0
    for number in range(len(applier_of)):
        if applier_of[number] != side:
            continue
        for place in range(done, base + local_end[number]):
            order[count] = place
            count += 1
        done = max(done, base + local_end[number])
        while decision < len(apply) and apply[decision] < number:
            decision += 1
        while decision < len(apply) and apply[decision] == number:
            if verdict[decision] == APPLIED and source[decision] >= 0:
                order[count] = there + source[decision]
                count += 1
            decision += 1
    for place in range(done, end):
        order[count] = place
        count += 1
    return order[:count]


@njit(cache=True)
def last_images(applier_of, local_end, rows, first_rows, offsets, columns, slots, apply, source, verdict, left_out):
    """
    Return which rows there are at the end, and where their columns come from.

    Args:
        applier_of: Of each take.
        local_end: Own rows that come before each take.
        rows: Own changes of both clusters, with the column sets of their images.
        first_rows: How many are the first cluster's.
        offsets: Of the column sets.
        columns: Of the column sets.
        slots: First slot of each key, and their number.
        apply: Of each decision.
        source: See `Decisions`.
        verdict: See `Decisions`.
        left_out: Keys that are not looked at: of them an applier logged something itself.

    Returns:
        Whether each row is there, shape (clusters, keys), and the image of each column, shape (clusters, slots); see
        `FinalRows`.
    """
    keys = len(slots) - 1
    exists = np.zeros((2, keys), np.bool_)
    final = np.empty((2, slots[keys]), np.int64)
    for side in range(2):
        final[side] = ABSENT
        order = _order_on(side, applier_of, local_end, first_rows, len(rows), apply, source, verdict)
        known, made_by = left_out.copy(), np.full(keys, ABSENT, np.int32)
        for place in range(len(order) - 1, -1, -1):
            number = order[place]
            row = rows[number]
            key = row["key"]
            if known[key]:
                continue
            if row["operation"] == DELETE:
                known[key] = True
                continue
            exists[side, key], made_by[key] = True, number
            start, stop, chosen = slots[key], slots[key + 1], row["after"]
            missing = stop - start
            if chosen >= 0:
                for column in range(offsets[chosen], offsets[chosen + 1]):
                    if final[side, start + columns[column]] == ABSENT:
                        final[side, start + columns[column]] = 2 * number + 1
            for slot in range(start, stop):
                missing -= final[side, slot] != ABSENT
            known[key] = missing == 0
        # If nothing but a delete came before it, an operation made the row, and its before image counts too.
        for key in range(keys):
            number = made_by[key]
            if number == ABSENT or rows[number]["before"] < 0:
                continue
            start, chosen = slots[key], rows[number]["before"]
            for column in range(offsets[chosen], offsets[chosen + 1]):
                if final[side, start + columns[column]] == ABSENT:
                    final[side, start + columns[column]] = 2 * number
    return exists, final
