"""What SQL nodes hold and count, as `expected.json` says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.recorder.sql_node import SqlNode

__all__ = ["applier_state", "counters", "error_lines", "server_epochs", "table_contents", "tables_of"]

_EPOCHS = (
    *("Ndb_conflict_last_conflict_epoch", "Ndb_conflict_last_stable_epoch"),
    *("Ndb_slave_max_replicated_epoch", "Ndb_replica_max_replicated_epoch"),
)


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), lambda v: v.hex().upper()),
    "bit": lambda value: int.from_bytes(value, "big"),
}


def tables_of(node: SqlNode, database: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables of NDB in a database: those of users, and exceptions tables."""
    found = node.rows(
        "SELECT table_name FROM information_schema.tables WHERE engine = 'ndbcluster' "
        f"AND table_schema = '{database}' ORDER BY table_name"
    )
    contents = {name: table_contents(node, database, name) for (name,) in found}
    exceptions = {name: each for name, each in contents.items() if name.lower().endswith("$ex")}
    return {name: each for name, each in contents.items() if name not in exceptions}, exceptions


def table_contents(node: SqlNode, database: str, table: str) -> dict[str, Any]:
    """Return the columns and the rows of a table, sorted by primary key."""
    columns = node.rows(
        "SELECT column_name, column_type, character_set_name, data_type, column_key FROM information_schema.columns "
        f"WHERE table_schema = '{database}' AND table_name = '{table}' ORDER BY ordinal_position"
    )
    keys = node.rows(f"SHOW KEYS FROM `{table}` FROM `{database}` WHERE Key_name = 'PRIMARY'")
    key = [name for _, name in sorted((int(each[3]), each[4]) for each in keys)]
    order = f" ORDER BY {', '.join(f'`{name}`' for name in key)}" if key else ""
    names = ", ".join(f"`{name}`" for name, *_ in columns)
    rows = node.rows(f"SELECT {names} FROM `{database}`.`{table}`{order}")
    shown = [_VALUES.get(data_type.lower(), lambda value: value) for *_, data_type, _ in columns]
    return {
        "columns": [name for name, *_ in columns],
        "types": [_text(kind) for _, kind, *_ in columns],
        "charsets": [charset for _, _, charset, *_ in columns],
        "primary_key": key,
        "rows": [[None if cell is None else show(cell) for show, cell in zip(shown, row, strict=True)] for row in rows],
    }


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def counters(node: SqlNode) -> dict[str, int]:
    """Return what an SQL node counted of conflicts."""
    found = node.status("Ndb\\_conflict\\_%")
    return {name: value for name, value in found.items() if name not in _EPOCHS}


def server_epochs(node: SqlNode) -> dict[str, int]:
    """Return the status variables of an SQL node that are epochs."""
    found = {**node.status("Ndb\\_conflict\\_last%"), **node.status("Ndb\\_%max\\_replicated\\_epoch")}
    return {name: found[name] for name in _EPOCHS if name in found}


def applier_state(node: SqlNode) -> dict[str, Any]:
    """Return whether an applier runs, and with which error its coordinator stopped."""
    state = node.row("SHOW REPLICA STATUS")
    errno, error = int(state.get("Last_SQL_Errno") or 0), state.get("Last_SQL_Error") or ""
    return {"running": state.get("Replica_SQL_Running") == "Yes", "errno": errno, "error": error}


def error_lines(node: SqlNode, start: int) -> list[str]:
    """Return lines of the error log from an offset on: warnings, errors, and what it says of functions."""
    text = (node.folder / "error.log").read_bytes()[start:].decode("utf-8", "replace")
    marks = ("[Warning]", "[ERROR]", "] Replica: Table ", "] Replica: exceptions table ")
    return [line for line in text.splitlines() if any(mark in line for mark in marks)]
