"""Faults of a run, made on recordings: altered or missing events, options that are off, wrong declarations."""

import io
import random
from collections.abc import Callable
from pathlib import Path

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.rules.replication_table import Role
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import APPLY_STATUS, EventType
from ndb_formats.events.header import EventHeader, decode_format_description
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.row_image import layout_of
from ndb_formats.events.rows_event import (
    ROWS_EVENTS,
    ConflictFlag,
    ExtraRowInfo,
    Operation,
    RowsEvent,
    decode_rows_event,
    encode_rows_event,
    extra_row_info_block,
)
from ndb_formats.events.table_map import TableMap, decode_table_map, encode_table_map
from ndb_formats.events.table_map_of_table import RowMetadata, table_map_of
from ndb_formats.schema.tables import Table
from ndb_formats.writing.event_stream import EventStream

Raw = tuple[EventHeader, bytes]
CONSEQUENCE = ConflictFlag.REFLECTED | ConflictFlag.REFRESH


def with_files(cluster: ClusterConfiguration, *files: Path) -> ClusterConfiguration:
    """Return a cluster with other binlog files of its one server."""
    return attrs.evolve(cluster, servers=(LoggingServer(cluster.server_id, files),))


@attrs.define
class Log:
    """The events of one cluster's binlog, and what each rows event is: of ndb_apply_status, own, or the applier's."""

    cluster: ClusterConfiguration
    files: list[list[Raw]]

    @classmethod
    def read(cls, cluster: ClusterConfiguration) -> "Log":
        """Read the files of a cluster."""
        return cls(cluster, [[(event.header, event.body) for event in read_events(file)] for file in cluster.log.files])

    def written(self, folder: Path) -> ClusterConfiguration:
        """Write the files to another folder, and return the cluster with them."""
        paths = []
        for file, events in zip(self.cluster.log.files, self.files, strict=True):
            out = io.BytesIO()
            stream = EventStream(out)
            for header, body in events:
                if header.type_code == EventType.FORMAT_DESCRIPTION_EVENT:
                    stream.start(header, decode_format_description(body))
                else:
                    stream.put(header, body)
            paths.append(folder / f"{self.cluster.name}.{file.name}")
            paths[-1].write_bytes(out.getvalue())
        return with_files(self.cluster, *paths)

    def rows_events(self) -> list[tuple[int, int, str, RowsEvent]]:
        """Return file, place, kind and content of each rows event."""
        found = []
        for number, events in enumerate(self.files):
            maps: dict[int, TableMap] = {}
            for place, (header, body) in enumerate(events):
                kind = EventType(header.type_code)
                if kind is EventType.TABLE_MAP_EVENT:
                    table_map = decode_table_map(body)
                    maps[table_map.table_id] = table_map
                elif kind in ROWS_EVENTS:
                    rows = decode_rows_event(kind, body)
                    found.append((number, place, self._kind(header, rows, maps[rows.table_id]), rows))
        return found

    def _kind(self, header: EventHeader, rows: RowsEvent, table_map: TableMap) -> str:
        own = self.cluster.server_id
        if table_map.full_name == APPLY_STATUS:
            servers = {
                int.from_bytes(after.payloads[0] or b"", "little")
                for _, after in rows.rows(layout_of(table_map))
                if after is not None
            }
            return "own status" if servers == {own} else "other status"
        flags = (rows.extra.flags if rows.extra else None) or ConflictFlag(0)
        if flags & ConflictFlag.REFRESH:
            return "refresh"
        return "own" if header.server_id == own and not flags & CONSEQUENCE else "applied"

    def remove(self, places: list[tuple[int, int]]) -> None:
        """Remove events."""
        for number, place in sorted(places, reverse=True):
            del self.files[number][place]

    def transactions(self) -> list[tuple[int, int, int]]:
        """Return file, first event and end of each transaction."""
        found = []
        for number, events in enumerate(self.files):
            start = 0
            for place, (header, body) in enumerate(events):
                if header.type_code != EventType.QUERY_EVENT:
                    continue
                if decode_query(body).statement == "BEGIN":
                    start = place
                elif decode_query(body).statement == "COMMIT":
                    found.append((number, start, place + 1))
        return found


# Changes a log, and returns whether it found something to change.
LogFault = Callable[[Log, random.Random], bool]


def other_value(log: Log, chance: random.Random) -> bool:
    """Alter the last byte of an applied change that has an after image."""
    places = [
        (number, place)
        for number, place, kind, rows in log.rows_events()
        if kind == "applied" and rows.operation is not Operation.DELETE_ROW
    ]
    if places:
        number, place = chance.choice(places)
        header, body = log.files[number][place]
        log.files[number][place] = header, body[:-1] + bytes([body[-1] ^ 1])
    return bool(places)


def applied_removed(log: Log, chance: random.Random) -> bool:
    """Remove an applied change."""
    places = [(number, place) for number, place, kind, _ in log.rows_events() if kind == "applied"]
    if places:
        log.remove([chance.choice(places)])
    return bool(places)


def epoch_removed(log: Log, chance: random.Random) -> bool:
    """Remove an epoch with own changes from the middle, as if a file were missing."""
    own = {(number, place) for number, place, kind, _ in log.rows_events() if kind == "own"}
    inner = [each for each in log.transactions() if any((each[0], place) in own for place in range(each[1], each[2]))]
    if len(inner) > 2:
        number, start, end = chance.choice(inner[1:-1])
        del log.files[number][start:end]
    return len(inner) > 2


def transaction_ids_off(log: Log, _: random.Random) -> bool:
    """Remove the transaction ids, as with ndb_log_transaction_id=OFF."""
    for number, place, _kind, rows in log.rows_events():
        flags = rows.extra.flags if rows.extra else None
        block = extra_row_info_block(None if flags is None else ExtraRowInfo(None, flags))
        log.files[number][place] = log.files[number][place][0], encode_rows_event(attrs.evolve(rows, extra_bytes=block))
    return True


def apply_status_off(log: Log, _: random.Random) -> bool:
    """Remove the other cluster's rows of ndb_apply_status, as with ndb_log_apply_status=OFF."""
    places = [(number, place) for number, place, kind, _ in log.rows_events() if kind == "other status"]
    log.remove(places)
    return bool(places)


def replica_updates_off(log: Log, _: random.Random) -> bool:
    """Remove all that the applier did, as with log_replica_updates=OFF."""
    events = log.rows_events()
    log.remove([(number, place) for number, place, kind, _ in events if kind in ("other status", "applied")])
    return any(kind == "applied" for *_, kind, _ in events)


def sides_swapped(configuration: Configuration) -> Configuration:
    """Give each cluster the binlogs of the other one."""
    first, second = configuration.clusters
    swapped = with_files(first, *second.log.files), with_files(second, *first.log.files)
    return attrs.evolve(configuration, clusters=swapped)


def wrong_function(configuration: Configuration) -> Configuration:
    """Declare NDB$MAX where a function by epoch was in force, and NDB$EPOCH where one by column was."""
    rows = tuple(
        row
        if row.conflict_fn is None
        else attrs.evolve(row, conflict_fn="NDB$MAX(x)" if "EPOCH" in row.conflict_fn else "NDB$EPOCH()")
        for row in configuration.replication
    )
    return attrs.evolve(configuration, replication=rows)


def other_key(configuration: Configuration) -> Configuration:
    """Declare column x, which updates change, as the primary key."""
    return _with_keys(configuration, lambda table: ("x",))


def longer_key(configuration: Configuration) -> Configuration:
    """Declare column x, which updates change, as a part of the primary key."""
    return _with_keys(configuration, lambda table: (*table.primary_key, "x"))


def shorter_key(configuration: Configuration) -> Configuration:
    """Declare the first column of each primary key as the primary key."""
    return _with_keys(configuration, lambda table: table.primary_key[:1])


def _with_keys(configuration: Configuration, key_of: Callable[[Table], tuple[str, ...]]) -> Configuration:
    """Declare other primary keys of the tables with a column x."""
    tables = tuple(
        attrs.evolve(table, primary_key=key_of(table))
        if not table.name.lower().endswith("$ex") and table.find("x") is not None
        else table
        for table in configuration.schema.tables
    )
    return attrs.evolve(configuration, schema=attrs.evolve(configuration.schema, tables=tables))


def wrong_type(configuration: Configuration) -> Configuration:
    """Declare binlog type 7 for tables of type 8, and 8 for all others."""
    rows = tuple(attrs.evolve(row, binlog_type=7 if row.binlog_type == 8 else 8) for row in configuration.replication)
    return attrs.evolve(configuration, replication=rows)


def with_roles(configuration: Configuration, *roles: Role) -> Configuration:
    """Declare the role of each cluster."""
    clusters = tuple(
        attrs.evolve(cluster, role=role) for cluster, role in zip(configuration.clusters, roles, strict=True)
    )
    return attrs.evolve(configuration, clusters=clusters)


def with_full_metadata(configuration: Configuration, folder: Path) -> Configuration:
    """Return a run whose Table_map events tell all of the tables, as with binlog_row_metadata=FULL."""
    clusters = []
    for cluster in configuration.clusters:
        log = Log.read(cluster)
        for events in log.files:
            for place, (header, body) in enumerate(events):
                if header.type_code == EventType.TABLE_MAP_EVENT:
                    known = decode_table_map(body)
                    table = configuration.schema.find(known.database, known.table)
                    if table is not None:
                        told = table_map_of(table, known.table_id, RowMetadata.FULL)
                        events[place] = header, encode_table_map(told)
        clusters.append(log.written(folder))
    return attrs.evolve(configuration, clusters=tuple(clusters))


def with_log_fault(configuration: Configuration, fault: LogFault, chance: random.Random, folder: Path) -> Configuration:
    """Return a run with a fault in the log of one of its clusters, chosen among those that can have it."""
    order = list(range(len(configuration.clusters)))
    chance.shuffle(order)
    clusters = list(configuration.clusters)
    for number in order:
        log = Log.read(clusters[number])
        if fault(log, chance):
            clusters[number] = log.written(folder)
            return attrs.evolve(configuration, clusters=tuple(clusters))
    message = "the recording has nothing that can be faulty in this way"
    raise AssertionError(message)
