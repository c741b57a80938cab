"""
The border between the points of a grid at which a condition holds and those at which it does not, by bisection.
"""

from __future__ import annotations

import difflib
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from conflict.errors import ConfigurationError
from conflict.whatif.sweeping.sweep_file import Design, Point

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"\s*(\S.*?)\s*(==|!=|<=|>=|<|>)\s*([-+.\deE]+)\s*")
# With how many seeds a condition holds at each of some points.
Judge = Callable[[Sequence[Point]], Sequence[int]]
Span = tuple[float, float, bool]  # two neighbours between which a border lies, and whether it holds at the lower one


@attrs.frozen
class Condition:
    """A figure, an operator and a number."""

    figure: str
    comparison: str
    number: float

    def check(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """
        Make sure that runs have the figure, and that it is no text.

        Raises:
            ConfigurationError: There is no such figure, or it is text.
        """
        for row in rows:
            if self.figure not in row:
                near = difflib.get_close_matches(self.figure, row, n=5)
                some = near or [name for name in row if name.count("_") < 2]  # the short names
                message = f"--find: there is no figure {self.figure}; there are, for example, {', '.join(some)}"
                raise ConfigurationError(message)
            if isinstance(row[self.figure], str):
                message = f"--find: {self.figure} is text, and no figure; give one that is a number"
                raise ConfigurationError(message)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """
        Whether the condition holds for a run; not if its figure is not known.

        Where changes were not settled at the end, what is lost lies between bounds; it holds if it does at both.
        """
        value = row.get(self.figure)
        if value is None or isinstance(value, str):
            return False
        bounds = value, row.get(f"{self.figure}_at_most", value)
        return all(_OPERATORS[self.comparison](bound, self.number) for bound in bounds)

    def __str__(self) -> str:
        return f"{self.figure} {self.comparison} {self.number:.15g}"


@attrs.frozen
class Border:
    """
    Where a condition begins or ceases to hold along an axis; between its two values that depends on the seed.

    Attributes:
        point: The values of the other axes.
        holds: The value nearest to the border at which it holds with every seed: the last one of the axis if it does at
            all, None if it does at none.
        fails: The value nearest to the border at which it fails with every seed: the first one of the axis if it does
            at all, None if it does at none.
        only: Whether the points of the grid cross the border once; else it is the first of several.
    """

    point: Point
    holds: float | None
    fails: float | None
    only: bool


def parse_condition(text: str) -> Condition:
    """
    Return the condition of a text such as ``lost_updates == 0``.

    Raises:
        ConfigurationError: It is none.
    """
    found = _CONDITION.fullmatch(text)
    try:
        if found is not None:
            return Condition(found[1], found[2], float(found[3]))
    except ValueError:
        pass
    message = f"--find {text}: give a figure, one of {' '.join(_OPERATORS)} and a number, as in 'lost_updates == 0'"
    raise ConfigurationError(message)


def check_axis(sweep: Design, over: str, within: float | None = None) -> None:
    """
    Make sure that a border can be looked for along an axis.

    Raises:
        ConfigurationError: It is no axis of the grid, does not have two amounts, or has none as near as `within`.
    """
    values = sweep.axes.get(over, ())
    if len(values) < 2 or any(isinstance(each, bool) or not isinstance(each, int | float) for each in values):
        message = f"--over {over}: name an axis of [grid] with two numbers or more; axes are {', '.join(sweep.axes)}"
        raise ConfigurationError(message)
    if over == "binlog_type":
        message = "--over binlog_type: its numbers are names, with nothing between them; name another axis"
        raise ConfigurationError(message)
    if within is not None and within < 1 and _are_whole(values):
        message = (
            f"--within {within:g}: only whole numbers are tried between whole ones; "
            f"write a value of {over} with a decimal point, as in {values[0]:.1f}, or give 1 or more"
        )
        raise ConfigurationError(message)


def find_borders(sweep: Design, over: str, judge: Judge, within: float | None = None) -> list[Border]:
    """
    Find the border of a condition along an axis, for each point of the other axes.

    The values of the grid are judged first; between the first two neighbours that differ, the distance is halved until
    it is small enough. That is done twice: for where it holds with every seed, and for where it holds with any.

    Args:
        sweep: The grid.
        over: The axis; see `check_axis`.
        judge: With how many seeds the condition holds at points, which need not be of the grid.
        within: The distance that is small enough; None for that of `nearest`.
    """
    values = sorted(sweep.axes[over])
    small = within if within is not None else nearest(values)
    others = {name: each for name, each in sweep.axes.items() if name != over}
    points = [dict(zip(others, each, strict=True)) for each in itertools.product(*others.values())]
    answers = iter(judge([{**point, over: value} for point in points for value in values]))
    counts = [[next(answers) for _ in values] for _ in points]
    enough = (sweep.seeds, 1)  # seeds: with every one, with any
    held = [[[count >= least for count in own] for least in enough] for own in counts]
    spans = [[_first_change(values, each) for each in own] for own in held]
    while middles := _middles(spans, small, whole=_are_whole(values)):
        asked = list(dict.fromkeys((number, middle) for (number, _), middle in middles.items()))
        found = dict(zip(asked, judge([{**points[number], over: middle} for number, middle in asked]), strict=True))
        for (number, rule), middle in middles.items():
            low, high, at_low = spans[number][rule]
            holds = found[number, middle] >= enough[rule]
            spans[number][rule] = (middle, high, at_low) if holds == at_low else (low, middle, at_low)
    borders = [
        [_border(*each, values[-1]) for each in zip(own, near, strict=True)]
        for own, near in zip(held, spans, strict=True)
    ]
    return [
        Border(point, every[0], some[1], every[2] and some[2])
        for point, (every, some) in zip(points, borders, strict=True)
    ]


def nearest(values: Sequence[float]) -> float:
    """Return the distance that is small enough by default: 1 between whole numbers, else a thousandth of the range."""
    return 1 if _are_whole(values) else (max(values) - min(values)) / 1000


def _are_whole(values: Iterable[float]) -> bool:
    return all(isinstance(each, int) for each in values)


def _middles(spans: Sequence[Sequence[Span]], small: float, *, whole: bool) -> dict[tuple[int, int], float]:
    """Return the middles of spans that are not small enough, by point and by what holds."""
    return {
        (number, rule): middle
        for number, own in enumerate(spans)
        for rule, (low, high, _) in enumerate(own)
        if high - low > small and (middle := _middle(low, high, whole=whole)) not in (low, high)
    }


def _first_change(values: Sequence[float], held: Sequence[bool]) -> Span:
    """Return the first two neighbours that differ, and whether it holds at the lower; twice the first if none do."""
    for place in range(len(values) - 1):
        if held[place] != held[place + 1]:
            return values[place], values[place + 1], held[place]
    return values[0], values[0], held[0]


def _middle(low: float, high: float, *, whole: bool) -> float:
    return (int(low) + int(high)) // 2 if whole else (low + high) / 2


def _border(held: Sequence[bool], span: Span, last: float) -> tuple[float | None, float | None, bool]:
    """Return where it holds and where it does not, None for nowhere, and whether the grid crosses the border once."""
    low, high, at_low = span
    changes = sum(first != second for first, second in itertools.pairwise(held))
    if not changes:
        return (last, None, True) if held[0] else (None, low, True)
    return low if at_low else high, high if at_low else low, changes == 1
