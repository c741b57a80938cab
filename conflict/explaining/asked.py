"""
What is asked for: rows of exceptions tables, and transactions; `conflict.explaining.keys_asked` has rows by their keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.option_values import known_table
from conflict.errors import ConfigurationError, HistoryError
from conflict.explaining.row_changes import RowLog
from conflict.results.result import Result
from ndb_formats.errors import did_you_mean
from ndb_formats.schema.tables import Table

EXCEPTIONS_KEY = 4  # first columns of an exceptions table: server_id, source_server_id, source_epoch, count


def table_named(tables: Mapping[str, Table], name: str) -> Table:
    """
    Return a table by its name, with its database or, if one database alone has it, without.

    Raises:
        ConfigurationError: Several databases have it.
        HistoryError: There is none, or it has no primary key, so that its rows have no identity.
    """
    table = tables[known_table(name, tables)]
    if not table.primary_key:
        message = f"table {name} has no primary key, so nothing tells which changes are of one row"
        raise HistoryError(message)
    return table


def exceptions_row(result: Result, tables: Sequence[str], asked: int | str) -> tuple[str, str, dict[str, Any]]:
    """
    Return a row of an exceptions table, after its cluster and the table whose conflicts the exceptions table holds.

    Args:
        result: The result.
        tables: Tables whose exceptions tables are meant.
        asked: See `conflict.explaining.explainer.Explainer.exception`.

    Raises:
        ConfigurationError: What is asked for is not understood, or several exceptions tables have a row with that key.
        HistoryError: There is no such row.
    """
    values, count = _exceptions_values(asked), 0
    found: list[tuple[str, str, dict[str, Any]]] = []
    for cluster in result.clusters:
        for name in tables:
            rows = result.exceptions(name, cluster)
            if len(values) == EXCEPTIONS_KEY:
                found += ((cluster, name, row) for row in _with_values(rows, values).to_pylist())
            elif count < values[0] <= count + len(rows):
                found += ((cluster, name, row) for row in rows.slice(values[0] - count - 1, 1).to_pylist())
            count += len(rows)
    if not found:
        place = f" of {tables[0]}" if len(tables) == 1 else ""
        there = "is 1" if count == 1 else f"are {count or 'none'}"
        message = f"there is no exceptions row {asked}{place}; there {there}"
        raise HistoryError(message)
    if len(found) > 1:
        names = " and ".join(name for _, name, _ in found)
        message = f"the exceptions tables of {names} each have a row {asked}; name the table too, as --table does"
        raise ConfigurationError(message)
    return found[0]


def _exceptions_values(asked: int | str) -> list[int]:
    """Return the number of an exceptions row alone, or the values of its key."""
    parts = [part.strip() for part in str(asked).split(",")]
    numbers = [int(part) for part in parts if part.isascii() and part.isdecimal() and int(part) < 1 << 64]
    if len(parts) not in (1, EXCEPTIONS_KEY) or len(numbers) < len(parts):
        message = (
            f"{asked} is no exceptions row; give its number, from 1, or the four values of its primary key: "
            "server_id,source_server_id,source_epoch,count"
        )
        raise ConfigurationError(message)
    return numbers


def _with_values(rows: pa.Table, values: Sequence[int]) -> pa.Table:
    """Return the rows of an exceptions table with a key; its columns come first, whatever their names are."""
    if len(rows):
        for place, value in enumerate(values):
            rows = rows.filter(pc.equal(rows.column(place).cast(pa.uint64()), pa.scalar(value, pa.uint64())))
    return rows


def transaction_asked(transaction: int | str, clusters: Sequence[str]) -> tuple[str | None, int]:
    """
    Return the cluster, if it is named, and the id of a transaction.

    Raises:
        ConfigurationError: This is no id, or there is no such cluster.
    """
    cluster, colon, text = str(transaction).rpartition(":")
    if colon and cluster not in clusters:
        message = f"the result has no cluster {cluster}{did_you_mean(cluster, clusters)}; it has {', '.join(clusters)}"
        raise ConfigurationError(message)
    if not (text.isascii() and text.isdecimal() and int(text) < 1 << 64):
        message = (
            f"{transaction} is no id of a transaction; ids are numbers below 2 ** 64, alone or after the cluster: "
            f"{clusters[0]}:5519046619392"
        )
        raise ConfigurationError(message)
    return cluster or None, int(text)


def source_of(logs: Mapping[str, RowLog], cluster: str | None, number: int, missing: str = "") -> str:
    """
    Return the cluster that a transaction is of, from the logs of its id: the one that is asked for, if one is.

    Args:
        logs: The logs.
        cluster: The cluster that is asked for.
        number: The id.
        missing: Which binlogs there are no more, for the message.

    Raises:
        HistoryError: None is.
        ConfigurationError: Several are.
    """
    found = [name for name, log in logs.items() if log.changes and cluster in (None, name)]
    if not found:
        message = (
            f"no binlog {'' if cluster is None else f'of {cluster} '}has a transaction with the id {number}; ids are "
            "in the outcomes, in `conflicts --by transaction` and in the output of `decode`"
        )
        message += missing and f"; {missing}"
        raise HistoryError(message)
    if len(found) > 1:
        message = (
            f"{' and '.join(found)} each have a transaction with the id {number}; ask for "
            f"{' or '.join(f'{name}:{number}' for name in found)}"
        )
        raise ConfigurationError(message)
    return found[0]
