"""
A log in stretches in which definitions stay: from one statement that changes them to the next.

The schema says how tables stand at the start of a log. Each server whose files are read has a log of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from ndb_formats.binlog_reader import FIRST_POSITION, server_of
from ndb_formats.columnar.log_scan import LoggedStatement, scan_log
from ndb_formats.errors import FormatError
from ndb_formats.events.logged_statement import definitions_following, definitions_without_faults
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.tables import Schema
from ndb_formats.schema.undo import definitions_before

__all__ = ["Stretch", "Stretches", "schema_at_start"]


@attrs.frozen(eq=False)
class Stretch:
    """
    A part of a file in which definitions stay.

    Attributes:
        file: Path of the file.
        start: Position of its first event.
        stop: Position after its last event; None for the end of the file.
        schema: The definitions that are in force.
    """

    file: str
    start: int
    stop: int | None
    schema: Schema

    def within(self, start: int, stop: int | None) -> tuple[int, int | None] | None:
        """Return the part of it between two positions, the second exclusive; None if there is none."""
        first = max(self.start, start)
        last = min((each for each in (self.stop, stop) if each is not None), default=None)
        return None if last is not None and last <= first else (first, last)


class Stretches:
    """
    Divides files into stretches, in the order in which they were written.

    A statement that cannot be followed makes its table one that is not known from there on; the others stay.

    Attributes:
        notes: What is to be said of statements that cannot be followed, with their places.
    """

    def __init__(self, schema: Schema, *, follows: bool = True) -> None:
        """
        Start before the first file.

        Args:
            schema: Definitions at the start of each log.
            follows: Whether statements in the log change them.
        """
        self.notes: list[str] = []
        self._schema = schema
        self._follows = follows
        self._known: dict[int | None, Definitions] = {}

    def of(self, file: str, *, start: int = FIRST_POSITION, stop: int | None = None) -> Iterator[Stretch]:
        """
        Yield the stretches of the next file.

        Args:
            file: Path of the file. An error in it is left to whoever reads the stretches.
            start: Position from which statements are followed.
            stop: Position to stop before; None for the end of the file.
        """
        server = server_of(file)
        current = self._known.get(server) or self._start(server)
        for item in _statements([file]) if self._follows else ():
            if item.position < start or (stop is not None and item.position >= stop):
                continue
            try:
                after = definitions_following(current, item.statement)
            except FormatError as error:
                self.notes.append(_unfollowed(item, error))
                after = definitions_without_faults(current, item.statement)
            if (after.tables, after.gone) != (current.tables, current.gone):
                yield Stretch(file, start, item.position, current.schema)
                start = item.position
            self._known[server] = current = after
        yield Stretch(file, start, stop, current.schema)

    def _start(self, server: int | None) -> Definitions:
        schema = self._schema.of_server(server)
        return attrs.evolve(Definitions.of(schema.tables, inexact_keys=schema.inexact_keys), any_case=True)


def _unfollowed(item: LoggedStatement, error: FormatError) -> str:
    table = "" if error.table is None else f"table {error.table}: "
    return (
        f"{item.file}, position {item.position}: {table}{error.message}. From here on its definition is not known, and "
        "its columns are those that the binlog tells"
    )


def schema_at_start(files: Sequence[str], schema: Schema) -> Schema:
    """
    Return the definitions at the start of logs from those at their end.

    Args:
        files: In the order in which they were written.
        schema: Definitions at the end.

    Raises:
        SchemaError: A statement cannot be taken back.
    """
    servers = {server for server, _ in schema.of_servers}
    logs: dict[int | None, list[str]] = {}
    for file in files:
        server = server_of(file)
        logs.setdefault(server if server in servers else None, []).append(file)
    own = tuple((server, _before(logs.get(server, ()), each)) for server, each in schema.of_servers)
    return attrs.evolve(_before(logs.get(None, ()), schema), of_servers=own)


def _before(files: Sequence[str], schema: Schema) -> Schema:
    end = Definitions.of(schema.tables, inexact_keys=schema.inexact_keys)
    return definitions_before(end, [item.statement for item in _statements(files)]).schema


def _statements(files: Sequence[str]) -> Iterator[LoggedStatement]:
    return (item for item in scan_log(files, verify=False) if isinstance(item, LoggedStatement))
