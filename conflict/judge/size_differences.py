"""
How the sizes of rows events and Table_map events, as worked out here, differ from recorded ones.

`sizes.json` has statements and the bytes that each added to the binlog under every format, but no binlogs. SQLite runs
the statements, and triggers report each row before and after; it need not agree with MySQL in more than these rows, and
what it cannot run is not judged. The rows are logged in each format by `ndb_formats.writing`. Compared are

    - the bytes and the number of the events, by type; the frames of transactions stay as recorded;
    - the sizes that `LogSizer` gives for each other format from the logs that have all columns, FULL and type 7.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import sqlglot
from sqlglot.errors import SqlglotError

from conflict.errors import NotBuiltError
from conflict.judge.format_differences import statement_of
from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType
from ndb_formats.events.rows_event import ExtraRowInfo
from ndb_formats.events.sizes import table_map_size
from ndb_formats.events.table_map_of_table import table_map_of
from ndb_formats.rules.formats import FORMATS
from ndb_formats.rules.images import Logging
from ndb_formats.rules.row_image_rules import RowImageRule, parse_row_image
from ndb_formats.rules.update_format import effective_format, is_ndb, server_options
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.default_values import default_value
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.sizes.log_sizes import LEAST, MOST, size_log
from ndb_formats.types.values import ABSENT, Value
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, WrittenChange

_Row = dict[int, Value]


@attrs.frozen
class StatementRow:
    """A row before and after a statement; None where it does not exist."""

    before: _Row | None
    after: _Row | None


class StatementRunner:
    """Runs statements on tables that are empty at first."""

    def __init__(self, schema: Schema) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._found: list[StatementRow] = []
        self._old: _Row | None = None
        for name, function in _FUNCTIONS.items():
            self._connection.create_function(name, -1, function, deterministic=True)
        for number, table in enumerate(schema.tables):
            self._create(table, number)

    def run(self, sql: str) -> list[StatementRow]:
        """
        Return the rows that a statement of MySQL changes, in order; updates that change no value are among them.

        Raises:
            NotBuiltError: SQLite cannot run it.
        """
        self._found = []
        try:
            for statement in sqlglot.transpile(sql, read="mysql", write="sqlite"):
                self._connection.execute(statement)
        except (SqlglotError, sqlite3.Error) as error:
            message = f"the rows that a statement changes cannot be worked out: {error}: {sql[:200]}"
            raise NotBuiltError(message) from None
        return self._found

    def _create(self, table: Table, number: int) -> None:
        columns = ", ".join(_definition(column) for column in table.columns)
        key = f", PRIMARY KEY ({_names(table.primary_key)})" if table.primary_key else ""
        unique = "".join(f", UNIQUE ({_names(names)})" for names in table.unique_keys)
        self._connection.execute(f"CREATE TABLE {_name(table.name)} ({columns}{key}{unique})")
        for image in ("OLD", "NEW"):
            self._connection.create_function(
                f"report_{image}_{number}", -1, lambda *values, image=image: self._report(table, image, values)
            )
        for event, images in (("INSERT", ("NEW",)), ("UPDATE", ("OLD", "NEW")), ("DELETE", ("OLD",))):
            reports = "".join(
                f"SELECT report_{image}_{number}('{event}', "
                + ", ".join(f"{image}.{_name(column.name)}" for column in table.columns)
                + "); "
                for image in images
            )
            trigger = f"CREATE TRIGGER {event}_{number} AFTER {event} ON {_name(table.name)} BEGIN {reports}END"
            self._connection.execute(trigger)

    def _report(self, table: Table, image: str, values: tuple[Any, ...]) -> None:
        """Note a row that a trigger reports; of an update the old row comes first."""
        event, row = values[0], _row(table, values[1:])
        if event == "UPDATE" and image == "OLD":
            self._old = row
            return
        before = {"INSERT": None, "UPDATE": self._old, "DELETE": row}[event]
        self._found.append(StatementRow(before, None if event == "DELETE" else row))


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(_name, names))


_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"})
_AFFINITY = {**dict.fromkeys(_INTEGERS, "INTEGER"), "float": "REAL", "double": "REAL", "decimal": "TEXT"}


def _definition(column: Column) -> str:
    parts = [_name(column.name), _AFFINITY.get(column.type, "TEXT" if column.charset else "BLOB")]
    if (column.collation or "").endswith("_ci"):
        parts.append("COLLATE NOCASE")
    if not column.nullable:
        parts.append("NOT NULL")
    if column.default is not ABSENT and column.default is not None:
        default = default_value(column)
        text = f"X'{default.hex()}'" if isinstance(default, bytes) else "'" + str(default).replace("'", "''") + "'"
        parts.append(f"DEFAULT {text}")
    return " ".join(parts)


def _row(table: Table, values: tuple[Any, ...]) -> _Row:
    return {ordinal: _value(table.columns[ordinal], value) for ordinal, value in enumerate(values)}


def _value(column: Column, value: Any) -> Value:
    """Return a value of SQLite as one of the column."""
    if value is None:
        return None
    if column.type in _INTEGERS:
        return int(value)
    if column.type == "decimal":
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-(column.scale or 0)))
    if column.type in ("float", "double"):
        return float(value)
    if column.charset is not None or column.type in ("date", "time", "datetime", "timestamp"):
        return str(value)
    return value if isinstance(value, bytes) else str(value).encode()


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives NULL if an argument is NULL."""
    return lambda *values: None if None in values else function(*values)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "REPEAT": _of_values(lambda text, times: str(text) * max(int(times), 0)),
    "CONCAT": _of_values(lambda *texts: "".join(map(str, texts))),
    "LPAD": _of_values(lambda text, size, pad: str(text).rjust(int(size), str(pad))[: int(size)]),
    "MOD": _of_values(lambda number, divisor: number % divisor if divisor else None),
}


_JUDGED = {
    "Table_map": EventType.TABLE_MAP_EVENT,
    "Write_rows": EventType.WRITE_ROWS_EVENT,
    "Update_rows": EventType.UPDATE_ROWS_EVENT,
    "Delete_rows": EventType.DELETE_ROWS_EVENT,
}
_SECOND = 1_000_000


@attrs.frozen
class _Group:
    """The recorded results of the statements on one table under one format."""

    table: Table
    title: str
    logging: Logging
    results: tuple[Mapping[str, Any], ...]


def size_differences(file: Path) -> Iterator[str]:
    """
    Yield every difference between recorded sizes and those worked out here.

    Raises:
        NotBuiltError: The rows that some statements change cannot be worked out; all others have been compared.
    """
    document = json.loads(file.read_text("utf-8"))
    groups = list(_groups(document))
    left_out: list[NotBuiltError] = []
    with tempfile.TemporaryDirectory() as folder:
        binlog = Path(folder) / "binlog.000001"
        for group in groups:
            try:
                bounds = _write(group, binlog)
            except NotBuiltError as error:
                left_out.append(error)
                continue
            yield from _event_differences(group, binlog, bounds)
            if _has_all_columns(group):
                same = [each for each in groups if each.table == group.table]
                yield from _format_differences(group, binlog, bounds, same)
    if left_out:
        message = f"{len(left_out)} of {len(groups)} tables and formats; all others agree. The first: {left_out[0]}"
        raise NotBuiltError(message)


def _groups(document: Mapping[str, Any]) -> Iterator[_Group]:
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for result in document["results"]:
        whole = _whole_text(result["sql"], document["statements"][result["table"]])
        found.setdefault((result["engine"], result["format"], result["table"]), []).append({**result, "sql": whole})
    for (engine, name, table_name), results in found.items():
        (create,) = document["tables"][table_name]
        table = attrs.evolve(parse_create_table(create), engine=engine.upper())
        title = f"{engine} {name}, table {table_name}"
        if is_ndb(table):
            options = server_options(results[0].get("options") or {})
            logging = Logging(update_format=effective_format(results[0]["binlog_type"], options))
        else:
            logging = Logging(row_image=parse_row_image(name))
        database = _database(table, results)
        yield _Group(attrs.evolve(table, database=database), title, logging, tuple(results))


def _whole_text(sql: str, statements: Sequence[str]) -> str:
    """Return the text of a statement, which a result may have cut short."""
    cut = sql.removesuffix("...")
    for text in statements if cut != sql else ():
        if text.startswith(cut):
            return text
    return sql


def _database(table: Table, results: Sequence[Mapping[str, Any]]) -> str:
    """Return a name as long as that of the database, which the recording does not name, by its first Table_map."""
    recorded = (result["by_type"]["Table_map"] for result in results if "Table_map" in result["by_type"])
    first = next(recorded, None)
    if first is None:
        return ""
    status = table_map_size(table_map_of(APPLY_STATUS_TABLE, 1)) if is_ndb(table) else 0
    return "d" * max(int(first["bytes"]) - status - table_map_size(table_map_of(table, 1)), 0)


def _write(group: _Group, binlog: Path) -> list[tuple[int, int]]:
    """Log the statements of a group; return where the events of each start and end."""
    schema = Schema((group.table,))
    runner, bounds = StatementRunner(schema), []
    with binlog.open("wb") as out:
        writer = BinlogWriter(out, BinlogSettings(group.logging))
        writer.start(_SECOND)
        for number, result in enumerate(group.results, start=1):
            start = writer.position
            changes = _changes(group, runner, schema, result)
            if is_ndb(group.table):
                writer.write_epoch(number << 32, changes, number * _SECOND)
            else:
                writer.write_transaction([changes], number * _SECOND, transaction_id=number)
            bounds.append((start, writer.position))
        writer.finish()
    return bounds


def _changes(group: _Group, runner: StatementRunner, schema: Schema, result: Mapping[str, Any]) -> list[WrittenChange]:
    """
    Return the row changes of a statement.

    Raises:
        NotBuiltError: They cannot be worked out, or are not as many as recorded.
    """
    statement, rows = statement_of(result["sql"], schema), runner.run(result["sql"])
    # NDB does not read a row that it writes, and counts it even if it keeps its values.
    affected = len(rows) if is_ndb(group.table) else sum(row.before != row.after for row in rows)
    if statement is None or affected != result["result"].get("affected"):
        message = f"the rows that a statement changes cannot be worked out: {affected}, recorded: {result['result']}"
        raise NotBuiltError(f"{message}: {result['sql'][:200]}")
    extra = ExtraRowInfo(transaction_id=1) if is_ndb(group.table) else None
    return [_change(group.table, row, statement.written, extra) for row in rows]


def _change(table: Table, row: StatementRow, written: frozenset[int], extra: ExtraRowInfo | None) -> WrittenChange:
    return WrittenChange(table, row.before, row.after, written, extra)


def _event_differences(group: _Group, binlog: Path, bounds: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Compare the events as written, by type."""
    headers = list(read_headers(binlog))
    for result, (start, end) in zip(group.results, bounds, strict=True):
        here = [header for position, header in headers if start <= position < end]
        for name, kind in _JUDGED.items():
            recorded = result["by_type"].get(name, {"events": 0, "bytes": 0})
            mine = [header.size for header in here if header.type_code == kind]
            if (len(mine), sum(mine)) != (recorded["events"], recorded["bytes"]):
                yield (
                    f"{group.title}, {result['sql'][:100]}: {sum(mine)} bytes in {len(mine)} {name} events, "
                    f"recorded: {recorded['bytes']} in {recorded['events']}"
                )


def _has_all_columns(group: _Group) -> bool:
    if is_ndb(group.table):
        return group.logging.update_format == effective_format(7)
    return group.logging.row_image is RowImageRule.FULL


def _format_differences(
    group: _Group, binlog: Path, bounds: Sequence[tuple[int, int]], others: Sequence[_Group]
) -> Iterator[str]:
    """Compare the sizes that a log with all columns gives for other formats, statement by statement."""
    for number, (start, end) in enumerate(bounds):
        tally = size_log(binlog, schema=Schema((group.table,)), start=start, stop=end).tally
        for other in others:
            rule = other.logging.update_format if is_ndb(other.table) else other.logging.row_image
            form = next((place for place, each in enumerate(FORMATS) if each.rule == rule), None)
            if form is None:
                continue
            least, most = (int(tally.bytes[bound, form].sum()) for bound in (LEAST, MOST))
            recorded = other.results[number]["row_events"]
            if not least <= recorded <= most:
                yield (
                    f"{other.title}, {other.results[number]['sql'][:100]}: {least} to {most} bytes of rows events "
                    f"from {group.title}, recorded: {recorded}"
                )
