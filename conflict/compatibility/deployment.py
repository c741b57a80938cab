"""
A conflict function as deployed: on a table, under the logging of both clusters and the roles of their appliers.

A function judges the changes that arrive, so the logging of the *other* cluster decides what it can judge. The
logging of its own cluster matters when the server creates the table, and for refreshed rows.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from conflict.rules.functions import ConflictFunction
from conflict.rules.roles import Role
from ndb_formats.rules.update_format import (
    BINLOG_TYPES,
    ServerOptions,
    UpdateFormat,
    effective_format,
    parse_binlog_type,
)
from ndb_formats.schema.tables import Table

__all__ = ["Deployment", "Policy", "TableLogging", "type_name"]


class Policy(StrEnum):
    """
    Which functions are allowed with which binlog types.

    NEEDS decides as the server does, by the columns that each event carries.

    MANUAL adds one rule for the minimal formats, whose before image holds the key alone (types 8 and 9, and type 0
    with equivalent options). The manual says that `NDB$OLD` and `NDB$MAX` do not work correctly with them, so both
    are refused. Any other function must need key values only: the `NDB$EPOCH*` functions compare epochs and pass;
    `NDB$MAX_DELETE_WIN`, `NDB$MAX_INS` and `NDB$MAX_DEL_WIN_INS` compare a column, the manual does not name them
    with these types, and they are refused.
    """

    MANUAL = "manual"
    NEEDS = "needs"


def type_name(number: int) -> str:
    """Return number and name of a binlog type, as ``7 FULL_USE_UPDATE``."""
    names = {row.number: row.name for row in BINLOG_TYPES}
    return f"{number} {names[number] or '(unknown to the server)'}"


@attrs.frozen
class TableLogging:
    """
    How a cluster logs the changes of a table.

    Attributes:
        binlog_type: From `mysql.ndb_replication`; a name, or None for type 0, is accepted too.
        options: The server options that count for type 0.
        transaction_ids: Whether row events carry a transaction id (``ndb_log_transaction_id``); None if unknown.
    """

    binlog_type: int = attrs.field(default=0, converter=parse_binlog_type)
    options: ServerOptions = attrs.field(factory=ServerOptions)
    transaction_ids: bool | None = None

    @property
    def format(self) -> UpdateFormat:
        """The update format that follows from type and options."""
        return effective_format(self.binlog_type, self.options)

    def __str__(self) -> str:
        """Name the type, and for type 0 the equivalent type."""
        if self.binlog_type != 0:
            return f"binlog_type {type_name(self.binlog_type)}"
        same = [row.number for row in BINLOG_TYPES if row.names and row.format == self.format]
        # Types 4 and 6 mean the same; the manual uses 6.
        return f"binlog_type {type_name(0)} (by the server options as {type_name(same[-1])})"


@attrs.frozen
class Deployment:
    """
    A function on the applier of one cluster, and the settings that decide what it can judge.

    Attributes:
        function: The function.
        table: The table that has the function.
        source: How the other cluster logs the table; its changes are the ones that arrive.
        own: How the applier's cluster logs the table; None means as the other cluster does.
        role: ``ndb_applier_conflict_role`` of the applier; None if unknown.
        peer_role: The role of the other cluster's applier; None if unknown.
        on_both: Whether the other cluster has a function of the same kind on the table; None if unknown.
        others: Other tables that a transaction may change together with this one.
    """

    function: ConflictFunction
    table: Table
    source: TableLogging = attrs.field(factory=TableLogging)
    own: TableLogging | None = None
    role: Role | None = None
    peer_role: Role | None = None
    on_both: bool | None = None
    others: tuple[Table, ...] = attrs.field(default=(), repr=False)

    @property
    def own_logging(self) -> TableLogging:
        """How the applier's cluster logs the table."""
        return self.own or self.source

    def __str__(self) -> str:
        return f"{self.function} with {self.source} on table {self.table.full_name.removeprefix('.')}"
