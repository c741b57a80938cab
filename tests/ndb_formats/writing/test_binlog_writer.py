"""Written files: what a server would write, and what is read back."""

import io
import json
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.binlog_reader import Event, read_events, unpacked
from ndb_formats.constants import EventType
from ndb_formats.events.gtid_event import decode_gtid
from ndb_formats.events.query_event import SESSION, decode_query
from ndb_formats.events.row_image import RowImage, layout_of
from ndb_formats.events.rows_event import ConflictFlag, ExtraRowInfo, Operation
from ndb_formats.events.table_map import encode_table_map
from ndb_formats.events.table_map_of_table import RowMetadata, table_map_of
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.rules.images import LoggedImages, Logging, images
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.create_table import parse_create_table, parse_schema
from ndb_formats.schema.tables import Schema, Table
from ndb_formats.writing.binlog_writer import BinlogSettings, BinlogWriter, WrittenChange
from tests.corpora import SHARED
from tests.examples import examples
from tests.ndb_formats.recordings import RECORDINGS, row_events

MOMENT = 1_700_000_000_000_000
NDB = parse_create_table("CREATE TABLE d.n (id INT PRIMARY KEY, a INT, b VARCHAR(20), c TEXT) ENGINE=NDB")
OTHER = parse_create_table("CREATE TABLE d.o (id INT PRIMARY KEY, a INT, b VARCHAR(20), c TEXT) ENGINE=InnoDB")
NOKEY = parse_create_table("CREATE TABLE d.k (id INT, a INT, b VARCHAR(20), c TEXT) ENGINE=NDB")
TABLES = Schema((NDB, OTHER, NOKEY))


def written(path: Path, how: BinlogSettings, transactions: list[list[WrittenChange]]) -> None:
    """Write transactions: as epochs if their first table is of NDB, else one statement each."""
    with path.open("wb") as out:
        writer = BinlogWriter(out, how)
        writer.start(MOMENT)
        for number, changes in enumerate(transactions):
            if changes and changes[0].table.engine == "NDB":
                writer.write_epoch(5 << 32 | number, changes, MOMENT + number)
            else:
                writer.write_transaction([changes], MOMENT + number, transaction_id=number)
        writer.finish("binlog.000002")


rows = st.fixed_dictionaries(
    {
        0: st.integers(0, 5),
        1: st.none() | st.integers(-(2**31), 2**31 - 1),
        2: st.none() | st.text(st.characters(codec="utf-8"), max_size=20),
        3: st.none() | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace").decode()),
    }
)


@st.composite
def changes(draw: st.DrawFn, table: Table) -> WrittenChange:
    before, after = draw(st.none() | rows), draw(rows)
    if before is not None and draw(st.booleans()):
        return WrittenChange(table, before, None)
    if before is not None:
        after = after | {0: before[0]}
    named = draw(st.sets(st.integers(0, 3), min_size=1))
    extra = draw(st.none() | st.builds(ExtraRowInfo, st.integers(0, 2**64 - 1), st.none() | st.just(ConflictFlag(2))))
    return WrittenChange(table, before, after, frozenset(named), extra if table.engine == "NDB" else None)


@st.composite
def transactions_of(draw: st.DrawFn) -> list[list[WrittenChange]]:
    tables = st.sampled_from([[NDB, NOKEY], [OTHER]])
    return [
        [draw(changes(draw(st.sampled_from(group)))) for _ in range(draw(st.integers(0, 4)))]
        for group in draw(st.lists(tables, max_size=4))
    ]


all_settings = st.builds(
    BinlogSettings,
    logging=st.builds(
        Logging, st.sampled_from([2, 3, 6, 7, 8, 9]).map(effective_format), st.sampled_from(RowImageRule)
    ),
    checksums=st.booleans(),
    metadata=st.sampled_from(RowMetadata),
    row_event_max_size=st.sampled_from([60, 8192]),
    gtid_events=st.booleans(),
    gtid_source=st.none() | st.just(bytes(range(16))),
    compression=st.booleans(),
)


@examples(10, long=40)
@given(transactions_of(), all_settings)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, transactions: list[list[WrittenChange]], how: BinlogSettings
):
    """The rows are those of `images`; positions, checksums and lengths are right."""
    path = tmp_path_factory.mktemp("written") / "binlog.000001"
    written(path, how, transactions)
    expected = [
        (each.table.name, event.operation, event.before, event.after, each.extra)
        for changes in transactions
        for each in changes
        for event in images(each.table, layout(each.table), each.before, each.after, each.written, how.logging)
    ]
    assert expected == [facts(row) for row in read_rows(path, schema=TABLES)]
    events = list(read_events(path))
    assert all(event.header.next_position == event.end for event in events)
    check_lengths(events, path.stat().st_size)


def layout(table: Table):
    return layout_of(table_map_of(table, 1), table)


def facts(row: LoggedRow):
    return row.table, row.operation, row.before, row.after, row.extra


def check_lengths(events: list[Event], size: int) -> None:
    """Check that each Gtid event has the bytes up to the next one, and that numbers rise."""
    kinds = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)
    starts = [event for event in events if event.type in kinds]
    ends = [*(event.position for event in starts[1:]), events[-1].position][: len(starts)]
    for number, (event, end) in enumerate(zip(starts, ends, strict=True), start=1):
        gtid = decode_gtid(event.body)
        assert (gtid.length, gtid.sequence_number) == (end - event.position, number)
        assert gtid.number == (0 if event.type is EventType.ANONYMOUS_GTID_LOG_EVENT else number)
    assert events[-1].end == size


def test_an_epoch():
    """Table_map events of all tables come first, then the row of ndb_apply_status, then all rows."""
    out = io.BytesIO()
    writer = BinlogWriter(out, BinlogSettings(server_id=7, gtid_events=False))
    writer.start(MOMENT)
    start = writer.position
    row = {0: 1, 1: 2, 2: "x", 3: None}
    writer.write_epoch(
        21 << 32 | 3, [WrittenChange(NDB, None, row), WrittenChange(NOKEY, row, None, server_id=9)], MOMENT
    )
    assert shape(out.getvalue(), start) == [
        ("QUERY_EVENT", 7, "BEGIN"),
        ("TABLE_MAP_EVENT", 7, ""),
        ("TABLE_MAP_EVENT", 7, ""),
        ("TABLE_MAP_EVENT", 7, ""),
        ("WRITE_ROWS_EVENT", 7, ""),
        ("WRITE_ROWS_EVENT", 7, ""),
        ("DELETE_ROWS_EVENT", 9, ""),
        ("QUERY_EVENT", 7, "COMMIT"),
    ]


def shape(data: bytes, start: int) -> list[tuple[str, int, str]]:
    return [
        (
            event.header.type_name,
            event.header.server_id,
            decode_query(event.body).statement if event.type is EventType.QUERY_EVENT else "",
        )
        for event in events_of(data)
        if event.position >= start
    ]


def events_of(data: bytes) -> Iterator[Event]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        yield from read_events(file.name)


def test_the_epoch_of_a_row_is_read_back(tmp_path: Path):
    """The row of ndb_apply_status gives it."""
    path = tmp_path / "binlog"
    written(path, BinlogSettings(), [[WrittenChange(NDB, None, {0: 1, 1: 2, 2: None, 3: None})]])
    assert [row.epoch for row in read_rows(path, schema=TABLES)] == [5 << 32]


def test_a_transaction_that_logs_nothing_is_not_written(tmp_path: Path):
    """Neither an epoch of type 1, nor a statement without changes, nor an update that changes nothing."""
    row = {0: 1, 1: 2, 2: "x", 3: None}
    path = tmp_path / "binlog"
    unlogged = BinlogSettings(Logging(effective_format(1)))
    written(path, unlogged, [[WrittenChange(NDB, None, row)], [], [WrittenChange(OTHER, row, row, {1})]])
    assert [event.header.type_name for event in read_events(path)] == [
        "FORMAT_DESCRIPTION_EVENT",
        "PREVIOUS_GTIDS_LOG_EVENT",
        "ROTATE_EVENT",
    ]


# Files of MySQL 5.6.2 without checksums: 29 event types, no default collation among the session variables.
OLD = BinlogSettings(
    server_version="5.6.2",
    post_header_sizes=bytes(29),
    checksums=False,
    metadata=RowMetadata.NONE,
    rows_version=1,
    gtid_events=False,
    session=SESSION[:26],
)
TEXT = "CREATE TABLE test.t1 (c1 INT PRIMARY KEY, c2 CHAR(1), c3 LONGTEXT) ENGINE=MyISAM"
DEFAULTED = "CREATE TABLE test.t1 (c1 INT PRIMARY KEY, c2 CHAR(1), c3 VARCHAR(1024) DEFAULT 'aaaaaaaaaaaaaaaaaaaa')"


@pytest.mark.parametrize(
    ("rule", "sql", "before", "after", "position"),
    [
        (RowImageRule.FULL, TEXT, {0: 1, 1: "a", 2: "a" * 2**20}, None, 1048913),
        (RowImageRule.MINIMAL, TEXT, {0: 1, 1: "a", 2: "a" * 2**20}, None, 331),
        (RowImageRule.FULL, DEFAULTED, None, {0: 1, 1: "a", 2: "a" * 20}, 356),
        (RowImageRule.MINIMAL, DEFAULTED, None, {0: 1, 1: "a", 2: "a" * 20}, 334),
    ],
)
def test_the_classic_sizes(rule: RowImageRule, sql: str, before: dict | None, after: dict | None, position: int):
    """
    The position after a delete of a text, and after an insert, as a blog post on a pre-release 5.6.2 gives them.

    The settings that lead to its figures are fitted.
    """
    out = io.BytesIO()
    writer = BinlogWriter(out, attrs.evolve(OLD, logging=Logging(row_image=rule)))
    writer.start(MOMENT)
    assert writer.position == 114
    change = WrittenChange(parse_create_table(sql, charset="latin1"), before, after, {0, 1})
    writer.write_transaction([[change]], MOMENT)
    assert writer.position == len(out.getvalue()) == position


@pytest.mark.parametrize("folder", [RECORDINGS / "metadata_full", RECORDINGS / "types_type8"], ids=lambda p: p.name)
def test_recorded_table_maps_follow_from_the_definitions(folder: Path):
    """Byte for byte, with all optional metadata and with the least."""
    assert check_table_maps(folder, RowMetadata.FULL if folder.name == "metadata_full" else RowMetadata.MINIMAL)


@pytest.mark.slow
@pytest.mark.corpus("conformance/formats")
def test_every_recorded_table_map():
    """Of all recordings of formats."""
    checked = 0
    for path in sorted((SHARED / "conformance" / "formats").rglob("settings.json")):
        if (path.parent / "binlog.000001").exists():
            metadata = json.loads(path.read_text("utf-8"))["binlog_row_metadata"].lower()
            checked += check_table_maps(path.parent, RowMetadata(metadata))
    assert checked > 1000


def check_table_maps(folder: Path, metadata: RowMetadata) -> int:
    schema, checked = parse_schema((folder / "schema.sql").read_text("utf-8")), 0
    for _, table_map, _ in row_events(folder / "binlog.000001"):
        table = schema.find(table_map.database, table_map.table)
        if table is not None:
            assert encode_table_map(table_map_of(table, table_map.table_id, metadata)) == encode_table_map(table_map)
            checked += 1
    return checked


class Sink(io.RawIOBase):
    """Counts what it is given, and forgets it."""

    size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        return len(data)


def test_memory_does_not_grow_with_the_file_or_a_transaction():
    """Three transactions of 7 MB each take less than 6 MB."""

    sink = Sink()
    writer = BinlogWriter(sink)  # type: ignore[arg-type]
    text = "x" * 5000
    writer.start(MOMENT)
    writer.write_epoch(7, [WrittenChange(NDB, None, {0: 0, 1: 0, 2: None, 3: text})], MOMENT)  # reads character sets
    tracemalloc.start()
    for _ in range(3):
        writer.write_epoch(7, (WrittenChange(NDB, None, {0: n, 1: n, 2: None, 3: text}) for n in range(1400)), MOMENT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sink.size > 3 * 1400 * 5000
    assert peak < 6_000_000


def test_a_table_that_changes_gets_another_table_id(tmp_path: Path):
    """As after ALTER TABLE; both rows are read with the definition of their time."""
    wider = parse_create_table("CREATE TABLE d.o (id INT PRIMARY KEY, a INT) ENGINE=InnoDB")
    path = tmp_path / "binlog"
    whole = {0: 1, 1: 2, 2: "x", 3: None}
    written(path, BinlogSettings(), [[WrittenChange(OTHER, None, whole)], [WrittenChange(wider, None, {0: 3, 1: 4})]])
    found = [(table_map.table_id, rows.column_count) for _, table_map, rows in row_events(path)]
    assert [count for _, count in found] == [4, 2]
    assert len({number for number, _ in found}) == 2


def test_a_compressed_transaction_is_one_event(tmp_path: Path):
    """With the events of the transaction inside."""
    path = tmp_path / "binlog"
    written(
        path, BinlogSettings(compression=True), [[WrittenChange(OTHER, None, {0: 1, 1: 2, 2: "x" * 20, 3: "y" * 999})]]
    )
    (payload,) = [event for event in read_events(path) if event.type is EventType.TRANSACTION_PAYLOAD_EVENT]
    assert payload.header.size < 400
    assert [event.type for event in unpacked(payload)] == [
        EventType.QUERY_EVENT,
        EventType.TABLE_MAP_EVENT,
        EventType.WRITE_ROWS_EVENT,
        EventType.XID_EVENT,
    ]


def test_operations_are_those_of_the_format(tmp_path: Path):
    """Type 2 logs an update as a write, type 8 as an update."""
    before, after = ({0: 1, 1: value, 2: None, 3: None} for value in (1, 2))
    for number, operation in ((2, Operation.WRITE_ROW), (8, Operation.UPDATE_ROW)):
        path = tmp_path / str(number)
        written(path, BinlogSettings(Logging(effective_format(number))), [[WrittenChange(NDB, before, after, {1})]])
        assert [row.operation for row in read_rows(path, schema=TABLES)] == [operation]


def test_an_event_that_does_not_follow_from_rows(tmp_path: Path) -> None:
    """A refresh of a missing row has the key alone, under every format; it is written as it is given."""
    layout = layout_of(table_map_of(NDB, 1), NDB)
    key = RowImage(layout, (0,), ((7).to_bytes(4, "little"),))
    extra = ExtraRowInfo(None, ConflictFlag.REFRESH)
    change = WrittenChange(
        NDB, None, None, extra=extra, server_id=9, logged=LoggedImages(Operation.DELETE_ROW, key, None)
    )
    written(tmp_path / "log", BinlogSettings(Logging(effective_format(7))), [[change]])
    (row,) = read_rows(tmp_path / "log", schema=TABLES)
    assert (row.operation, row.after, row.extra, row.server_id) == (Operation.DELETE_ROW, None, extra, 9)
    assert row.before is not None
    assert row.before.by_name() == {"id": 7}
