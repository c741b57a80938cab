"""
When rows were settled: the last places in the order of epoch applies at which nothing of a row was on its way.
"""

from __future__ import annotations

from ndb_formats.columnar.kernel import kernel


@kernel
def settle(key, made, received, at):
    """
    Move the place of each row back to where nothing of it was on its way.

    An operation is on its way to the other cluster in the places after the one in which it was made, up to the one in
    which it was received. One place n is before epoch apply n.

    Args:
        key: The row of each operation, those made last first. int32, shape (operations,).
        made: The epoch apply that it was made before, or in. int64.
        received: The epoch apply that decided it. int64.
        at: The latest place of each row; moved back. int64, shape (keys,).
    """
    for place in range(len(key)):
        row = key[place]
        if made[place] < at[row] and at[row] <= received[place]:
            at[row] = made[place]
