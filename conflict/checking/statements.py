"""
Fixes as statements to type: changed rows of mysql.ndb_replication, and settings of a server.

They are text for people and are never run here.
"""

from __future__ import annotations

from conflict.checking.findings import Fix
from conflict.checking.subject import PlacedTable
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.roles import Role
from ndb_formats.schema.tables import Table

__all__ = [
    "delete_rows",
    "identifier",
    "key_of",
    "quoted",
    "set_in_my_cnf",
    "set_in_row",
    "set_role",
    "statement",
    "update_rows",
]

_TABLE = "mysql.ndb_replication"
_WITH_KEY = "(db, table_name, server_id) IN ("


def quoted(text: str) -> str:
    """Return a SQL string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def identifier(table: Table, name: str | None = None) -> str:
    """Return a table as a SQL identifier, or another name in its database."""
    parts = [table.database, name or table.name] if table.database else [name or table.name]
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def key_of(row: ReplicationRow) -> str:
    """Return the primary key of a row of ``mysql.ndb_replication``."""
    return f"({quoted(row.db)}, {quoted(row.table_name)}, {row.server_id})"


def update_rows(column: str, value: str, *rows: ReplicationRow) -> Fix:
    """Return the statement that sets a column of rows of ``mysql.ndb_replication``."""
    before = f"UPDATE {_TABLE} SET {column} = {value} WHERE {_WITH_KEY}"  # noqa: S608  # text for people
    return Fix(before, tuple(map(key_of, rows)), ");")


def delete_rows(*rows: ReplicationRow) -> Fix:
    """Return the statement that deletes rows of ``mysql.ndb_replication``."""
    before = f"DELETE FROM {_TABLE} WHERE {_WITH_KEY}"  # noqa: S608  # text for people
    return Fix(before, tuple(map(key_of, rows)), ");")


def set_in_row(placed: PlacedTable, column: str, value: str) -> Fix:
    """Return the statement that sets a column of the row that counts for a table, or gives the table such a row."""
    if placed.row is not None:
        return update_rows(column, value, placed.row)
    table = placed.table
    values = f"({quoted(table.database)}, {quoted(table.name)}, {placed.cluster.server_id}, {value})"
    before = f"INSERT INTO {_TABLE} (db, table_name, server_id, {column}) VALUES "  # noqa: S608  # text for people
    return Fix(before, (values,), ";")


def set_in_my_cnf(cluster: str, name: str, value: str) -> Fix:
    """Return how to set a variable that a running server does not change."""
    return Fix(f"set {name} = {value} under [mysqld] in the my.cnf of ", (cluster,), ", and restart the server.")


def set_role(role: Role, *, by_none: bool = False) -> str:
    """Return the statements that give an applier a role; PASS is left by way of NONE alone."""
    before = "SET PERSIST ndb_applier_conflict_role = 'NONE'; " if by_none else ""
    return f"STOP REPLICA; {before}SET PERSIST ndb_applier_conflict_role = '{role}'; START REPLICA;"


def statement(text: str, before: str = "") -> Fix:
    """Return a statement of its own for each place."""
    return Fix(before, (text,), between=" ")
