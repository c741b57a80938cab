"""
How the result of an engine differs from a recorded one, in words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.conformance.recorded_values import plain_value, recorded_value
from conflict.results.model import ClusterResult
from conflict.rules.table_setup import RefusalKind, TableSetup
from ndb_formats.types.values import Value

__all__ = ["result_differences"]

# The server's words for each kind of refusal.
_REFUSAL_WORDS = (
    (RefusalKind.NO_COLUMN, r"Could not find resolve column (?P<column>[^\s.]+)\."),
    (RefusalKind.WRONG_TYPE, r"Column '(?P<column>[^']+)' has wrong datatype"),
    (RefusalKind.BLOB, r"Table has Blob column\(s\)"),
    (RefusalKind.UPDATES_AS_WRITES, r"configured to log updates as writes"),
    (RefusalKind.PARSE, r"unknown conflict|missing|garbage in the end|Too many extra Gci bits|too many arguments"),
)
_TABLE_IN_LOG = re.compile(r"(?:on table \./|on table |Table ')(?P<database>[\w$]+)[./](?P<table>[\w$]+)")


def result_differences(
    expected: Mapping[str, Any],
    database: str,
    results: Mapping[str, ClusterResult],
    setups: Mapping[str, Mapping[str, TableSetup]],
) -> Iterator[str]:
    """
    Yield every difference between a recording and a result; refusals and stops first, because they explain others.

    Args:
        expected: Contents of `expected.json`.
        database: The case's database.
        results: The engine's result, per side.
        setups: How each side set up each table.
    """
    for side, want in expected.items():
        yield from _refusal_differences(side, want, database, setups[side])
    for side, want in expected.items():
        yield from _stop_differences(side, want, results[side])
    for side, want in expected.items():
        yield from _counter_differences(side, want["status_difference"], results[side])
    for side, want in expected.items():
        for table, contents in want["tables"].items():
            yield from _row_differences(side, table, contents, results[side].rows.get(f"{database}.{table}"))
        for table, contents in want["exceptions"].items():
            found = results[side].exceptions.get(f"{database}.{table}")
            yield from _row_differences(side, table, contents, found)


def _refusal_differences(
    side: str, want: Mapping[str, Any], database: str, setups: Mapping[str, TableSetup]
) -> Iterator[str]:
    refused = {}
    for message in want.get("setup_messages", ()):
        created = re.search(r"CREATE TABLE `?([\w$]+)`?", message["sql"])
        if "error" in message and created is not None:
            refused[f"{database}.{created.group(1)}"] = (message["error"][0], *_reason(message))
    for name, setup in setups.items():
        found = None if setup.refusal is None else (setup.refusal.error, setup.refusal.kind, setup.refusal.column)
        if found != refused.get(name):
            yield f"{side}: CREATE TABLE {name} gave {_say(found)}, recorded: {_say(refused.get(name))}"


def _reason(message: Mapping[str, Any]) -> tuple[RefusalKind | None, str | None]:
    text = " ".join(str(part) for warning in message.get("warnings", ()) for part in warning)
    for kind, words in _REFUSAL_WORDS:
        found = re.search(words, text)
        if found is not None:
            return kind, found.groupdict().get("column")
    return None, None


def _say(refusal: tuple[int, RefusalKind | None, str | None] | None) -> str:
    if refusal is None:
        return "no error"
    error, kind, column = refusal
    return f"error {error} ({kind.name if kind else 'another reason'}{f', column {column}' if column else ''})"


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


def _row_differences(
    side: str, table: str, want: Mapping[str, Any], found: Sequence[tuple[Value, ...]] | None
) -> Iterator[str]:
    if found is None:
        yield f"{side}: table {table} does not exist, recorded: {len(want['rows'])} rows"
        return
    types = want["types"]
    mine = Counter(tuple(plain_value(value) for value in row) for row in found)
    theirs = Counter(
        tuple(recorded_value(value, kind) for value, kind in zip(row, types, strict=True)) for row in want["rows"]
    )
    for row in (theirs - mine).elements():
        yield f"{side}: {table} lacks the recorded row {_row_text(want['columns'], row)}"
    for row in (mine - theirs).elements():
        yield f"{side}: {table} has a row that is not recorded: {_row_text(want['columns'], row)}"


def _row_text(columns: Sequence[str], row: Sequence[object]) -> str:
    return "(" + ", ".join(f"{name}={value}" for name, value in zip(columns, row, strict=False)) + ")"
