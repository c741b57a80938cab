"""
A conflict function together with the logging that it depends on: the question that `requirements` answers.

A function judges what arrives, so the logging that counts is that of the *other* cluster. The logging of its
own cluster matters where the server refuses to create the table, and for the rows that are sent again.
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

__all__ = ["Pairing", "Policy", "TableLogging", "type_name"]


class Policy(StrEnum):
    """
    How strictly a function and a binlog type are put together.

    MANUAL is NEEDS and one rule more, for the minimal formats, those whose before image holds the key alone (types 8
    and 9, and type 0 with the options that come to the same). `NDB$OLD` and `NDB$MAX` are refused there outright, as
    the manual says that they do not work correctly. Any other function must provably need key values alone: the
    `NDB$EPOCH*` functions do, since they compare epochs; `NDB$MAX_DELETE_WIN`, `NDB$MAX_INS` and
    `NDB$MAX_DEL_WIN_INS` compare a column, which the manual does not name with these types, and are refused.
    On all other types both policies say the same.

    NEEDS decides as the server does, by what each operation carries of each column.
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
        binlog_type: Of `mysql.ndb_replication`; a name, or None, which is type 0, is taken too.
        options: The server options that count where the type is 0.
        transaction_ids: Whether row events name their transaction (``ndb_log_transaction_id``); None if not known.
    """

    binlog_type: int = attrs.field(default=0, converter=parse_binlog_type)
    options: ServerOptions = attrs.field(factory=ServerOptions)
    transaction_ids: bool | None = None

    @property
    def format(self) -> UpdateFormat:
        """What type and options come to."""
        return effective_format(self.binlog_type, self.options)

    def __str__(self) -> str:
        """Name the type, and for type 0 the one that the options make of it."""
        if self.binlog_type != 0:
            return f"binlog_type {type_name(self.binlog_type)}"
        same = [row.number for row in BINLOG_TYPES if row.names and row.format == self.format]
        # Of 4 and 6, which mean the same, the manual uses 6.
        return f"binlog_type {type_name(0)} (by the server options as {type_name(same[-1])})"


@attrs.frozen
class Pairing:
    """
    A function on an applier, and how the changes are logged that it has to judge.

    Attributes:
        function: The function.
        table: The table that it stands on.
        source: How the other cluster logs the table; its changes are those that arrive.
        own: How the applier's cluster logs it; None is in the same way.
        role: ``ndb_applier_conflict_role`` of the applier; None if not known.
        peer_role: The same of the other cluster.
        on_both: Whether the other cluster has a function of the same kind on the table; None if not known.
        others: Other tables that a transaction may touch together with this one.
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
