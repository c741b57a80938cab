"""
The table of epochs of one SQL node's log: what the server keeps in `mysql.ndb_binlog_index`, from the log alone.

A row tells of an epoch where its transaction begins and where the next one begins, how many rows it changed, and whose
epochs were applied in it, as ``ndb_log_orig`` makes the server tell: a row for each server whose changes are in it, and
for each foreign epoch. Of several epochs of one server in one own epoch, the last one has the changes.

Source: MySQL manual, "NDB Cluster Replication Schema and Tables"; for the origins, the server's
`Ndb_binlog_index_rows::find_row`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.history.epochs import AppliedEpoch
from conflict.history.ingestion.kernels.events import EventRole
from conflict.history.ingestion.logged_epochs import LoggedEpochs, ScannedFile, scan_files
from conflict.history.ingestion.segment_arrays import Events, UnreadableError
from conflict.history.scheduling.summaries import Summary
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import TableRegister
from ndb_formats.constants import EventType
from ndb_formats.events.rows_event import ROWS_EVENTS, Operation, operation_of
from ndb_formats.schema.tables import Schema

# The columns of mysql.ndb_binlog_index, in its order. A log does not tell which epoch has a change of definitions.
EPOCH_TABLE = pa.schema(
    [
        ("Position", pa.uint64()),
        ("File", pa.string()),
        ("epoch", pa.uint64()),
        ("inserts", pa.uint32()),
        ("updates", pa.uint32()),
        ("deletes", pa.uint32()),
        ("schemaops", pa.uint32()),
        ("orig_server_id", pa.uint32()),
        ("orig_epoch", pa.uint64()),
        ("gci", pa.uint32()),
        ("next_position", pa.uint64()),
        ("next_file", pa.string()),
    ]
)

# Rows events that write, update and delete.
_KINDS = [[kind for kind in ROWS_EVENTS if operation_of(kind) is each] for each in Operation]
_ROWS_AT_ONCE = 1 << 17
_HALF = 1 << 31
_SECOND = 1_000_000  # microseconds
_GTID = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


class Applied(NamedTuple):
    """
    The foreign epochs in a log, in order. Shape (applied,).

    Attributes:
        place: Number of the own epoch in which it was applied, among those of the log. int64.
        group: Its group there. int32.
        server_id: Server that the row of `mysql.ndb_apply_status` names. uint64.
        epoch: Epoch that it names. uint64.
    """

    place: Int64
    group: npt.NDArray[np.int32]
    server_id: UInt64
    epoch: UInt64


class Changed(NamedTuple):
    """
    The rows that epochs changed, by the server that the events name. Shape (pairs of epoch and server,).

    Attributes:
        place: As of `Applied`.
        server_id: The server. uint64.
        rows: How many it wrote, updated and deleted. Shape (pairs, 3), int64.
    """

    place: Int64
    server_id: UInt64
    rows: Int64


@attrs.frozen(eq=False)
class EpochTable:
    """
    The epochs of one SQL node's log, with what they hold.

    Attributes:
        log: The epochs.
        committed: Microsecond since 1970 at which each committed; a whole second without a Gtid event. Shape
            (epochs,), int64.
        moved: By how much the positions that the events carry are higher than those in the file, as in a file that is
            a part of another one. Shape (epochs,), int64.
        size: As `ScannedFile.size`.
        applied: The foreign epochs in them.
        changed: The rows that they changed.
    """

    log: LoggedEpochs
    committed: Int64
    moved: Int64
    size: Int64
    applied: Applied
    changed: Changed

    def start(self, epoch: int) -> tuple[str, int]:
        """Return the name of the file and the position on the server where an epoch, by its number here, begins."""
        log = self.log
        return log.files[int(log.file[epoch])].name, int(log.start[epoch] + self.moved[epoch])

    def stop(self, epoch: int) -> tuple[str, int]:
        """Return where what follows an epoch begins."""
        log = self.log
        return log.files[int(log.file[epoch])].name, int(log.stop[epoch] + self.moved[epoch])

    def summaries(self) -> list[Summary]:
        """Return each own epoch with the foreign epochs in it."""
        bounds = np.searchsorted(self.applied.place, np.arange(len(self.log) + 1)).tolist()
        foreign = [AppliedEpoch(*each) for each in zip(*(column.tolist() for column in self.applied[1:]), strict=True)]
        times = self.committed.tolist()
        return [
            Summary(number, (), tuple(foreign[bounds[place] : bounds[place + 1]]), committed=times[place] or None)
            for place, number in enumerate(self.log.number.tolist())
        ]

    def to_arrow(self) -> pa.Table:
        """Return the table; columns as `EPOCH_TABLE`, in the order of the log."""
        place, server_id, origin, rows = self._origins()
        log = self.log
        names = pa.array([file.name for file in log.files], pa.string()).take(pa.array(log.file[place]))
        number = log.number[place]
        columns = {
            "Position": (log.start + self.moved)[place],
            "File": names,
            "epoch": number,
            **{name: rows[:, each] for each, name in enumerate(("inserts", "updates", "deletes"))},
            "schemaops": pa.nulls(len(place), pa.uint32()),
            "orig_server_id": server_id,
            "orig_epoch": origin,
            "gci": number >> np.uint64(32),
            "next_position": (log.stop + self.moved)[place],
            "next_file": names,
        }
        return pa.table([pa.array(columns[each.name]).cast(each.type) for each in EPOCH_TABLE], schema=EPOCH_TABLE)

    def _origins(self) -> tuple[Int64, UInt64, UInt64, Int64]:
        """Return for each row of the table the number of its epoch, the origin with its epoch, and the rows changed."""
        changed, applied = self.changed, self.applied
        none = np.setdiff1d(np.arange(len(self.log)), np.concatenate([changed.place, applied.place]))
        place = np.concatenate([changed.place, applied.place, none])
        server_id = np.concatenate([changed.server_id, applied.server_id, np.zeros(len(none), np.uint64)])
        count = len(changed.place)
        origin = np.concatenate([np.zeros(count, np.uint64), applied.epoch, np.zeros(len(none), np.uint64)])
        rows = np.concatenate([changed.rows, np.zeros((len(place) - count, 3), np.int64)])
        order = np.lexsort((np.arange(len(place)), server_id, place))  # changes of a server before its foreign epochs
        place, server_id, origin, rows = place[order], server_id[order], origin[order], rows[order]
        first = np.ones(len(place), np.bool_)
        first[1:] = (place[1:] != place[:-1]) | (server_id[1:] != server_id[:-1])
        of = np.cumsum(first) - 1  # pair of epoch and server
        total = np.stack([_sums(of, column, int(first.sum())) for column in rows.T], axis=1)
        rows = np.zeros_like(rows)
        rows[np.append(np.flatnonzero(first)[1:], len(place)) - 1] = total
        # Changes alone have a row only if no foreign epoch of their server has one.
        kept = (origin > 0) | ~np.isin(of, of[origin > 0])
        return place[kept], server_id[kept], origin[kept], rows[kept]


def _sums(of: Int64, numbers: Int64, count: int) -> Int64:
    """Return the sum of the numbers of each of `count` things."""
    sums: Int64 = np.bincount(of, numbers, count).astype(np.int64)
    return sums


class _Looked:
    """What is found of the events of a file besides what a scan finds, chunk by chunk."""

    def __init__(self) -> None:
        """Begin with the first file."""
        self._begin()

    def _begin(self) -> None:
        self._walk = RowWalk(TableRegister(Schema(), lambda table: True, (), text=False), _ROWS_AT_ONCE)
        self._rows: list[Int64] = []
        self._moved: list[Int64] = []
        self._types: list[npt.NDArray[np.uint8]] = []

    def look(self, chunk: EventChunk) -> None:
        """
        Take a chunk: the rows of each event, and how far it was moved.

        Raises:
            UnreadableError: Rows cannot be counted.
        """
        rows = np.zeros(len(chunk.types), np.int64)
        for found, fault in self._walk.blocks(chunk):
            if fault is not None:
                raise UnreadableError
            rows += np.bincount(self._walk.rows.events[:found], minlength=len(rows))
        self._rows.append(rows)
        self._types.append(chunk.types)
        carried = chunk.next_positions.astype(np.int64) - chunk.stops
        # Positions that events carry have 32 bits; those inside a compressed transaction are of no file.
        self._moved.append(np.where(np.isin(chunk.types, _GTID), (carried + _HALF) % (2 * _HALF) - _HALF, 0))

    def take(self, scanned: ScannedFile, server_id: int) -> EpochTable:
        """Return the table of a file, and be ready for the next one."""
        rows, moved, types = np.concatenate(self._rows), np.concatenate(self._moved), np.concatenate(self._types)
        self._begin()
        events, grouped, first, last = scanned.events, scanned.grouped, scanned.first, scanned.last
        place = np.searchsorted(first, np.arange(len(types)), "right") - 1
        counted = np.flatnonzero((place >= 0) & (events.role != EventRole.STATUS) & (rows > 0))
        counted = counted[counted <= last[place[counted]]]
        return EpochTable(
            scanned.epochs(server_id),
            _committed(events, first, grouped.epochs.begin),
            moved[first],
            scanned.size,
            Applied(np.repeat(np.arange(len(first)), grouped.epochs.applied), *grouped.applied),
            _changed(place[counted], events.server_id[counted], types[counted], rows[counted]),
        )


def _committed(events: Events, first: Int64, begin: Int64) -> Int64:
    """Return when epochs committed, by the events with which they begin."""
    exact = events.committed[first]
    found: Int64 = np.where(exact > 0, exact, events.second[begin].astype(np.int64) * _SECOND)
    return found


def _changed(place: Int64, server_id: npt.NDArray[np.uint32], types: npt.NDArray[np.uint8], rows: Int64) -> Changed:
    """Return rows by epoch and server; the arguments are of events, shape (events,)."""
    found, of = np.unique((place.astype(np.uint64) << np.uint64(32)) | server_id, return_inverse=True)
    total = [_sums(of, np.where(np.isin(types, kinds), rows, 0), len(found)) for kinds in _KINDS]
    return Changed((found >> np.uint64(32)).astype(np.int64), found & np.uint64(0xFFFFFFFF), np.stack(total, axis=1))


def scan_epoch_table(server_id: int, files: Sequence[Path]) -> EpochTable:
    """
    Return the table of epochs of a log, up to what cannot be read.

    Args:
        server_id: Server id of the SQL node.
        files: Its files, oldest first.
    """
    looked = _Looked()
    parts, whole = scan_files(server_id, files, lambda file: looked.take(file, server_id), look=looked.look)
    log = LoggedEpochs.joined(server_id, files, [each.log for each in parts], whole=whole)
    if not parts:
        none = np.zeros(0, np.int64)
        applied = Applied(none, none.astype(np.int32), none.astype(np.uint64), none.astype(np.uint64))
        return EpochTable(
            log, none, none, none, applied, Changed(none, none.astype(np.uint64), np.zeros((0, 3), np.int64))
        )
    before = np.cumsum([0, *(len(each.log) for each in parts)])
    return EpochTable(
        log,
        np.concatenate([each.committed for each in parts]),
        np.concatenate([each.moved for each in parts]),
        np.concatenate([each.size for each in parts]),
        Applied(*_joined([each.applied for each in parts], before)),
        Changed(*_joined([each.changed for each in parts], before)),
    )


def _joined(parts: Sequence[Applied] | Sequence[Changed], before: Int64) -> Iterator[Any]:
    """Yield the columns of the parts of a log, whose epochs are counted through."""
    for number, columns in enumerate(zip(*parts, strict=True)):
        moved = (column + before[part] for part, column in enumerate(columns))
        yield np.concatenate([*moved] if number == 0 else columns)
