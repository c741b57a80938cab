"""
Where operations are in the binlogs.
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.kernels.arrays import Int32, Int64
from conflict.grid.columns import GridColumns
from conflict.grid.schemas import PLACE

__all__ = ["NO_ORIGIN", "origins"]

NO_ORIGIN = -1


def origins(changes: GridColumns, row: Int32 | Int64) -> dict[str, np.ndarray]:
    """
    Return where operations are in the binlogs, by the names of `PLACE`. Shape (operations,).

    Args:
        changes: The changes of the cluster that logged them.
        row: Their rows there; a negative one stands for an operation that its applier logged, which has the file
            `NO_ORIGIN`.
    """
    changes.read(PLACE)
    own = row >= 0
    found = {name: changes.of_rows(name, np.where(own, row, 0)) for name in PLACE}
    found["file"][~own] = NO_ORIGIN
    return found
