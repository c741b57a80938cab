"""
What each storage engine can log.

Source: the manual, "Binary Logging Formats", table of engines; for NDB the recordings: under STATEMENT it logs
statements as others do, under ROW and MIXED it logs its rows itself, after the commit.
"""

from __future__ import annotations

from enum import Enum

import attrs

from ndb_formats.rules.statement_logging.decision import BinlogFormat, Capability

__all__ = ["ENGINES", "Engine", "Isolation", "engine_of", "together"]

# The engines that come with MySQL and MySQL NDB Cluster, and that tables can have.
ENGINES = frozenset(
    {"ARCHIVE", "BLACKHOLE", "CSV", "EXAMPLE", "FEDERATED", "INNODB", "MEMORY", "MRG_MYISAM", "MYISAM", "NDB"}
)
_ROW_ONLY = frozenset({"EXAMPLE"})
# BLACKHOLE has nothing to roll back, and its statements wait for the end of a transaction as those of InnoDB do.
_TRANSACTIONAL = frozenset({"BLACKHOLE", "INNODB", "NDB"})


class Isolation(Enum):
    """The transaction isolation levels, as spelled in ``transaction_isolation``."""

    READ_UNCOMMITTED = "READ-UNCOMMITTED"
    READ_COMMITTED = "READ-COMMITTED"
    REPEATABLE_READ = "REPEATABLE-READ"
    SERIALIZABLE = "SERIALIZABLE"

    @property
    def below_repeatable_read(self) -> bool:
        """Whether it is READ COMMITTED or READ UNCOMMITTED."""
        return self in (Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED)


@attrs.frozen
class Engine:
    """
    A storage engine in a session.

    Attributes:
        name: Its name in upper case.
        transactional: Whether its changes can be rolled back.
        rows: Whether it can log rows.
        statements: Whether statements on it can be logged.
        self_logging: Whether it writes its rows to the binary log itself.
    """

    name: str
    transactional: bool
    rows: bool = True
    statements: bool = True
    self_logging: bool = False


def engine_of(name: str, binlog_format: BinlogFormat, isolation: Isolation) -> Engine:
    """Return an engine as it logs under a format and an isolation level."""
    if name == "NDB":
        statement = binlog_format is BinlogFormat.STATEMENT
        return Engine(name, transactional=True, statements=statement, self_logging=not statement)
    if name == "INNODB":
        return Engine(name, transactional=True, statements=not isolation.below_repeatable_read)
    return Engine(name, transactional=name in _TRANSACTIONAL, statements=name not in _ROW_ONLY)


def together(engines: list[Engine]) -> Capability:
    """Return what several engines can log together; no engine at all can log both."""
    rows, statements = all(each.rows for each in engines), all(each.statements for each in engines)
    if rows:
        return Capability.BOTH if statements else Capability.ROW
    return Capability.STATEMENT if statements else Capability.NEITHER
