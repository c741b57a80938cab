"""
The exceptions of `ndb_formats`.

Each has attributes for its location: file, position, event, table and column. The code that raises an error knows only
some of them; its callers fill in the others with `located`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self


class FormatError(Exception):
    """
    Something in a binlog or a schema cannot be read.

    Attributes:
        message: What is wrong and what to do, without the location.
        file: Path of the binlog file, if known.
        position: Byte position of the event in that file, if known.
        event: Name of the event type, if known.
        table: ``database.table``, if known.
        column: Column name, or ``@n`` where names are not known.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        position: int | None = None,
        event: str | None = None,
        table: str | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.position = position
        self.event = event
        self.table = table
        self.column = column

    def located(
        self,
        *,
        file: str | None = None,
        position: int | None = None,
        event: str | None = None,
        table: str | None = None,
        column: str | None = None,
    ) -> Self:
        """Fill in the parts of the location that are not known yet, and return the error itself."""
        self.file = self.file if self.file is not None else file
        self.position = self.position if self.position is not None else position
        self.event = self.event if self.event is not None else event
        self.table = self.table if self.table is not None else table
        self.column = self.column if self.column is not None else column
        return self

    def __str__(self) -> str:
        location = [
            f"{label}{value}"
            for label, value in (
                ("", self.file),
                ("position ", self.position),
                ("", self.event),
                ("table ", self.table),
                ("column ", self.column),
            )
            if value is not None
        ]
        return f"{', '.join(location)}: {self.message}" if location else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Spark pickles errors to send them between processes.
        return (_rebuild, (type(self), self.message, self.__dict__))


def _rebuild(kind: type[FormatError], message: str, state: dict[str, object]) -> FormatError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class TruncatedError(FormatError, EOFError):
    """The bytes end inside a value, event or file."""


class CutFileError(TruncatedError):
    """A file ends inside an event: it was cut short, or is still being written."""


class CorruptError(FormatError, ValueError):
    """The bytes contradict the format."""


class ChecksumError(CorruptError):
    """The CRC32 at the end of an event does not match its bytes."""


class UnsupportedError(FormatError, ValueError):
    """The bytes are valid, but in a form that is not supported."""


class SchemaError(FormatError, ValueError):
    """A table definition is missing, cannot be parsed, or does not fit the binlog."""


class WrongKeyError(SchemaError):
    """The binlog shows that a table has another primary key, so that rows are not what they were taken for."""


class SettingError(FormatError, ValueError):
    """A setting of the server has an invalid value."""


def did_you_mean(given: str, known: Iterable[str], least: float = 0.6) -> str:
    """
    Return, for a message, the name that a name which is not known is most like: `` (did you mean NDB$MAX?)``.

    Letter case does not count, nor do databases of tables where none is given. Nothing if no name is like it.

    Args:
        given: The name.
        known: The names that there are.
        least: How much a name must be like it, from 0 to 1; see `difflib`.
    """
    names = {name.lower(): name for name in known}
    if "." not in given:
        names = {small.rpartition(".")[2]: name for small, name in names.items()}
    near = [] if given in names.values() else get_close_matches(given.lower(), names, n=1, cutoff=least)
    return f" (did you mean {names[near[0]]}?)" if near else ""
