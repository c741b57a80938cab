"""
Text files from users, and messages that name the place of a fault in them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conflict.errors import ConfigurationError
from ndb_formats.errors import FormatError

__all__ = ["located", "parsed_toml", "read_text"]


def read_text(path: Path) -> str:
    """
    Return the text of a UTF-8 file, without a byte order mark.

    Raises:
        ConfigurationError: It cannot be opened, is a folder, a pipe or a device, or is not UTF-8.
    """
    try:
        readable = path.is_file() or not path.exists()  # reading a pipe waits, and a device may have no end
        if readable:
            return path.read_text("utf-8-sig")
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise ConfigurationError(message) from error
    except UnicodeDecodeError as error:
        message = f"{path}: not UTF-8 text ({error})"
        raise ConfigurationError(message) from error
    except ValueError as error:  # a NUL in the path
        message = f"{path}: {error}"
        raise ConfigurationError(message) from error
    message = f"{path}: it is no regular file; give a text file"
    raise ConfigurationError(message)


def parsed_toml(text: str) -> dict[str, Any]:
    """
    Return the document of a TOML text.

    Raises:
        ConfigurationError: It is not TOML, is nested too deeply, or has a number that is too long.
    """
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        message = "it is nested too deeply"
        raise ConfigurationError(message) from error
    except ValueError as error:  # TOMLDecodeError among others
        raise ConfigurationError(str(error)) from error


@contextmanager
def located(place: object) -> Iterator[None]:
    """
    Put a place before the message of every error in the block.

    Raises:
        ConfigurationError: For a configuration or format error in the block.
    """
    try:
        yield
    except (ConfigurationError, FormatError) as error:
        # Places of files and of lines in them read as one: "rows.sql, line 3: ..."
        separator = ", " if str(error).startswith(("line ", "row ")) else ": "
        raise ConfigurationError(f"{place}{separator}{error}") from error
