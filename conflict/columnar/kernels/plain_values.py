"""
Values that kernels begin to count with, or hand to each other.

They are no literals: numba compiles a function anew for each literal that it is called with.
"""

from __future__ import annotations

import numpy as np

__all__ = ["NO", "NONE", "YES", "ZERO"]

ZERO, NONE = np.int64(0), np.int64(-1)
YES, NO = np.bool_(True), np.bool_(False)
