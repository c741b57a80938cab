"""
What a report answers where it is asked which latency, or what else a sweep tries, is too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from conflict.reporting.bytes_by_type import listed
from conflict.reporting.parts import Column, Topic
from conflict.reporting.sweep_answer import axis_label, rounded, share_words, value_words
from conflict.sweeping.summary import Grid

__all__ = [
    "Limit",
    "limit_column",
    "limit_question",
    "limit_sentences",
    "limits_of",
    "losses_sentence",
    "search_sentence",
    "stale_sentence",
    "waits_sentence",
]

Row = Mapping[str, Any]
_PERCENT = 100.0
_MOST_VALUES = 4  # of an axis in a sentence
_BEHIND = "_epochs_behind_ms_p50"
_KEEPING_UP = 1.01  # times the latency


@attrs.frozen
class Limit:
    """
    Where a condition ceases to hold for a function, at the worst of all points of the other axes.

    Attributes:
        over: The axis.
        holds: The value nearest to the limit at which it holds; None if it holds nowhere.
        fails: The value nearest to the limit at which it does not; None if it holds everywhere.
    """

    over: str
    holds: float | None
    fails: float | None

    @property
    def words(self) -> str:
        """From which value on it is too much."""
        if self.holds is None:
            return "any that was tried"
        return "none that was tried" if self.fails is None else value_words(self.over, self.fails)

    @property
    def rises(self) -> bool:
        """Whether it fails above the limit, and holds below."""
        return self.holds is not None and self.fails is not None and self.fails > self.holds


def limits_of(borders: Sequence[Row]) -> dict[str, Limit]:
    """Return the limit of each function; its name is empty where functions are no axis."""
    found: dict[str, list[Row]] = {}
    for each in borders:
        found.setdefault(str(each.get("function", "")), []).append(each)
    return {name: _worst(own) for name, own in found.items()}


def _worst(borders: Sequence[Row]) -> Limit:
    """Return where a condition fails first; where it fails below one value and above another, the one above counts."""
    over = borders[0]["over"]
    failing = [each for each in borders if each["fails"] is not None]
    nowhere = [each["fails"] for each in failing if each["holds"] is None]
    if nowhere:
        return Limit(over, None, min(nowhere))
    if not failing:
        return Limit(over, min(each["holds"] for each in borders), None)
    above = [each for each in failing if each["fails"] > each["holds"]]
    worst = min(above, key=lambda each: each["fails"]) if above else max(failing, key=lambda each: each["fails"])
    return Limit(over, worst["holds"], worst["fails"])


def limit_question(over: str, condition: str) -> str:
    """Return the question that a search answers."""
    figure, _, limit = condition.partition(" < ")
    what = "latency" if over == "latency_ms" else over
    if figure == "lost_share" and limit:
        return f"At which {what} are {share_words(float(limit))} lost?"
    return f"Which {what} is too much for {condition}?"


def limit_sentences(limits: Mapping[str, Limit], best: str, condition: str, seeds: int) -> Iterator[str]:
    """
    Yield where a condition fails under the function that loses least, and where under the others.

    Args:
        limits: What `limits_of` returned.
        best: The function; empty if functions are no axis.
        condition: Such as ``lost_share < 0.15``.
        seeds: How many seeds it must hold with.
    """
    limit = limits[best]
    fails, holds, still = _condition_words(condition)
    under = f" with {best}" if best else ""
    if limit.fails is None:
        yield _begun(f"{holds}{under} at every {limit.over} that was tried.")
    elif limit.holds is None:
        least = value_words(limit.over, limit.fails)
        yield _begun(f"{fails}{under} at every {limit.over} that was tried, from {least} on.")
    else:
        value = value_words(limit.over, limit.holds)
        some, every = ("", "") if seeds == 1 else (f" in some of {seeds} runs", " in every run")
        there = f"up to {value}" if limit.rises else f"from {value} on"
        yield f"At {limit.words}, {fails}{under}{some}; {there}, {still}{every}."
    first, *others = [f"for {name} {each.words}" for name, each in limits.items() if name != best] or [""]
    if first:
        yield f"{', '.join([f'{_begun(first)} is too much', *others])}."


def limit_column(limits: Mapping[str, Limit]) -> Iterator[Column]:
    """Yield from which value on it is too much, by function; nothing if functions are no axis."""
    if "" not in limits:
        over = next(iter(limits.values())).over
        yield Column(
            Topic.LIMIT, f"{over} that is too much, simulated", {name: each.words for name, each in limits.items()}
        )


def _condition_words(condition: str) -> tuple[str, str, str]:
    """Return what it means that a condition fails, and that it holds, also in short where the former stands before."""
    figure, _, limit = condition.partition(" < ")
    if figure == "lost_share" and limit:
        share = share_words(float(limit))
        return (
            f"{share} of the changes or more are lost",
            f"less than {share} of the changes are lost",
            "less than that",
        )
    return f"`{condition}` does not hold", f"`{condition}` holds", "it does"


def _begun(text: str) -> str:
    return text[0].upper() + text[1:]


def waits_sentence(results: pa.Table) -> str:
    """Return how long after its end the median epoch is applied, beside the latency; empty if that is not known."""
    names = [name for name in results.column_names if name.endswith(_BEHIND)]
    rows = [
        (row["latency_ms"], max(row[name] for name in names))
        for row in results.select(["latency_ms", *names]).to_pylist()
        if names and all(row[name] is not None for name in names)
    ]
    if not rows:
        return ""
    latency, behind = max(rows, key=lambda row: row[1] - _KEEPING_UP * row[0])
    if behind <= _KEEPING_UP * latency + 1:
        return "In these simulations appliers keep up: an epoch is applied when it arrives."
    at = value_words("latency_ms", latency)
    return f"Appliers also wait: at {at} the median epoch is applied {rounded(behind)} ms after its end."


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
