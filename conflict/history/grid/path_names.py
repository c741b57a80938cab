"""
Names of databases and tables as parts of paths: no name leaves its folder, and no two names share a path.

ASCII letters, digits, ``_``, ``-`` and ``$`` stay as they are. Every other character is its bytes in UTF-8, each as
``%`` and two hexadecimal digits, so a filesystem's Unicode normalization changes nothing; and so is ``_`` at the start,
because Spark does not read such folders. `name_of` gives the name back. A part that becomes longer than `LONGEST` is
cut, and ends in ``~`` and a digest; its name stands in the documents beside it. Names that differ in case alone are two
paths only where the filesystem tells case apart; elsewhere they are refused.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote_to_bytes

from conflict.errors import ConfigurationError
from ndb_formats.schema.tables import split_full_name

LONGEST = 100  # so that database and table fit into one part, with an ending, within the usual 255 bytes
_NAME_DIGEST = 16
_PLAIN = frozenset(string.ascii_letters + string.digits + "_-$")


def path_part(name: str) -> str:
    """Return a name as a part of a path."""
    encoded = "".join(
        character
        if character in _PLAIN and (number or character != "_")
        else "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))
        for number, character in enumerate(name)
    )
    if len(encoded) <= LONGEST:
        return encoded
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:_NAME_DIGEST]
    return f"{encoded[: LONGEST - _NAME_DIGEST - 1]}~{digest}"


def name_of(part: str) -> str:
    """Return the name of a part that is not cut; the inverse of `path_part`."""
    return unquote_to_bytes(part).decode("utf-8", "surrogateescape")


def table_folder(database: str, table: str) -> PurePosixPath:
    """Return the folder of a table: one for its database, and in it one for the table."""
    return PurePosixPath(path_part(database), path_part(table))


def table_as_path(full_name: str) -> str:
    """Return a table, given as ``database.table``, as one part of a path."""
    return ".".join(map(path_part, split_full_name(full_name)))


def refuse_same_paths(folder: Path, names: Iterable[str]) -> None:
    """
    Make sure that no two tables get the same path on a filesystem that does not tell case apart.

    Args:
        folder: Some folder on it that exists.
        names: ``database.table`` of all tables.

    Raises:
        ConfigurationError: Two do.
    """
    seen: dict[str, str] = {}
    for name in sorted(set(names)):
        other = seen.setdefault(table_as_path(name).lower(), name)
        if other != name and _folds_case(folder):
            message = (
                f"the names of tables {other} and {name} differ in case alone, which the filesystem of {folder} does "
                "not tell apart; give a folder on another one"
            )
            raise ConfigurationError(message)


def _folds_case(folder: Path) -> bool:
    named = next((each for each in (folder, *folder.parents) if each.name.swapcase() != each.name), None)
    swapped = None if named is None else named.with_name(named.name.swapcase())
    return named is not None and swapped is not None and swapped.exists() and swapped.samefile(named)
