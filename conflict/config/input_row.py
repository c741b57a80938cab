"""
A row as a user's file gives it, before its values are checked.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

__all__ = ["Cell", "InputRow"]

Cell = str | bytes | None  # None is NULL, bytes are a value written in hex


@attrs.frozen
class InputRow:
    """
    One row of a file.

    Attributes:
        place: Its place in the file, for messages.
        cells: Values by column name in lower case; from TOML they can have any type.
        replaces: Whether it replaces an earlier row with the same key.
    """

    place: str
    cells: Mapping[str, object]
    replaces: bool = False
