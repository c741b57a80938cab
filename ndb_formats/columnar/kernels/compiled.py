"""
The old name of ``njit(cache=True, nogil=True)``, for the kernels of `conflict` until they are rewritten.
"""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["njit_uncounted"]


def njit_uncounted(**options: Any) -> Any:
    """Return ``njit(cache=True, nogil=True, **options)``."""
    return njit(cache=True, nogil=True, **options)
