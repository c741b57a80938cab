"""
Conditions on the figures of a result, such as ``lost > 0``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

import attrs

from conflict.errors import ConfigurationError
from conflict.operating.repairing.reading_lost import read_lost
from conflict.results.conflicts import ALL
from conflict.results.result import Result

# Figures of a result; None where it is not known.
FIGURES: dict[str, Callable[[Result], int | None]] = {
    "conflicts": lambda result: result.summary.conflicts,
    "lost": lambda result: len(read_lost(result, ALL)),
    "differing": lambda result: _sum(list(result.run["differing_rows"].values())),
    "skipped": lambda result: len(result.run["skipped_epochs"]),
    "contradictions": lambda result: int(result.run["contradicted_by_binlogs"]),
    "open": lambda result: sum(result.run["undecided"].values()),
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


def _sum(figures: list[int | None]) -> int | None:
    known = [each for each in figures if each is not None]
    return sum(known) if len(known) == len(figures) else None


@attrs.frozen
class Condition:
    """
    A condition on one figure of a result.

    Attributes:
        figure: One of `FIGURES`.
        comparison: How it is compared.
        number: What it is compared with.
    """

    figure: str
    comparison: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Condition:
        """
        Return the condition that a text such as ``lost > 0`` means.

        Raises:
            ConfigurationError: It means none.
        """
        found = re.fullmatch(r"\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*(\d+)\s*", text, re.ASCII)
        if found is None or found[1] not in FIGURES:
            message = (
                f"--fail-if '{text}' is not understood; give a figure ({', '.join(FIGURES)}), a comparison "
                f"({' '.join(_COMPARISONS)}) and an integer, such as 'lost > 0'"
            )
            raise ConfigurationError(message)
        return cls(found[1], found[2], int(found[3]))

    def holds(self, result: Result) -> str | None:
        """Return a sentence that it holds, with the figure; None if it does not. It holds if that is not known."""
        value = FIGURES[self.figure](result)
        if value is not None and not _COMPARISONS[self.comparison](value, self.number):
            return None
        shown = "not known" if value is None else f"{value:,}"
        return f"{self.figure} {self.comparison} {self.number}: {self.figure} is {shown}."
