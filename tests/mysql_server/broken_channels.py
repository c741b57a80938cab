"""
A channel between two running MySQL servers, brought into each state that `check --server` tells of.

Both servers are given by their sockets, as `Connection` needs them, and listen on 127.0.0.1. Everything is made and
removed again without a trace in the source's binlog.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import attrs

from tests.mysql_server.connection import Connection

__all__ = ["ACCOUNT", "DATABASE", "SITUATIONS", "Situation", "broken", "clean"]

DATABASE, ACCOUNT, PASSWORD = "ndb_conflict_channel", "ndb_conflict_receiver", "right"
_TABLE = "CREATE TABLE {} (k INT NOT NULL PRIMARY KEY, v INT, UNIQUE KEY v (v))"
_REMOVED = (f"DROP DATABASE IF EXISTS {DATABASE}", f"DROP USER IF EXISTS {ACCOUNT}@'%', {ACCOUNT}_without@'%'")
_SECONDS = 20  # until a state has come


@attrs.frozen
class Situation:
    """
    A state of a channel.

    Attributes:
        code: The finding; empty of a channel that works.
        error: The error of the thread that stops or has no connection; 0 of a channel that works.
        said: A part of what the server says of it.
        fix: A part of what is to be typed.
        options: Options of CHANGE REPLICATION SOURCE TO in place of the right ones.
        replica: Statements on the replica before it starts.
        source: Statements on the source after that.
        locked: Statements of another session on the replica, which stays open, before the source's.
    """

    code: str
    error: int
    said: str = ""
    fix: str = ""
    options: Mapping[str, str] = attrs.field(factory=dict)
    replica: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()


def _receiver(error: int, said: str, fix: str, **options: str) -> Situation:
    return Situation("NDB-E102" if error == 13114 else "NDB-E104", error, said, fix, options)


def _applier(error: int, said: str, fix: str, replica: str, source: str) -> Situation:
    return Situation("NDB-E103", error, said, fix, replica=(replica,), source=(source,))


_T = f"{DATABASE}.t"
_INSERT = f"INSERT INTO {_T} VALUES (2, 2)"
_DELETE = f"DELETE FROM {_T} WHERE k = 1"
_BOTH = f"SELECT both rows of {_T}"
SITUATIONS = {
    "healthy": Situation("", 0, source=(_INSERT,)),
    "wrong password": _receiver(
        1045,
        f"Access denied for user '{ACCOUNT}'@",
        f"CHANGE REPLICATION SOURCE TO SOURCE_USER = '{ACCOUNT}', SOURCE_PASSWORD = '...'; START REPLICA",
        SOURCE_PASSWORD="'wrong'",
    ),
    "no such account": _receiver(
        1045, "Access denied for user 'nobody'@", "SOURCE_USER = 'nobody'", SOURCE_USER="'nobody'"
    ),
    "wrong port": _receiver(
        2003, "Can't connect to MySQL server on '127.0.0.1:1'", "SOURCE_PORT = 1;", SOURCE_PORT="1"
    ),
    "unknown host": _receiver(
        2005, "Unknown MySQL server host", "SOURCE_HOST = 'nowhere.invalid'", SOURCE_HOST="'nowhere.invalid'"
    ),
    "no TLS": _receiver(
        2061, "requires secure connection", "SOURCE_SSL = 1;", SOURCE_SSL="0", GET_SOURCE_PUBLIC_KEY="0"
    ),
    "no privilege": _receiver(
        13120,
        "COM_REGISTER_REPLICA failed",
        f"GRANT REPLICATION SLAVE ON *.* TO '{ACCOUNT}_without'@'%' on london",
        SOURCE_USER=f"'{ACCOUNT}_without'",
    ),
    "no such log": _receiver(13114, "Could not find first log file", "channel", SOURCE_LOG_FILE="'binlog.999999'"),
    "position after the end": _receiver(13114, "position > file size", "channel", SOURCE_LOG_POS="999999999"),
    "duplicate primary key": _applier(
        1062, "Duplicate entry '2' for key 't.PRIMARY'", _BOTH, f"INSERT INTO {_T} VALUES (2, 9)", _INSERT
    ),
    "duplicate value": _applier(
        1062, "Duplicate entry '2' for key 't.v'", _BOTH, f"INSERT INTO {_T} VALUES (9, 2)", _INSERT
    ),
    "missing row": _applier(1032, "Can't find record in 't'", f"INSERT the row into {_T}", _DELETE, _DELETE),
    "missing table": _applier(
        1146,
        f"Table '{_T}' doesn't exist",
        "SHOW CREATE TABLE on london",
        f"DROP TABLE {DATABASE}.child, {_T}",
        _INSERT,
    ),
    "another type": _applier(
        13146,
        "cannot be converted from type 'int'",
        "replica_type_conversions",
        f"ALTER TABLE {_T} MODIFY v VARCHAR(9)",
        _INSERT,
    ),
    "locked row": Situation(
        "NDB-E103",
        1205,
        "Lock wait timeout exceeded",
        "performance_schema.data_locks",
        replica=("SET GLOBAL innodb_lock_wait_timeout = 1", "SET GLOBAL replica_transaction_retries = 1"),
        source=(f"UPDATE {_T} SET v = 5 WHERE k = 1",),
        locked=("BEGIN", f"SELECT * FROM {_T} FOR UPDATE"),
    ),
    "missing parent": _applier(
        1452,
        "a foreign key constraint fails",
        "INSERT the row that it refers to",
        _DELETE,
        f"INSERT INTO {DATABASE}.child VALUES (1, 1)",
    ),
}


@contextmanager
def broken(source: Connection, replica: Connection, replica_socket: str, situation: Situation) -> Iterator[None]:
    """Bring the channel into a state for a while."""
    _make(source, replica)
    with Connection(replica_socket) as other:
        try:
            (log, position), *_ = ((row[0] or b"", row[1] or b"") for row in source.run("SHOW BINARY LOG STATUS"))
            (port,) = (row[0] or b"" for row in source.run("SELECT @@port"))
            options = {
                "SOURCE_HOST": "'127.0.0.1'",
                "SOURCE_PORT": port.decode(),
                "SOURCE_USER": f"'{ACCOUNT}'",
                "SOURCE_PASSWORD": f"'{PASSWORD}'",
                "GET_SOURCE_PUBLIC_KEY": "1",
                "SOURCE_LOG_FILE": f"'{log.decode()}'",
                "SOURCE_LOG_POS": position.decode(),
                "SOURCE_CONNECT_RETRY": "1",
                **situation.options,
            }
            for statement in situation.replica:
                replica.run(statement)
            given = ", ".join(f"{name} = {value}" for name, value in options.items())
            replica.run(f"CHANGE REPLICATION SOURCE TO {given}")
            replica.run("START REPLICA")
            for statement in situation.locked:
                other.run(statement)
            source.run("SET SESSION sql_log_bin = 1")
            for statement in situation.source:
                source.run(statement)
            _wait(replica, situation)
            yield
        finally:
            if situation.locked:
                other.run("ROLLBACK")
            clean(source, replica)


def _make(source: Connection, replica: Connection) -> None:
    clean(source, replica)
    for server in (source, replica):
        server.run(f"CREATE DATABASE {DATABASE}")
        server.run(_TABLE.format(f"{DATABASE}.t"))
        server.run(f"INSERT INTO {DATABASE}.t VALUES (1, 1)")
    source.run(f"CREATE TABLE {DATABASE}.child (k INT NOT NULL PRIMARY KEY, t INT)")
    replica.run(f"CREATE TABLE {DATABASE}.child (k INT NOT NULL PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (k))")
    for user in (ACCOUNT, f"{ACCOUNT}_without"):
        source.run(f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}'")
    source.run(f"GRANT REPLICATION SLAVE ON *.* TO {ACCOUNT}@'%'")


def clean(source: Connection, replica: Connection) -> None:
    """Remove the channel, and what the source and the replica were given for it."""
    for server in (source, replica):
        server.run("SET SESSION sql_log_bin = 0")
    replica.run("STOP REPLICA")
    replica.run("RESET REPLICA ALL")
    for name in ("innodb_lock_wait_timeout", "replica_transaction_retries"):
        replica.run(f"SET GLOBAL {name} = DEFAULT")
    for server in (source, replica):
        for statement in _REMOVED:
            server.run(statement)


def _wait(replica: Connection, situation: Situation) -> None:
    """Wait until the channel is in its state."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        if situation.error:
            where = "replication_connection_status", "replication_applier_status_by_worker"
            numbers = [
                int(row[0] or b"0")
                for table in where
                for row in replica.run(f"SELECT LAST_ERROR_NUMBER FROM performance_schema.{table}")
            ]
            if situation.error in numbers:
                return
        elif replica.run(f"SELECT 1 FROM {DATABASE}.t WHERE k = 2"):
            return
        time.sleep(0.1)
    message = f"the channel is not in the state that gives error {situation.error} after {_SECONDS} seconds"
    raise AssertionError(message)
