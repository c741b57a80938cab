"""
A binlog file to the same changes in another format.

Every event but Table_map and rows events stays as it is; positions, sizes, checksums and the lengths of transactions
are computed. What a row looks like is decided in `ndb_formats.rules.relogging`; a row of which the log does not tell
that is kept as it was logged, and counted. Events are packed as the server packs them, so a file comes back byte for
byte in its own format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import BinaryIO

import attrs

from ndb_formats.binlog_reader import Event, locate
from ndb_formats.constants import EventType
from ndb_formats.errors import CorruptError, FormatError
from ndb_formats.events.gtid_event import decode_gtid, encode_gtid, encode_tagged_length
from ndb_formats.events.header import EventHeader, decode_format_description
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.rows_event import (
    ROWS_EVENTS,
    STATEMENT_END,
    ConflictFlag,
    RowsEvent,
    decode_rows_event,
    encode_row,
    rows_event_type,
    spare_bits,
)
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.events.transaction_payload import decode_transaction_payload
from ndb_formats.rules.images import LoggedImages, padding_is_set
from ndb_formats.rules.relogging import changed_columns, relog
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.writing.event_stream import MAX_EVENT_BYTES, EventStream, Gtid, RowsPacker, TransactionBuffer
from ndb_formats.writing.rewriting_plans import Plans, TablePlan

_GTID = frozenset({EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT, EventType.GTID_TAGGED_LOG_EVENT})
# Events that belong to no transaction.
_OUTSIDE = frozenset(
    {
        EventType.FORMAT_DESCRIPTION_EVENT,
        EventType.PREVIOUS_GTIDS_LOG_EVENT,
        EventType.ROTATE_EVENT,
        EventType.STOP_EVENT,
    }
)
_DUMMY_TABLE = 0xFFFFFF  # table id of a rows event that only ends a statement
_POSITION_MASK = 0xFFFFFFFF


@attrs.define
class Rewriter:
    """
    Rewrites one file.

    Attributes:
        out: Where the bytes go.
        plans: What to do with each table; keeps the counts.
    """

    out: BinaryIO
    plans: Plans
    _stream: EventStream = attrs.field(init=False)
    _group: TransactionBuffer = attrs.field(factory=TransactionBuffer)
    _target: TransactionBuffer | None = None  # where events go; None is the file
    _gtid: Event | None = None
    _packer: RowsPacker = attrs.field(init=False)
    _keeps_position: bool = False
    _last: tuple[RowsEvent, int] | None = None
    _complete: bool = True
    _source_size: int = 0  # bytes of the transaction at hand in the source, after its Gtid event
    _tables: dict[int, TablePlan] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._stream = EventStream(self.out)
        self._packer = RowsPacker(self._emit)

    def rewrite(self, events: Iterable[Event]) -> None:
        """
        Rewrite events, in order, the Format_description event first.

        Raises:
            FormatError: An event cannot be read. All transactions before it have been written.
        """
        try:
            for event in events:
                with locate(event):
                    self._outer(event)
        except FormatError:
            self._packer = RowsPacker(self._emit)  # without the statement at hand, whose rows are missing
            if self._complete:
                self._end_group()
            raise
        self._end_group()

    def _outer(self, event: Event) -> None:
        kind = event.type
        if kind in _GTID or kind in _OUTSIDE:
            self._end_group()
        self._keeps_position = _has_foreign_position(event)
        if kind is EventType.FORMAT_DESCRIPTION_EVENT:
            description = decode_format_description(event.body)
            self._stream.start(event.header, description, keep_position=self._keeps_position)
            self._tables.clear()
            return
        if kind in _GTID:
            self._gtid, self._target, self._complete, self._source_size = event, self._group, False, 0
            return
        self._source_size += event.header.size
        if kind is EventType.TRANSACTION_PAYLOAD_EVENT:
            self._payload(event)
        else:
            self._inner(event)
        self._complete = self._target is None or _ends_transaction(event)

    def _payload(self, event: Event) -> None:
        outer, keeps = self._target, self._keeps_position
        payload = decode_transaction_payload(event.body)
        self._target, self._keeps_position = TransactionBuffer(), True
        for header, body in payload.events():
            self._inner(Event(event.file, event.position, header, body))
        self._packer.flush()
        inner, self._target, self._keeps_position = self._target, outer, keeps
        inner.compress(event.header, payload)
        for header, body, _ in inner.events():
            self._emit(header, body)

    def _inner(self, event: Event) -> None:
        kind = event.type
        if kind in ROWS_EVENTS:
            assert kind is not None
            self._rows(event, decode_rows_event(kind, event.body))
            return
        self._packer.flush()
        self._last = None
        if kind is EventType.TABLE_MAP_EVENT:
            table_map = decode_table_map(event.body, event.server)
            plan = self._tables[table_map.table_id] = self.plans.of(event.body, table_map)
            if not plan.is_logged:
                return
        elif kind is EventType.QUERY_EVENT:
            self.plans.note_statement(decode_query(event.body, event.server))
        self._emit(event.header, event.body)

    def _rows(self, event: Event, rows: RowsEvent) -> None:
        plan = self._tables.get(rows.table_id)
        if plan is None:
            if rows.table_id != _DUMMY_TABLE:
                message = f"no TABLE_MAP_EVENT for table id {rows.table_id} comes before it"
                raise CorruptError(message)
            self._packer.add_event(event.header, rows)
        elif plan.kept_why is not None or rows.compressed is not None:
            plan.count_kept(rows)
            self._packer.add_event(event.header, rows)
        elif plan.is_logged:
            self._relog(event, rows, plan)
        if rows.statement_end:
            self._packer.flush(statement_end=True)
            self._last = None

    def _relog(self, event: Event, rows: RowsEvent, plan: TablePlan) -> None:
        header = attrs.evolve(event.header, size=0, next_position=event.header.next_position * self._keeps_position)
        kept = attrs.evolve(rows, body=b"", flags=rows.flags & ~STATEMENT_END, type=rows.type)
        source = EventColumns(rows.operation, rows.before, rows.after)
        reads = bool(rows.extra and rows.extra.flags and rows.extra.flags & ConflictFlag.READ)
        shapes: dict[EventColumns, RowsEvent] = {source: kept}
        self._packer.limit = max(MAX_EVENT_BYTES, len(event.body))
        for number, (before, after) in enumerate(rows.rows(plan.layout)):
            logged = LoggedImages(rows.operation, before, after)
            if number == 0:
                self._keep_boundary(kept, len(event.body), encode_row(rows.type, before, after))
            decision = plan.decide(source, changed_columns(plan.table, plan.layout, logged), reads=reads)
            columns = source if decision.obstacle is not None else decision.event
            if columns is None:
                continue
            if columns != source:
                logged = relog(plan.layout, logged, columns)
            if columns not in shapes:
                shapes[columns] = _shape(kept, columns, padding_is_set(plan.table, columns))
            shape = shapes[columns]
            self._packer.add(header, shape, encode_row(shape.type, logged.before, logged.after))

    def _keep_boundary(self, shape: RowsEvent, size: int, row: bytes) -> None:
        """Begin a new event where the source did so although the row had room in the event before."""
        if self._last is not None and self._last[0] == shape and self._last[1] + len(row) <= MAX_EVENT_BYTES:
            self._packer.close()
        self._last = shape, size

    def _emit(self, header: EventHeader, body: bytes) -> None:
        if self._target is None:
            self._stream.put(header, body, keep_position=self._keeps_position)
        else:
            self._target.add(header, body, keep_position=self._keeps_position)

    def _end_group(self) -> None:
        self._packer.flush()
        gtid, self._gtid, self._target = self._gtid, None, None
        if gtid is None:
            return
        same_size = self._group.size + self._group.count * self._stream.trailer == self._source_size
        with locate(gtid):
            body = (lambda _: gtid.body) if same_size else _gtid_body(gtid)
            self._group.write_to(self._stream, Gtid(gtid.header, body, _has_foreign_position(gtid)))


def _has_foreign_position(event: Event) -> bool:
    """Return whether the position in a header is that of another file, as in a relay log."""
    return event.header.next_position != event.end & _POSITION_MASK


def _gtid_body(gtid: Event) -> Callable[[int], bytes]:
    """Return the body of a Gtid event, given the length of its transaction."""
    if gtid.type is EventType.GTID_TAGGED_LOG_EVENT:
        return partial(encode_tagged_length, gtid.body)
    decoded = decode_gtid(gtid.body)
    if decoded.length is None:
        return lambda _: gtid.body
    return lambda length: encode_gtid(attrs.evolve(decoded, length=length))


def _ends_transaction(event: Event) -> bool:
    if event.type is EventType.QUERY_EVENT:
        return not decode_query(event.body).statement.startswith(_INSIDE)
    return event.type in (
        EventType.XID_EVENT,
        EventType.XA_PREPARE_LOG_EVENT,
        EventType.TRANSACTION_PAYLOAD_EVENT,
    )


_INSIDE = ("BEGIN", "XA START", "XA END", "SAVEPOINT", "ROLLBACK TO")


def _shape(source: RowsEvent, columns: EventColumns, padding: Sequence[bool]) -> RowsEvent:
    """Return a rows event with other columns and no images."""
    kind = source.type
    if columns.operation is not source.operation:
        kind = rows_event_type(columns.operation, 2 if kind in _VERSION_2 else 1)
    return attrs.evolve(
        source,
        operation=columns.operation,
        before=columns.before,
        after=columns.after,
        type=kind,
        spare_columns=spare_bits(source.column_count, padding),
    )


_VERSION_2 = frozenset(
    {
        EventType.WRITE_ROWS_EVENT,
        EventType.UPDATE_ROWS_EVENT,
        EventType.DELETE_ROWS_EVENT,
        EventType.PARTIAL_UPDATE_ROWS_EVENT,
    }
)
