"""
Random numbers of a simulation: one stream per cluster and purpose, each a function of the seed alone.

The streams are numpy's Philox, a counter-based generator, so that no stream depends on how much of another was used.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

__all__ = ["Purpose", "stream"]


class Purpose(IntEnum):
    """What a stream is for."""

    TIMES = 0
    SHAPES = 1
    TABLES = 2
    KEYS = 3
    COLUMNS = 4
    LATENCY = 5
    PHASE = 6


def stream(seed: int, side: int, purpose: Purpose) -> np.random.Generator:
    """Return the stream of a cluster, by its number from 0, for a purpose."""
    return np.random.Generator(np.random.Philox(key=[seed, side << 8 | purpose]))
