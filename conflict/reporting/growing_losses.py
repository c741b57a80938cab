"""
What a report answers where it is asked how much latency, or what else a sweep tries, is too much.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.reporting.bytes_by_type import listed
from conflict.reporting.sweep_answer import axis_label, rounded, share_words, value_words
from conflict.sweeping.summary import Grid

__all__ = ["losses_sentence", "search_sentence", "stale_sentence"]

_PERCENT = 100.0
_MOST_VALUES = 4  # of an axis in a sentence


def losses_sentence(lost: Grid, best: tuple[object, ...], seeds: int) -> str:
    """
    Return what is lost at some values of an axis, its ends among them.

    Args:
        lost: The share of the changes of users that is lost, along an axis.
        best: The point of the other axes that loses least.
        seeds: How many seeds the shares are from.
    """
    shares = [
        f"{share_words(lost.rows[best][place])} at {value_words(lost.over, lost.values[place])}"
        for place in _some(lost, best)
    ]
    simulated = f"In simulations with {seeds:,} seed{'' if seeds == 1 else 's'}"
    median = "" if seeds == 1 else " in the median"
    return f"{simulated}, {axis_label(best)} loses{median} {listed(shares)}."


def stale_sentence(lost: Grid, stale: Grid, best: tuple[object, ...]) -> str:
    """
    Return how long rows are stale at the values of `losses_sentence`; the text is empty if that is not known.

    Args:
        lost: The share of the changes of users that is lost, along an axis.
        stale: Stale times, the 99th percentile, in milliseconds.
        best: The point of the other axes that loses least.
    """
    cells = stale.rows.get(best, ())
    times = [cells[place] for place in _some(lost, best)] if cells else []
    if not times or None in times:
        return ""
    return f"Rows are then stale for up to {listed([rounded(each) for each in times])} ms (99th percentile)."


def _some(lost: Grid, best: tuple[object, ...]) -> list[int]:
    """Return the places of values with a known share: all of them, or the ends and some between."""
    known = [place for place, share in enumerate(lost.rows[best]) if share is not None]
    if len(known) <= _MOST_VALUES:
        return known
    return [known[round(part * (len(known) - 1) / (_MOST_VALUES - 1))] for part in range(_MOST_VALUES)]


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
            f"To find where {axis_label(best)} begins to lose {_PERCENT * middle:g} %, for example, give "
            f"`ndb-conflict sweep` the options `--find 'lost_share < {middle:g}'` and `--over {lost.over}`."
        )
