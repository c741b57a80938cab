"""
Text files from users, and messages that name the place of a fault in them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conflict.errors import ConfigurationError
from ndb_formats.errors import FormatError

__all__ = ["located", "read_text"]


def read_text(path: Path) -> str:
    """
    Return the text of a UTF-8 file, without a byte order mark.

    Raises:
        ConfigurationError: It cannot be opened, or is not UTF-8.
    """
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise ConfigurationError(message) from error
    except UnicodeDecodeError as error:
        message = f"{path}: not UTF-8 text ({error})"
        raise ConfigurationError(message) from error


@contextmanager
def located(place: object) -> Iterator[None]:
    """
    Put a place before the message of every error in the block.

    Raises:
        ConfigurationError: For a configuration, format or TOML error in the block.
    """
    try:
        yield
    except (ConfigurationError, FormatError, tomllib.TOMLDecodeError) as error:
        # Places of files and of lines in them read as one: "rows.sql, line 3: ..."
        separator = ", " if str(error).startswith(("line ", "row ")) else ": "
        raise ConfigurationError(f"{place}{separator}{error}") from error
