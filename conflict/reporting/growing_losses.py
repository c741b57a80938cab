"""
What a report answers where it is asked how much latency, or what else a sweep tries, is too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from conflict.reporting.bytes_by_type import listed
from conflict.reporting.sweep_answer import AXES, axis_label
from conflict.sweeping.summary import Grid, axis_value

__all__ = ["growing_losses"]

_PERCENT = 100.0
_LIMIT = 0.01  # of the changes of users: what is called too much if nobody asked for a limit
_MOST_VALUES, _MOST_LINES, _MOST_CHANGES = 4, 6, 4  # in a sentence


def growing_losses(lost: Grid, *, limited: bool = False) -> Iterator[str]:
    """
    Yield what each point of the other axes loses along the main one, where their order changes, where 1 % is passed.

    Args:
        lost: The share of the changes of users that is lost, along an axis.
        limited: Whether a limit was asked for, of which the report tells elsewhere.
    """
    yield _growth(lost)
    changes = list(_changes_of_order(lost))
    if changes:
        more = f"; {len(changes) - _MOST_CHANGES:,} more such changes" if len(changes) > _MOST_CHANGES else ""
        yield f"Their order changes along {lost.over}: {'; '.join(changes[:_MOST_CHANGES])}{more}."
    if not limited:
        yield _limit(lost)


def _growth(lost: Grid) -> str:
    places = _some(len(lost.values))
    values = listed([axis_value(lost.values[place]) for place in places])
    shares = [
        f"{axis_label(key)} {', '.join(_percent(cells[place]) for place in places)} %"
        for key, cells in list(lost.rows.items())[:_MOST_LINES]
    ]
    more = f"; {len(lost.rows) - _MOST_LINES:,} more are below" if len(lost.rows) > _MOST_LINES else ""
    meaning = f" ({AXES[lost.over]})" if lost.over in AXES else ""
    return f"Lost at {lost.over} {values}{meaning}: {'; '.join(shares)}{more}."


def _some(count: int) -> list[int]:
    """Return the places of a few values: the first, the last, and some between."""
    if count <= _MOST_VALUES:
        return list(range(count))
    return [round(step * (count - 1) / (_MOST_VALUES - 1)) for step in range(_MOST_VALUES)]


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{_PERCENT * share:.2f}"


def _changes_of_order(lost: Grid) -> Iterator[str]:
    """Yield each pair of points of which one loses less up to a value, and the other one from the next value on."""
    for (one, own), (other, theirs) in combinations(lost.rows.items(), 2):
        known = [
            (value, mine < their)
            for value, mine, their in zip(lost.values, own, theirs, strict=True)
            if mine is not None and their is not None and mine != their
        ]
        for (before, less), (after, still) in pairwise(known):
            if less != still:
                first, second = (one, other) if less else (other, one)
                yield (
                    f"{axis_label(first)} loses less than {axis_label(second)} at {axis_value(before)}, and more at "
                    f"{axis_value(after)}"
                )


def _limit(lost: Grid) -> str:
    """Return at which values more than a small share is lost, and how to ask for another share."""
    limit = f"{_PERCENT * _LIMIT:g} %"
    own = f"that limit is the default; for 5 %, sweep with --find 'lost_share < 0.05' --over {lost.over}"
    above = {key: [cell is not None and cell > _LIMIT for cell in cells] for key, cells in lost.rows.items()}
    if not any(map(any, above.values())):
        return f"No value of {lost.over} that was tried loses more than {limit}; {own}."
    if all(map(all, above.values())):
        return f"Every value of {lost.over} that was tried loses more than {limit}; {own}."
    found = "; ".join(f"{axis_label(key)} {_where_above(cells, lost.values)}" for key, cells in above.items())
    return f"More than {limit} of the changes are lost, along {lost.over}: {found}; {own}."


def _where_above(above: Sequence[bool], values: Sequence[object]) -> str:
    """Return at which values, in order, something is above a limit."""
    if not any(above):
        return "nowhere"
    if all(above):
        return "at every value"
    first = above.index(True)
    value = axis_value(values[first])
    return f"from {value} on" if all(above[first:]) else f"first at {value}"
