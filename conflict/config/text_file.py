"""
Text files that users give.
"""

from __future__ import annotations

from pathlib import Path

from conflict.errors import ConfigurationError

__all__ = ["read_text"]


def read_text(path: Path) -> str:
    """
    Return what a UTF-8 file holds, without the mark that some editors put before it.

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
