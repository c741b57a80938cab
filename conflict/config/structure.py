"""
What may stand in a document from a user: its entries, their types and their ranges, checked before anything is used.

The file of a recording's steps, which a run file may name, is one such document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from conflict.config.text_file import read_text
from conflict.errors import ConfigurationError
from conflict.rules.replication_table import Role
from ndb_formats.errors import did_you_mean


@attrs.frozen
class ValueKind:
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


def _integer(low: int, high: int) -> ValueKind:
    """Return a whole number in a range."""
    return ValueKind(
        f"a whole number from {low} to {high}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
    )


def one_of(names: Collection[str]) -> ValueKind:
    """Return one of some texts."""
    return ValueKind(
        f"one of {', '.join(names)}",
        lambda value: isinstance(value, str) and any(value == name for name in names),
        names,
    )


def list_of(kind: ValueKind, words: str) -> ValueKind:
    """Return a list whose members are of a kind."""
    return ValueKind(words, lambda value: isinstance(value, list) and all(map(kind.accepts, value)))


def either(first: ValueKind, second: ValueKind) -> ValueKind:
    """Return one of two kinds."""
    return ValueKind(f"{first.words}, or {second.words}", lambda value: first.accepts(value) or second.accepts(value))


TEXT = ValueKind("a text", lambda value: isinstance(value, str) and "\0" not in value)
NAME = ValueKind("a text that is not empty", lambda value: TEXT.accepts(value) and value != "")
SWITCH = ValueKind("true or false", lambda value: isinstance(value, bool))
TABLE = ValueKind("a table", lambda value: isinstance(value, dict))
TABLES = list_of(TABLE, "tables")
SERVER_ID = _integer(0, 2**32 - 1)
EPOCH = _integer(0, 2**64 - 1)


def check_entries(where: str, table: Any, known: Mapping[str, ValueKind], required: Collection[str] = ()) -> None:
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


# What each known entry of a step must be; a recording may say more.
_RESULT = ValueKind("a list or a text", lambda value: isinstance(value, list | str))


def load_steps(path: Path, clusters: Collection[str]) -> list[dict[str, Any]]:
    """
    Read a file of steps.

    Args:
        path: The file.
        clusters: Names of the clusters of the run.

    Raises:
        ConfigurationError: It cannot be read, or a step is not what it must be.
    """
    text = read_text(path)
    try:
        steps = json.loads(text)["steps"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"{path}: a JSON object with a list of steps is needed ({error})"
        raise ConfigurationError(message) from error
    if not isinstance(steps, list):
        message = f"{path}: steps must be a list"
        raise ConfigurationError(message)
    cluster = ValueKind(f"a cluster of the run file ({', '.join(clusters)})", one_of(clusters).accepts)
    kinds = {"on": cluster, "applier": cluster, "epoch": EPOCH, "role": one_of(list(Role)), "result": _RESULT}
    for number, step in enumerate(steps, 1):
        fault = _fault(step, kinds)
        if fault:
            message = f"{path}, step {number}: {fault}"
            raise ConfigurationError(message)
    return steps


def _fault(step: Any, kinds: dict[str, ValueKind]) -> str | None:
    if not isinstance(step, dict):
        return "it must be an object"
    for name, kind in kinds.items():
        if name in step and not kind.accepts(step[name]):
            return f"{name} is {step[name]!r}; it must be {kind.words}"
    if step.get("action") == "role" and not {"applier", "role"} <= step.keys():
        return "an action role needs an applier and a role"
    return None
