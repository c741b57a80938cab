"""
Statements run on a server: what each logged, and what the tables held after it.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from tests.mysql_server.server import Server
from tests.ndb_formats.statements import statement_of

__all__ = ["COPY", "SOURCE", "RecordedRun", "Step", "contents", "create", "record"]

HERE = Path(__file__).parent
SOURCE, COPY = "ndb_formats_test_source", "ndb_formats_test_copy"
DEFINITIONS = (HERE / "schema.sql").read_text("utf-8")
STATEMENTS = (HERE / "statements.sql").read_text("utf-8").splitlines()
_FIRST_SECOND = 1_700_000_000


@attrs.frozen
class Step:
    """
    One statement.

    Attributes:
        sql: Its text.
        start: Position of its first event; that of the statement before it if it logged nothing.
        stop: Position after its last event.
        contents: The rows of all tables after it.
    """

    sql: str
    start: int
    stop: int
    contents: str


@attrs.frozen
class RecordedRun:
    """
    A run of all statements.

    Attributes:
        log: The server's binlog.
        schema: The tables.
        steps: The statements.
    """

    log: Path
    schema: Schema
    steps: tuple[Step, ...]

    def rows(self, step: Step) -> list[LoggedRow]:
        """Return the rows that a statement logged."""
        return list(read_rows(self.log, start=step.start, stop=step.stop, schema=self.schema))

    def written(self, step: Step) -> frozenset[int]:
        """Return the ordinals of the columns that a statement names or sets."""
        return statement_of(step.sql.rstrip(";"), self.schema).written


def record(server: Server, row_image: str, folder: Path) -> RecordedRun:
    """Run all statements under a value of binlog_row_image."""
    create(server, SOURCE, DEFINITIONS)
    server.run("FLUSH BINARY LOGS")
    schema = parse_schema(DEFINITIONS, database=SOURCE)
    position, steps = _position(server), []
    for number, sql in enumerate(STATEMENTS):
        session = f"SET binlog_row_image = {row_image}, binlog_format = ROW, time_zone = '+00:00'"
        server.run(f"USE {SOURCE}; {session}, timestamp = {_FIRST_SECOND + number};\n{sql}")
        start, position = position, _position(server)
        steps.append(Step(sql, start, position, contents(server, SOURCE, schema)))
    folder.mkdir()
    return RecordedRun(server.own_log(folder), schema, tuple(steps))


def create(server: Server, database: str, definitions: str) -> None:
    """Make a database with empty tables; one of that name is dropped first. It is not logged."""
    server.run(
        f"SET sql_log_bin = OFF; DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; USE {database};"
        + definitions
    )


def contents(server: Server, database: str, schema: Schema) -> str:
    """Return the rows of all tables, in an order that depends on them alone."""
    rows = [f"SELECT '{table.name}', {table.name}.* FROM {database}.{table.name};" for table in schema.tables]
    return "\n".join(sorted(server.run(f"SET time_zone = '+00:00'; {''.join(rows)}").splitlines()))


def _position(server: Server) -> int:
    return int(server.run("SHOW BINARY LOG STATUS").split("\t")[1])
