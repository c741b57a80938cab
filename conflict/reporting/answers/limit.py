"""
What a report answers where it is asked which latency, or what else a sweep tries, is too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from conflict.reporting.answers.simulated import point_label, rounded, share_words, value_words
from conflict.reporting.parts import FunctionFigures, Topic
from conflict.shown_text import capitalized, listed
from conflict.whatif.sweeping.summary import Grid, axis_value

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
        tried: Its least and its greatest value.
        holds: The value nearest to the limit at which it holds in every run; None if there is none.
        fails: The value nearest to the limit at which it fails in every run; None if there is none.
    """

    over: str
    tried: tuple[float, float]
    holds: float | None
    fails: float | None

    @property
    def words(self) -> str:
        """Between which values the limit lies."""
        if self.holds is not None and self.fails is not None:
            low, high = sorted((self.holds, self.fails))
            return f"{axis_value(low)} to {value_words(self.over, high)}"
        if self.holds is not None:
            return "none that was tried" if self.holds_everywhere else f"more than {self._value(self.holds)}"
        if self.fails is not None:
            return "all that were tried" if self.fails_everywhere else f"less than {self._value(self.fails)}"
        return "it depends on the run"

    @property
    def rises(self) -> bool:
        """Whether it fails above the limit, and holds below."""
        return self.holds is not None and (self.fails is None or self.fails > self.holds)

    @property
    def holds_everywhere(self) -> bool:
        """Whether it holds in every run at all values that were tried."""
        return self.fails is None and self.holds == self.tried[1]

    @property
    def fails_everywhere(self) -> bool:
        """Whether it fails in every run at all values that were tried."""
        return self.holds is None and self.fails == self.tried[0]

    def told(self, failing: str, seeds: int) -> str:
        """Return where something happens in every run, and where in none."""
        every, none = (" in every run", "in none") if seeds > 1 else ("", "not")
        if self.holds_everywhere:
            return f"{failing} at no {self.over} that was tried"
        if self.fails_everywhere:
            return f"{failing} at every {self.over} that was tried"
        if self.holds is None and self.fails is None:
            return f"{failing} in some runs, and not in others, at every {self.over} that was tried"
        if self.fails is None:
            return f"{failing} {none} up to {self._value(self.holds)}, and in some above"
        if self.holds is None:
            return f"{failing}{every} from {self._value(self.fails)} on, and in some below"
        if self.rises:
            return f"{failing}{every} from {self._value(self.fails)} on, and {none} up to {self._value(self.holds)}"
        return f"{failing}{every} up to {self._value(self.fails)}, and {none} from {self._value(self.holds)} on"

    def _value(self, value: float | None) -> str:
        return value_words(self.over, value)


def limits_of(borders: Sequence[Row], axes: Mapping[str, Sequence[Any]]) -> dict[str, Limit]:
    """
    Return the limit of each function; its name is empty where functions are no axis.

    Args:
        borders: Rows of ``borders.parquet``.
        axes: The axes of the sweep, with their values.
    """
    found: dict[str, list[Row]] = {}
    for each in borders:
        found.setdefault(str(each.get("function", "")), []).append(each)
    over = borders[0]["over"]
    tried = min(axes[over]), max(axes[over])
    return {name: Limit(over, tried, *_worst(own)) for name, own in found.items()}


def _worst(borders: Sequence[Row]) -> tuple[float | None, float | None]:
    """Return where a condition holds and fails where it fails first; of borders on both sides, the upper ones count."""
    sides = [(each["holds"], each["fails"]) for each in borders]
    falling = [(holds, fails) for holds, fails in sides if None not in (holds, fails) and fails < holds]
    rising = [each for each in sides if each not in falling]
    if not rising:
        return max(falling)
    holds, fails = [holds for holds, _ in rising], [fails for _, fails in rising if fails is not None]
    return None if None in holds else min(holds), min(fails, default=None)


def limit_question(over: str, condition: str) -> str:
    """Return the question that a search answers."""
    share, what = _share(condition), "latency" if over == "latency_ms" else over
    return f"At which {what} are {share} lost?" if share else f"At which {what} does {condition} fail?"


def limit_sentences(limits: Mapping[str, Limit], best: str, condition: str, seeds: int) -> Iterator[str]:
    """
    Yield where a condition fails under the function that loses least, and where under the others.

    Args:
        limits: What `limits_of` returned.
        best: The function; empty if functions are no axis.
        condition: Such as ``lost_share < 0.15``.
        seeds: How many runs there are at each value.
    """
    yield capitalized(f"{f'With {best}, ' if best else ''}{limits[best].told(_failing(condition), seeds)}.")
    others = [f"for {name} {each.words}" for name, each in limits.items() if name != best]
    if others:
        yield f"The limit is {', '.join(others)}."


def limit_column(limits: Mapping[str, Limit], condition: str) -> Iterator[FunctionFigures]:
    """Yield between which values a condition ceases to hold, by function; nothing if functions are no axis."""
    if "" not in limits:
        share, over = _share(condition), next(iter(limits.values())).over
        heading = f"{share} are lost at {over}" if share else f"{condition} fails at {over}"
        words = {name: each.words for name, each in limits.items()}
        yield FunctionFigures(Topic.LIMIT, f"{heading}, simulated", words)


def _failing(condition: str) -> str:
    share = _share(condition)
    return f"{share} of the changes or more are lost" if share else f"`{condition}` fails"


def _share(condition: str) -> str:
    """Return the share that a condition says is lost where it fails; empty if it is about something else."""
    figure, _, limit = condition.partition(" < ")
    return share_words(float(limit)) if figure == "lost_share" and limit else ""


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
    return f"{simulated}, {point_label(lost, best)} loses{median} {listed(shares)}."


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
            f"To find where {point_label(lost, best)} begins to lose {_PERCENT * middle:g} %, for example, give "
            f"`ndb-conflict sweep` the options `--find 'lost_share < {middle:g}'` and `--over {lost.over}`."
        )
