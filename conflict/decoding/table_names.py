"""
Names of tables as names of folders.

A name is the path ``database/table``. Letters, digits, ``_``, ``-`` and ``$`` stand for themselves; every other
character is its bytes in UTF-8, each as ``%`` and two hexadecimal digits, and so is ``_`` at the start, because Spark
does not read such folders. So no name leaves the folder, and `table_of` gives it back.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote_to_bytes

__all__ = ["folder_of", "table_of"]

_PLAIN = frozenset("_-$")


def folder_of(database: str, table: str) -> PurePosixPath:
    """Return the folder of a table."""
    return PurePosixPath(_encoded(database), _encoded(table))


def table_of(folder: PurePosixPath) -> tuple[str, str]:
    """Return database and table of a folder; the inverse of `folder_of`."""
    database, table = (unquote_to_bytes(part).decode("utf-8", "surrogateescape") for part in folder.parts)
    return database, table


def _encoded(name: str) -> str:
    return "".join(
        character
        if (character.isalnum() or character in _PLAIN) and (number or character != "_")
        else "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))
        for number, character in enumerate(name)
    )
