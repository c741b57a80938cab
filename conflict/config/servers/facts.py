"""
What is read of a server: variables, filters, channels, definitions, rows of ``mysql.ndb_replication``, counters, clock.

Each step names the privilege that it needs; nothing else is asked, and no row of a user's table is read.

    variables       SHOW GLOBAL VARIABLES
    filters         SHOW BINARY LOG STATUS; of a server without channels, replication_applier_global_filters
    channels        SHOW REPLICA STATUS; of a stopped applier, replication_applier_status_by_worker
    definitions     information_schema.TABLES, SHOW CREATE TABLE
    rows            SELECT * FROM mysql.ndb_replication
    counters        SHOW GLOBAL STATUS LIKE 'Ndb_%'
    clock           SELECT UTC_TIMESTAMP(6)

Source: MySQL manual, the pages of these statements; releases before 8.0.22 and 8.2 have the older ones.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import attrs

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.servers.connection import Cell, DeniedError, Row, RunningServer, UnknownError
from conflict.errors import ConfigurationError
from conflict.rules.replication_filter import FILTER_OPTIONS

_CLIENT, _ALL = "REPLICATION CLIENT ON *.*", "SELECT ON {}.*"
_REPLICATION = "mysql.ndb_replication"
_ROWS = "SELECT * FROM mysql.ndb_replication"
_FILTERS = "performance_schema.replication_applier_global_filters"
_RULES = "SELECT FILTER_NAME, FILTER_RULE FROM performance_schema.replication_applier_global_filters"
_WORKERS = "performance_schema.replication_applier_status_by_worker"
WORKER_ERRORS = (
    "SELECT CHANNEL_NAME, LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM "
    "performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER <> 0"
)
_TABLES = (
    "SELECT TABLE_SCHEMA AS db, TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND "
    "TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys', 'ndbinfo') "
    "ORDER BY TABLE_SCHEMA, TABLE_NAME"
)


@attrs.frozen
class ServerFacts:
    """
    What a server says of itself.

    Attributes:
        variables: Its variables by name, as they are in force; filters of its log, and of channels that are yet to be
            made, among them.
        channels: The rows of ``SHOW REPLICA STATUS``, with the names of the server's release. Where a worker stopped
            the applier, Last_SQL_Error is the worker's text; the coordinator's one says where to look for that.
        definitions: By database and table, its ``CREATE TABLE`` statement.
        replication: The rows of ``mysql.ndb_replication``; None if there is no such table.
        counters: The status variables of NDB, by name.
        clock: How far its clock is ahead of this machine's, in microseconds, at least and at most.
        remarks: What the account may not read and need not, with the GRANT statement for it.
    """

    variables: Mapping[str, str]
    channels: tuple[Row, ...]
    definitions: Mapping[tuple[str, str], str]
    replication: tuple[Row, ...] | None
    counters: Mapping[str, str]
    clock: tuple[int, int]
    remarks: tuple[str, ...] = ()

    @property
    def server_id(self) -> int:
        """Its server id."""
        return int(self.variables["server_id"])

    @property
    def is_of_ndb(self) -> bool:
        """Whether it has the variables of NDB."""
        return any(name.startswith("ndb_") for name in self.variables)

    @property
    def judges(self) -> bool:
        """Whether its applier can find conflicts: it is of NDB, and has a channel."""
        return self.is_of_ndb and bool(self.channels)

    @property
    def source_ids(self) -> frozenset[int]:
        """The server ids of the sources of its channels; 0 of a channel that has never been connected."""
        texts = (row.get("Source_Server_Id", row.get("Master_Server_Id")) for row in self.channels)
        return frozenset(int(str(text)) for text in texts if text is not None)


def facts_of(server: RunningServer, progress: StageProgress = no_progress) -> ServerFacts:
    """
    Ask a server for all that a check reads.

    Args:
        server: The server.
        progress: Called with the name of a stage, the tables whose definitions are read, and how many there are.

    Raises:
        ConfigurationError: A privilege is missing, no table is visible, or the connection was lost.
    """
    variables = dict(_pairs(server.ask("SHOW GLOBAL VARIABLES")))
    channels, remarks = _channels(server)
    return ServerFacts(
        {**variables, **_filters_of_log(server), **({} if channels else _filters_to_be(server))},
        channels,
        _definitions(server, progress),
        _replication(server),
        counters_of(server),
        _clock(server),
        remarks,
    )


def counters_of(server: RunningServer) -> dict[str, str]:
    """Return the status variables of NDB, as they are now."""
    return dict(_pairs(server.ask("SHOW GLOBAL STATUS LIKE 'Ndb\\_%'")))


def quoted_name(*parts: str) -> str:
    """Return a name as SQL, with its database."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    for row in rows:
        name, value = row.values()
        yield str(name), _text(value)


def _text(cell: Cell) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell or ""


def _first_known(server: RunningServer, *statements: str) -> list[Row]:
    """Return the answer to the first statement that the server's release knows."""
    for statement in statements[:-1]:
        try:
            return server.ask(statement, _CLIENT)
        except UnknownError:
            continue
    return server.ask(statements[-1], _CLIENT)


def _channels(server: RunningServer) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Return the channels with the errors of their workers, and what the account lacks for these."""
    rows = _first_known(server, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
    if all(row.get("Last_SQL_Errno", "0") == "0" for row in rows):
        return tuple(rows), ()
    try:
        workers = server.ask(WORKER_ERRORS, f"SELECT ON {_WORKERS}")
    except DeniedError as error:
        return tuple(rows), (f"What stopped the applier is known in part alone. {error}.",)
    except UnknownError:
        return tuple(rows), ()
    said = {(each["CHANNEL_NAME"], each["LAST_ERROR_NUMBER"]): each["LAST_ERROR_MESSAGE"] for each in workers}
    keys = ((row.get("Channel_Name"), row.get("Last_SQL_Errno")) for row in rows)
    return tuple(
        {**row, "Last_SQL_Error": said[key]} if key in said else row for row, key in zip(rows, keys, strict=True)
    ), ()


def _filters_of_log(server: RunningServer) -> dict[str, str]:
    """Return the filters of the binary log, which are no variables; none without a log."""
    try:
        rows = _first_known(server, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
    except UnknownError:
        return {}
    found = {name.lower(): _text(row.get(name)) for row in rows for name in ("Binlog_Do_DB", "Binlog_Ignore_DB")}
    return {name: value for name, value in found.items() if value}


def _filters_to_be(server: RunningServer) -> dict[str, str]:
    """Return the filters that a channel will have when it is made."""
    rows = server.ask(_RULES, f"SELECT ON {_FILTERS}")
    found = {name.lower(): value for name, value in _pairs(rows)}
    return {name: value for name, value in found.items() if name in FILTER_OPTIONS and value}


def _definitions(server: RunningServer, progress: StageProgress) -> dict[tuple[str, str], str]:
    found = dict[tuple[str, str], str]()
    tables = server.ask(_TABLES)
    for number, row in enumerate(tables, 1):
        progress(f"tables of {server.address.cluster or server.address}", number, len(tables))
        database, name = _text(row["db"]), _text(row["name"])
        try:
            rows = server.ask(f"SHOW CREATE TABLE {quoted_name(database, name)}", _ALL.format(quoted_name(database)))
        except UnknownError:  # it was dropped meanwhile
            continue
        found[database, name] = _text(rows[0]["Create Table"])
    if not found:
        message = (
            f"{server.address}: there is no table, or {server.account} sees none; GRANT SELECT ON DATABASE.* TO "
            f"{server.account}, for each database that is replicated"
        )
        raise ConfigurationError(message)
    return found


def _replication(server: RunningServer) -> tuple[Row, ...] | None:
    try:
        return tuple(server.ask(_ROWS, f"SELECT ON {_REPLICATION}"))
    except UnknownError:
        return None


def _clock(server: RunningServer) -> tuple[int, int]:
    """Return the bounds of what a server's clock is ahead: it was read between two moments of this machine's."""
    before = time.time_ns() // 1000
    (row,) = server.ask("SELECT UTC_TIMESTAMP(6) AS now")
    after = time.time_ns() // 1000 + 1
    moment = datetime.fromisoformat(_text(row["now"])).replace(tzinfo=UTC)
    now = (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
    return now - after, now - before


def without_auto_increment(definition: str) -> str:
    """Return a definition without the next generated value, in which clusters differ."""
    return re.sub(r"(?m)(^\).*) AUTO_INCREMENT=\d+", r"\1", definition)
