"""Intervals that hold: small cases worked out by hand, laws, and how often they hold what they are of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.whatif.estimates import LEAST_RUNS, estimate, paired, students_quantile

VALUES = st.lists(st.integers(-1000, 1000).map(float), min_size=LEAST_RUNS, max_size=12)


def test_a_bootstrap_by_hand() -> None:
    """
    Of five runs with 0 and one with 6, a resample has K times the 6, and K has a binomial distribution of 6 and 1/6.

    With Student's 2.571 and six runs, the tails are 1 - Phi(2.571 * sqrt(6/5)) = 0.0024 on both sides. K is 0 with 33 %
    and at most 3, 4 and 5 with 99.13 %, 99.93 % and all but 2e-5: the mean, which is K, is between 0 and 4. The median
    is 6 where K is 4 or more, which has 0.87 %: it is between 0 and 6.
    """
    tail = 0.5 * math.erfc(2.5706 * math.sqrt(6 / 5) / math.sqrt(2))
    at_most = np.cumsum([math.comb(6, k) * 5 ** (6 - k) / 6**6 for k in range(7)])
    assert at_most[0] > tail
    assert at_most[3] < 1 - tail < at_most[4]
    found = estimate([0, 0, 6, 0, 0, 0])
    assert (found.median, found.mean, found.low, found.high, found.runs) == (0, 1, 0, 6, 6)
    assert (found.mean_interval, found.median_interval) == ((0, 4), (0, 6))


def test_differences_by_hand() -> None:
    """Seed by seed they are 1, though the values overlap; a seed that one of both lacks does not count."""
    first = {seed: 10.0 * seed for seed in range(1, 8)}
    second = {seed: 10.0 * seed - 1 for seed in range(2, 9)}
    found = paired(first, second)
    assert found is not None
    assert (found.median, found.mean, found.runs) == (1, 1, 6)
    assert (found.mean_interval, found.differs_from_0) == ((1, 1), True)
    assert paired({1: 1.0}, {2: 1.0}) is None


def test_few_runs_have_no_interval() -> None:
    """The median is outside of all five of them once in 16 times: nothing that they say is sure to 95 %."""
    assert 2 * 0.5**5 > 0.05 > 2 * 0.5**LEAST_RUNS
    found = estimate([1, 2, 3, 4, 5])
    assert (found.median_interval, found.mean_interval, found.differs_from_0) == (None, None, False)
    assert str(found) == "3; extremes 1 to 5"
    assert str(estimate([7])) == "7"
    assert str(estimate([7] * 6)) == "7; 95 %: 7 to 7; extremes 7 to 7"


@given(VALUES, st.integers(-50, 50), st.sampled_from([0.5, 1.0, 4.0]))
def test_laws_of_intervals(values: list[float], shift: int, scale: float) -> None:
    """They lie between the extremes, and move and grow with the values; the same values have the same ones."""
    found, moved = estimate(values), estimate([scale * each + shift for each in values])
    for one, other in (
        (found.median_interval, moved.median_interval),
        (found.mean_interval, moved.mean_interval),
    ):
        assert one is not None
        assert found.low <= one[0] <= one[1] <= found.high
        assert other == pytest.approx([scale * each + shift for each in one], abs=1e-6)
    assert estimate(values) == found


@pytest.mark.parametrize(("freedom", "exact"), [(5, 2.570582), (6, 2.446912), (9, 2.262157), (29, 2.045230)])
def test_students_quantile(freedom: int, exact: float) -> None:
    """As in any table."""
    assert students_quantile(freedom) == pytest.approx(exact, rel=2e-4)


@pytest.mark.parametrize(("runs", "within"), [(6, 0.04), (10, 0.025), (20, 0.025)])
def test_intervals_hold_what_they_are_of(runs: int, within: float) -> None:
    """Of Poisson counts, whose mean is known, and of their differences, whose mean is 0: in 19 of 20 cases."""
    chance, repetitions = np.random.default_rng(2), 600
    counts = chance.poisson(20, (2, repetitions, runs)).astype(float)
    held = [estimate(each).mean_interval for each in counts[0]]
    differences = [estimate(first - second) for first, second in zip(*counts, strict=True)]
    covered = np.mean([low <= 20 <= high for low, high in filter(None, held)])
    assert covered == pytest.approx(0.95, abs=within)
    assert np.mean([each.differs_from_0 for each in differences]) == pytest.approx(0.05, abs=within)
