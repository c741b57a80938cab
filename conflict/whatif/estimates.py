"""
How sure a figure of several runs is: its median and mean with bootstrap intervals, and its extremes.

Runs with the same seed have the same users and the same journeys of epochs whatever the functions are (see
`conflict.whatif.simulating.workload.stream`), so functions are compared by differences paired by seed: what the seeds
have in common cancels out.

The intervals are percentiles of resampled medians and means. For few runs such an interval is too narrow; it is widened
as in Hesterberg, "What Teachers Should Know About the Bootstrap" (2015), section 5.3: its percentiles are those at
which a normal interval is as long as Student's. Fewer than `LEAST_RUNS` runs have no interval: the median lies outside
of all five of them once in 16 times, which is more than 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import NormalDist

import attrs
import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
LEAST_RUNS = 6
RESAMPLES = 2000
RESAMPLING_SEED = 1
SEEDS = 10  # runs of a point where points are compared
METHOD = f"bootstrap, {RESAMPLES:,} resamples with seed {RESAMPLING_SEED}"  # how intervals come about, for people
_NORMAL = NormalDist()

Interval = tuple[float, float]


@attrs.frozen
class Estimate:
    """
    A figure over several runs.

    Attributes:
        median: Its median.
        mean: Its mean.
        low: Its least value, an extreme of these runs.
        high: Its greatest value.
        runs: How many runs have it.
        median_interval: Where the median of all possible runs lies, with a confidence of 95 %; None of too few runs.
        mean_interval: Where their mean lies.
    """

    median: float
    mean: float
    low: float
    high: float
    runs: int
    median_interval: Interval | None = None
    mean_interval: Interval | None = None

    @property
    def differs_from_0(self) -> bool:
        """Whether the interval of the mean leaves out 0; of a difference, whether it is one."""
        return self.mean_interval is not None and not self.mean_interval[0] <= 0 <= self.mean_interval[1]

    def __str__(self) -> str:
        if self.runs == 1:
            return f"{self.median:,.6g}"
        sure = "" if self.median_interval is None else "; 95 %: {:,.6g} to {:,.6g}".format(*self.median_interval)
        return f"{self.median:,.6g}{sure}; extremes {self.low:,.6g} to {self.high:,.6g}"


def estimate(values: Sequence[float]) -> Estimate:
    """Return a figure over several runs, from its value in each."""
    found = np.asarray(values, np.float64)
    low, high = float(found.min()), float(found.max())
    median, mean = float(np.median(found)), float(found.mean())
    if len(found) < LEAST_RUNS:
        return Estimate(median, mean, low, high, len(found))
    if low == high:
        return Estimate(median, mean, low, high, len(found), (low, high), (low, high))
    resampled = found[_resamples(len(found))]
    return Estimate(
        median,
        mean,
        low,
        high,
        len(found),
        _interval(np.median(resampled, axis=1), len(found)),
        _interval(resampled.mean(axis=1), len(found)),
    )


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Estimate | None:
    """
    Return by how much a figure of one model is greater than that of another one, seed by seed.

    Args:
        first: The figure by seed.
        second: That of the other model.

    Returns:
        The differences, first less second, over the seeds that both have; None if they have none in common.
    """
    common = [seed for seed in first if seed in second]
    return estimate([first[seed] - second[seed] for seed in common]) if common else None


@cache
def _resamples(runs: int) -> npt.NDArray[np.int64]:
    """Return which runs are in each resample. Shape (resamples, runs)."""
    return np.random.default_rng(RESAMPLING_SEED).integers(0, runs, (RESAMPLES, runs))


def _interval(resampled: npt.NDArray[np.float64], runs: int) -> Interval:
    tail = _tail(runs)
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)


@cache
def _tail(runs: int) -> float:
    """Return which share of the resamples lies below an interval, and above it."""
    return _NORMAL.cdf(-math.sqrt(runs / (runs - 1)) * students_quantile(runs - 1))


def students_quantile(freedom: int) -> float:
    """
    Return what Student's t exceeds in 2.5 % of all cases.

    By the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5), within 0.02 % from 5 degrees of freedom on.
    """
    z = _NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))
