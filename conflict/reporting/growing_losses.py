"""
What a report answers where it is asked how much latency, or what else a sweep tries, is too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from conflict.reporting.sweep_answer import axis_label, rounded, share_words, value_words
from conflict.sweeping.summary import Grid, axis_value

__all__ = ["limit_sentence", "search_sentence", "steepest_sentence"]

_PERCENT = 100.0
_LIMIT = 0.01  # of the changes of users: what is called too much if nobody asked for a limit


def limit_sentence(lost: Grid, best: tuple[object, ...], seeds: int) -> str:
    """
    Return from which value on too much is lost, or what is lost at least where every value loses too much.

    Args:
        lost: The share of the changes of users that is lost, along an axis.
        best: The point of the other axes that loses least.
        seeds: How many seeds the shares are from.
    """
    simulated = f"In simulations with {seeds:,} seed{'' if seeds == 1 else 's'}"
    known = [
        (share, value, key)
        for key, cells in lost.rows.items()
        for value, share in zip(lost.values, cells, strict=True)
        if share is not None
    ]
    least, most = (extreme(known, key=lambda each: each[0]) for extreme in (min, max))
    if least[0] > _LIMIT:
        return (
            f"{simulated}, no {lost.over} that was tried keeps losses within 1 %, the default limit: "
            f"{axis_label(least[2])} loses least, {share_words(least[0])} at {value_words(lost.over, least[1])}."
        )
    if most[0] <= _LIMIT:
        return (
            f"{simulated}, no {lost.over} that was tried loses more than 1 %: {axis_label(most[2])} loses most, "
            f"{share_words(most[0])} at {value_words(lost.over, most[1])}."
        )
    return f"{simulated}, {axis_label(best)} {_where_above(lost, lost.rows[best])}."


def _where_above(lost: Grid, cells: Sequence[float | None]) -> str:
    """Return from which value on more than the limit is lost, or at which values."""
    above = [cell is not None and cell > _LIMIT for cell in cells]
    if not any(above):
        return f"loses at most 1 % at every {lost.over} that was tried"
    if all(above):
        return f"loses more than 1 % at every {lost.over} that was tried"
    first = above.index(True)
    if first and all(above[first:]):
        before, after = (axis_value(lost.values[place]) for place in (first - 1, first))
        return f"loses at most 1 % up to {lost.over} {before}, and {share_words(cells[first])} at {after}"
    places = [value_words(lost.over, value) for value, more in zip(lost.values, above, strict=True) if more]
    return f"loses more than 1 % at {', '.join(places)}"


def steepest_sentence(lost: Grid, stale: Grid, best: tuple[object, ...]) -> str:
    """
    Return between which values the losses of the best point grow most, and how long rows are stale there.

    The text is empty if they grow nowhere.

    Args:
        lost: The share of the changes of users that is lost, along an axis.
        stale: Stale times, the 99th percentile, in milliseconds.
        best: The point of the other axes that loses least.
    """
    stales = stale.rows.get(best, [None] * len(lost.values))
    told = [each for each in zip(lost.values, lost.rows[best], stales, strict=True) if each[1] is not None]
    steps = [(after[1] - before[1], before, after) for before, after in pairwise(told)]  # type: ignore[operator]
    growth, *ends = max(steps, key=lambda each: each[0], default=(0.0,))
    if growth <= 0:
        return ""
    shares = [f"{share_words(share)} at {value_words(lost.over, value)}" for value, share, _ in ends]
    times = [each for _, _, each in ends]
    growing = f"The losses of {axis_label(best)} grow most from {shares[0]} to {shares[1]}"
    if None in times:
        return f"{growing}."
    return f"{growing}, with stale times (99th percentile) of {rounded(times[0])} and {rounded(times[1])} ms."


def search_sentence(lost: Grid, best: tuple[object, ...]) -> Iterator[str]:
    """Yield how to find where a limit is passed that the best point keeps at some values and not at others."""
    shares = sorted(cell for cell in lost.rows[best] if cell is not None)
    middle = next(
        (
            limit
            for digits in (2, 3, 4)
            if shares[0] < (limit := round((shares[0] + shares[-1]) / 2, digits)) < shares[-1]
        ),
        None,
    )
    if middle is not None:
        yield (
            f"To find where {axis_label(best)} loses {_PERCENT * middle:g} %, give `ndb-conflict sweep` the options "
            f"`--find 'lost_share < {middle:g}'` and `--over {lost.over}`."
        )
