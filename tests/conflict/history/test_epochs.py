"""Events of one cluster's binlog to its epochs."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from conflict.errors import HistoryError, NotBuiltError
from conflict.history.epochs import AppliedEpoch, BinlogEpoch, EpochReader
from conflict.history.reading.epoch_logs import read_epochs
from conflict.history.statement_places import StatementPlaces
from conflict.history.timeline import Origin, ReturnedEpoch
from ndb_formats.binlog_reader import Event
from ndb_formats.errors import CorruptError, FormatError, SchemaError, TruncatedError, UnsupportedError, WrongKeyError
from ndb_formats.events.header import EventHeader
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from tests.conflict.histories import key
from tests.conflict.raw_events import (
    BEGIN,
    COMMIT,
    DELETE,
    HIDDEN_ID,
    HIDDEN_MAP,
    LONG,
    MAPS,
    OTHER,
    OWN,
    QUERY,
    READ,
    REFLECTED,
    REFRESH,
    SCHEMA,
    TABLE_MAP,
    UPDATE,
    VARCHAR,
    WRITE,
    XID,
    Raw,
    delete,
    extra,
    insert,
    payload,
    status,
    update,
)
from tests.ndb_formats.building import (
    MAGIC,
    description_event,
    event_bytes,
    query_body,
    rows_body,
    table_map_body,
)


def events(raws: Sequence[Raw]) -> list[Event]:
    """Return events of a file, at positions 100, 200, 300 and so on."""
    return [
        Event("binlog.000001", place, EventHeader(0, code, server, 100, place + 100, 0), body)
        for place, (code, server, body) in zip(range(100, 100 * len(raws) + 100, 100), raws, strict=True)
    ]


def feed(raws: Sequence[Raw], reader: EpochReader | None = None) -> list[BinlogEpoch]:
    """Return the epochs that these events complete."""
    reader = reader or EpochReader(OWN, SCHEMA)
    return [epoch for event in events(raws) if (epoch := reader.feed(event)) is not None]


def epoch_of(*raws: Raw, number: int = 55) -> BinlogEpoch:
    """Return the one epoch that holds these rows."""
    (epoch,) = feed([BEGIN, *MAPS, status(OWN, number), *raws, COMMIT])
    return epoch


def key_change(old: int, new: int) -> bytes:
    """Return the images of an update that have the key alone."""
    return b"".join(b"\0" + struct.pack("<I", k) for k in (old, new))


def groups(epoch: BinlogEpoch) -> list[tuple[int, list[bytes]]]:
    """Return group and keys of each transaction."""
    return [(each.group, [change.key for change in each.changes]) for each in epoch.transactions]


class TestChanges:
    """Rows as changes."""

    def test_insert(self):
        """A write has an after image; its place in the binlog is kept."""
        epoch = epoch_of(insert(5, 2**64 - 1, transaction=2**63))
        (transaction,) = epoch.transactions
        (change,) = transaction.changes
        assert (epoch.number, transaction.epoch, transaction.group) == (55, 55, 0)
        assert (change.table, change.key, change.operation) == ("d.t", key(5), Operation.WRITE_ROW)
        assert change.before is None
        assert change.after is not None
        assert change.after.by_name() == {"k": 5, "x": 2**64 - 1, "v": None}
        assert (change.transaction_id, change.flags) == (2**63, ConflictFlag(0))
        assert change.origin == Origin("binlog.000001", 500)

    def test_update_and_delete(self):
        """The key is that of the before image, also where the after image does not hold it."""
        changed, deleted = epoch_of(update(5, 9), delete(6)).transactions[0].changes
        assert changed.before is not None
        assert changed.after is not None
        assert (changed.key, changed.before.by_name(), changed.after.by_name()) == (key(5), {"k": 5}, {"x": 9})
        assert deleted.before is not None
        assert (deleted.key, deleted.before.by_name(), deleted.after) == (key(6), {"k": 6}, None)

    def test_several_rows_of_an_event(self):
        """Each row is known by its number in the event."""
        images = b"".join(b"\0" + struct.pack("<I", k) for k in (5, 6, 7))
        rows = (DELETE, OWN, rows_body(images, 3, [[0]], extra=extra(1)))
        changes = epoch_of(rows).transactions[0].changes
        assert [(each.key, each.origin) for each in changes] == [
            (key(5 + row), Origin("binlog.000001", 500, row=row)) for row in range(3)
        ]

    @pytest.mark.parametrize("number", [1, 2**63, 2**64 - 1])
    def test_epochs(self, number: int):
        """Epochs are unsigned 64-bit numbers."""
        assert epoch_of(insert(1), number=number).number == number

    def test_tables_that_are_not_read(self):
        """Their rows are ignored."""
        other = (TABLE_MAP, OWN, table_map_body(LONG, table_id=9, table=b"unknown", database=b"d"))
        row = (WRITE, OWN, rows_body(b"\0\1\0\0\0", 1, [[0]], table_id=9, extra=extra(1)))
        assert groups(epoch_of(other, row, insert(1, transaction=2))) == [(0, [key(1)])]

    def test_layouts(self):
        """The layout of each table met is kept."""
        reader = EpochReader(OWN, SCHEMA)
        feed([BEGIN, *MAPS, status(OWN, 5), insert(1), COMMIT], reader)
        assert list(reader.layouts) == ["d.t"]
        assert reader.layouts["d.t"].names == ("k", "x", "v")


class TestGroups:
    """Groups by transaction id."""

    def test_order_of_first_appearance(self):
        """Operations of one id are one transaction, wherever they are logged."""
        epoch = epoch_of(
            insert(1, transaction=70), insert(2, transaction=60), insert(3, transaction=70), insert(4, transaction=80)
        )
        assert groups(epoch) == [(0, [key(1), key(3)]), (1, [key(2)]), (2, [key(4)])]

    def test_without_ids(self):
        """All changes of an epoch are one group if ids are not logged."""
        assert groups(epoch_of(insert(1, transaction=None), insert(2, transaction=None))) == [(0, [key(1), key(2)])]

    def test_an_applied_epoch_is_a_group(self):
        """Its number counts those before it; the position in the source's binlog does not matter."""
        epoch = epoch_of(
            insert(1, transaction=70),
            status(OTHER, 500, 60, b"src.000001"),
            insert(2, transaction=60, author=OTHER),
            insert(3, transaction=80),
        )
        assert epoch.applied == (AppliedEpoch(1, OTHER, 500),)
        assert groups(epoch) == [(0, [key(1)]), (2, [key(3)])]

    def test_an_applied_epoch_after_its_rows(self):
        """The row of ndb_apply_status may be anywhere in its group."""
        epoch = epoch_of(insert(2, transaction=60, author=OTHER), status(OTHER, 500, 60))
        assert epoch.applied == (AppliedEpoch(0, OTHER, 500),)

    def test_two_applied_epochs(self):
        """Several foreign epochs can be committed in one own epoch."""
        epoch = epoch_of(status(OTHER, 500, 60), status(OTHER, 2**64 - 1, 61))
        assert epoch.applied == (AppliedEpoch(0, OTHER, 500), AppliedEpoch(1, OTHER, 2**64 - 1))
        assert epoch.transactions == ()

    def test_applied_epochs_without_ids(self):
        """Without ids each applied epoch is a group of its own, apart from the changes."""
        epoch = epoch_of(
            status(OTHER, 500, None, b"src"), status(OTHER, 501, None, b"src"), insert(1, transaction=None)
        )
        assert epoch.applied == (AppliedEpoch(0, OTHER, 500), AppliedEpoch(1, OTHER, 501))
        assert groups(epoch) == [(2, [key(1)])]

    @pytest.mark.parametrize(("epoch", "log", "end"), [(500, b"src.000007", 900), (0, b"src.000001", 5)])
    def test_a_statement_is_no_epoch(self, epoch: int, log: bytes, end: int):
        """
        An applier that truncates or copies a table writes its last epoch again, or 0, with the statement's place.

        The rows in that group are those that it copied.
        """
        reader = EpochReader(OWN, SCHEMA, statements=StatementPlaces(frozenset({(OTHER, 7, 900)})))
        copied = insert(2, transaction=60, author=OTHER)
        rows = [
            copied,
            status(OTHER, epoch, 60, log, end),
            status(OTHER, 501, 61, log, 1200),
            insert(1, transaction=62),
        ]
        (found,) = feed([BEGIN, *MAPS, status(OWN, 55), *rows, COMMIT], reader)
        assert (found.applied, found.consequences) == ((AppliedEpoch(1, OTHER, 501),), ())
        assert groups(found) == [(2, [key(1)])]

    @pytest.mark.parametrize(
        ("server", "log", "end"), [(4, b"s.000007", 900), (OTHER, b"s.000008", 900), (OTHER, b"s.000007", 9)]
    )
    def test_an_epoch_elsewhere_is_one(self, server: int, log: bytes, end: int):
        """What ends there in the log of another server, or in another file, is no statement."""
        reader = EpochReader(OWN, SCHEMA, statements=StatementPlaces(frozenset({(OTHER, 7, 900)})))
        (found,) = feed([BEGIN, *MAPS, status(OWN, 55), status(server, 500, 60, log, end), COMMIT], reader)
        assert found.applied == (AppliedEpoch(0, server, 500),)

    def test_news_of_this_cluster_that_come_back(self):
        """A row with the own server id and a log name names no epoch."""
        (epoch,) = feed([BEGIN, *MAPS, status(OWN, 55), status(OWN, 54, 60, b"src.000001"), insert(1), COMMIT])
        assert (epoch.number, epoch.applied) == (55, ())


class TestConsequences:
    """What the applier did is not what the cluster did itself."""

    def test_another_author(self):
        """Changes with another server id were applied."""
        epoch = epoch_of(status(OTHER, 500, 60), insert(1, transaction=60, author=OTHER))
        assert epoch.transactions == ()
        assert [(group, change.key) for group, change in epoch.consequences] == [(0, key(1))]

    @pytest.mark.parametrize("flags", [REFRESH, REFLECTED, REFRESH | READ])
    def test_refreshed_and_reflected(self, flags: int):
        """Refreshes and reflected operations have the own server id, and flags that give them away."""
        epoch = epoch_of(insert(1, transaction=60, flags=flags), insert(2, transaction=70))
        assert groups(epoch) == [(1, [key(2)])]
        assert [(group, change.flags) for group, change in epoch.consequences] == [(0, ConflictFlag(flags))]

    def test_reads_are_own(self):
        """A read under an exclusive lock is something that the cluster did itself."""
        (transaction,) = epoch_of(update(1, 5, flags=READ)).transactions
        assert transaction.changes[0].flags == ConflictFlag.READ

    def test_own_rows_in_an_applied_group(self):
        """All of an applied group is consequence, whatever its author and flags."""
        epoch = epoch_of(insert(1, transaction=60), status(OTHER, 500, 60))
        assert epoch.transactions == ()
        assert [change.key for _, change in epoch.consequences] == [key(1)]

    def test_an_author_without_an_applied_epoch(self):
        """A change with another server id is consequence also where no epoch is named."""
        epoch = epoch_of(insert(1, author=OTHER))
        assert (epoch.transactions, len(epoch.consequences)) == ((), 1)


class TestTransactions:
    """Where epochs begin and end."""

    def test_two_epochs(self):
        """Each COMMIT completes one; Table_maps are remembered."""
        first = [BEGIN, *MAPS, status(OWN, 5), insert(1), COMMIT]
        second = [BEGIN, status(OWN, 6), insert(2), COMMIT]
        assert [(epoch.number, groups(epoch)) for epoch in feed(first + second)] == [
            (5, [(0, [key(1)])]),
            (6, [(0, [key(2)])]),
        ]

    def test_xid(self):
        """An Xid event ends a transaction as well."""
        xid = (XID, OWN, bytes(8))
        assert len(feed([BEGIN, *MAPS, status(OWN, 5), insert(1), xid])) == 1

    def test_an_epoch_of_unread_tables(self):
        """An epoch that holds nothing of interest is still an epoch."""
        (epoch,) = feed([BEGIN, *MAPS, status(OWN, 5), COMMIT])
        assert (epoch.number, epoch.transactions, epoch.applied, epoch.consequences) == (5, (), (), ())

    def test_other_statements(self):
        """DDL is outside of epochs and ignored; a transaction of another engine is no epoch."""
        ddl = (QUERY, OWN, query_body(b"d", b"CREATE TABLE d.t (k INT)"))
        assert feed([ddl, BEGIN, COMMIT, COMMIT]) == []

    def test_packed_transaction(self):
        """The events inside a Transaction_payload count as if they stood there, at its position."""
        (epoch,) = feed([BEGIN, COMMIT, payload([BEGIN, *MAPS, status(OWN, 5), insert(1), insert(2), COMMIT])])
        assert (epoch.number, groups(epoch)) == (5, [(0, [key(1), key(2)])])
        origins = [change.origin for change in epoch.transactions[0].changes]
        assert {(origin.file, origin.position) for origin in origins if origin} == {("binlog.000001", 300)}

    def test_rows_pending(self):
        """Rows of an epoch that is not complete are counted, consequences among them."""
        reader = EpochReader(OWN, SCHEMA)
        assert reader.rows_pending == 0
        feed([BEGIN, *MAPS, status(OWN, 5), insert(1), insert(2), delete(3, author=OTHER)], reader)
        assert reader.rows_pending == 3
        feed([COMMIT], reader)
        assert reader.rows_pending == 0


class TestPayloads:
    """Epochs in compressed transactions."""

    OLDER = status(OWN, 4, 9, b"binlog.000001")

    def test_an_older_own_epoch_in_one(self):
        """It comes back in the group of the foreign epoch that brought it; the place is that in the payload."""
        rows = [insert(1), insert(7, transaction=9), self.OLDER, status(OTHER, 11, 9)]
        (epoch,) = feed([BEGIN, COMMIT, payload([BEGIN, *MAPS, status(OWN, 5), *rows, COMMIT])])
        before = [BEGIN, *MAPS, status(OWN, 5), *rows[:2]]
        start = sum(len(event_bytes(code, body, checksum=False)) for code, _, body in before)
        assert (epoch.compressed, epoch.applied) == (True, (AppliedEpoch(1, OTHER, 11),))
        assert epoch.returned == ReturnedEpoch(1, 4, OWN, Origin("binlog.000001", 300, start))

    def test_in_a_plain_log(self):
        """Whoever reads it skips the row."""
        epoch = epoch_of(insert(7, transaction=9), self.OLDER, status(OTHER, 11, 9))
        assert (epoch.compressed, epoch.returned) == (False, None)


class TestFaults:
    """What cannot be read names file and position."""

    def fault(self, *raws: Raw, schema: Schema = SCHEMA) -> FormatError:
        """Return the error that the last of these events raises; its position is 100 times its number."""
        reader = EpochReader(OWN, schema)
        feed(raws[:-1], reader)
        (*_, last) = events(raws)
        with pytest.raises(FormatError) as caught:
            reader.feed(last)
        assert (caught.value.file, caught.value.position) == ("binlog.000001", 100 * len(raws))
        return caught.value

    def test_no_epoch(self):
        """A transaction without the server's own row of ndb_apply_status is not one of an NDB server."""
        error = self.fault(BEGIN, *MAPS, insert(1), COMMIT)
        assert isinstance(error, CorruptError)
        assert str(error) == (
            "binlog.000001, position 500, QUERY_EVENT: the transaction that ends here has no "
            "mysql.ndb_apply_status row with server id 3; "
            "is this the right server id, and was the table written by NDB?"
        )

    def test_another_server_id(self):
        """So is one whose row belongs to another server."""
        assert isinstance(self.fault(BEGIN, *MAPS, status(OTHER, 5), insert(1), COMMIT), CorruptError)

    def test_unknown_compression(self):
        """A transaction compressed in an unknown way is refused: passing it over would lose changes."""
        error = self.fault(payload([BEGIN, *MAPS, status(OWN, 5), insert(1), COMMIT], compression=7))
        assert isinstance(error, UnsupportedError)
        assert str(error) == ("binlog.000001, position 100, TRANSACTION_PAYLOAD_EVENT: compression type 7 is not known")

    def test_fault_inside_a_payload(self):
        """A fault in a packed transaction has the place of the event that holds it."""
        error = self.fault(payload([BEGIN, *MAPS, insert(1, table_id=99)]))
        assert error.message == "no TABLE_MAP_EVENT for table id 99 comes before it"

    @pytest.mark.parametrize("kind", [20, 21, 22])
    def test_old_row_events(self, kind: int):
        """So are the row events of a version that no NDB server with epochs in its binlog ever was."""
        error = self.fault(BEGIN, (kind, OWN, b""))
        assert isinstance(error, UnsupportedError)
        assert error.message == "row events of MySQL before 5.1.16 cannot be read"

    def test_rows_outside_a_transaction(self):
        """Rows belong to an epoch, which begins with BEGIN."""
        error = self.fault(*MAPS, insert(1))
        assert isinstance(error, CorruptError)
        assert error.message == "it is outside a transaction"

    def test_rows_after_commit(self):
        """COMMIT ends it."""
        assert self.fault(BEGIN, *MAPS, status(OWN, 5), COMMIT, insert(1)).message == "it is outside a transaction"

    def test_unknown_table_id(self):
        """Rows refer to a Table_map event before them."""
        error = self.fault(BEGIN, *MAPS, insert(1, table_id=99))
        assert isinstance(error, CorruptError)
        assert error.message == "no TABLE_MAP_EVENT for table id 99 comes before it"

    def wrong_key(self, row: Raw, *, ending: Sequence[Raw] = (status(OWN, 5), COMMIT)) -> FormatError:
        """Return the error that the end of an epoch with this row raises; it names the row's event, at 400."""
        with pytest.raises(FormatError) as caught:
            feed([BEGIN, *MAPS, row, *ending])
        assert caught.value.file == "binlog.000001"
        return caught.value

    def test_an_image_without_the_key(self):
        """Every image of NDB has the key, so the key is another one; event, table and column are named."""
        error = self.wrong_key((DELETE, OWN, rows_body(b"\0" + bytes(8), 3, [[1]], extra=extra(1))))
        assert isinstance(error, WrongKeyError)
        assert (error.position, error.event, error.table, error.column) == (400, "DELETE_ROWS_EVENT", "d.t", "k")
        assert error.message == (
            "the image does not hold it, and every image of NDB holds the primary key: PRIMARY KEY (k) is not the key "
            "that the table had; give the definition that was in force when the binlog was written"
        )

    @pytest.mark.parametrize("author", [OWN, OTHER])
    def test_an_update_that_changes_the_key(self, author: int):
        """NDB logs a delete and an insert for it, so the key is another one; also in what an applier did."""
        error = self.wrong_key((UPDATE, author, rows_body(key_change(1, 2), 3, [[0], [0]], extra=extra(1))))
        assert isinstance(error, WrongKeyError)
        assert (error.position, error.event, error.table, error.column) == (400, "UPDATE_ROWS_EVENT", "d.t", "k")
        assert error.message.startswith("the update changes it, and NDB logs a change of the primary key as a delete")

    def test_an_update_with_the_key_in_both_images(self):
        """It is the same key."""
        row = (UPDATE, OWN, rows_body(key_change(7, 7), 3, [[0], [0]], extra=extra(1)))
        assert groups(epoch_of(row)) == [(0, [key(7)])]

    def test_other_engines_change_keys(self):
        """Their transactions name no epoch, and that is what the error says."""
        row = (UPDATE, OWN, rows_body(key_change(1, 2), 3, [[0], [0]]))
        error = self.wrong_key(row, ending=[COMMIT])
        assert isinstance(error, CorruptError)
        assert "has no mysql.ndb_apply_status row" in error.message

    def test_an_image_that_is_cut_short(self):
        """A rows event that ends within an image is refused."""
        row = (DELETE, OWN, rows_body(b"\0\1\2", 3, [[0]], extra=extra(1)))
        assert isinstance(self.fault(BEGIN, *MAPS, row), TruncatedError)

    def test_another_number_of_columns(self):
        """The definition must be that of the binlog."""
        schema = parse_schema("CREATE TABLE t (k INT PRIMARY KEY)", database="d")
        error = self.fault(BEGIN, *MAPS, insert(1), schema=schema)
        assert isinstance(error, SchemaError)
        assert error.table == "d.t"
        assert "1 columns and the binlog 3" in error.message

    def test_columns_that_change(self):
        """A table that is altered within the binlog is refused where it changes."""
        schema = parse_schema("CREATE TABLE t (k INT PRIMARY KEY, s VARCHAR(9))", database="d")
        maps = [
            (TABLE_MAP, OWN, table_map_body(LONG + VARCHAR, length.to_bytes(2, "little"), database=b"d"))
            for length in (9, 12)
        ]
        row = (DELETE, OWN, rows_body(b"\0" + bytes(4), 2, [[0]], extra=extra(1)))
        error = self.fault(BEGIN, maps[0], row, maps[1], row, schema=schema)
        assert isinstance(error, SchemaError)
        assert error.message == "its columns change within the binlog; split the binlog where they do"

    def test_no_primary_key(self):
        """A table without a primary key is not built yet."""
        row = (WRITE, OWN, rows_body(b"\0" + bytes(8), 2, [[0, 1]], table_id=HIDDEN_ID, extra=extra(1)))
        with pytest.raises(NotBuiltError) as caught:
            feed([BEGIN, *MAPS, (TABLE_MAP, OWN, HIDDEN_MAP), row])
        assert str(caught.value) == "table d.hidden has no primary key"


def in_file(*raws: Raw) -> bytes:
    """Return the bytes of events in a file; all have server id 3."""
    return b"".join(event_bytes(code, body) for code, _, body in raws)


def file_epoch(number: int) -> bytes:
    """Return the bytes of an epoch in a file."""
    return in_file(BEGIN, *MAPS, status(OWN, number), insert(number % 100), COMMIT)


class TestFiles:
    """Epochs of several files."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> list[Path]:
        """Return where two files go."""
        return [tmp_path / "binlog.000001", tmp_path / "binlog.000002"]

    def test_in_order(self, files: list[Path]):
        """Files are read one after the other."""
        for file, numbers in zip(files, [(5, 6), (7,)], strict=True):
            file.write_bytes(MAGIC + description_event() + b"".join(map(file_epoch, numbers)))
        assert [epoch.number for epoch in read_epochs(files, EpochReader(OWN, SCHEMA))] == [5, 6, 7]

    def test_ranges(self, files: list[Path]):
        """Only what lies in a file's range is read: here the second of three epochs of equal length."""
        head, one = MAGIC + description_event(), len(file_epoch(5))
        files[0].write_bytes(head + b"".join(map(file_epoch, (5, 6, 7))))
        ranges = {str(files[0]): (len(head) + one, len(head) + 2 * one)}
        assert [epoch.number for epoch in read_epochs(files[:1], EpochReader(OWN, SCHEMA), ranges)] == [6]

    @pytest.mark.parametrize("numbers", [(6, 5), (5, 5)])
    def test_epochs_that_do_not_rise(self, files: list[Path], numbers: tuple[int, int]):
        """Files in the wrong order, or the same one twice, are refused with the place."""
        for file, number in zip(files, numbers, strict=True):
            file.write_bytes(MAGIC + description_event() + file_epoch(number))
        epochs = read_epochs(files, EpochReader(OWN, SCHEMA))
        assert next(epochs).number == numbers[0]
        with pytest.raises(HistoryError) as caught:
            next(epochs)
        assert str(caught.value).startswith(f"{files[1]}, position ")
        assert f"epoch 5 follows {numbers[0]}, so the files are not one log" in str(caught.value)

    def test_a_file_that_is_cut(self, files: list[Path]):
        """Every epoch complete before the cut is yielded, then the error comes; what is pending is counted."""
        files[0].write_bytes((MAGIC + description_event() + file_epoch(5) + file_epoch(6))[:-10])
        reader = EpochReader(OWN, SCHEMA)
        epochs = read_epochs(files[:1], reader)
        assert next(epochs).number == 5
        with pytest.raises(TruncatedError) as caught:
            next(epochs)
        assert caught.value.file == str(files[0])
        assert reader.rows_pending == 1
