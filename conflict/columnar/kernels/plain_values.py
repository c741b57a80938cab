"""
Values that kernels begin to count with, or hand to each other.

They are no literals: numba compiles a function anew for each literal that it is called with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["NO", "NONE", "YES", "ZERO"]

# To the type checker they are ints and bools.
ZERO: Any = np.int64(0)
NONE: Any = np.int64(-1)
YES: Any = np.bool_(True)
NO: Any = np.bool_(False)
