"""
By how much the clocks of two clusters differ, as the epochs that they applied show.

No epoch is applied before it is logged where it was made. So the smallest delay in each direction, by the clocks of
both, bounds the difference from one side. As NTP does, the middle is taken: the fastest epochs then took as long one
way as the other. What the bounds leave open is an error of every time that both clocks have a part in.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class ClockDifference:
    """
    By how many microseconds the clock of a second cluster is ahead of that of a first one; negative if it is behind.

    Attributes:
        first: The first cluster.
        second: The second one.
        least: Lower bound; None if nothing bounds it: no epoch of the second cluster is shown as applied by the first.
        most: Upper bound; None likewise.
    """

    first: str
    second: str
    least: int | None
    most: int | None

    @property
    def estimate(self) -> int:
        """What times are corrected by; 0 where a bound is missing, so that nothing is corrected."""
        return 0 if self.least is None or self.most is None else (self.least + self.most) // 2

    @property
    def bound(self) -> int | None:
        """By how much the estimate can be wrong; None if that is not known."""
        if self.least is None or self.most is None or self.moved:
            return None
        return -((self.least - self.most) // 2)

    @property
    def moved(self) -> bool:
        """Whether no difference fits: the clocks moved against each other while the logs were written."""
        return self.least is not None and self.most is not None and self.least > self.most


def clock_difference(
    first: str, second: str, there: int | None, back: int | None, imprecision: tuple[int, int] = (0, 0)
) -> ClockDifference:
    """
    Return the difference of two clocks.

    Args:
        first: The first cluster.
        second: The second one.
        there: Smallest delay of an epoch of the first cluster until the second one had applied it, by the clocks of
            both, in microseconds; None without one.
        back: The same of the second cluster's epochs.
        imprecision: By how many microseconds times of each cluster can be earlier than what happened.
    """
    early, late = imprecision
    most = None if there is None else there + late
    least = None if back is None else -(back + early)
    return ClockDifference(first, second, least, most)
