"""
What users give as options: names of tables, lists, keys, moments, and the words of a choice.

A table is ``database.table``, or the table alone where one database has it. A moment is a date with a time, with an
offset from UTC or without one.

The rule everywhere: a moment without an offset is in UTC, unless `decode --timezone` names another zone. A date alone
is its midnight.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime, tzinfo
from enum import StrEnum
from pathlib import Path

from conflict.config.text_file import refuse_address
from conflict.errors import ConfigurationError, ConflictError, HistoryError
from conflict.telling.shown_text import listed
from ndb_formats.errors import did_you_mean
from ndb_formats.schema.tables import split_full_name


class By(StrEnum):
    """What conflicts are counted by."""

    TABLE = "table"
    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    KEY = "key"
    CAUSE = "cause"
    TRANSACTION = "transaction"


class Grid(StrEnum):
    """The step of a table by time."""

    EPOCH = "epoch"
    MINUTE = "minute"
    HOUR = "hour"


class DecodedFormat(StrEnum):
    """The output format."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class RecordFormat(StrEnum):
    """The format of records: a line of JSON each, CSV or Parquet; also the suffix of a file."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


Moment = str | date  # of which `datetime` is a kind


def moment_of(given: Moment, name: str, zone: tzinfo = UTC) -> datetime:
    """
    Return a moment in UTC.

    Args:
        given: Text such as ``2026-01-31 08:00:00``, ``2026-01-31T08:00:00+01:00`` or ``2026-01-31``; or a date or
            datetime of Python.
        name: What it is given for, such as ``--stop-datetime``.
        zone: The zone of a moment without an offset.

    Raises:
        ConfigurationError: It is no moment.
    """
    try:
        moment = datetime.fromisoformat(given.strip() if isinstance(given, str) else given.isoformat())
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (AttributeError, ValueError, OverflowError):
        message = (
            f"{name} {given}: not a date and time; give it as 2026-01-31 08:00:00 (UTC), or with an offset, "
            "2026-01-31 08:00:00+01:00"
        )
        raise ConfigurationError(message) from None


def seconds_of(given: Moment | None, name: str, zone: tzinfo = UTC) -> int | None:
    """
    Return the first whole second since 1970 that is not before a moment; None for none.

    Times in binlogs are whole seconds, so that everything from the moment on is everything from that second on.

    Raises:
        ConfigurationError: As `moment_of`.
    """
    return None if given is None else math.ceil(moment_of(given, name, zone).timestamp())


def shown_range(first: int, last: int) -> str:
    """Return two seconds since 1970 as people read them, and as options take them."""
    shown = (datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%d %H:%M:%S") for each in (first, last))
    return f"{' to '.join(shown)} UTC"


def is_full_name(name: str) -> bool:
    """Return whether a name has a database."""
    return "." in name


def full_name_of(name: str, known: Collection[str]) -> str:
    """
    Return the full name of a table; a name that no table has stays, so that whoever looks for it says so.

    Args:
        name: ``database.table``, or a table alone.
        known: Full names of the tables that there are.

    Raises:
        ConfigurationError: Several databases have a table of that name.
    """
    found = [name] if name in known else sorted(each for each in known if split_full_name(each)[1] == name)
    if len(found) > 1:
        message = f"table {name} is in several databases: {', '.join(found)}; give database.table"
        raise ConfigurationError(message)
    return found[0] if found else name


def known_name(
    kind: str, name: str, known: Collection[str], whole: str = "the result", error: type[ConflictError] = HistoryError
) -> str:
    """
    Return a name that is known.

    Args:
        kind: What it is the name of.
        name: The name.
        known: The names that there are.
        whole: What has them.
        error: What is raised if it is none of them; it says which one is nearest.
    """
    if name not in known:
        there = f"it has {listed([*known])}" if known else "it has none"
        message = f"{whole} has no {kind} {name}{did_you_mean(name, known)}; {there}"
        raise error(message)
    return name


def known_table(
    name: str, known: Collection[str], whole: str = "the result", error: type[ConflictError] = HistoryError
) -> str:
    """
    Return the full name of a table that is known, which may be given without its database; arguments as `known_name`.

    Raises:
        ConfigurationError: Several databases have it.
    """
    return known_name("table", full_name_of(name, known), known, whole, error)


def path_of(given: Path | str | None) -> Path | None:
    """
    Return a path that may be a text, or None.

    Raises:
        ConfigurationError: It is an address of another filesystem.
    """
    refuse_address(str(given or ""), "the path")
    return None if given is None else Path(given)


def words_of(given: str | int | Iterable[object] | None) -> list[str]:
    """Return the names or numbers of a sequence, or of a text with commas between them, as on the command line."""
    if isinstance(given, str | int):
        return [word for each in str(given).split(",") if (word := each.strip())]
    return [*map(str, given or ())]


def document_of_key(given: str, names: Iterable[str]) -> dict[str, object] | None:
    """
    Return a key that is given as a JSON object of values by column; None for other text.

    Args:
        given: ``{"a": 1, "b": "two"}``. A number with a point or an exponent stays text, so that it keeps its digits.
        names: The columns that it can name.
    """
    try:
        found = json.loads(given, parse_float=str) if given.lstrip().startswith("{") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) and found and found.keys() <= {*names} else None


def values_by_column(given: str, names: Sequence[str]) -> dict[str, str]:
    """
    Return the values of a key as text by column; a value ends where the next column begins for the first time.

    Args:
        given: ``a=1, b=two``.
        names: The columns that it can name. Nothing is returned if it does not start with one.
    """
    starts: dict[str, re.Match[str]] = {}
    for found in re.finditer(rf"(?:\A|,\s*)({'|'.join(map(re.escape, names))})=", given):
        starts.setdefault(found[1], found)
    ends = [found.start() for found in starts.values()]
    if ends[:1] != [0]:
        return {}
    return {
        name: given[found.end() : end]
        for (name, found), end in zip(starts.items(), [*ends[1:], len(given)], strict=True)
    }
