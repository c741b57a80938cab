"""
A conflict function as deployed: on a table, under the logging of both clusters and the roles of their appliers.

A function judges the changes that arrive, so the logging of the *other* cluster decides what it can judge:
`FunctionSpec.needs` says which image a function reads, and `ndb_formats.rules.update_format.ndb_columns` which
columns an event carries. The logging of its own cluster matters when the server creates the table, and for refreshed
rows.
Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; an update that arrives as a write is
applied as an insert, as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

import attrs

from conflict.rules.deployed import Deployed
from conflict.rules.functions import ConflictFunction
from conflict.rules.own_rule import CHANGED_COLUMNS, Image
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import Refusal, refusal_of
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import (
    BINLOG_TYPES,
    ServerOptions,
    UpdateFormat,
    effective_format,
    ndb_columns,
    parse_binlog_type,
)
from ndb_formats.schema.tables import Table


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


class Change(Enum):
    """The kinds of change that functions and formats distinguish."""

    INSERT = "insert"
    UPDATE = "update"
    UPDATE_SETTING = "update that sets {column}"
    UPDATE_LEAVING = "update that does not set {column}"
    DELETE = "delete"

    @property
    def operation(self) -> Operation:
        """The operation of the statement; the event may have another one."""
        return {Change.INSERT: Operation.WRITE_ROW, Change.DELETE: Operation.DELETE_ROW}.get(self, Operation.UPDATE_ROW)


class Handling(Enum):
    """How the applier handles a change."""

    JUDGED = "is judged"
    AS_INSERT = "arrives as a write, and is rejected as ROW_ALREADY_EXISTS where the row exists"
    STOPS = "lacks what the function compares, and stops the applier with error 1296"
    NOT_LOGGED = "is not logged, and never arrives"


@attrs.frozen
class ArrivingChange:
    """
    One kind of change as it arrives on the applier.

    Attributes:
        change: The kind of statement.
        event: The event that arrives; None if nothing is logged.
        needed: The image in which the function reads its column, ``before`` or ``after``; None if it reads none.
        handling: How the applier handles it.
        column: The function's column, if it has one.
        lacks: What the image lacks, if it stops the applier.
    """

    change: Change
    event: EventColumns | None
    needed: str | None
    handling: Handling
    column: str | None = None
    lacks: str | None = None

    @property
    def name(self) -> str:
        """The change in words."""
        return self.change.value.format(column=self.column)

    @property
    def is_update(self) -> bool:
        """Whether the statement changes a row and keeps its key."""
        return self.change.operation is Operation.UPDATE_ROW


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

    @property
    def deployed(self) -> Deployed:
        """The function as it is in force on the applier's cluster."""
        return Deployed(self.function, self.role, self.own_logging.format)

    @property
    def refusal(self) -> Refusal | None:
        """Why the server does not create the table; None if it does."""
        return refusal_of(self.table, self.function, self.own_logging.format)

    @property
    def changes(self) -> tuple[ArrivingChange, ...]:
        """Each kind of change that the table allows, as it arrives; none if the function's column does not exist."""
        column = self.function.column
        if column is not None and self.table.find(column) is None:
            return ()
        arriving = partial(_arriving, self.function, self.table, self.source.format)
        place = None if column is None else self.table.ordinal(column)
        return (arriving(Change.INSERT), *_updates(arriving, self.table, place), arriving(Change.DELETE))

    def __str__(self) -> str:
        return f"{self.function} with {self.source} on table {self.table.full_name.removeprefix('.')}"


def _updates(arriving: Callable[..., ArrivingChange], table: Table, place: int | None) -> list[ArrivingChange]:
    """
    Return one update of each kind.

    An update of a key column is a delete and an insert, so it is left out. Updates of one column are enough: if an
    image of several columns lacks the function's column, so does the image of one of them alone.
    """
    key = frozenset(table.key_ordinals)
    settable = [each for each, column in enumerate(table.columns) if each not in key and column.generated is None]
    if place is None:
        return [arriving(Change.UPDATE, [each]) for each in settable[:1]]
    others = [arriving(Change.UPDATE_LEAVING, [each]) for each in settable if each != place]
    lacking = [each for each in others if each.handling is Handling.STOPS]
    carrying = [each for each in others if each.handling is not Handling.STOPS]
    setting = []
    if place in settable:
        setting = [arriving(Change.UPDATE_SETTING, [place])]
    elif lacking and carrying:  # a generated column: it is set with the columns that it is computed from
        setting = [attrs.evolve(carrying[0], change=Change.UPDATE_SETTING)]
    return setting + (lacking or carrying)[:1]


def _arriving(
    function: ConflictFunction, table: Table, update_format: UpdateFormat, change: Change, written: Sequence[int] = ()
) -> ArrivingChange:
    event = ndb_columns(update_format, table, change.operation, written)
    if event is None:
        return ArrivingChange(change, None, None, Handling.NOT_LOGGED, function.column)
    image = function.spec.needs.get(event.operation)
    needed = None if image is None or function.column is None else image.value
    lacks = None
    if event.operation in function.spec.needs_changed and not _shows_what_it_changes(event, table):
        handling, needed, lacks = Handling.STOPS, Image.BEFORE.value, CHANGED_COLUMNS
    elif needed is not None and table.ordinal(function.column or "") not in (getattr(event, needed) or ()):
        handling, lacks = Handling.STOPS, function.column
    elif change.operation is not Operation.WRITE_ROW and event.operation is Operation.WRITE_ROW:
        handling = Handling.JUDGED if _judges_writes(function) else Handling.AS_INSERT
    else:
        handling = Handling.JUDGED
    return ArrivingChange(change, event, needed, handling, function.column, lacks)


def _shows_what_it_changes(event: EventColumns, table: Table) -> bool:
    """Whether a before image has every column that the operation changes: all of them for a delete."""
    stored = {ordinal for ordinal, column in enumerate(table.columns) if column.generated != "virtual"}
    return stored.intersection(stored if event.after is None else event.after) <= set(event.before or ())


def _judges_writes(function: ConflictFunction) -> bool:
    """Whether an update can be judged that arrives as a write, which has no before image."""
    spec = function.spec
    return spec.conditional_write if spec.own is None else not spec.needs_old_values
