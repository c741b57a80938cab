"""
Which rows transactions want: the request distributions of YCSB, sysbench's names for them, and given weights.

A choice gives ranks. Rank 0 is the row that is wanted most; what row that is does not depend on the cluster, so hot
rows are hot on both.
"""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.kernels.arrays import Int64
from conflict.errors import ConfigurationError
from ndb_formats.errors import did_you_mean

ZIPFIAN_CONSTANT = 0.99  # as in YCSB


class KeyChoice(Protocol):
    """Chooses rows."""

    def ranks(self, chance: np.random.Generator, count: int, rows: int) -> Int64:
        """Return `count` ranks below `rows`. int64, shape (count,)."""


@attrs.frozen
class Uniform:
    """Every row alike (sysbench: uniform)."""

    def ranks(self, chance: np.random.Generator, count: int, rows: int) -> Int64:
        """See `KeyChoice`."""
        return chance.integers(0, rows, count)


@attrs.frozen
class Zipfian:
    """Rank r with a weight of 1 / (r + 1) ** constant (sysbench: zipfian)."""

    constant: float = ZIPFIAN_CONSTANT

    def ranks(self, chance: np.random.Generator, count: int, rows: int) -> Int64:
        """See `KeyChoice`."""
        return drawn_by_weight(chance, np.power(np.arange(1, rows + 1, dtype=np.float64), -self.constant), count)


@attrs.frozen
class Latest(Zipfian):
    """As Zipfian, but counted from the newest row backwards."""


@attrs.frozen
class Hotspot:
    """
    A share of the rows gets a share of the operations (sysbench: special).

    Attributes:
        data: Share of the rows that are hot (``hotspotdatafraction``).
        operations: Share of the operations that want them (``hotspotopnfraction``).
    """

    data: float = 0.2
    operations: float = 0.8

    def ranks(self, chance: np.random.Generator, count: int, rows: int) -> Int64:
        """See `KeyChoice`."""
        hot = min(max(round(self.data * rows), 1), rows)
        cold = chance.random(count) >= self.operations if hot < rows else np.zeros(count, np.bool_)
        low, high = np.where(cold, hot, 0), np.where(cold, rows, hot)
        found: Int64 = low + (chance.random(count) * (high - low)).astype(np.int64)
        return found


@attrs.frozen(eq=False)
class Weighted:
    """Row r with a given weight, also of rows that are not there at first; rows beyond the weights are not wanted."""

    weights: tuple[float, ...]

    def ranks(self, chance: np.random.Generator, count: int, rows: int) -> Int64:  # noqa: ARG002  # has its own rows
        """See `KeyChoice`."""
        return drawn_by_weight(chance, np.array(self.weights), count)


_BY_NAME = {"uniform": Uniform, "zipfian": Zipfian, "latest": Latest, "hotspot": Hotspot, "special": Hotspot}


def key_choice(name: str, **parameters: float) -> KeyChoice:
    """
    Return the choice of that name.

    Raises:
        ConfigurationError: There is no such name.
    """
    if name not in _BY_NAME:
        meant = did_you_mean(name, _BY_NAME)
        message = f"requestdistribution {name!r} is not known{meant}; give one of {', '.join(_BY_NAME)}"
        raise ConfigurationError(message)
    kind = _BY_NAME[name]
    found: KeyChoice = kind(**{word: value for word, value in parameters.items() if word in attrs.fields_dict(kind)})
    return found


def drawn_by_weight(chance: np.random.Generator, weights: npt.NDArray[np.float64], count: int) -> Int64:
    """Return `count` of the numbers from 0, by weight. int64, shape (count,)."""
    total = np.cumsum(weights)
    found: Int64 = np.searchsorted(total, chance.random(count) * total[-1], "right").clip(max=len(total) - 1)
    return found
