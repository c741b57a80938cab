"""
How functions are compiled that make no arrays of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["njit_uncounted"]


def njit_uncounted(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """
    Return a decorator that compiles a function without counting references to the arrays that it is given.

    Other threads can run Python meanwhile.

    Counting takes some ten nanoseconds per array and call: more than what functions do that run once per event. Numba
    can leave it out where no array is made inside; it keeps the option to itself, so a version that does not know it is
    asked for the usual code.
    """
    compiling: Any = njit

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return compiling(cache=True, nogil=True, _nrt=False, **options)(function)
        except (KeyError, TypeError):
            return compiling(cache=True, nogil=True, **options)(function)

    return compiled
