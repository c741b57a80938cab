"""
Where operations are in the binlogs.
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.kernels.arrays import Int32, Int64
from conflict.grid.columns import GridColumns
from conflict.grid.schemas import PLACE

__all__ = ["NO_ORIGIN", "ORIGIN", "origins"]

NO_ORIGIN = -1
ORIGIN = ("ordinal", *PLACE)


def origins(changes: GridColumns, row: Int32 | Int64) -> dict[str, np.ndarray]:
    """
    Return the ordinals of operations, and where they are in the binlogs. Shape (operations,).

    Args:
        changes: The changes of the cluster that logged them.
        row: Their rows there; a negative one stands for an operation that its applier logged, which has ordinal and
            file `NO_ORIGIN`.
    """
    changes.read(ORIGIN)
    own = row >= 0
    found = {name: changes.of_rows(name, np.where(own, row, 0)) for name in ORIGIN}
    for name in ("ordinal", "file"):
        found[name][~own] = NO_ORIGIN
    return found
