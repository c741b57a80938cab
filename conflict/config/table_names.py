"""
Names of tables as users give them: ``database.table``, or the table alone where one database has it.
"""

from __future__ import annotations

from collections.abc import Collection

from conflict.errors import ConfigurationError
from ndb_formats.schema.full_names import split_full_name

__all__ = ["full_name_of", "is_full_name"]


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
