"""
What may stand in a document from a user: its entries, their types and their ranges, checked before anything is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs

from conflict.errors import ConfigurationError
from ndb_formats.errors import did_you_mean

__all__ = [
    "EPOCH",
    "NAME",
    "SERVER_ID",
    "SWITCH",
    "TABLE",
    "TABLES",
    "TEXT",
    "Kind",
    "check_entries",
    "either",
    "integer",
    "list_of",
    "one_of",
]


@attrs.frozen
class Kind:
    """
    What a value may be.

    Attributes:
        words: In words, after "it must be".
        accepts: Whether it is a value.
        names: The texts that it can be; none if other values are possible.
    """

    words: str
    accepts: Callable[[Any], bool]
    names: Collection[str] = ()


def integer(low: int, high: int) -> Kind:
    """Return a whole number in a range."""
    return Kind(
        f"a whole number from {low} to {high}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
    )


def one_of(names: Collection[str]) -> Kind:
    """Return one of some texts."""
    return Kind(
        f"one of {', '.join(names)}",
        lambda value: isinstance(value, str) and any(value == name for name in names),
        names,
    )


def list_of(kind: Kind, words: str) -> Kind:
    """Return a list whose members are of a kind."""
    return Kind(words, lambda value: isinstance(value, list) and all(map(kind.accepts, value)))


def either(first: Kind, second: Kind) -> Kind:
    """Return one of two kinds."""
    return Kind(f"{first.words}, or {second.words}", lambda value: first.accepts(value) or second.accepts(value))


TEXT = Kind("a text", lambda value: isinstance(value, str) and "\0" not in value)
NAME = Kind("a text that is not empty", lambda value: TEXT.accepts(value) and value != "")
SWITCH = Kind("true or false", lambda value: isinstance(value, bool))
TABLE = Kind("a table", lambda value: isinstance(value, dict))
TABLES = list_of(TABLE, "tables")
SERVER_ID = integer(0, 2**32 - 1)
EPOCH = integer(0, 2**64 - 1)


def check_entries(where: str, table: Any, known: Mapping[str, Kind], required: Collection[str] = ()) -> None:
    """
    Make sure that a table of a document has the entries that it needs, and no others.

    Args:
        where: What the table is called in messages.
        table: The table.
        known: What each entry may be.
        required: The entries that it needs.

    Raises:
        ConfigurationError: It has not; the message names the entry, and what it must be.
    """
    if not isinstance(table, dict):
        message = f"{where} is {_shown(table)}; it must be a table"
        raise ConfigurationError(message)
    unknown = sorted(map(str, table.keys() - known.keys()))
    if unknown:
        meant = did_you_mean(unknown[0], known)
        message = f"{where} has unknown entries {', '.join(unknown)}{meant}; known are {', '.join(sorted(known))}"
        raise ConfigurationError(message)
    for name, kind in known.items():
        if name in table and not kind.accepts(table[name]):
            meant = did_you_mean(str(table[name]), kind.names) if kind.names else ""
            message = f"{name} of {where} is {_shown(table[name])}; it must be {kind.words}{meant}"
            raise ConfigurationError(message)
        if name in required and name not in table:
            message = f"{name} of {where} is missing; it must be {kind.words}"
            raise ConfigurationError(message)


def _shown(value: Any) -> str:
    """Return a value for a message, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print such long numbers
        return "a number that is too long"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


_LONGEST = 60
