"""
A typed History as JSON lines, one step a line, in an order in which everything comes after its cause.

    {"clusters": ["A", "B"], "tables": "CREATE TABLE ..."}
    {"start": {"insert": {"id": 1}, "values": {"v": 0}}}
    {"cluster": "A", "epoch": "1", "changes": [{"update": {"id": 1}, "values": {"v": 5}}]}
    {"cluster": "B", "epoch": "1", "apply": "1"}
    {"cluster": "B", "restart": "rewind"}

docs/histories.md describes the entries. Values are numbers and texts, bytes are hexadecimal digits after ``0x``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal

import attrs

from conflict.documents import Name, Text, read
from conflict.errors import ConfigurationError
from conflict.typed.schedule import Schedule, TypedStep
from conflict.typed.steps import OPERATIONS, Apply, Change, Restart, Step, Transaction, epoch_of, epoch_text
from conflict.typed.tables import Tables
from ndb_formats.events.rows_event import Operation
from ndb_formats.types.decimals import decimal_text
from ndb_formats.types.values import Value

_Row = dict[str, Any]


@attrs.frozen
class _Change:
    """A change: what its statement does with the row of a key."""

    insert: _Row | None = None
    update: _Row | None = None
    delete: _Row | None = None
    read: _Row | None = None
    values: _Row = attrs.field(factory=dict)
    table: Text = ""


@attrs.frozen
class _Line:
    """A line: the clusters and tables, a row at first, or a step."""

    clusters: list[Name] | None = None
    tables: Text | None = None
    start: _Change | None = None
    cluster: Name | None = None
    epoch: int | Text | None = None
    changes: list[_Change] | None = None
    transaction_id: int | None = None
    apply: int | Text | None = None
    logged: bool | None = None
    restart: Literal["restart", "rewind"] | None = None


def json_lines_of(history: Schedule) -> str:
    """Return a History as JSON lines."""
    head: dict[str, object] = {"clusters": list(history.names)}
    if not history.tables.is_default:
        head["tables"] = history.tables.sql
    lines = [head, *({"start": _change_json(history.tables, change)} for change in history.start)]
    lines += [{"cluster": placed.cluster, **_step_json(history.tables, placed.step)} for placed in history.placed]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _step_json(tables: Tables, step: Step) -> dict[str, object]:
    if isinstance(step, Restart):
        return {"restart": "rewind" if step.rewound else "restart"}
    epoch: dict[str, object] = {"epoch": epoch_text(step.epoch or 0)}
    if isinstance(step, Apply):
        epoch["apply"] = epoch_text(step.foreign_epoch or 0)
        return epoch if step.logged is None else {**epoch, "logged": step.logged}
    if step.id is not None:
        epoch["transaction_id"] = step.id
    return {**epoch, "changes": [_change_json(tables, change) for change in step.changes]}


def _change_json(tables: Tables, change: Change) -> dict[str, object]:
    table = tables.named(change.table)
    key = zip(table.table.primary_key, map(_plain, change.key), strict=True)
    found: dict[str, object] = {change.word: dict(key)}
    if change.values or change.operation is Operation.WRITE_ROW:
        found["values"] = {name: _plain(value) for name, value in change.values}
    return found if table is tables.first else found | {"table": table.name}


def _plain(value: Value) -> object:
    if isinstance(value, bytes):
        return f"0x{value.hex().upper()}"
    return decimal_text(value) if isinstance(value, Decimal) else value


def schedule_of_json_lines(lines: Iterable[str], name: str = "line") -> Schedule:
    """
    Return the History of JSON lines.

    Args:
        lines: The lines; empty ones are left out.
        name: What they are of, for messages.

    Raises:
        ConfigurationError: A line is no JSON, or no step.
    """
    tables, names, start = Tables.of(), list[str](), list[Change]()
    steps: dict[str, list[TypedStep]] = {}
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line: _Line = read(_Line, json.loads(text))
            tables = tables if line.tables is None else Tables.of(line.tables)
            names = names if line.clusters is None else line.clusters
            start += [] if line.start is None else [_change_of(tables, line.start)]
            if line.cluster is not None:
                steps.setdefault(line.cluster, []).append(_step_of(tables, line))
        except ValueError as error:
            message = f"{name} {number}: {error}"
            raise ConfigurationError(message) from error
    if unknown := [each for each in steps if names and each not in names]:
        message = f"cluster {unknown[0]} has steps, but clusters are {' and '.join(names)}"
        raise ConfigurationError(message)
    return Schedule(tables=tables, start=start, **{each: steps.get(each, []) for each in names or steps})


def _step_of(tables: Tables, line: _Line) -> Step:
    epoch = None if line.epoch is None else epoch_of(line.epoch)
    given = [each for each in ("changes", "apply", "restart") if getattr(line, each) is not None]
    if len(given) != 1:
        message = f"a step has changes, apply or restart, one of them; it has {' and '.join(given) or 'none'}"
        raise ConfigurationError(message)
    if line.restart is not None:
        return Restart(line.restart == "rewind")
    if line.apply is not None:
        return Apply(epoch_of(line.apply), epoch, line.logged)
    changes = tuple(_change_of(tables, each) for each in line.changes or ())
    return Transaction(changes, epoch, line.transaction_id)


def _change_of(tables: Tables, given: _Change) -> Change:
    found = [(word, row) for word in OPERATIONS if (row := getattr(given, word)) is not None]
    if len(found) != 1:
        message = f"a change has the key of its row as {', '.join(OPERATIONS)}, one of them"
        raise ConfigurationError(message)
    ((word, row),) = found
    key = tuple(_key(tables, given.table, row))
    change = Change(OPERATIONS[word], key, tuple(given.values.items()), given.table)
    if change.word != word:
        message = f"{word} has {'no ' if change.reads else ''}values, which an update has and a read has not"
        raise ConfigurationError(message)
    return change


def _key(tables: Tables, table: str, row: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values of a key in key order."""
    names = tables.named(table).table.primary_key
    given = {name.lower(): value for name, value in row.items()}
    if given.keys() != {name.lower() for name in names}:
        message = f"the key of {tables.named(table).name} is {', '.join(names)}; given is {', '.join(row) or 'nothing'}"
        raise ConfigurationError(message)
    yield from (given[name.lower()] for name in names)
