"""
Database and table as one name: ``database.table``, quoted as in SQL where a dot or a backtick would make it ambiguous.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(r"(?P<first>`(?:[^`]|``)*`|[^.`]*)\.(?P<second>`(?:[^`]|``)*`|[^.`]*)")


def full_name(database: str, table: str) -> str:
    """Return ``database.table``; two different tables never have the same full name."""
    return f"{_part(database)}.{_part(table)}"


def split_full_name(name: str) -> tuple[str, str]:
    """Return database and table; the inverse of `full_name`. What is no full name is divided at its first dot."""
    found = _QUOTED.fullmatch(name)
    if found is None:
        database, _, table = name.partition(".")
        return database, table
    return _plain(found["first"]), _plain(found["second"])


def _part(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if "." in name or "`" in name else name


def _plain(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part
