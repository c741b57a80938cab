"""
How the result of an engine, and its messages on the setup of tables, differ from recorded ones, in words.

Values of columns are compared as recordings write them, in JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from conflict.engine.ledger.resolution import ClusterResult
from conflict.rules.table_setup import BAD_SCHEMA, SHOWN_CHARACTERS, RefusalKind, TableSetup
from ndb_formats.schema.value_conversions import NOT_KNOWN, KnownValue, NotKnown
from ndb_formats.types.decimals import decimal_text
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import Geometry, Value, Vector


def plain_value(value: Value) -> object:
    """Return a value as recordings write it: decimals and JSON as text, bytes in hex, others as they are."""
    if isinstance(value, JsonDocument):
        return value.text
    if isinstance(value, Geometry | Vector):
        value = value.data
    if isinstance(value, bytes):
        return value.hex().upper()
    return decimal_text(value) if isinstance(value, Decimal) else value


def recorded_value(value: object, column_type: str) -> object:
    """Return a recorded value as `plain_value` gives it: the server shows six digits of a FLOAT, and 3.0 as 3."""
    if column_type.startswith("float") and isinstance(value, int | float):
        return float(np.float32(value))
    return float(value) if column_type.startswith("double") and isinstance(value, int) else value


_Row = tuple[object, ...]
# Lines of the error log on functions and exceptions tables; the others are about applying.
_SETUP_LINE = re.compile(
    r"(?:Replica: Table \S+ (?:: |using conflict_fn |logging exceptions to )|Replica: exceptions table |"
    r"Binlog: Ambiguous matches ).*"
)
_BAD_SCHEMA, _PARSE_ERROR = 1625, 1626


def setup_differences(side: str, want: Mapping[str, Any], setups: Iterable[TableSetup]) -> Iterator[str]:
    """
    Yield every message of a server that the rules do not predict, and every predicted one that is missing.

    Args:
        side: Name of the side.
        want: Its part of `expected.json`.
        setups: How the rules set up each table of the side, at any time.
    """
    messages = {found.group() for line in want["error_log"] if (found := _SETUP_LINE.search(line))}
    messages |= {
        str(text)
        for message in want.get("setup_messages", ())
        for _, number, text in message.get("warnings", ())
        if number in (_BAD_SCHEMA, _PARSE_ERROR)
    }
    predicted = {line for setup in setups for line in setup_lines(setup.table.full_name, setup)}
    for line in sorted(messages - predicted):
        yield f"{side}: a message is not predicted: {line}"
    for line in sorted(predicted - messages):
        yield f"{side}: a predicted message is missing: {line}"


def setup_lines(name: str, setup: TableSetup) -> Iterator[str]:
    """Yield the predicted messages on a table: lines of the error log, and warnings of CREATE TABLE."""
    if setup.refusal is not None:
        parse = "Parse error on conflict fn : " if setup.refusal.kind is RefusalKind.PARSE else ""
        yield f"Replica: Table {name} : {parse}{setup.refusal.words}"
        yield setup.refusal.warning
    if setup.function is not None:
        column = "" if setup.function.column is None else f" on attribute {setup.function.column}"
        yield f"Replica: Table {name} using conflict_fn {setup.function.spec.name}{column}."
    if setup.exceptions is not None:
        yield f"Replica: Table {name} logging exceptions to {setup.exceptions.table.full_name}"
    for warning in setup.warnings:
        if warning.startswith(BAD_SCHEMA):
            message = warning.removeprefix(BAD_SCHEMA)
            yield f"Binlog: {message}"
            yield BAD_SCHEMA + message[:SHOWN_CHARACTERS]
        else:
            yield f"Replica: {warning}"


_TABLE_IN_LOG = re.compile(r"(?:on table \./|on table |Table ')(?P<database>[\w$]+)[./](?P<table>[\w$]+)")


def result_differences(
    expected: Mapping[str, Any],
    databases: Mapping[str, str],
    results: Mapping[str, ClusterResult],
    setups: Mapping[str, Mapping[str, TableSetup]],
) -> Iterator[str]:
    """
    Yield every difference between a recording and a result; refusals and stops first, because they explain others.

    Args:
        expected: Contents of `expected.json`.
        databases: The database of the case on each side, as the run names it.
        results: The engine's result, per side.
        setups: How each side set up each table.
    """
    for side, want in expected.items():
        yield from _refusal_differences(side, want, databases[side], setups[side])
    for side, want in expected.items():
        yield from _stop_differences(side, want, results[side])
    for side, want in expected.items():
        yield from _counter_differences(side, want["status_difference"], results[side])
    for side, want in expected.items():
        for table, contents in want["tables"].items():
            name, result = f"{databases[side]}.{table}", results[side]
            stored = _stored(contents, setups[side].get(name))
            yield from _row_differences(side, table, stored, result.rows.get(name), result.rows_in_part.get(name, ()))
        for table, contents in want["exceptions"].items():
            found = results[side].exceptions.get(f"{databases[side]}.{table}")
            yield from _row_differences(side, table, contents, found)


def _refusal_differences(
    side: str, want: Mapping[str, Any], database: str, setups: Mapping[str, TableSetup]
) -> Iterator[str]:
    recorded = {}
    for message in want.get("setup_messages", ()):
        created = re.search(r"CREATE TABLE `?([\w$]+)`?", message["sql"])
        if "error" in message and created is not None:
            words = [str(text) for _, _, text in message.get("warnings", ())]
            recorded[f"{database}.{created.group(1)}"] = (message["error"][0], words)
    for name, setup in setups.items():
        error, words = recorded.get(name, (0, []))
        refusal = setup.refusal
        if (refusal.error if refusal else 0) != error or (refusal is not None and refusal.warning not in words):
            found = f"error {refusal.error} ({refusal.warning})" if refusal else "no error"
            said = f"error {error} ({'; '.join(words)})" if error else "no error"
            yield f"{side}: CREATE TABLE {name} gave {found}, recorded: {said}"


def _stop_differences(side: str, want: Mapping[str, Any], result: ClusterResult) -> Iterator[str]:
    recorded, stop = want["applier"]["errno"], result.stop
    if recorded != (stop.error if stop else 0):
        happened = f"stopped with {stop.error} ({stop.message})" if stop else "did not stop"
        yield f"{side}: the applier {happened}, recorded: {recorded or 'no stop'}"
    elif stop is not None:
        tables = {
            f"{found['database']}.{found['table']}"
            for line in want.get("error_log", ())
            if "[ERROR]" in line and (found := _TABLE_IN_LOG.search(line))
        }
        if tables and stop.table not in tables:
            yield f"{side}: the applier stopped on table {stop.table}, recorded: {', '.join(sorted(tables))}"


def _counter_differences(side: str, want: Mapping[str, int], result: ClusterResult) -> Iterator[str]:
    for counter, value in want.items():
        found = result.counters.get(counter, 0)
        if found != value:
            yield f"{side}: {counter} is {found}, recorded: {value}"


def _stored(want: Mapping[str, Any], setup: TableSetup | None) -> Mapping[str, Any]:
    """Return recorded rows without virtual columns, which NDB does not store."""
    shown = () if setup is None else setup.shown[0].columns
    virtual = {column.name for column in shown if column.generated == "virtual"}
    kept = [place for place, name in enumerate(want["columns"]) if name not in virtual]
    if len(kept) == len(want["columns"]):
        return want
    rows = [[row[place] for place in kept] for row in want["rows"]]
    columns, types = ([want[name][place] for place in kept] for name in ("columns", "types"))
    return {**want, "columns": columns, "types": types, "rows": rows}


def _row_differences(
    side: str,
    table: str,
    want: Mapping[str, Any],
    found: Sequence[tuple[Value, ...]] | None,
    in_part: Sequence[tuple[KnownValue, ...]] = (),
) -> Iterator[str]:
    if found is None:
        yield f"{side}: table {table} does not exist, recorded: {len(want['rows'])} rows"
        return
    types = want["types"]
    mine = Counter(tuple(plain_value(value) for value in row) for row in found)
    theirs = Counter(
        tuple(recorded_value(value, kind) for value, kind in zip(row, types, strict=True)) for row in want["rows"]
    )
    lacking = list((theirs - mine).elements())
    for partly in in_part:
        known = [value if isinstance(value, NotKnown) else plain_value(value) for value in partly]
        fitting = (row for row in lacking if all(one in (NOT_KNOWN, two) for one, two in zip(known, row, strict=True)))
        fits = next(fitting, None)
        if fits is None:
            yield f"{side}: {table} has a row that is not recorded: {_row_text(want['columns'], known)}"
        else:
            lacking.remove(fits)
    extra = list((mine - theirs).elements())
    yield from (f"{side}: {table} row {words}" for words in _other_values(want, lacking, extra))
    for row in lacking:
        yield f"{side}: {table} lacks the recorded row {_row_text(want['columns'], row)}"
    for row in extra:
        yield f"{side}: {table} has a row that is not recorded: {_row_text(want['columns'], row)}"


def _other_values(want: Mapping[str, Any], lacking: list[_Row], extra: list[_Row]) -> Iterator[str]:
    """Take recorded rows and found ones with the same primary key out of both lists; yield how their values differ."""
    columns = want["columns"]
    places = [columns.index(name) for name in want.get("primary_key") or () if name in columns]
    if not places:
        return
    names, found = [columns[place] for place in places], {tuple(row[place] for place in places): row for row in extra}
    for row in lacking[:]:
        key = tuple(row[place] for place in places)
        other = found.pop(key, None)
        if other is not None:
            lacking.remove(row)
            extra.remove(other)
            values = zip(columns, other, row, strict=True)
            differing = (f"{name} is {mine}, recorded: {theirs}" for name, mine, theirs in values if mine != theirs)
            yield f"{_row_text(names, key)}: {'; '.join(differing)}"


def _row_text(columns: Sequence[str], row: Sequence[object]) -> str:
    return "(" + ", ".join(f"{name}={value}" for name, value in zip(columns, row, strict=False)) + ")"
