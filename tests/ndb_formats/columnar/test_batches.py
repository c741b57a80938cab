"""Columnar decoding: the same answers as the scalar codecs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.ledger.arrow_rows import row_schema
from ndb_formats.columnar.batches import RowBatch, read_batches
from ndb_formats.columnar.block_reader import METADATA
from ndb_formats.constants import APPLY_STATUS, ColumnCode, EventType
from ndb_formats.errors import CorruptError, FormatError, SchemaError, TruncatedError
from ndb_formats.events.query_event import QueryEvent, encode_query
from ndb_formats.events.rows_event import Operation, RowsEvent, encode_rows_event
from ndb_formats.events.table_map import TableMap, encode_table_map
from ndb_formats.events.table_metadata import TableMetadata, encode_table_metadata
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from ndb_formats.types.collation_names import collation_of
from ndb_formats.types.column_types import WireType, codec_of
from tests.examples import examples
from tests.ndb_formats.building import MAGIC, description_event, event_bytes
from tests.ndb_formats.columnar.answers import columnar_answer, scalar_answer
from tests.ndb_formats.recordings import ALL_RECORDINGS, BINLOGS, COMPOSITE, CORPUS, TYPES, name_of
from tests.strategies import TYPED_VALUES, TypedValue

NDB_BLOCK = bytes.fromhex("00 0e 00 0300 ffffffffffffffff 0300")  # a transaction id of 2**64 - 1, two conflict flags


def schema_beside(path: Path) -> Schema:
    """Return the definitions that were recorded with a binlog, if any were."""
    if (path.parent / "schema.sql").exists():
        return parse_schema((path.parent / "schema.sql").read_text(encoding="utf-8"))
    if (path.parent / "scenario.json").exists():
        scenario = json.loads((path.parent / "scenario.json").read_text(encoding="utf-8"))
        sql = ";".join(table["create"] for table in scenario["tables"])
        return parse_schema(sql, database=scenario["database"])
    return Schema()


class TestRecordings:
    """Binlogs of real servers."""

    @pytest.mark.parametrize("path", BINLOGS, ids=name_of)
    def test_every_row_is_that_of_the_scalar_reader(self, path: Path) -> None:
        """With and without definitions, whatever the size of a block."""
        expected = scalar_answer(path)
        assert columnar_answer(path) == expected
        assert columnar_answer(path, batch_rows=3, batch_bytes=900) == expected
        schema = schema_beside(path)
        assert columnar_answer(path, schema=schema) == scalar_answer(path, schema=schema)

    @pytest.mark.slow
    @pytest.mark.corpus(".")
    def test_every_file_of_the_corpus(self) -> None:
        """Every file of the corpus, and the error of a broken one."""
        for path in CORPUS:
            expected = scalar_answer(path)
            assert columnar_answer(path) == expected, path
            assert columnar_answer(path, batch_rows=7, batch_bytes=4000) == expected, path

    def test_all_kinds_of_files_have_rows(self) -> None:
        """Packed transactions, MariaDB's compressed events, partial updates and version 1 are among the recordings."""
        for name in ("compressed", "mariadb_10_11", "partial_json", "mysql_5_1_rows_v1", "vector"):
            assert sum(map(len, read_batches(ALL_RECORDINGS / "binlogs" / f"{name}.000001"))), name

    def test_tables(self) -> None:
        """Only the tables that are named are read, ndb_apply_status too if it is."""
        path = TYPES / "binlog.000001"
        every = {batch.full_name for batch in read_batches(path)}
        assert APPLY_STATUS not in every
        assert {batch.full_name for batch in read_batches(path, tables=[APPLY_STATUS])} == {APPLY_STATUS}
        wanted = {*every, APPLY_STATUS}
        assert columnar_answer(path, tables=wanted) == scalar_answer(path, wanted=wanted.__contains__)

    def test_columns(self) -> None:
        """Only the columns that are named are decoded; the batch still tells which ones the images carry."""
        path, schema = TYPES / "binlog.000001", schema_beside(TYPES / "binlog.000001")
        columns = {"id", "de2", "no such column"}
        assert columnar_answer(path, columns, schema=schema) == scalar_answer(path, columns, schema=schema)
        batch = next(batch for batch in read_batches(path, schema=schema, columns={"fmt.types": ["id"], "x.y": []}))
        assert [field.name for field in batch.records.schema.field("after").type] == ["id"]
        assert batch.after is not None
        assert len(batch.after) == 39

    def test_types_are_those_of_the_rows_in_parquet(self) -> None:
        """Every column has the type of `conflict.engine.ledger.arrow_rows`, ENUM and SET as dictionaries of it."""
        path = TYPES / "binlog.000001"
        schema = schema_beside(path)
        (table,) = (table for table in schema.tables if table.name == "types")
        batch = next(batch for batch in read_batches(path, schema=schema) if batch.after is not None)
        assert batch.full_name == "fmt.types"
        found = {field.name: field.type for field in batch.records.schema.field("after").type}
        plain = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in found.items()}
        assert plain == dict(zip(row_schema(table).names, row_schema(table).types, strict=True))

    def test_start_and_stop(self) -> None:
        """Start and stop mean the same."""
        path = COMPOSITE / "binlog.000001"
        for part in json.loads((path.parent / "statements.json").read_text(encoding="utf-8"))[:4]:
            bounds = {"start": part["start"], "stop": part["end"]}
            assert columnar_answer(path, **bounds) == scalar_answer(path, **bounds)


@attrs.frozen
class Change:
    """One rows event to be: its kind, the columns it carries, and their payloads (None is NULL)."""

    operation: Operation
    before: tuple[int, ...]
    after: tuple[int, ...]
    rows: list[tuple[list[bytes | None], list[bytes | None]]]
    version: int = 2
    extra: bytes = b""


_NUMERIC = (ColumnCode.TINY, ColumnCode.SHORT, ColumnCode.INT24, ColumnCode.LONG, ColumnCode.LONGLONG)
_NUMERIC = (*_NUMERIC, ColumnCode.FLOAT, ColumnCode.DOUBLE, ColumnCode.NEWDECIMAL, ColumnCode.YEAR)
_CHARACTER = (ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.VAR_STRING, ColumnCode.BLOB, ColumnCode.LONG_BLOB)
_COLLATION = {found.charset: number for number in range(400, 0, -1) if (found := collation_of(number))} | {None: 63}


def column(code: ColumnCode, length: int = 0, scale: int = 0, **meaning: Any) -> TypedValue:
    """Return a column without a value."""
    wire = WireType(code, length, scale)
    return TypedValue(wire, codec_of(wire, **meaning), None)


def table_map_of(columns: Sequence[TypedValue], table: str = "t") -> TableMap:
    """Return a Table_map event that says everything of its columns."""
    meanings = [item.codec.meaning for item in columns]
    signs = [meaning.unsigned for meaning in meanings if meaning.wire.code in _NUMERIC]
    chosen = [meaning for meaning in meanings if meaning.wire.code in (ColumnCode.ENUM, ColumnCode.SET)]
    members = {
        code: tuple(tuple(text.encode() for text in each.members) for each in chosen if each.wire.code is code)
        for code in (ColumnCode.ENUM, ColumnCode.SET)
    }
    metadata = TableMetadata(
        signedness=tuple(signs + [False] * (-len(signs) % 8)),
        column_charset=tuple(
            _COLLATION[meaning.charset] for meaning in meanings if meaning.wire.code in (*_CHARACTER, ColumnCode.VECTOR)
        ),
        column_name=tuple(f"c{number}" for number in range(len(columns))),
        enum_str_value=members[ColumnCode.ENUM] or None,
        set_str_value=members[ColumnCode.SET] or None,
        enum_and_set_column_charset=(45,) * len(chosen) or None,
    )
    wires = tuple(item.wire for item in columns)
    return TableMap(7, "d", table, wires, (True,) * len(wires), metadata=encode_table_metadata(metadata))


_TYPES = {
    (Operation.WRITE_ROW, 1): EventType.WRITE_ROWS_EVENT_V1,
    (Operation.UPDATE_ROW, 1): EventType.UPDATE_ROWS_EVENT_V1,
    (Operation.DELETE_ROW, 1): EventType.DELETE_ROWS_EVENT_V1,
    (Operation.WRITE_ROW, 2): EventType.WRITE_ROWS_EVENT,
    (Operation.UPDATE_ROW, 2): EventType.UPDATE_ROWS_EVENT,
    (Operation.DELETE_ROW, 2): EventType.DELETE_ROWS_EVENT,
}


def rows_body(columns: Sequence[TypedValue], change: Change) -> tuple[EventType, bytes]:
    """Return type and body of a rows event."""
    images = b""
    for before, after in change.rows:
        for places, payloads in ((change.before, before), (change.after, after)):
            if (places is change.before and change.operation is Operation.WRITE_ROW) or (
                places is change.after and change.operation is Operation.DELETE_ROW
            ):
                continue
            nulls = sum(1 << number for number, payload in enumerate(payloads) if payload is None)
            images += nulls.to_bytes((len(places) + 7) // 8, "little")
            for place, payload in zip(places, payloads, strict=True):
                images += b"" if payload is None else columns[place].codec.put(payload)
    kind = _TYPES[change.operation, change.version]
    event = RowsEvent(
        7,
        change.operation,
        None,
        len(columns),
        None if change.operation is Operation.WRITE_ROW else change.before,
        None if change.operation is Operation.DELETE_ROW else change.after,
        images,
        kind,
        flags=1,
        extra_bytes=change.extra if change.version == 2 else b"",
    )
    return kind, encode_rows_event(event)


def file_of(columns: Sequence[TypedValue], changes: Sequence[Change], *, checksum: bool = True) -> bytes:
    """Return a binlog: each change a transaction with its Table_map event."""
    parts = [MAGIC, description_event(algorithm=int(checksum))]
    for change in changes:
        events = [
            (EventType.QUERY_EVENT, encode_query(QueryEvent("d", "BEGIN"))),
            (EventType.TABLE_MAP_EVENT, encode_table_map(table_map_of(columns))),
            rows_body(columns, change),
            (EventType.XID_EVENT, bytes(8)),
        ]
        parts += [event_bytes(kind, body, checksum=checksum) for kind, body in events]
    return b"".join(parts)


def one_column(folder: Path, item: TypedValue, payloads: Sequence[bytes | None], **options: Any) -> pa.Array:
    """Return the values of a table of one column, written and read back; the scalar reader must agree."""
    change = Change(Operation.WRITE_ROW, (), (0,), [([], [payload]) for payload in payloads])
    path = folder / "binlog.000001"
    path.write_bytes(file_of([item], [change]))
    if not options:
        assert columnar_answer(path) == scalar_answer(path)
    arrays = [batch.records.column("after").field("c0") for batch in read_batches(path, **options)]
    return pa.concat_arrays(arrays)


@st.composite
def changes(draw: st.DrawFn, columns: Sequence[TypedValue]) -> Change:
    """Return a rows event with good values, and now and then any bytes."""
    places = st.sets(st.sampled_from(range(len(columns)))).map(lambda chosen: tuple(sorted(chosen)))
    before, after = draw(places), draw(places)

    def payload(place: int) -> bytes | None:
        item = columns[place]
        how = draw(st.sampled_from(["good"] * 6 + ["null"] * 2 + ["odd"]))
        if how == "odd" and item.codec.prefixed:
            return draw(st.binary(max_size=12))
        if how == "odd":
            return draw(st.binary(min_size=item.codec.width, max_size=item.codec.width))
        return None if how == "null" else item.codec.encode(item.value)

    rows = [
        ([payload(place) for place in before], [payload(place) for place in after])
        for _ in range(draw(st.integers(0, 4)))
    ]
    extra = draw(st.sampled_from([b"", NDB_BLOCK, NDB_BLOCK[:1] + b"\x04" + bytes(3)]))
    return Change(draw(st.sampled_from(Operation)), before, after, rows, draw(st.sampled_from([1, 2])), extra)


@st.composite
def files(draw: st.DrawFn, *, checksum: bool) -> bytes:
    """Return a binlog of one random table."""
    columns = draw(st.lists(TYPED_VALUES, min_size=1, max_size=9))
    return file_of(columns, draw(st.lists(changes(columns), min_size=1, max_size=4)), checksum=checksum)


class TestRandom:
    """Random tables and rows, whole and damaged."""

    @given(data=files(checksum=True), rows=st.integers(1, 5))
    @examples(37, long=3000)
    def test_random_tables(self, tmp_path_factory: pytest.TempPathFactory, data: bytes, rows: int) -> None:
        """Any types, NULLs, absent columns, several rows per event, bytes that no server writes."""
        path = tmp_path_factory.mktemp("random") / "binlog.000001"
        path.write_bytes(data)
        expected = scalar_answer(path)
        assert columnar_answer(path) == expected
        assert columnar_answer(path, batch_rows=rows) == expected
        assert columnar_answer(path, {"c0", "c2"}) == scalar_answer(path, {"c0", "c2"})

    @given(data=st.data(), whole=files(checksum=False))
    @examples(37, long=3000)
    def test_damage(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, whole: bytes) -> None:
        """Changed bytes that no checksum finds give the same other rows, or the same error after the same rows."""
        damaged = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 3))):
            damaged[data.draw(st.integers(127, len(whole) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path_factory.mktemp("damaged") / "binlog.000001"
        path.write_bytes(damaged)
        assert columnar_answer(path) == scalar_answer(path)


def test_a_compressed_statement_that_cannot_be_read(tmp_path: Path):
    """The columnar reader looks into compressed statements too, as the scalar one does."""
    kind = EventType.MARIADB_QUERY_COMPRESSED_EVENT
    path = tmp_path / "binlog.000001"
    path.write_bytes(file_of(SMALL, CHANGES, checksum=False) + event_bytes(kind, bytes(8), checksum=False))
    answer = columnar_answer(path)
    assert answer == scalar_answer(path)
    assert answer.error is not None
    assert answer.error[:2] == (TruncatedError, "needs 1 bytes, has 0")


SMALL = [column(ColumnCode.LONG), column(ColumnCode.VARCHAR, 20, charset="utf8mb4"), column(ColumnCode.TINY)]
ROWS: list[tuple[list[bytes | None], list[bytes | None]]] = [
    ([b"\1\0\0\0", b"\5"], [b"\1\0\0\0", b"a"]),
    ([b"\2\0\0\0", None], [b"\2\0\0\0", None]),
]
CHANGES = [
    Change(Operation.UPDATE_ROW, (0, 2), (0, 1), ROWS, extra=NDB_BLOCK),
    Change(Operation.DELETE_ROW, (0, 2), (0, 1), ROWS),
    Change(Operation.WRITE_ROW, (0, 2), (0, 1), ROWS, version=1),
]


@pytest.mark.parametrize("checksum", [True, False])
def test_a_file_cut_anywhere(checksum: bool, tmp_path: Path) -> None:
    """Everything before the cut is there, and the error is the same."""
    data = file_of(SMALL, CHANGES, checksum=checksum)
    for length in range(len(data)):
        path = tmp_path / f"binlog.{length:06d}"
        path.write_bytes(data[:length])
        assert columnar_answer(path) == scalar_answer(path)


def batches_of(folder: Path, **options: Any) -> list[RowBatch]:
    """Return the batches of a small file."""
    path = folder / "binlog.000001"
    path.write_bytes(file_of(SMALL, CHANGES))
    return list(read_batches(path, **options))


class TestBatches:
    """What a batch is."""

    def test_absent_is_not_null(self, tmp_path: Path) -> None:
        """A column that an image does not carry is no field; NULL is a null."""
        update, delete, write = batches_of(tmp_path)
        assert [(batch.operation, batch.before, batch.after) for batch in (update, delete, write)] == [
            (Operation.UPDATE_ROW, ("c0", "c2"), ("c0", "c1")),
            (Operation.DELETE_ROW, ("c0", "c2"), None),
            (Operation.WRITE_ROW, None, ("c0", "c1")),
        ]
        assert update.records.column("before").to_pylist() == [{"c0": 1, "c2": 5}, {"c0": 2, "c2": None}]
        assert update.records.column("after").to_pylist() == [{"c0": 1, "c1": "a"}, {"c0": 2, "c1": None}]
        assert "after" not in delete.records.schema.names
        assert "before" not in write.records.schema.names

    def test_metadata(self, tmp_path: Path) -> None:
        """Every batch starts with the same columns."""
        update, delete, write = batches_of(tmp_path)
        for batch in (update, delete, write):
            assert pa.schema(list(batch.records.schema)[: len(METADATA)]) == METADATA
        assert update.records.column("transaction_id").to_pylist() == [2**64 - 1] * 2
        assert update.records.column("flags").to_pylist() == [3, 3]
        assert delete.records.column("transaction_id").to_pylist() == [None] * 2
        assert update.records.column("row").to_pylist() == [0, 1]
        assert write.records.column("operation").to_pylist() == ["WRITE_ROW"] * 2

    def test_a_pruned_image_keeps_its_rows(self, tmp_path: Path) -> None:
        """Without any wanted column an image is a struct of no fields, one per row."""
        update, *_ = batches_of(tmp_path, columns=["nothing"])
        assert update.records.column("after").to_pylist() == [{}, {}]
        assert update.after == ("c0", "c1")

    def test_batches_are_bounded(self, tmp_path: Path) -> None:
        """No batch has more rows than asked for."""
        assert [len(batch) for batch in batches_of(tmp_path, batch_rows=1)] == [1] * 6


class TestValues:
    """Values at the ends of their ranges, and those that Arrow cannot hold."""

    def test_integers(self, tmp_path: Path) -> None:
        """2**63 and 2**64 - 1 stay what they are."""
        numbers = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
        item = column(ColumnCode.LONGLONG, unsigned=True)
        assert one_column(tmp_path, item, [number.to_bytes(8, "little") for number in numbers]).to_pylist() == numbers
        signed = [-(2**63), -1, 2**63 - 1]
        payloads = [number.to_bytes(8, "little", signed=True) for number in signed]
        assert one_column(tmp_path, column(ColumnCode.LONGLONG), payloads).to_pylist() == signed
        assert one_column(tmp_path, column(ColumnCode.BIT, 64), [bytes([255] * 8), b"\x80" + bytes(7)]).to_pylist() == [
            2**64 - 1,
            2**63,
        ]

    @pytest.mark.parametrize("charset", ["latin1", "cp1250", "koi8r", "greek", "hebrew", "tis620", "macroman"])
    def test_every_byte_of_a_character_set(self, charset: str, tmp_path: Path) -> None:
        """Text of one byte per character is what the scalar codec makes of it, or its error."""
        item = column(ColumnCode.VARCHAR, 200, charset=charset)
        for byte in range(256):
            change = Change(Operation.WRITE_ROW, (), (0,), [([], [b"ab"]), ([], [bytes([byte]) * 3])])
            path = tmp_path / f"binlog.{byte:06d}"
            path.write_bytes(file_of([item], [change]))
            assert columnar_answer(path) == scalar_answer(path)

    @pytest.mark.parametrize("charset", ["sjis", "gbk", "ucs2", "utf16le", "utf32", "big5", "ujis", "euckr"])
    def test_character_sets_of_many_bytes(self, charset: str, tmp_path: Path) -> None:
        """They go through the scalar codec, once per distinct value."""
        item = column(ColumnCode.BLOB, 2, charset=charset)
        payloads = [item.codec.encode(text) for text in ("", "abc", "日本", "日本")]
        assert one_column(tmp_path, item, [*payloads, None]).to_pylist() == ["", "abc", "日本", "日本", None]

    @pytest.mark.parametrize("data", ["c0 80", "ed a0 80", "f4 90 80 80", "e2 82", "80", "f8 88 80 80 80", "61 ff"])
    def test_invalid_utf8_is_an_error(self, data: str, tmp_path: Path) -> None:
        """Arrow cannot hold it as text; rows before it are there, and it can be read as bytes."""
        item = column(ColumnCode.VARCHAR, 20, charset="utf8mb4")
        payloads = ["é€😀".encode(), None, bytes.fromhex(data), b"x"]
        with pytest.raises(CorruptError, match=r"not valid in its character set.*text=False") as caught:
            one_column(tmp_path, item, payloads)
        assert (caught.value.table, caught.value.column) == ("d.t", "c0")
        assert one_column(tmp_path, item, payloads, text=False).to_pylist() == payloads
        first = next(read_batches(tmp_path / "binlog.000001"))
        assert first.records.column("after").to_pylist() == [{"c0": "é€😀"}, {"c0": None}]

    def test_a_column_that_is_not_asked_for_is_not_decoded(self, tmp_path: Path) -> None:
        """A value that cannot be decoded is no error in a column that is skipped."""
        enum = column(ColumnCode.ENUM, 1, members=("a", "b"))
        change = Change(Operation.WRITE_ROW, (), (0, 1), [([], [b"\2", b"\7"]), ([], [b"\3", b"\7"])])
        path = tmp_path / "binlog.000001"
        path.write_bytes(file_of([enum, SMALL[2]], [change]))
        with pytest.raises(SchemaError, match="member 3 of an ENUM that is defined with 2"):
            list(read_batches(path))
        (batch,) = read_batches(path, columns=["c1"])
        assert batch.records.column("after").to_pylist() == [{"c1": 7}, {"c1": 7}]

    def test_members(self, tmp_path: Path) -> None:
        """ENUM and SET are dictionaries of their members, or numbers where the members are not known."""
        enum = one_column(tmp_path, column(ColumnCode.ENUM, 1, members=("a", "b")), [b"\1", None, b"\0", b"\2"])
        assert enum.type == pa.dictionary(pa.uint16(), pa.string())
        assert (enum.to_pylist(), enum.dictionary.to_pylist()) == (["a", None, "", "b"], ["", "a", "b"])
        sets = one_column(tmp_path, column(ColumnCode.SET, 1, members=("a", "b")), [b"\1", None, b"\0", b"\3"])
        assert sets.to_pylist() == ["a", None, "", "a,b"]
        assert one_column(tmp_path, column(ColumnCode.SET, 8), [bytes([255] * 8)]).to_pylist() == [2**64 - 1]

    def test_timestamps_of_every_day(self, tmp_path: Path) -> None:
        """The calendar is right from 1970 to 2106."""
        seconds = [*range(0, 1 << 32, 86400 - 1), (1 << 32) - 1]
        payloads = [number.to_bytes(4, "big") for number in seconds]
        assert len(one_column(tmp_path, column(ColumnCode.TIMESTAMP2), payloads)) == len(seconds)


def test_a_table_that_does_not_fit_its_definition_is_an_error(tmp_path: Path) -> None:
    """As for the scalar reader: at the first rows of the table."""
    path = tmp_path / "binlog.000001"
    path.write_bytes(file_of(SMALL, CHANGES))
    schema = parse_schema("CREATE TABLE d.t (a INT)")
    assert columnar_answer(path, schema=schema) == scalar_answer(path, schema=schema)
    with pytest.raises(FormatError, match="its definition has 1 columns and the binlog 3"):
        list(read_batches(path, schema=schema))
