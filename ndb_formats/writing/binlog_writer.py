"""
Row changes to a binlog file, as a server writes it.

    Format_description, Previous_gtids           the start of a file
    Gtid, BEGIN, statements, Xid                 a transaction of other engines than NDB
    Gtid, BEGIN, Table_maps, rows, COMMIT        an epoch of NDB, with a row of `mysql.ndb_apply_status` first
    Gtid, Query                                  another statement, such as CREATE TABLE

The images are those of `ndb_formats.rules.images`. Memory grows neither with the file nor with a transaction, unless
transactions are compressed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import BinaryIO

import attrs

from ndb_formats.constants import CHECKSUM_ALG_CRC32, CHECKSUM_ALG_OFF, EventType
from ndb_formats.events.control_events import encode_rotate, encode_xid
from ndb_formats.events.gtid_event import GtidEvent, encode_gtid, encode_previous_gtids
from ndb_formats.events.header import POST_HEADER_SIZES, EventHeader, FormatDescription
from ndb_formats.events.query_event import SESSION, QueryEvent, encode_query
from ndb_formats.events.row_image import RowLayout, layout_of
from ndb_formats.events.rows_event import (
    ExtraRowInfo,
    RowsEvent,
    encode_row,
    extra_row_info_block,
    rows_event_type,
    spare_bits,
)
from ndb_formats.events.table_map import TableMap, encode_table_map
from ndb_formats.events.table_map_of_table import RowMetadata, table_map_of
from ndb_formats.rules.images import LoggedImages, Logging, Row, images, padding_is_set
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table
from ndb_formats.writing.event_stream import MAX_EVENT_BYTES, EventStream, Gtid, RowsPacker, TransactionBuffer

_NO_DATABASE = 0x8  # header flag of BEGIN and COMMIT: no USE before them
_IGNORABLE = 0x80  # header flag of Previous_gtids
_SQL_FOREIGN_KEYS = 0x10  # flag of a rows event of MySQL 9.6 and later
_FIRST_TABLE_ID = 100
_MICROSECONDS = 1_000_000
APPLY_STATUS_TABLE = attrs.evolve(
    parse_create_table(
        "CREATE TABLE ndb_apply_status (server_id INT UNSIGNED NOT NULL, epoch BIGINT UNSIGNED NOT NULL,"
        " log_name VARCHAR(255) NOT NULL, start_pos BIGINT UNSIGNED NOT NULL, end_pos BIGINT UNSIGNED NOT NULL,"
        " PRIMARY KEY (server_id)) ENGINE=NDB DEFAULT CHARSET=latin1",
        database="mysql",
    )
)


@attrs.frozen
class BinlogSettings:
    """
    How a server writes its binlog.

    Attributes:
        logging: Which columns it logs.
        server_id: Its id.
        server_version: Its version text.
        post_header_sizes: Sizes of its events' fixed parts, by type code minus 1.
        checksums: Whether events end with a CRC32.
        metadata: ``binlog_row_metadata``.
        rows_version: Version of its rows events: 1 (before 5.6) or 2.
        rows_flags: Flags of its rows events.
        row_event_max_size: ``binlog_row_event_max_size``.
        gtid_events: Whether there is a Gtid event before each transaction, and a Previous_gtids event.
        gtid_source: UUID of the server, 16 bytes, if GTIDs are on; None writes anonymous transactions.
        compression: Whether transactions are compressed with zstd.
        session: Session variables of its Query events.
    """

    logging: Logging = attrs.field(factory=Logging)
    server_id: int = 1
    server_version: str = "9.7.4"
    post_header_sizes: bytes = attrs.field(default=POST_HEADER_SIZES, repr=False)
    checksums: bool = True
    metadata: RowMetadata = RowMetadata.MINIMAL
    rows_version: int = 2
    rows_flags: int = _SQL_FOREIGN_KEYS
    row_event_max_size: int = MAX_EVENT_BYTES
    gtid_events: bool = True
    gtid_source: bytes | None = None
    compression: bool = False
    session: bytes = attrs.field(default=SESSION, repr=False)

    @property
    def version_number(self) -> int:
        """The version as a number, such as 90704."""
        major, minor, patch = (int(part.split("-")[0]) for part in self.server_version.split(".")[:3])
        return major * 10_000 + minor * 100 + patch


@attrs.frozen
class WrittenChange:
    """
    One change of one row.

    Attributes:
        table: The table.
        before: The whole row before it; None for an insert.
        after: The whole row after it; None for a delete.
        written: Ordinals of the columns that the statement names (insert) or sets (update).
        extra: Extra row info of NDB.
        server_id: The server on which it was first made; None for the writing server.
        logged: Its event, where that does not follow from the rows; None if it does.
    """

    table: Table
    before: Row | None
    after: Row | None
    written: Collection[int] = ()
    extra: ExtraRowInfo | None = None
    server_id: int | None = None
    logged: LoggedImages | None = None


def rows_shape(
    settings: BinlogSettings, table: Table, table_map: TableMap, columns: EventColumns, extra: ExtraRowInfo | None
) -> RowsEvent:
    """Return a rows event without rows, as a server with these settings writes it."""
    count, version = len(table_map.types), settings.rows_version
    return RowsEvent(
        table_id=table_map.table_id,
        operation=columns.operation,
        extra=extra,
        column_count=count,
        before=columns.before,
        after=columns.after,
        body=b"",
        type=rows_event_type(columns.operation, version),
        flags=settings.rows_flags if version == 2 else 0,
        extra_bytes=extra_row_info_block(extra),
        spare_columns=spare_bits(count, padding_is_set(table, columns)),
    )


@attrs.define
class _KnownTable:
    """A table that has been written: its Table_map event and the layout of its rows."""

    table_map: TableMap
    layout: RowLayout


@attrs.define
class BinlogWriter:
    """
    Writes one file; call `start` first and `finish` last.

    Attributes:
        out: Where the bytes go.
        settings: How the server writes.
    """

    out: BinaryIO
    settings: BinlogSettings = attrs.field(factory=BinlogSettings)
    _stream: EventStream = attrs.field(init=False)
    _tables: dict[str, tuple[Table, _KnownTable]] = attrs.field(factory=dict)
    _next_table_id: int = _FIRST_TABLE_ID
    _transactions: int = 0
    _moment: int = 0

    def __attrs_post_init__(self) -> None:
        self._stream = EventStream(self.out)

    @property
    def position(self) -> int:
        """Position of the next event."""
        return self._stream.position

    def start(self, moment: int) -> None:
        """Write the events at the start of a file; `moment` is in microseconds since 1970."""
        self._moment, settings = moment, self.settings
        algorithm = CHECKSUM_ALG_CRC32 if settings.checksums else CHECKSUM_ALG_OFF
        description = FormatDescription(settings.server_version, algorithm, settings.post_header_sizes)
        self._stream.start(self._header(EventType.FORMAT_DESCRIPTION_EVENT), description)
        if settings.gtid_events:
            self._stream.put(self._header(EventType.PREVIOUS_GTIDS_LOG_EVENT, _IGNORABLE), encode_previous_gtids(()))

    def write_transaction(
        self, statements: Iterable[Iterable[WrittenChange]], moment: int, *, transaction_id: int | None = None
    ) -> None:
        """
        Write a transaction of tables of other engines than NDB.

        Args:
            statements: The row changes of each statement. Nothing is written for one that changes nothing.
            moment: When it was logged, in microseconds since 1970.
            transaction_id: Its id, for the Xid event; None ends it with COMMIT, as for an engine without transactions.

        Raises:
            SchemaError: A change has neither row, or a row lacks a column that is logged.
        """
        self._moment = moment
        buffer = TransactionBuffer()
        database = ""
        for statement in statements:
            rows = TransactionBuffer()
            tables = self._write_rows(rows, statement)
            database = database or (tables[0].database if tables else "")
            if not buffer.count and tables:
                self._put_query(buffer, "BEGIN", database)
            for table_map in tables:
                self._put_table_map(buffer, table_map)
            buffer.take_all(rows)
        if not buffer.count:
            return
        if transaction_id is None:
            self._put_query(buffer, "COMMIT", database)
        else:
            buffer.add(self._header(EventType.XID_EVENT), encode_xid(transaction_id))
        self._commit(buffer)

    def write_epoch(self, epoch: int, changes: Iterable[WrittenChange], moment: int) -> None:
        """
        Write an epoch of NDB, with the row of `mysql.ndb_apply_status` that names it.

        Args:
            epoch: Its number.
            changes: The row changes of all its transactions. Nothing is written if nothing is logged of them.
            moment: When it was logged, in microseconds since 1970.

        Raises:
            SchemaError: As for `write_transaction`.
        """
        self._moment = moment
        rows = TransactionBuffer()
        tables = self._write_rows(rows, changes)
        if not tables:
            return
        buffer = TransactionBuffer()
        self._put_query(buffer, "BEGIN", "")
        status = TransactionBuffer()
        row: Row = dict(enumerate((self.settings.server_id, epoch, "", 0, 0)))
        status_tables = self._write_rows(status, [WrittenChange(APPLY_STATUS_TABLE, None, row)], statement_end=False)
        for table_map in dict.fromkeys([*tables, *status_tables]):
            self._put_table_map(buffer, table_map)
        buffer.take_all(status)
        buffer.take_all(rows)
        self._put_query(buffer, "COMMIT", "")
        self._commit(buffer)

    def write_packed_epoch(
        self, epoch: int, tables: Sequence[Table], rows: memoryview, seal: Callable[[int], None], moment: int
    ) -> None:
        """
        Write an epoch of NDB whose rows events are there already; for logs of many rows, whose events are compiled.

        Args:
            epoch: Its number.
            tables: The tables of its rows, in the order of their Table_map events.
            rows: The rows events, with room for checksums, and the number of each table as `table_map` has it.
            seal: Gives `rows` the positions and checksums of its events, given the position of the first one.
            moment: As for `write_epoch`.
        """
        self._moment = moment
        buffer, end = TransactionBuffer(), TransactionBuffer()
        self._put_query(buffer, "BEGIN", "")
        status = TransactionBuffer()
        row: Row = dict(enumerate((self.settings.server_id, epoch, "", 0, 0)))
        self._write_rows(status, [WrittenChange(APPLY_STATUS_TABLE, None, row)], statement_end=False)
        for table in dict.fromkeys([*(each.full_name for each in tables), APPLY_STATUS_TABLE.full_name]):
            self._put_table_map(buffer, self._tables[table][1].table_map)
        buffer.take_all(status)
        self._put_query(end, "COMMIT", "")
        trailers = (buffer.count + end.count) * self._stream.trailer
        self._put_gtid(buffer.size + len(rows) + end.size + trailers)
        buffer.write_to(self._stream)
        seal(self._stream.position)
        self._stream.put_sealed(rows)
        end.write_to(self._stream)

    def table_map(self, table: Table) -> TableMap:
        """Return the Table_map event of a table, whose number is the next one when it is first asked for or written."""
        return self._known(table).table_map

    def write_statement(self, statement: str, database: str, moment: int) -> None:
        """Write a statement as text, such as CREATE TABLE, which is a transaction of its own; `moment` as before."""
        self._moment = moment
        buffer = TransactionBuffer()
        query = QueryEvent(database, statement, status=self.settings.session)
        buffer.add(self._header(EventType.QUERY_EVENT), encode_query(query))
        self._commit(buffer, compression=False)

    def finish(self, next_file: str | None = None) -> None:
        """End the file with the name of the next one, or as a server that stops."""
        kind = EventType.STOP_EVENT if next_file is None else EventType.ROTATE_EVENT
        self._stream.put(self._header(kind), b"" if next_file is None else encode_rotate(next_file))

    def _write_rows(
        self, buffer: TransactionBuffer, changes: Iterable[WrittenChange], *, statement_end: bool = True
    ) -> list[TableMap]:
        """Write the rows events of a statement, and return the Table_map events before them."""
        used: dict[str, TableMap] = {}
        packer = RowsPacker(buffer.add, self.settings.row_event_max_size)
        for change in changes:
            known = self._known(change.table)
            for event in self._events(change, known.layout):
                used[change.table.full_name] = known.table_map
                shape = self._shape(change.table, known.table_map, event, change.extra)
                header = self._header(shape.type)
                if change.server_id is not None:
                    header = attrs.evolve(header, server_id=change.server_id)
                packer.add(header, shape, encode_row(shape.type, event.before, event.after))
        packer.flush(statement_end=statement_end)
        return list(used.values())

    def _events(self, change: WrittenChange, layout: RowLayout) -> tuple[LoggedImages, ...]:
        if change.logged is not None:
            return (change.logged,)
        rows = change.before, change.after
        return images(change.table, layout, *rows, change.written, self.settings.logging)

    def _known(self, table: Table) -> _KnownTable:
        """Return the Table_map event of a table; one with another definition gets another number."""
        found = self._tables.get(table.full_name)
        if found is not None and (found[0] is table or found[0] == table):
            return found[1]
        table_map = table_map_of(table, self._next_table_id, self.settings.metadata)
        self._next_table_id += 1
        known = _KnownTable(table_map, layout_of(table_map, table))
        self._tables[table.full_name] = table, known
        return known

    def _shape(self, table: Table, table_map: TableMap, event: LoggedImages, extra: ExtraRowInfo | None) -> RowsEvent:
        before, after = (None if image is None else image.present for image in (event.before, event.after))
        return rows_shape(self.settings, table, table_map, EventColumns(event.operation, before, after), extra)

    def _put_table_map(self, buffer: TransactionBuffer, table_map: TableMap) -> None:
        buffer.add(self._header(EventType.TABLE_MAP_EVENT), encode_table_map(table_map))

    def _put_query(self, buffer: TransactionBuffer, statement: str, database: str) -> None:
        query = QueryEvent(database, statement, status=self.settings.session)
        buffer.add(self._header(EventType.QUERY_EVENT, _NO_DATABASE), encode_query(query))

    def _commit(self, buffer: TransactionBuffer, *, compression: bool = True) -> None:
        settings = self.settings
        if compression and settings.compression:
            buffer.compress(self._header(EventType.TRANSACTION_PAYLOAD_EVENT))
        self._put_gtid(buffer.size + buffer.count * self._stream.trailer)
        buffer.write_to(self._stream)

    def _put_gtid(self, after: int) -> None:
        """Write the Gtid event before `after` bytes of its transaction, if there are such events."""
        settings = self.settings
        if not settings.gtid_events:
            return
        self._transactions += 1
        source = settings.gtid_source
        kind = EventType.ANONYMOUS_GTID_LOG_EVENT if source is None else EventType.GTID_LOG_EVENT
        gtid = GtidEvent(
            source=source or bytes(16),
            number=0 if source is None else self._transactions,
            last_committed=self._transactions - 1,
            sequence_number=self._transactions,
            committed=self._moment,
            server_version=settings.version_number,
        )
        of_length = Gtid(self._header(kind), lambda length: encode_gtid(attrs.evolve(gtid, length=length)))
        of_length.write_to(self._stream, after)

    def _header(self, kind: EventType, flags: int = 0) -> EventHeader:
        return EventHeader(self._moment // _MICROSECONDS, kind, self.settings.server_id, 0, 0, flags)
