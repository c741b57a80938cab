"""
Follows definitions along a server's own binlog, and holds them against what the server says of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import Event, read_events
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.agreed_definition import differences
from ndb_formats.events.logged_statement import definitions_without_faults, statement_of
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.schema.definitions import Definitions
from ndb_formats.types.charsets import encode_text
from tests.mysql_server.catalog import Shape, disagreements, shapes_of
from tests.mysql_server.connection import Connection, ServerError
from tests.mysql_server.definition_parts import DATABASES
from tests.mysql_server.definition_texts import Case

__all__ = ["Accepted", "DefinitionServer", "Finding", "followed"]


@attrs.frozen
class Accepted:
    """
    A statement that the server carried out.

    Attributes:
        case: The case that it is of.
        statement: The statement.
        end: Position in the log after it.
        shapes: The tables of its database after it, by name.
    """

    case: Case
    statement: str
    end: int
    shapes: dict[str, Shape]


@attrs.frozen
class Finding:
    """One disagreement after a statement; `kind` is ``cannot follow`` for an error, whose text is `mine`."""

    accepted: Accepted
    kind: str
    mine: str
    theirs: str


@attrs.define
class DefinitionServer:
    """A server that runs cases; what it logs goes to a log of its own."""

    path: str
    user: str = "root"
    asking: Connection = attrs.field(init=False)
    mariadb: bool = attrs.field(init=False)
    metadata: str = attrs.field(init=False, default="")

    def __attrs_post_init__(self) -> None:
        self.asking = Connection(self.path, self.user)
        self.asking.run("SET lock_wait_timeout = 5")
        self.mariadb = b"MariaDB" in (self.asking.run("SELECT VERSION()")[0][0] or b"")
        if not self.mariadb:
            self.metadata = (self.asking.run("SELECT @@binlog_row_metadata")[0][0] or b"MINIMAL").decode()
            self.asking.run("SET GLOBAL binlog_row_metadata = FULL")

    def close(self) -> None:
        """Remove the databases, and set the server as it was."""
        for name in DATABASES:
            self.asking.run(f"DROP DATABASE IF EXISTS {name}")
        if not self.mariadb:
            self.asking.run(f"SET GLOBAL binlog_row_metadata = {self.metadata}")

    def log_position(self) -> tuple[str, int]:
        """Return name and end of the log that is written now."""
        query = "SHOW MASTER STATUS" if self.mariadb else "SHOW BINARY LOG STATUS"
        name, position = self.asking.run(query)[0][:2]
        return (name or b"").decode(), int(position or 0)

    def run(self, cases: Iterable[Case]) -> tuple[Path, list[Accepted], int]:
        """Run cases; return the log, the statements that the server carried out, and how many it refused."""
        for name in DATABASES:
            self.asking.run(f"DROP DATABASE IF EXISTS {name}")
        self.asking.run("FLUSH BINARY LOGS")
        log, _ = self.log_position()
        for name, options in DATABASES.items():
            self.asking.run(f"CREATE DATABASE {name} {options}")
        accepted, refused = list[Accepted](), 0
        for case in cases:
            found = self._run(case)
            accepted += found
            refused += len(case.statements) - len(found)
        folder = self.asking.run("SELECT @@log_bin_basename")[0][0] or b""
        return Path(folder.decode()).parent / log, accepted, refused

    def _run(self, case: Case) -> list[Accepted]:
        accepted = list[Accepted]()
        with Connection(self.path, self.user) as session:
            session.run(f"USE {case.database}")
            for setting in case.settings:
                with suppress(ServerError):  # a setting that this server does not have
                    session.run(setting)
            for statement in case.statements:
                try:
                    session.run(encode_text(statement, case.charset))
                except (ServerError, UnicodeError):
                    continue
                shapes = shapes_of(self.asking, case.database, mariadb=self.mariadb)
                end = self.log_position()[1]
                accepted.append(Accepted(case, statement, end, shapes))
                self._insert(case.database, shapes)
        self._clear(case)
        return accepted

    def _insert(self, database: str, shapes: dict[str, Shape]) -> None:
        """Log a row of each table, as far as it has defaults: its Table_map event tells what the table is."""
        self.asking.run("SET sql_mode = ''")
        for name in shapes:
            with suppress(ServerError):
                self.asking.run(f"INSERT IGNORE INTO `{database}`.`{name}` () VALUES ()")

    def _clear(self, case: Case) -> None:
        """Remove what a case made."""
        database = case.database
        self.asking.run("SET foreign_key_checks = 0")
        query = f"SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"
        for name, kind in self.asking.run(query):
            what = {b"VIEW": "VIEW", b"SEQUENCE": "SEQUENCE"}.get(kind or b"", "TABLE")
            self.asking.run(f"DROP {what} `{database}`.`{(name or b'').decode()}`")
        with suppress(ServerError):
            self.asking.run(f"DROP PROCEDURE IF EXISTS {database}.p1")
        if any(" DATABASE" in statement for statement in case.statements):
            self.asking.run(f"DROP DATABASE {database}")
            self.asking.run(f"CREATE DATABASE {database} {DATABASES[database]}")


def followed(log: Path, accepted: Iterable[Accepted]) -> Iterator[Finding]:
    """Yield the first disagreement of each case, as the definitions are followed along the log."""
    known, waiting, done = Definitions.of([]), iter(accepted), set[int]()
    answer, previous = next(waiting, None), None
    for event in read_events(log):
        fault = ""
        if event.type is EventType.QUERY_EVENT:
            known, fault = _after(known, event)
        elif event.type is EventType.TABLE_MAP_EVENT and previous is not None and id(previous.case) not in done:
            found = list(_mapped(known, event, previous))
            done |= {id(previous.case)} if found else set()
            yield from found[:1]
        if answer is not None and fault and id(answer.case) not in done and event.end <= answer.end:
            done.add(id(answer.case))
            yield Finding(answer, "cannot follow", fault, "")
        while answer is not None and answer.end <= event.end:
            if id(answer.case) not in done:
                found = list(_compared(known, answer))
                done |= {id(answer.case)} if found else set()
                yield from found
            previous, answer = answer, next(waiting, None)


def _after(known: Definitions, event: Event) -> tuple[Definitions, str]:
    """Return definitions after a Query event, and why it cannot be followed; empty if it can."""
    statement = statement_of(decode_query(event.body, event.server))
    if statement is None:
        return known, ""
    try:
        return known.after(statement)[0], ""
    except FormatError as error:
        return definitions_without_faults(known, statement), str(error)
    except Exception as error:  # noqa: BLE001 - any other error is a finding
        return known, f"{type(error).__name__}: {error}"


def _compared(known: Definitions, answer: Accepted) -> Iterator[Finding]:
    database = answer.case.database
    for name, shape in answer.shapes.items():
        for kind, mine, theirs in disagreements(known.find(database, name), shape):
            yield Finding(answer, kind, mine, theirs)
    for where, name in known.tables:
        if where == database and name not in answer.shapes:
            yield Finding(answer, "table that is gone", name, "")


def _mapped(known: Definitions, event: Event, answer: Accepted) -> Iterator[Finding]:
    try:
        found = decode_table_map(event.body, event.server)
        table = known.find(found.database, found.table)
        if table is None:
            yield Finding(answer, "no table for rows", found.full_name, "")
            return
        for each in differences(found, table):
            # MariaDB logs a column that it hides for each unique key that it keeps as hashes.
            hashes = "MariaDB" in event.server and len(found.types) > len(table.columns)
            kind = "hidden hash column" if hashes else "metadata"
            yield Finding(answer, kind, f"{each.column}: {each.schema}", each.binlog)
    except FormatError as error:
        yield Finding(answer, "unreadable metadata", str(error), "")
