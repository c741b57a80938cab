"""A segment read in columns: the parts, epochs and errors that the scalar reader finds."""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conflict.errors import ConflictError
from conflict.history.epochs import EpochReader
from conflict.history.grid.epoch_files import epochs_table, read_epoch_sizes, read_summaries
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import load_manifest
from conflict.history.grid.writer import PartBuilder
from conflict.history.ingestion.segment_arrays import UnreadableError, tables_in_force
from conflict.history.ingestion.segment_columns import read_columns
from conflict.history.ingestion.segment_task import SegmentTask, read_segment
from conflict.history.ingestion.segments import Segment, load_records, plan_segments, record_path
from conflict.history.reading.epoch_logs import read_epochs
from conflict.history.run import Run, TableNumbers
from conflict.history.scheduling.summaries import summarize
from conflict.history.statement_places import StatementPlaces
from conflict.judge.case import ConflictCase
from ndb_formats.errors import FormatError
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from tests.conflict.growing import DEMO, Recording, ingested
from tests.conflict.raw_events import (
    BEGIN,
    COMMIT,
    HIDDEN_ID,
    HIDDEN_MAP,
    LONG,
    MAPS,
    OTHER,
    OWN,
    SCHEMA,
    TABLE_MAP,
    UPDATE,
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
from tests.corpora import RECORDINGS as BUNDLED
from tests.corpora import SHARED
from tests.examples import examples
from tests.ndb_formats.building import MAGIC, description_event, query_body, rows_body, table_map_body

RECORDINGS = BUNDLED / "conflict"
TABLES = Schema(tuple(table for table in SCHEMA.tables if table.name == "t"))
NUMBERS = TableNumbers(TABLES.tables, {"d.t": "x"})
BUCKETS = 3
STATEMENTS = StatementPlaces(frozenset({(OTHER, 1, 40), (OTHER, -1, 50)}))


def check(
    segment: Segment, server_id: int, schema: Schema, numbers: TableNumbers, *, wrong_at_end: bool = False
) -> bool:
    """
    Read a segment both ways and compare everything; return whether it could be read in columns.

    `wrong_at_end`: what is wrong may stand in the last transaction, of which the end is missing. Then the scalar reader
    does not look at it.
    """
    reader = EpochReader(server_id, schema, without_key=True, statements=STATEMENTS)
    builder = PartBuilder(numbers, BUCKETS, [str(segment.file)])
    summaries, error = [], None
    try:
        for epoch in read_epochs([segment.file], reader, {str(segment.file): (segment.start, segment.stop)}):
            builder.add(epoch)
            summaries.append(summarize(epoch))
    except (FormatError, ConflictError) as fault:
        error = fault
    try:
        found = read_columns(segment, server_id, tables_in_force(schema, None), numbers, BUCKETS, 0, STATEMENTS)
    except UnreadableError:
        wrong = error is not None or wrong_at_end or segment.stop <= segment.start + 4
        assert wrong, "only what is wrong is left to the scalar reader"
        return False
    assert (type(found.error), str(found.error)) == (type(error), str(error))
    assert found.epochs.to_pylist() == epochs_table(summaries).to_pylist()
    assert found.settled == reader.settled
    assert found.left_out == (reader.rows_pending if error is not None else 0)
    assert found.types == {name: layout.types for name, layout in reader.layouts.items()}
    assert (found.images, found.marks) == (builder.images, builder.marks)
    assert found.keyless.schema == builder.keyless().schema
    order = [(name, "ascending") for name in ("own", "epoch", "group", "ordinal", "position", "row")]
    assert found.keyless.sort_by(order).to_pylist() == builder.keyless().sort_by(order).to_pylist()
    expected, parts = list(builder.tables()), list(found.parts)
    assert len(parts) == BUCKETS
    for part, other in zip(parts, expected, strict=True):
        for table, scalar in zip(part, other, strict=True):
            table.validate(full=True)
            assert table.schema == scalar.schema
            assert table.to_pylist() == scalar.to_pylist()
    return True


def check_case(folder: Path, segment_bytes: int) -> int:
    """Compare every segment of a recorded case; return how many there are."""
    configuration = ConflictCase.load(folder).configuration()
    numbers = Run(configuration).numbers
    segments = [
        (cluster.server_id, attrs.evolve(segment, number=0))
        for cluster in configuration.clusters
        for segment in plan_segments(cluster.log.files, segment_bytes).segments
    ]
    for server_id, segment in segments:
        assert check(segment, server_id, configuration.data_schema, numbers)
    return len(segments)


CASES = sorted(path.parent for path in RECORDINGS.glob("*/*/A.binlog.000001"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_recordings(case: Path):
    """All bundled recordings."""
    assert check_case(case, 1 << 30) == 2


@pytest.mark.slow
@pytest.mark.corpus("conformance/conflict")
def test_the_whole_corpus():
    """Every case, in short segments."""
    folders = [path.parent for path in (SHARED / "conformance" / "conflict").glob("*/*/scenario.json")]
    assert len(folders) > len(CASES)
    assert sum(check_case(folder, 4000) for folder in folders) >= 2 * len(folders)


def event(raw: Raw) -> bytes:
    """Return the bytes of an event in a file."""
    code, server, body = raw
    data = struct.pack("<IBIIIH", 1_700_000_000, code, server, 19 + len(body) + 4, 0, 0) + body
    return data + zlib.crc32(data).to_bytes(4, "little")


def check_raws(raws: Sequence[Raw], cut: int = 0) -> bool:
    """Compare what both readers make of events, of which the last bytes may be missing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "binlog.000001"
        content = MAGIC + description_event() + b"".join(map(event, raws))
        file.write_bytes(content)
        wrong = cut > 0 and not is_right(file)
        file.write_bytes(content[: len(content) - cut])
        return check(Segment(0, file, 0, len(content) - cut), OWN, TABLES, NUMBERS, wrong_at_end=wrong)


def is_right(file: Path) -> bool:
    """Return whether the scalar reader finds nothing wrong in a file."""
    try:
        list(read_epochs([file], EpochReader(OWN, TABLES, without_key=True)))
    except (FormatError, ConflictError):
        return False
    return True


def epoch(number: int, *raws: Raw) -> list[Raw]:
    """Return the events of an epoch."""
    return [BEGIN, *MAPS, status(OWN, number), *raws, COMMIT]


OTHER_MAP = table_map_body(LONG + b"\x08" + LONG, b"", table_id=9, database=b"d", optional=[(1, b"\x80")])
NARROW_MAP = table_map_body(LONG + b"\x03" + LONG, table_id=9, database=b"d")
DDL: Raw = (2, OWN, query_body(b"d", b"CREATE TABLE other (a INT)"))


def bare_insert(table_id: int) -> Raw:
    """Return an insert without columns: of ndb_apply_status, of a table that is read, or of one that is not."""
    return WRITE, OWN, rows_body(b"", {1: 5}.get(table_id, 3), [[]], table_id=table_id, extra=extra(1))


ids = st.sampled_from([None, 1, 2, 3, 2**63, 2**64 - 1])
flag = st.sampled_from([0, 0, 0, 1, 2, 4, 3])
author = st.sampled_from([OWN, OWN, OWN, OTHER])
keys = st.integers(0, 5)
values = st.sampled_from([0, 1, 5, 2**63, 2**64 - 1])
changes: st.SearchStrategy[Raw] = st.one_of(
    st.builds(
        lambda *a: insert(a[0], a[1], transaction=a[2], flags=a[3], author=a[4]), keys, values, ids, flag, author
    ),
    st.builds(
        lambda *a: update(a[0], a[1], transaction=a[2], flags=a[3], author=a[4]), keys, values, ids, flag, author
    ),
    st.builds(lambda *a: delete(a[0], transaction=a[1], flags=a[2], author=a[3]), keys, ids, flag, author),
    st.builds(
        status,
        st.just(OTHER),
        st.integers(0, 4),
        ids,
        st.sampled_from([b"", b"l", b"l.000001", b"l.000002"]),
        st.sampled_from([0, 40, 50]),
    ),
    st.builds(lambda a: insert(a, table_id=9), keys),
    st.sampled_from([(TABLE_MAP, OWN, OTHER_MAP), (TABLE_MAP, OWN, HIDDEN_MAP), DDL]),
    st.builds(bare_insert, st.sampled_from([1, 7, 9])),
)


@st.composite
def binlogs(draw: st.DrawFn) -> list[Raw]:
    """Return the events of a binlog that is, nearly always, fine."""
    raws: list[Raw] = []
    for number in range(draw(st.integers(0, 5))):
        inner = [(TABLE_MAP, OWN, OTHER_MAP), *draw(st.lists(changes, max_size=8))]
        whole = epoch(number + 1, *inner)
        kind = draw(st.sampled_from(["plain"] * 5 + ["packed", "xid", "other engine", "unfinished", "late status"]))
        if kind == "packed":
            whole = [payload(whole)]
        elif kind == "xid":
            whole[-1] = (XID, OWN, bytes(8))
        elif kind == "other engine":
            whole = [BEGIN, *MAPS, (TABLE_MAP, OWN, HIDDEN_MAP), COMMIT]
        elif kind == "unfinished":
            whole = whole[:-1]
        elif kind == "late status":
            whole = [*whole[:3], *whole[4:-1], whole[3], COMMIT]
        raws += whole
    return raws


@given(raws=binlogs(), cut=st.integers(0, 90))
@examples(15, long=60)
@example(raws=epoch(1, insert(1), insert(2, transaction=2), update(1, 5), insert(3, transaction=2)), cut=0)
@example(raws=epoch(1, insert(1), status(OTHER, 4, 1), insert(2, transaction=None), status(OTHER, 5)), cut=0)
@example(raws=epoch(1, insert(1, author=OTHER), status(OTHER, 4, 1, b"l.000001", 40), insert(2, transaction=2)), cut=0)
@example(raws=epoch(1, insert(1, transaction=None, author=OTHER), status(OTHER, 4, None, b"l.000001", 40)), cut=0)
@example(raws=[payload(epoch(1, insert(1)))], cut=0)
@example(raws=epoch(1, (TABLE_MAP, OWN, OTHER_MAP), insert(1), bare_insert(9), insert(2)), cut=0)
@example(raws=epoch(1, insert(1), bare_insert(7)), cut=0)
@example(raws=epoch(1, bare_insert(7)), cut=43)
@example(raws=epoch(1, insert(1), bare_insert(1)), cut=0)
def test_any_binlog(raws: list[Raw], cut: int):
    """Groups that interleave, applied epochs, packed transactions, files that end anywhere."""
    check_raws(raws, cut)


def _rows_of_nothing() -> Raw:
    return WRITE, OWN, rows_body(b"", 3, [[0, 1, 2]])


KEY_CHANGE = rows_body(b"\0\1\0\0\0\0\2\0\0\0", 3, [[0], [0]])
FAULTS: dict[str, list[Raw]] = {
    "outside a transaction": [*MAPS, insert(1)],
    "no Table_map": [BEGIN, insert(1), COMMIT],
    "no epoch": [BEGIN, *MAPS, insert(1), COMMIT],
    "epochs do not rise": [*epoch(2, insert(1)), *epoch(2, insert(2))],
    "other columns than the definition": epoch(1, (TABLE_MAP, OWN, NARROW_MAP), insert(1, table_id=9)),
    "no key in the image": epoch(1, (WRITE, OWN, rows_body(b"\0" + bytes(8), 3, [[1]]))),
    "an update that changes the key": epoch(1, (UPDATE, OWN, KEY_CHANGE)),
    "another engine's update that changes the key": [BEGIN, *MAPS, (UPDATE, OWN, KEY_CHANGE), COMMIT],
    "partial JSON": epoch(1, (39, OWN, rows_body(b"", 3, [[0], [1]]))),
    "an old rows event": epoch(1, (20, OWN, b"")),
    "a row that is too short": epoch(1, (WRITE, OWN, rows_body(b"\0" + bytes(8), 3, [[0, 1, 2]]))),
    "a broken payload": [*epoch(1, insert(1)), (40, OWN, b"\x01\x01\x05")],
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_left_to_the_scalar_reader(name: str):
    """What is wrong is noticed, and what is right is read."""
    assert check_raws(epoch(1, insert(1)))
    found = check_raws(FAULTS[name])
    assert found == (name == "a broken payload")  # which the pass over the events already notices


def test_rows_events_without_rows():
    """They still begin a group."""
    assert check_raws(epoch(1, _rows_of_nothing(), insert(2, transaction=2), delete(1, transaction=3)))


def test_a_table_without_a_key():
    """Its rows stand apart, with their images."""
    numbers = TableNumbers(SCHEMA.tables, {})
    raw = WRITE, OWN, rows_body(b"\0" + bytes(8), 2, [[0, 1]], table_id=HIDDEN_ID)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "binlog.000001"
        file.write_bytes(
            MAGIC + description_event() + b"".join(map(event, epoch(1, (TABLE_MAP, OWN, HIDDEN_MAP), raw)))
        )
        segment = Segment(0, file, 0, file.stat().st_size)
        assert check(segment, OWN, SCHEMA, numbers)
        found = read_columns(segment, OWN, tables_in_force(SCHEMA, None), numbers, BUCKETS, 0)
        assert not any(len(table) for part in found.parts for table in part)
        (row,) = found.keyless.to_pylist()
        assert (row["own"], row["epoch"], row["operation"], row["before"]) == (True, 1, Operation.WRITE_ROW, None)
        assert (row["after"], row["after_columns"]) == (b"\0" + bytes(8), b"\x03")


def test_a_damaged_segment_keeps_what_comes_before(tmp_path: Path):
    """Its record says why, how many rows are left out, and where the last whole epoch ends."""
    file = tmp_path / "binlog.000001"
    head = MAGIC + description_event() + b"".join(map(event, epoch(1, insert(1), insert(2))))
    file.write_bytes(head + b"".join(map(event, [BEGIN, *MAPS, insert(3), insert(4), (WRITE, OWN, b"")])))
    history = Folder(str(tmp_path / "history"))
    segment = Segment(0, file, 4, file.stat().st_size)
    record = read_segment(SegmentTask("A", OWN, (str(file),), segment, TABLES, NUMBERS, 1, history))
    assert load_records(history, [path := record_path("A", 0)]) == {path: record}
    assert (record.facts.first_epoch, record.facts.last_epoch, record.facts.changes) == (1, 1, 2)
    assert (record.facts.start, record.facts.stop, record.left_out) == (4, len(head), 2)
    assert record.error is not None
    assert "WRITE_ROWS_EVENT" in record.error


def test_summaries_come_back(tmp_path: Path):
    """What the schedule is derived from survives the disk."""
    demo = Recording.copy(DEMO, tmp_path / "demo")
    history = Folder(str(tmp_path / "history"))
    ingested(demo, history)
    manifest = load_manifest(history)
    assert manifest is not None
    for cluster in demo.configuration.clusters:
        reader = EpochReader(cluster.server_id, demo.configuration.data_schema)
        expected = [summarize(each) for each in read_epochs(cluster.log.files, reader)]
        assert list(read_summaries(history, cluster.name, manifest.batches)) == expected
        sizes = read_epoch_sizes(history, cluster.name, manifest.batches)
        assert sizes.numbers.tolist() == [each.number for each in expected]
        assert sizes.changes.tolist() == [each.changes for each in expected]
    assert list(read_summaries(history, "none", range(3))) == []


def test_schema_without_the_table():
    """Rows of tables that are not read are ignored; the epoch stays."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "binlog.000001"
        file.write_bytes(MAGIC + description_event() + b"".join(map(event, epoch(1, insert(1)))))
        other = parse_schema("CREATE TABLE other (k INT PRIMARY KEY)", database="d")
        assert check(Segment(0, file, 0, file.stat().st_size), OWN, other, TableNumbers(other.tables, {}))
