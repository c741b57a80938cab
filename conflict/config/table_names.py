"""
Names as users give them: of tables, ``database.table``, or the table alone where one database has it; lists; and keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from conflict.errors import ConfigurationError, ConflictError, HistoryError
from conflict.shown_text import listed
from ndb_formats.errors import did_you_mean
from ndb_formats.schema.full_names import split_full_name

__all__ = ["full_name_of", "is_full_name", "known_name", "known_table", "values_by_column", "words_of"]


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


def words_of(given: str | int | Iterable[object] | None) -> list[str]:
    """Return the names or numbers of a sequence, or of a text with commas between them, as on the command line."""
    if isinstance(given, str | int):
        return [word for each in str(given).split(",") if (word := each.strip())]
    return [*map(str, given or ())]


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
