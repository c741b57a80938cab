"""
Files of a History or a result that are sound each by itself, with a catalogue that lists them, and do not fit together.

What can be checked in a column or in a document is checked there, before it is used. The rest shows only when the files
are put together: a row without an image that it must have, a group that no epoch names.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from conflict.errors import ConflictError, HistoryError
from conflict.grid.folder import Folder
from ndb_formats.errors import FormatError

__all__ = ["refusing_contradictions"]

_OF_PYTHON = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
_SHOWN = (*_OF_PYTHON, OSError, pa.ArrowException)


@contextmanager
def refusing_contradictions(folder: Folder | None, remedy: str) -> Iterator[None]:
    """
    Say of a folder that was not made in this run that its files contradict each other, if that is what happens.

    Args:
        folder: The folder that is read inside the block; None if it is made there.
        remedy: What to do, a sentence without its full stop.

    Raises:
        HistoryError: They do; it names the place in the program, in case that the folder is sound and this is a fault.
    """
    try:
        yield
    except (ConflictError, FormatError):
        raise
    except _SHOWN as error:
        if folder is None or getattr(error, "errno", None) is not None:  # of the operating system, not of the content
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        cause = " ".join(str(error).split())[:200]
        told = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}" + (cause and f": {cause}")
        message = f"the files in {folder.uri} contradict each other ({told}). {remedy}"
        raise HistoryError(message) from error
