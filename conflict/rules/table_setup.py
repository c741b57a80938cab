"""
How a server sets up a table: its conflict function and exceptions table, or the reason why it refuses the table.

The server does this when the table is created, before any change arrives; a refused table does not exist.
Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; error numbers as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import attrs

from conflict.rules.deployed import Deployed
from conflict.rules.exceptions_table import ExceptionsTable, find_exceptions_table
from conflict.rules.functions import (
    FUNCTIONS,
    PARSE_ERROR,
    Argument,
    ConflictFunction,
    FunctionSpec,
    UnreadableFunctionError,
    parse_conflict_function,
)
from conflict.rules.replication_table import AmbiguousMatch, ReplicationRow, Role, best_match
from ndb_formats.rules.replica.conversions import TypeConversion
from ndb_formats.rules.update_format import ServerOptions, UpdateFormat, effective_format
from ndb_formats.schema.tables import Column, Schema, Table

CANT_CREATE_TABLE = 1005
CONFLICT_FN_PARSE_ERROR = 1626
BAD_SCHEMA = "Bad schema for mysql.ndb_replication table. Message: "  # of server warning 1625
SHOWN_CHARACTERS = 64  # of a message inside warnings 1625 and 1626


class RefusalKind(Enum):
    """Why a table cannot be created, and the server's words for it, in which names in braces are filled in."""

    PARSE = ""  # the parser says what is wrong
    NO_COLUMN = "Could not find resolve column {column}."
    WRONG_TYPE = "Column '{column}' has wrong datatype"
    BLOB = "Table has Blob column(s), not suitable for {function}."
    DROPPED = "the table was dropped"
    UPDATES_AS_WRITES = "Table {table} configured to log updates as writes.  Not suitable for {function}."

    def words(self, **names: object) -> str:
        """Return the server's words."""
        return self.value.format(**names)


@attrs.frozen
class Refusal:
    """
    A CREATE TABLE that fails.

    Attributes:
        kind: Why.
        error: Server error number of the statement.
        column: Column at fault, if one is.
        words: The server's words, as in its error log.
    """

    kind: RefusalKind
    error: int
    column: str | None
    words: str

    @property
    def message(self) -> str:
        """The words, after those of error 1626 if that is the statement's."""
        return PARSE_ERROR + self.words if self.kind is RefusalKind.PARSE else self.words

    @property
    def warning(self) -> str:
        """The warning 1626 as SHOW WARNINGS shows it, which is cut."""
        return PARSE_ERROR + self.words[:SHOWN_CHARACTERS]


@attrs.frozen
class TableSetup:
    """
    One table as one server runs it.

    Attributes:
        table: Its definition.
        function: Its conflict function on this server; None if it has none.
        exceptions: Its exceptions table; None if it has none that is usable.
        refusal: Why the table does not exist here; None if it does.
        warnings: The server's warnings.
        format: How the server logs the table's changes.
        slices: Into how many slices its rows are divided; the server logs one of them.
        declared: The table as it is declared, where `table` has columns of other times too; None for `table`.
        places: Position of each declared column in `table`, where `declared` is given.
        conversions: ``replica_type_conversions``.
    """

    table: Table
    function: ConflictFunction | None = None
    exceptions: ExceptionsTable | None = None
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()
    format: UpdateFormat = attrs.field(factory=lambda: effective_format(None))
    slices: int = 1
    declared: Table | None = None
    places: tuple[int, ...] = ()
    conversions: frozenset[TypeConversion] = frozenset()

    def deployed(self, role: Role) -> Deployed:
        """Return the function as it is in force on a cluster with a role."""
        return Deployed(self.function, role, self.format)

    @property
    def shown(self) -> tuple[Table, tuple[int, ...]]:
        """The table as users see it, and the position of each of its columns in `table`."""
        if self.declared is not None:
            return self.declared, self.places
        return self.table, tuple(range(len(self.table.columns)))

    @property
    def stored(self) -> tuple[Table, tuple[int, ...]]:
        """The same of the columns that are stored: NDB has no virtual one, and logs none."""
        table, places = self.shown
        kept = [ordinal for ordinal, column in enumerate(table.columns) if column.generated != "virtual"]
        if len(kept) == len(places):
            return table, places
        columns = tuple(table.columns[ordinal] for ordinal in kept)
        return attrs.evolve(table, columns=columns), tuple(places[ordinal] for ordinal in kept)

    def is_open(self, column: Column) -> bool:
        """
        Whether nobody knows the value of a column that no operation wrote, because the server computes it.

        Only where definitions change, or differ: else every new row has all columns.
        """
        return self.declared is not None and column.is_computed and column.generated != "virtual"

    def named(self, name: Callable[[Table], Table]) -> TableSetup:
        """Return the setup with its table and exceptions table under other names."""
        exceptions = self.exceptions
        if exceptions is not None:
            exceptions = attrs.evolve(exceptions, table=name(exceptions.table), source=name(exceptions.source))
        return attrs.evolve(self, table=name(self.table), exceptions=exceptions)


def is_exceptions_table(table: Table) -> bool:
    """Whether a table is named as an exceptions table."""
    return table.name.endswith(("$EX", "$ex"))


def set_up(
    schema: Schema,
    rows: Sequence[ReplicationRow],
    server_id: int,
    options: ServerOptions | None = None,
    functions: Sequence[FunctionSpec] = FUNCTIONS,
) -> dict[str, TableSetup]:
    """
    Return how a server sets up each table that is not an exceptions table, by ``database.table``.

    Args:
        schema: All tables, exceptions tables among them.
        rows: Rows of ``mysql.ndb_replication`` on that server.
        server_id: Its server id.
        options: Its logging options, which apply where a table's binlog type is 0; None is their defaults.
        functions: The known conflict functions.
    """
    return {
        table.full_name: _set_up_table(schema, rows, table, server_id, options, functions)
        for table in schema.tables
        if not is_exceptions_table(table)
    }


def _set_up_table(
    schema: Schema,
    rows: Sequence[ReplicationRow],
    table: Table,
    server_id: int,
    options: ServerOptions | None,
    functions: Sequence[FunctionSpec],
) -> TableSetup:
    row = best_match(rows, table.database, table.name, server_id)
    if isinstance(row, AmbiguousMatch):
        warning = BAD_SCHEMA + row.warning(table.database, table.name, server_id)
        return TableSetup(table, warnings=(warning,), format=effective_format(None, options))
    update_format = effective_format(None if row is None else row.binlog_type, options)
    slices = 1 if row is None else row.binlog_row_slice_count or 1
    if row is None or row.conflict_fn is None:
        return TableSetup(table, format=update_format, slices=slices)
    try:
        function = parse_conflict_function(row.conflict_fn, functions)
    except UnreadableFunctionError as error:
        refusal = Refusal(RefusalKind.PARSE, CONFLICT_FN_PARSE_ERROR, None, error.words)
        return TableSetup(table, refusal=refusal, format=update_format)
    refusal_or_none = refusal_of(table, function, update_format)
    if refusal_or_none is not None:
        return TableSetup(table, refusal=refusal_or_none, format=update_format)
    exceptions, warning_or_none = find_exceptions_table(schema, table)
    warnings = () if warning_or_none is None else (warning_or_none,)
    return TableSetup(table, function, exceptions, warnings=warnings, format=update_format, slices=slices)


def refusal_of(table: Table, function: ConflictFunction, update_format: UpdateFormat) -> Refusal | None:
    """Return why a server does not create a table with a function; None if it does."""
    if function.spec.argument is Argument.COLUMN:
        return refusal_of_column(table, function.column or "")
    if function.spec.uses_role and update_format.as_write:
        return _refusal(RefusalKind.UPDATES_AS_WRITES, table=table.full_name, function=function.spec.name)
    if function.spec.refreshes and any(column.is_blob for column in table.columns):
        return _refusal(RefusalKind.BLOB, function=function.spec.name)
    return None


def refusal_of_column(table: Table, name: str) -> Refusal | None:
    """Return why a server does not create a table with a function that compares a column; None if it does."""
    column = table.find(name)
    if column is None:
        return _refusal(RefusalKind.NO_COLUMN, column=name)
    if column.type not in ("int", "bigint") or not column.unsigned:
        return _refusal(RefusalKind.WRONG_TYPE, column=name)
    return None


def _refusal(kind: RefusalKind, column: str | None = None, **names: str) -> Refusal:
    return Refusal(kind, CANT_CREATE_TABLE, column, kind.words(column=column, **names))
