"""
Reads the entries of one table of a TOML file; what is wrong or not known is refused with its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeGuard

import attrs

from conflict.errors import ConfigurationError
from conflict.whatif.simulating.kernels.world import FOREVER
from ndb_formats.errors import did_you_mean

MILLISECOND, SECOND = 1000, 1_000_000
MOST = 2.0**53  # up to here every whole number is a float
LONGEST = FOREVER  # microseconds; many of them add up within 64 bits


def is_number(value: object, low: float = 0, high: float = MOST) -> TypeGuard[float]:
    """Return whether a value of a TOML file is a number within bounds; NaN and true are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def is_time(value: object, unit: int) -> TypeGuard[float]:
    """Return whether a value of a TOML file is a duration, in a unit of that many microseconds."""
    return is_number(value, high=LONGEST / unit)


@attrs.define
class TomlEntries:
    """
    The entries of a table.

    Attributes:
        where: The table's name, for messages.
        given: Its entries.
    """

    where: str
    given: Mapping[str, Any]
    _read: set[str] = attrs.field(factory=set)

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def value(self, name: str, default: Any = None) -> Any:
        """Return an entry of any kind."""
        self._read.add(name)
        return self.given.get(name, default)

    def number(self, name: str, default: float = 0, low: float = 0, high: float = MOST) -> float:
        """Return a number within bounds."""
        value = self.value(name, default)
        if not is_number(value, low, high):
            self.refuse(name, f"a number from {low:,.15g} to {high:,.15g}")
        number: float = value
        return number

    def whole(self, name: str, default: int = 0, low: int = 0, high: int = 2**31 - 1) -> int:
        """Return a whole number within bounds."""
        value = self.number(name, default, low, high)
        if not isinstance(value, int):
            self.refuse(name, "a whole number")
        return value

    def text(self, name: str, default: str, known: Sequence[str] = ()) -> str:
        """Return a text, one of those that are known if any are."""
        value = self.value(name, default)
        if not isinstance(value, str) or (known and value not in known):
            meant = did_you_mean(str(value), known)
            self.refuse(name, f"one of {', '.join(known)}{meant}" if known else "a text")
        return value

    def switch(self, name: str) -> bool:
        """Return true or false; false if it is not given."""
        value = self.value(name, default=False)
        if not isinstance(value, bool):
            self.refuse(name, "true or false")
        return value

    def time(self, name: str, default: float = 0, unit: int = MILLISECOND, low: float = 0) -> int:
        """Return a duration in microseconds, given in milliseconds unless said otherwise."""
        return round(self.number(name, default, low, LONGEST / unit) * unit)

    def spans(self, name: str) -> tuple[tuple[int, int], ...]:
        """Return spans of time in microseconds, given in seconds: a list of [from, to], or [from] without an end."""
        given = self.value(name, [])
        shape = "a list of [from, to] in seconds, or [from] for what has no end"
        if not isinstance(given, list):
            self.refuse(name, shape)
        for each in given:
            pair = isinstance(each, list) and len(each) in (1, 2) and all(is_time(value, SECOND) for value in each)
            if not pair or each[0] >= (*each, LONGEST / SECOND)[1]:
                self.refuse(name, shape)
        return tuple((round(start * SECOND), round(stop[0] * SECOND) if stop else LONGEST) for start, *stop in given)

    def table(self, name: str) -> TomlEntries:
        """Return a table within this one; empty if it is not given."""
        value = self.value(name, {})
        if not isinstance(value, Mapping):
            self.refuse(name, "a table")
        return TomlEntries(f"{self.where}.{name}".removeprefix("."), value)

    def weights(self, name: str) -> Mapping[str, float]:
        """Return weights by name; empty if they are not given."""
        words = self.table(name)
        found = {each: words.number(each) for each in words.given}
        if found and not sum(found.values()):
            self.refuse(name, "weights of which one is not 0")
        return found

    def refuse(self, name: str, expected: str) -> NoReturn:
        """
        Refuse an entry.

        Raises:
            ConfigurationError: Always.
        """
        place = f"[{self.where}]: " if self.where else ""
        found = f"is {self.given[name]!r}" if name in self.given else "is not given"
        message = f"{place}{name} {found}; give {expected}"
        raise ConfigurationError(message)

    def finish(self) -> None:
        """
        Refuse entries that nothing has read.

        Raises:
            ConfigurationError: There are such entries.
        """
        unknown = sorted(self.given.keys() - self._read)
        if unknown:
            place = f"[{self.where}]: " if self.where else ""
            meant = did_you_mean(unknown[0], self._read)
            message = f"{place}{unknown[0]} is not known here{meant}; known are {', '.join(sorted(self._read))}"
            raise ConfigurationError(message)
