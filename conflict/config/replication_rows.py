"""
Rows of mysql.ndb_replication from a dump, a table as text, or TOML.

    .sql                INSERT or REPLACE statements, as mysqldump writes them; the rest of the file is ignored
    .csv, .tsv, .txt    a header line, and a row per line: commas, or tabs as `mysql --batch` prints them
    .toml               [[ndb_replication]] tables, as in a run file

The table has the columns db, table_name, server_id, binlog_type and conflict_fn, and in newer clusters
binlog_row_slice_count and binlog_row_slice_id. Named columns can be in any order. An INSERT without names follows the
CREATE TABLE in the same dump, else the order above; if it has seven values and the last is a text, it follows the
manual, where the slices come before conflict_fn.

Source: MySQL manual, "ndb_replication Table".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conflict.config.table_rows import InputRow, delimited_rows
from conflict.config.text_file import located, parsed_toml, read_text
from conflict.errors import ConfigurationError
from conflict.rules.replication_table import ReplicationRow
from ndb_formats.cursor import whole_number
from ndb_formats.errors import did_you_mean
from ndb_formats.rules.update_format import parse_binlog_type

if TYPE_CHECKING:
    from conflict.config.statement_rows import InsertedValues

TABLE = "ndb_replication"
_NAMES = ("db", "table_name")
_COLUMNS = (*_NAMES, "server_id", "binlog_type", "conflict_fn")
_SLICES = ("binlog_row_slice_count", "binlog_row_slice_id")
# By the number of values; clusters older than the conflict functions have four columns.
_ORDERS = {4: _COLUMNS[:4], 5: _COLUMNS, 7: _COLUMNS + _SLICES}
_MOST_SHOWN = 100
_MANUAL_ORDER = (*_COLUMNS[:4], *_SLICES, "conflict_fn")


def load_replication_rows(path: Path) -> tuple[ReplicationRow, ...]:
    """
    Read the rows in a file; its suffix says how they are written.

    Raises:
        ConfigurationError: It cannot be read, or a row is wrong; the message has file, line and column.
    """
    readers = {".sql": _from_dump, ".csv": _from_text, ".tsv": _from_text, ".txt": _from_text, ".toml": _from_toml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        message = f"{path}: rows of mysql.ndb_replication are read from {', '.join(readers)}"
        raise ConfigurationError(message)
    text = read_text(path)
    with located(path):
        return _checked(reader(text))


def rows_of_tables(tables: Any) -> tuple[ReplicationRow, ...]:
    """
    Return the rows of [[ndb_replication]] tables.

    Raises:
        ConfigurationError: One is wrong; the message has its number and column.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        message = f"{TABLE} must be tables [[{TABLE}]], or the name of a file with the rows"
        raise ConfigurationError(message)
    return _checked(InputRow(f"row {number} of [[{TABLE}]]", table) for number, table in enumerate(tables, 1))


def _from_toml(text: str) -> list[InputRow]:
    document = parsed_toml(text)
    tables = document.get(TABLE)
    if not isinstance(tables, list) or set(document) != {TABLE}:
        message = f"the file must hold tables [[{TABLE}]], at least one, and nothing else"
        raise ConfigurationError(message)
    return [InputRow(f"row {number} of [[{TABLE}]]", table) for number, table in enumerate(tables, 1)]


def _from_text(text: str) -> Iterator[InputRow]:
    return delimited_rows(text, _NAMES)


def _from_dump(text: str) -> Iterator[InputRow]:
    from conflict.config.statement_rows import created_columns, inserted_values  # noqa: PLC0415  # loads sqlglot

    created = created_columns(text, TABLE)
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


def _checked(found: Iterable[InputRow]) -> tuple[ReplicationRow, ...]:
    """Return the rows, one per primary key."""
    rows: dict[tuple[str, str, int], tuple[str, ReplicationRow]] = {}
    for each in found:
        with located(each.place):
            row = _row(each.cells)
        key = (row.db, row.table_name, row.server_id)
        if key in rows and not each.replaces:
            message = (
                f"{each.place}: the same db, table_name and server_id ({', '.join(map(str, key))}) as "
                f"{rows[key][0]}; they are the primary key, so remove one of the two rows"
            )
            raise ConfigurationError(message)
        rows[key] = (each.place, row)
    return tuple(row for _, row in rows.values())


def _row(cells: Mapping[str, object]) -> ReplicationRow:
    known = (*_COLUMNS, *_SLICES)
    unknown = sorted(set(cells) - set(known))
    if unknown:
        meant = did_you_mean(unknown[0], known)
        message = f"unknown entries {', '.join(unknown)}{meant}; known are {', '.join(sorted(known))}"
        raise ConfigurationError(message)
    return ReplicationRow(
        _pattern("db", cells.get("db")),
        _pattern("table_name", cells.get("table_name")),
        _integer("server_id", cells.get("server_id")) or 0,
        _binlog_type(cells.get("binlog_type")),
        _text("conflict_fn", cells.get("conflict_fn")),
        *(_integer(name, cells.get(name)) for name in _SLICES),
    )


def _pattern(name: str, value: object) -> str:
    text = _text(name, value)
    if text is None:
        message = f"{name} is missing; it must be a name or a pattern"
        raise ConfigurationError(message)
    return text


def _text(name: str, value: object) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"{name} is 0x{value.hex()}, which is not UTF-8 text"
            raise ConfigurationError(message) from error
    if value is None or isinstance(value, str):
        return value
    message = f"{name} is {_shown(value)}; a text is needed"
    raise ConfigurationError(message)


def _integer(name: str, value: object) -> int | None:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    number = whole_number(value) if isinstance(value, str) else None
    if number is not None:
        return number
    message = f"{name} is {_shown(value)}; an integer is needed"
    raise ConfigurationError(message)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _binlog_type(value: object) -> int | None:
    if value is None:
        return None
    return parse_binlog_type(int.from_bytes(value, "big") if isinstance(value, bytes) else str(value))
