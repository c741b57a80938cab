"""
Rows of mysql.ndb_replication from what users have: a dump, a table as text, or TOML.

    .sql                INSERT or REPLACE statements, as mysqldump writes them; all else in the file is passed over
    .csv, .tsv, .txt    a header line, and a row per line: commas, or tabs as `mysql --batch` prints them
    .toml               [[ndb_replication]] tables, as in a run file

The table has the columns db, table_name, server_id, binlog_type and conflict_fn, and in newer clusters
binlog_row_slice_count and binlog_row_slice_id. They may stand in any order where they are named. Where an INSERT
names none, the CREATE TABLE in the same dump counts, else the order above; with seven values of which the last is
a text, it is that of the manual, where the slices come before conflict_fn.

Source: MySQL manual, "ndb_replication Table".
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conflict.config.delimited_text import PlacedRow, delimited_rows
from conflict.config.insert_statements import InsertedValues, create_columns, inserted_values
from conflict.config.text_file import read_text
from conflict.errors import ConfigurationError
from conflict.rules.replication_table import ReplicationRow
from ndb_formats.errors import SettingError
from ndb_formats.rules.update_format import parse_binlog_type

__all__ = ["load_replication_rows", "rows_of_tables"]

TABLE = "ndb_replication"
_NAMES = ("db", "table_name")
_COLUMNS = (*_NAMES, "server_id", "binlog_type", "conflict_fn")
_SLICES = ("binlog_row_slice_count", "binlog_row_slice_id")
# Without conflict_fn: as servers had it before there were conflict functions.
_ORDERS = {4: _COLUMNS[:4], 5: _COLUMNS, 7: _COLUMNS + _SLICES}
_MANUAL_ORDER = (*_COLUMNS[:4], *_SLICES, "conflict_fn")


def load_replication_rows(path: Path) -> tuple[ReplicationRow, ...]:
    """
    Read the rows in a file; its ending says how they are written.

    Raises:
        ConfigurationError: It cannot be read, or a row is wrong; the message has file, line and column.
    """
    readers = {".sql": _of_dump, ".csv": _of_delimited, ".tsv": _of_delimited, ".txt": _of_delimited, ".toml": _of_toml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        message = f"{path}: rows of mysql.ndb_replication are read from {', '.join(readers)}"
        raise ConfigurationError(message)
    text = read_text(path)
    try:
        return _rows(reader(text))
    except ConfigurationError as error:
        message = f"{path}, {error}" if str(error).startswith(("line ", "row ")) else f"{path}: {error}"
        raise ConfigurationError(message) from error


def rows_of_tables(tables: Any) -> tuple[ReplicationRow, ...]:
    """
    Return the rows of [[ndb_replication]] tables.

    Raises:
        ConfigurationError: One is wrong; the message has its number and column.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        message = f"{TABLE} must be tables [[{TABLE}]], or the name of a file with the rows"
        raise ConfigurationError(message)
    return _rows(PlacedRow(f"row {number} of [[{TABLE}]]", table) for number, table in enumerate(tables, 1))


def _of_toml(text: str) -> list[PlacedRow]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(str(error)) from error
    tables = document.get(TABLE)
    if not isinstance(tables, list) or set(document) != {TABLE}:
        message = f"only tables [[{TABLE}]] can stand in it, and at least one must"
        raise ConfigurationError(message)
    return [PlacedRow(f"row {number} of [[{TABLE}]]", table) for number, table in enumerate(tables, 1)]


def _of_delimited(text: str) -> Iterator[PlacedRow]:
    return delimited_rows(text, _NAMES)


def _of_dump(text: str) -> Iterator[PlacedRow]:
    created = create_columns(text, TABLE)
    found = list(inserted_values(text, TABLE))
    if not found and created is None:
        message = f"it holds no INSERT INTO mysql.{TABLE}"
        raise ConfigurationError(message)
    in_manual_order = any(len(row.values) == 7 and _is_text(row.values[6]) for row in found if row.columns is None)
    for row in found:
        order = _MANUAL_ORDER if in_manual_order and len(row.values) == 7 else _ORDERS.get(len(row.values))
        columns = row.columns or created or order
        if columns is None:
            raise ConfigurationError(_wrong_number(row))
        yield row.named(columns)


def _is_text(value: object) -> bool:
    return value is not None and not str(value).isdecimal()


def _wrong_number(row: InsertedValues) -> str:
    return (
        f"{row.place}: {len(row.values)} values; without a list of columns there must be 5 "
        f"({', '.join(_COLUMNS)}) or 7 (and {', '.join(_SLICES)})"
    )


def _rows(found: Iterable[PlacedRow]) -> tuple[ReplicationRow, ...]:
    """Return the rows; one primary key, one row."""
    rows: dict[tuple[str, str, int], tuple[str, ReplicationRow]] = {}
    for placed in found:
        row = _row(placed.place, placed.cells)
        key = (row.db, row.table_name, row.server_id)
        if key in rows and not placed.replaces:
            message = (
                f"{placed.place}: the same db, table_name and server_id ({', '.join(map(str, key))}) as "
                f"{rows[key][0]}; they are the primary key, so remove one of the two rows"
            )
            raise ConfigurationError(message)
        rows[key] = (placed.place, row)
    return tuple(row for _, row in rows.values())


def _row(place: str, cells: Mapping[str, object]) -> ReplicationRow:
    known = (*_COLUMNS, *_SLICES)
    unknown = sorted(set(cells) - set(known))
    if unknown:
        message = f"{place}: unknown entries {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        raise ConfigurationError(message)
    try:
        db, table_name = (_text(name, cells.get(name)) for name in _NAMES)
        if db is None or table_name is None:
            message = f"{'db' if db is None else 'table_name'} is missing; it must be a name or a pattern"
            raise ConfigurationError(message)
        return ReplicationRow(
            db,
            table_name,
            _whole("server_id", cells.get("server_id")) or 0,
            _binlog_type(cells.get("binlog_type")),
            _text("conflict_fn", cells.get("conflict_fn")),
            *(_whole(name, cells.get(name)) for name in _SLICES),
        )
    except (ConfigurationError, SettingError) as error:
        message = f"{place}: {error}"
        raise ConfigurationError(message) from error


def _text(name: str, value: object) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"{name} is 0x{value.hex()}, which is not UTF-8 text"
            raise ConfigurationError(message) from error
    if value is None or isinstance(value, str):
        return value
    message = f"{name} is {value!r}; a text is needed"
    raise ConfigurationError(message)


def _whole(name: str, value: object) -> int | None:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    message = f"{name} is {value!r}; a whole number is needed"
    raise ConfigurationError(message)


def _binlog_type(value: object) -> int | None:
    if value is None:
        return None
    return parse_binlog_type(int.from_bytes(value, "big") if isinstance(value, bytes) else str(value))
