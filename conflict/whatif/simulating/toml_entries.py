"""
Reads the entries of one table of a model; what is wrong or not known is refused with its path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import attrs

from conflict.documents import Must, misfit, one_of, read, unknown_entries, whole
from conflict.whatif.simulating.kernels.world import FOREVER

MILLISECOND, SECOND = 1000, 1_000_000
MOST = 2.0**53  # up to here every whole number is a float
LONGEST = FOREVER  # microseconds; many of them add up within 64 bits


def number(low: float = 0, high: float = MOST) -> Must:
    """Return what a number within bounds must be; NaN is none."""
    return Must(f"a number from {low:,.15g} to {high:,.15g}", lambda value: low <= value <= high)


Number = Annotated[float, number()]
Rate = Annotated[float, number(0, 10**9)]
Seconds = Annotated[float, number(0, LONGEST / SECOND)]
NOT_ALL_0 = "weights, of which at least one is not 0"
Weights = Annotated[dict[str, Number], Must(NOT_ALL_0, lambda weights: not weights or any(weights.values()))]
_Span = Annotated[
    list[Seconds],
    Must(
        "[from, to] in seconds, or [from] for what has no end",
        lambda span: len(span) in (1, 2) and span[0] < (*span, LONGEST / SECOND)[1],
    ),
]


@attrs.define
class TomlEntries:
    """
    The entries of a table.

    Attributes:
        path: The table's path in the file.
        given: Its entries.
    """

    path: str
    given: Mapping[str, Any]
    _read: set[str] = attrs.field(factory=set)

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def value(self, name: str, default: Any = None, kind: Any = Any) -> Any:
        """Return an entry of a type; the default if it is not given."""
        self._read.add(name)
        return read(kind, self.given[name], self.path_of(name)) if name in self.given else default

    def path_of(self, name: str) -> str:
        """Return the path of an entry."""
        return f"{self.path}.{name}".removeprefix(".")

    def number(self, name: str, default: float = 0, low: float = 0, high: float = MOST) -> float:
        """Return a number within bounds."""
        found: float = self.value(name, default, Annotated[float, number(low, high)])
        return found

    def whole(self, name: str, default: int = 0, low: int = 0, high: int = 2**31 - 1) -> int:
        """Return a whole number within bounds."""
        found: int = self.value(name, default, Annotated[int, whole(low, high)])
        return found

    def word(self, name: str, default: str, known: Sequence[str]) -> str:
        """Return one of the texts that are known."""
        return str(self.value(name, default, Annotated[str, one_of(known)]))

    def time(self, name: str, default: float = 0, unit: int = MILLISECOND, low: float = 0) -> int:
        """Return a duration in microseconds, given in milliseconds unless said otherwise."""
        return round(self.number(name, default, low, LONGEST / unit) * unit)

    def spans(self, name: str) -> tuple[tuple[int, int], ...]:
        """Return spans of time in microseconds, given in seconds."""
        given = self.value(name, [], list[_Span])
        return tuple((round(start * SECOND), round(stop[0] * SECOND) if stop else LONGEST) for start, *stop in given)

    def table(self, name: str) -> TomlEntries:
        """Return a table within this one; empty if it is not given."""
        return TomlEntries(self.path_of(name), self.value(name, {}, dict[str, Any]))

    def refuse(self, name: str, expected: str, default: Any = None) -> NoReturn:
        """
        Refuse an entry.

        Raises:
            ConfigurationError: Always.
        """
        raise misfit(self.path_of(name), self.given.get(name, default), expected)

    def finish(self) -> None:
        """
        Refuse entries that nothing has read.

        Raises:
            ConfigurationError: There are such entries.
        """
        if unknown := self.given.keys() - self._read:
            raise unknown_entries(self.path, unknown, self._read)
