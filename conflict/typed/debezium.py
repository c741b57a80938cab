"""
Change events of Debezium's MySQL connector as a typed History: one connector on each cluster.

    {"before": {"id": 1, "v": 0}, "after": {"id": 1, "v": 5}, "op": "u", "ts_ms": 1700000000500,
     "source": {"db": "shop", "table": "t", "server_id": 1, "gtid": null, "file": "binlog.000001", "pos": 481, "row": 0,
                "ts_ms": 1700000000000, ...}}

A transaction of a binlog is an epoch of NDB. An event with the server id of the other cluster tells that this cluster
had applied that transaction then. Where connectors see no such events, somebody has to say how long a transaction is
under way.

Source: Debezium documentation, "Debezium connector for MySQL", "Data change events".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from conflict.documents import read
from conflict.errors import ConfigurationError
from conflict.typed.schedule import Schedule
from conflict.typed.steps import FIRST_EPOCH, Apply, Change, Step, Transaction
from conflict.typed.tables import Tables, TypedTable
from ndb_formats.events.rows_event import Operation
from ndb_formats.stored import path_of

Events = Path | str | Iterable[Mapping[str, Any] | str | None]
_OPERATIONS = {"c": Operation.WRITE_ROW, "u": Operation.UPDATE_ROW, "d": Operation.DELETE_ROW, "r": Operation.WRITE_ROW}
_SNAPSHOT = "r"
_UNAVAILABLE = "__debezium_unavailable_value"  # of a column that the binlog does not have
_BIGINT = 1 << 64

Row = dict[str, Any]


@attrs.frozen
class _Source:
    """Where a change was logged; other entries do not matter."""

    db: str
    table: str
    server_id: int = 0
    gtid: str | None = None
    file: str = ""
    pos: int = 0
    ts_ms: int = 0


@attrs.frozen
class _Event:
    """
    A change event.

    Attributes:
        op: What happened: ``c``, ``u``, ``d``, or ``r`` for a row of a snapshot.
        source: Where it was logged.
        before: The row before; None for an insert, or if it is not logged.
        after: The row after; None for a delete.
        transaction: The id of its transaction, if the connector gives it.
        place: Which event it is, for messages.
    """

    op: str
    source: _Source
    before: Row | None
    after: Row | None
    transaction: str | None
    place: str

    @property
    def group(self) -> object:
        """What it has in common with the other events of its transaction: at least those of one rows event."""
        return self.source.gtid or self.transaction or (self.source.file, self.source.pos)


@attrs.frozen
class _Committed:
    """
    A transaction in the log of a cluster.

    Attributes:
        group: What its events have in common.
        server_id: The server on which it was made.
        moment: Millisecond since 1970 at which it was logged.
        changes: Its changes.
    """

    group: object
    server_id: int
    moment: int
    changes: tuple[Change, ...]

    @property
    def rows(self) -> set[tuple[str, tuple[Any, ...]]]:
        """The rows that it changes."""
        return {(change.table, change.key) for change in self.changes}


@attrs.frozen
class _Place:
    """A step: the number of an own transaction, or of one of the other cluster that is applied."""

    number: int
    applied: bool = False


def of_debezium(
    clusters: Mapping[str, Events], tables: str, server_ids: Mapping[str, int] | None, delay_ms: int | None
) -> Schedule:
    """
    Return the History of change events; see `History.from_debezium`.

    Raises:
        ConfigurationError: An event cannot be read, or what was applied when does not follow.
    """
    known = Tables.of(tables)
    events = {name: list(_events(name, given)) for name, given in clusters.items()}
    logs = {name: list(_transactions(known, each)) for name, each in events.items()}
    ids = _server_ids(logs, server_ids)
    own = {name: [each for each in log if each.server_id == ids[name]] for name, log in logs.items()}
    start = tuple(_snapshot(known, events))
    if any(len(own[name]) < len(log) for name, log in logs.items()):
        places = {name: list(_by_events(logs[name], ids[name], own[_other(own, name)])) for name in own}
    elif delay_ms is None:
        message = (
            "no event of a cluster is one that its applier made, so nothing tells what it had applied when; say how "
            "long a transaction takes to the other cluster, as in delay_ms=500, or have log_replica_updates on"
        )
        raise ConfigurationError(message)
    else:
        places = {name: _by_delay(own, name, delay_ms) for name in own}
    return Schedule(tables=known, start=start, **{name: list(_steps(places, own, name)) for name in places})


def _other(names: Iterable[str], name: str) -> str:
    return next(each for each in names if each != name)


def _events(name: str, given: Events) -> Iterator[_Event]:
    """Yield the change events of a connector; tombstones are left out."""
    messages: Iterable[Mapping[str, Any] | str | None]
    messages = path_of(given).read_text("utf-8").split("\n") if isinstance(given, Path | str) else given
    for number, message in enumerate(messages, start=1):
        try:
            found: Any = json.loads(message) if isinstance(message, str) and message.strip() else message
            value = found.get("payload", found) if isinstance(found, Mapping) else found
            if not value:
                continue
            if value.get("op") not in _OPERATIONS:
                what = f"op {value['op']!r}" if "op" in value else "no op"
                why = f"it has {what}; a change of a row has op {', '.join(_OPERATIONS)}"
                raise ConfigurationError(why)  # told with its place
            yield _event(value, f"event {number} of {name}")
        except (ValueError, AttributeError) as error:
            text = f"event {number} of {name}: {error}"
            raise ConfigurationError(text) from error


def _event(value: Mapping[str, Any], place: str) -> _Event:
    source = value.get("source") or {}
    names = attrs.fields_dict(_Source)
    found = read(_Source, {name: each for name, each in source.items() if name in names}, "source")
    rows = {name: read(Row | None, value.get(name), name) for name in ("before", "after")}
    transaction = (value.get("transaction") or {}).get("id")
    event = _Event(value["op"], found, rows["before"], rows["after"], transaction, place)
    if (event.before if event.op == "d" else event.after) is None:
        message = f"an event with op {event.op} needs the row {'before' if event.op == 'd' else 'after'} it"
        raise ConfigurationError(message)
    return event


def _transactions(tables: Tables, events: Sequence[_Event]) -> Iterator[_Committed]:
    """Yield the transactions of a log, in order, those that the applier made among them."""
    logged = [event for event in events if event.op != _SNAPSHOT]
    for (server_id, group), own in groupby(logged, key=lambda event: (event.source.server_id, event.group)):
        members = list(own)
        changes = tuple(_change(tables, event) for event in members)
        yield _Committed(group, server_id, members[0].source.ts_ms, changes)


def _change(tables: Tables, event: _Event) -> Change:
    """Return a change; an error names its event."""
    try:
        return _typed(tables, event)
    except ConfigurationError as error:
        message = f"{event.place}: {error}"
        raise ConfigurationError(message) from error


def _typed(tables: Tables, event: _Event) -> Change:
    """Return a change; an update sets the columns that are not as before."""
    table = tables.named(f"{event.source.db}.{event.source.table}")
    row = event.after if event.after is not None else event.before
    assert row is not None
    before = event.before or {}
    values = [
        (name, _value(table, name, value))
        for name, value in row.items()
        if name not in table.table.primary_key
        and value != _UNAVAILABLE
        and (name not in before or before[name] != value)
    ]
    if event.op == "u" and not values:  # it sets what the row had
        values = [(name, _value(table, name, row[name])) for name in row if name not in table.table.primary_key]
    return tables.checked(
        Change(_OPERATIONS[event.op], _key(table, row), () if event.op == "d" else tuple(values), table.name)
    )


def _key(table: TypedTable, row: Row) -> tuple[Any, ...]:
    missing = [name for name in table.table.primary_key if name not in row]
    if missing:
        message = f"a row of {table.name} has no column {missing[0]} of the primary key"
        raise ConfigurationError(message)
    return tuple(_value(table, name, row[name]) for name in table.table.primary_key)


def _value(table: TypedTable, name: str, value: Any) -> Any:
    """Return a value; of BIGINT UNSIGNED, connectors give what fits into 64 bits with a sign."""
    column = table.table.columns[table.column(name)]
    wrapped = column.type == "bigint" and column.unsigned and isinstance(value, int) and value < 0
    return value + _BIGINT if wrapped else value


def _server_ids(logs: Mapping[str, Sequence[_Committed]], given: Mapping[str, int] | None) -> dict[str, int]:
    """Return the server id of each cluster: the one that its log has, or that is given."""
    found = {name: sorted({each.server_id for each in log}) for name, log in logs.items()}
    if given is not None:
        if given.keys() != found.keys():
            message = f"server_ids names {', '.join(given)}; give the server id of {' and of '.join(found)}"
            raise ConfigurationError(message)
        return dict(given)
    for name, ids in found.items():
        if len(ids) > 1:
            message = (
                f"the events of {name} have server ids {', '.join(map(str, ids))}; say which one is its own: "
                f"server_ids={{{', '.join(f'{each!r}: ...' for each in found)}}}"
            )
            raise ConfigurationError(message)
    return {name: ids[0] if ids else 0 for name, ids in found.items()}


def _snapshot(tables: Tables, events: Mapping[str, Sequence[_Event]]) -> Iterator[Change]:
    """Yield the rows at first, which are those of the snapshots."""
    rows: dict[str, dict[tuple[str, tuple[Any, ...]], Change]] = {}
    for name, own in events.items():
        changes = (_change(tables, event) for event in own if event.op == _SNAPSHOT)
        rows[name] = {(change.table, change.key): change for change in changes}
    first, second = rows.values()
    differing = [row for row in first.keys() | second.keys() if second and first and first.get(row) != second.get(row)]
    if differing:
        table, key = min(differing, key=str)
        message = (
            f"the snapshots of {' and '.join(rows)} differ in the row {key} of {table}; a History begins with the same "
            "rows on both clusters"
        )
        raise ConfigurationError(message)
    yield from (first or second).values()


def _by_delay(own: Mapping[str, Sequence[_Committed]], name: str, delay: int) -> list[_Place]:
    """Return the steps of a cluster whose applier gets each transaction some time after its commit."""
    theirs = own[_other(own, name)]
    commits = [(each.moment, _Place(number)) for number, each in enumerate(own[name])]
    arrivals = [(each.moment + delay, _Place(number, applied=True)) for number, each in enumerate(theirs)]
    return [place for _, place in sorted([*commits, *arrivals], key=lambda each: each[0])]


def _by_events(log: Sequence[_Committed], own_id: int, theirs: Sequence[_Committed]) -> Iterator[_Place]:
    """
    Yield the steps of a cluster whose log has what its applier did.

    An applier keeps the order of the other log. So what it made is the next transaction there with the same GTID, or
    that changes one of the same rows; transactions before it that left nothing were applied before it.
    """
    mine = done = 0
    for each in log:
        if each.server_id == own_id:
            yield _Place(mine)
            mine += 1
            continue
        fitting = (
            number
            for number, other in enumerate(theirs[done:], start=done)
            if each.group == other.group or each.rows & other.rows
        )
        found = next(fitting, None)
        if found is not None:
            done = found + 1
            yield _Place(found, applied=True)


def _steps(
    places: Mapping[str, Sequence[_Place]], own: Mapping[str, Sequence[_Committed]], name: str
) -> Iterator[Step]:
    """Yield the steps of a cluster; each is an epoch."""
    theirs = places[_other(places, name)]
    epochs = {place.number: order * FIRST_EPOCH for order, place in enumerate(theirs, start=1) if not place.applied}
    for place in places[name]:
        yield Apply(epochs[place.number]) if place.applied else Transaction(own[name][place.number].changes)
