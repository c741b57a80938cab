"""
An SQL node that is running: its statements, its epochs, its place in its own binary log.

An epoch is known by its number. Changes of all sessions, appliers among them, fall into the epoch that is open in the
data nodes; the SQL node receives it when it is complete, and then writes it to its log.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pymysql

__all__ = ["NotReachedError", "Position", "SqlNode", "until"]

Position = tuple[str, int]  # file and offset in a binary log
Result = dict[str, Any]


class NotReachedError(Exception):
    """Something that was waited for did not come; the message says what."""


def until(what: str, reached: Callable[[], Any], seconds: float, pause: float = 0.01) -> Any:
    """
    Return what a function returns once that is true.

    Raises:
        NotReachedError: It is not, in that time.
    """
    end = time.monotonic() + seconds
    while not (found := reached()):
        if time.monotonic() > end:
            message = f"{what}: not reached in {seconds:g} s"
            raise NotReachedError(message)
        time.sleep(pause)
    return found


@attrs.define(eq=False)
class SqlNode:
    """
    An SQL node.

    Attributes:
        cluster: Its cluster.
        server_id: Its server id.
        folder: Where its files are: `sock`, `error.log`, `data/binlog.000001`.
        port: Its port on 127.0.0.1.
        database: The database of new sessions; None for none.
    """

    cluster: str
    server_id: int
    folder: Path
    port: int
    database: str | None = attrs.field(default=None, init=False)
    _sessions: dict[str, pymysql.Connection[Any]] = attrs.field(factory=dict, init=False, repr=False)

    def session(self, name: str = "") -> pymysql.Connection[Any]:
        """Return a session of its own for each name; values come as text, or as bytes."""
        if name not in self._sessions:
            socket = str(self.folder / "sock")
            self._sessions[name] = pymysql.connect(
                unix_socket=socket, user="root", autocommit=True, conv={}, database=self.database
            )
        return self._sessions[name]

    def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement of the recorder; return its rows."""
        with self.session().cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def row(self, sql: str) -> dict[str, Any]:
        """Run a statement of the recorder; return its first row by column, or nothing."""
        with self.session().cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(sql)
            return cursor.fetchone() or {}

    def result(self, sql: str, session: str) -> Result:
        """Run a statement of a scenario; return what came of it as a recording says it."""
        with self.session(session).cursor() as cursor:
            try:
                cursor.execute(sql)
                rows = None if cursor.description is None else [list(row) for row in cursor.fetchall()]
                found: Result = {"affected": cursor.rowcount} if rows is None else {"rows": rows}
            except pymysql.err.MySQLError as error:
                found = {"error": list(error.args[:2])}
            cursor.execute("SHOW WARNINGS")
            warnings = [[level, int(number), text] for level, number, text in cursor.fetchall()]
        return {**found, "warnings": warnings} if warnings else found

    def variables(self, names: Sequence[str] = ()) -> dict[str, str]:
        """Return global variables, all of them or those named that it has."""
        found = dict(self.rows("SHOW GLOBAL VARIABLES"))
        return {name: found[name] for name in names if name in found} if names else found

    def status(self, pattern: str) -> dict[str, int]:
        """Return global status variables that are numbers."""
        return {name: int(value) for name, value in self.rows(f"SHOW GLOBAL STATUS LIKE '{pattern}'")}

    # Epochs

    def latest_epoch(self) -> int:
        """Return the latest epoch that is complete and that this SQL node has received."""
        return self._binlog_epochs()["latest_epoch"]

    def _binlog_epochs(self) -> dict[str, int]:
        lines = (text for _, name, text in self.rows("SHOW ENGINE NDB STATUS") if name == "binlog")
        return {name: int(value) for line in lines for name, value in re.findall(r"(\w+)=(\d+)", line)}

    def last_commit(self) -> int:
        """Return the epoch of the last commit of this SQL node, of an applier too."""
        return self.status("Ndb_last_commit_epoch_server")["Ndb_last_commit_epoch_server"]

    def close_epoch(self) -> None:
        """Wait until what this SQL node changed stands in an epoch that is complete."""
        last = self.last_commit()
        until(f"epoch {last}", lambda: self.latest_epoch() >= last, 30)

    # Its binary log

    def position(self) -> Position:
        """Return the end of the binary log, once it holds everything that the cluster had changed by now."""
        self.close_epoch()
        latest = self.latest_epoch()
        until(f"epoch {latest} in the log", lambda: self._binlog_epochs()["latest_handled_binlog_epoch"] >= latest, 30)
        statement = "SHOW BINARY LOG STATUS" if self.knows_sources else "SHOW MASTER STATUS"
        file, offset = self.rows(statement)[0][:2]
        return str(file), int(offset)

    def after_epoch(self, epoch: int) -> Position | None:
        """Return where the log goes on after an epoch, as the manual finds it; None if it has none up to that one."""
        found = self.rows(
            "SELECT next_file, next_position FROM mysql.ndb_binlog_index "
            f"WHERE epoch <= {epoch} ORDER BY epoch DESC LIMIT 1"
        )
        return (Path(_text(found[0][0])).name, int(found[0][1])) if found else None

    def reset_log(self) -> None:
        """Begin the binary log anew."""
        self.rows("RESET BINARY LOGS AND GTIDS" if self.knows_sources else "RESET MASTER")

    @property
    def knows_sources(self) -> bool:
        """Whether it has the statements of 8.2 and later, which call a master a source."""
        major, minor = self.row("SELECT VERSION() AS v")["v"].split(".")[:2]
        return (int(major), int(minor)) >= (8, 2)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
