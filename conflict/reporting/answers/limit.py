"""
What a report answers where it is asked which latency, or what else a sweep tries, is too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from conflict.reporting.parts import FunctionFigures, Topic
from conflict.telling.value import shown
from conflict.whatif.sweeping.summary import axis_value, value_words

__all__ = ["Limit", "limit_column", "limit_question", "limits_of"]

Row = Mapping[str, Any]
_PERCENT = 100.0


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


def limit_column(limits: Mapping[str, Limit], condition: str) -> Iterator[FunctionFigures]:
    """Yield between which values a condition ceases to hold, by function; nothing if functions are no axis."""
    if "" not in limits:
        share, over = _share(condition), next(iter(limits.values())).over
        heading = f"{share} are lost at {over}" if share else f"{condition} fails at {over}"
        words = {name: each.words for name, each in limits.items()}
        yield FunctionFigures(Topic.LIMIT, f"{heading}, simulated", words)


def _share(condition: str) -> str:
    """Return the share that a condition says is lost where it fails; empty if it is about something else."""
    figure, _, limit = condition.partition(" < ")
    return f"{shown(_PERCENT * float(limit))} %" if figure == "lost_share" and limit else ""
