"""Rows events as `mysqlbinlog -v` prints them: whole recordings, and lines worked out by hand."""

import re
from pathlib import Path

import pytest

from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError, TruncatedError
from ndb_formats.events.rows_event import Operation, decode_rows_event
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.text.row_lines import extra_row_lines, rows_event_lines
from tests.ndb_formats.building import rows_body, table_map_body
from tests.ndb_formats.recordings import COMPOSITE, METADATA, TYPES, row_events

WRITE, UPDATE, DELETE, PARTIAL = (
    EventType.WRITE_ROWS_EVENT,
    EventType.UPDATE_ROWS_EVENT,
    EventType.DELETE_ROWS_EVENT,
    EventType.PARTIAL_UPDATE_ROWS_EVENT,
)
INT, VARCHAR, JSON, GEOMETRY = b"\x03", b"\x0f", b"\xf5", b"\xff"
VECTOR_DIMENSIONALITY = 13


def lines_of(
    kind: EventType, images: str, columns: list[list[int]], table_map: bytes, *, extra: bytes = b"", verbose: int = 1
) -> list[bytes]:
    """Return the lines of an event made of the hexadecimal images."""
    decoded = decode_table_map(table_map)
    event = decode_rows_event(kind, rows_body(bytes.fromhex(images), len(decoded.types), columns, extra=extra))
    return list(rows_event_lines(decoded, event, verbose=verbose))


class TestRecordings:
    """Every line of the recordings."""

    @staticmethod
    def printed(case: Path) -> list[bytes]:
        """Return the lines that `mysqlbinlog -vv` printed."""
        return [line for line in (case / "mysqlbinlog.txt").read_bytes().split(b"\n") if line.startswith(b"###")]

    @pytest.mark.parametrize(("case", "count"), [(TYPES, 593), (COMPOSITE, 275), (METADATA, 265)], ids=str)
    def test_lines_are_those_of_mysqlbinlog(self, case: Path, count: int):
        """All lines of the file, in order, byte for byte."""
        expected = self.printed(case)
        assert len(expected) == count
        rows = row_events(case / "binlog.000001")
        assert [line for _, table_map, event in rows for line in rows_event_lines(table_map, event)] == expected

    @pytest.mark.parametrize("case", [TYPES, COMPOSITE, METADATA], ids=str)
    def test_v_is_vv_without_comments(self, case: Path):
        """With -v a line ends after its value, also after the blanks of a FLOAT."""
        expected = [re.sub(rb" /\* [^*]* \*/$", b"", line) for line in self.printed(case)]
        rows = row_events(case / "binlog.000001")
        assert [
            line for _, table_map, event in rows for line in rows_event_lines(table_map, event, verbose=1)
        ] == expected


@pytest.mark.parametrize(
    ("types", "value", "expected"),
    [
        ("01", "ff", "-1 (255) /* TINYINT meta=0"),
        ("01", "7f", "127 /* TINYINT meta=0"),
        ("02", "0080", "-32768 (32768) /* SHORTINT meta=0"),
        ("09", "feffff", "-2 (16777214) /* MEDIUMINT meta=0"),
        ("03", "00000080", "-2147483648 (2147483648) /* INT meta=0"),
        ("08", "ffffffffffffffff", "-1 (18446744073709551615) /* LONGINT meta=0"),
        ("08", "0000000000000000", "0 /* LONGINT meta=0"),
        ("f6 0502", "807b2d", "123.45 /* DECIMAL(5,2) meta=1282"),
        ("f6 0502", "7f84d2", "-123.45 /* DECIMAL(5,2) meta=1282"),
        ("f6 0202", "85", "0.05 /* DECIMAL(2,2) meta=514"),
        ("f6 1e0a", "80" + "00" * 13, "0.0000000000 /* DECIMAL(30,10) meta=7690"),
        ("f6 0400", "8007", "7 /* DECIMAL(4,0) meta=1024"),
        ("04 04", "0000c03f", "1.5                  /* FLOAT meta=4"),
        ("04 04", "0000804b", "1.67772e+07          /* FLOAT meta=4"),
        ("05 08", "00000000000023c0", "-9.5 /* DOUBLE meta=8"),
        ("05 08", "9a9999999999b93f", "0.10000000000000000555 /* DOUBLE meta=8"),
        ("10 0500", "05", "b'00101' /* BIT(5) meta=5"),
        ("10 0501", "1555", "b'1010101010101' /* BIT(13) meta=261"),
        ("10 0501", "f555", "b'1010101010101' /* BIT(13) meta=261"),
        ("10 0008", "8000000000000001", f"b'1{'0' * 62}1' /* BIT(64) meta=2048"),
        ("fe f701", "02", "2 /* ENUM(1 byte) meta=63233"),
        ("fe f702", "2c01", "300 /* ENUM(2 bytes) meta=63234"),
        ("fe f801", "00", "b'00000000' /* SET(1 bytes) meta=63489"),
        ("fe f802", "0580", "b'0000010110000000' /* SET(2 bytes) meta=63490"),
        ("0d", "7c", "2024 /* YEAR meta=0"),
        ("0d", "00", "1900 /* YEAR meta=0"),
        ("0a", "5dd00f", "'2024:02:29' /* DATE meta=0"),
        ("0a", "000000", "'0000:00:00' /* DATE meta=0"),
        ("13 00", "4b9105", "'-838:59:59' /* TIME(0) meta=0"),
        ("13 03", "80c8b81ed2", "'12:34:56.789' /* TIME(3) meta=3"),
        ("12 02", "99dfe6338763", "'2038-01-19 03:14:07.99' /* DATETIME(2) meta=2"),
        ("12 00", "8000000000", "'0000-00-00 00:00:00' /* DATETIME(0) meta=0"),
        ("11 00", "7fffffff", "2147483647 /* TIMESTAMP(0) meta=0"),
        ("11 00", "ffffffff", "4294967295 /* TIMESTAMP(0) meta=0"),
        ("11 03", "00000001000a", "1.001 /* TIMESTAMP(3) meta=3"),
        ("11 00", "00000000", "0 /* TIMESTAMP(0) meta=0"),
        ("07", "01000000", "1 /* TIMESTAMP meta=0"),
        ("07", "ffffffff", "-1 /* TIMESTAMP meta=0"),
        ("0c", "80c5aa8b68120000", "2024-02-29 12:34:56 /* DATETIME meta=0"),
        ("0b", "40e201", "'12:34:56' /* TIME meta=0"),
        ("0f 1400", "04" + b"it's".hex(), r"'it\'s' /* VARSTRING(20) meta=20"),
        ("0f 2c01", "0100 61", "'a' /* VARSTRING(300) meta=300"),
        ("fd 1400", "01 61", "'a' /* VARSTRING(20) meta=20"),
        ("fe fe28", "00", "'' /* STRING(40) meta=65064"),
        ("fe ce20", "0100 61", "'a' /* STRING(800) meta=52768"),
        ("fc 01", "01 61", "'a' /* TINYBLOB/TINYTEXT meta=1"),
        ("fc 02", "0100 61", "'a' /* BLOB/TEXT meta=2"),
        ("fc 03", "010000 61", "'a' /* MEDIUMBLOB/MEDIUMTEXT meta=3"),
        ("fc 04", "01000000 61", "'a' /* LONGBLOB/LONGTEXT meta=4"),
        ("f5 04", "05000000 0c03616263", "'abc' /* JSON meta=4"),
        ("f5 04", "03000000 050100", "'1' /* JSON meta=4"),
        ("f2 04", "0c000000 0000803f00002040000000be", "[1.00000e+00,2.50000e+00,-1.25000e-01] /* VECTOR(0) meta=4"),
        ("f2 04", "00000000", "[ /* VECTOR(0) meta=4"),
    ],
)  # fmt: skip
def test_values(types: str, value: str, expected: str):
    """A value of one column, with type and metadata; hexadecimal as in the Table_map event and the image."""
    code, _, metadata = types.partition(" ")
    table_map = table_map_body(bytes.fromhex(code), bytes.fromhex(metadata))
    (*_, line) = lines_of(WRITE, "00" + value, [[0]], table_map, verbose=2)
    assert line == f"###   @1={expected} nullable=0 is_null=0 */".encode()


def test_a_string_is_printed_byte_by_byte():
    """Seven bytes have a letter of their own, other control characters are hexadecimal, all else is as it is."""
    value = bytes(range(256))
    short = {8: b"\\b", 9: b"\\t", 10: b"\\n", 12: b"\\f", 13: b"\\r", 39: b"\\'", 92: b"\\\\"}
    expected = b"".join(short.get(byte) or (b"\\x%02x" % byte if byte < 32 else bytes([byte])) for byte in range(256))
    table_map = table_map_body(VARCHAR, b"\xe8\x03")
    (*_, line) = lines_of(WRITE, "00 0001" + value.hex(), [[0]], table_map)
    assert line == b"###   @1='" + expected + b"'"


class TestRows:
    """What is printed around the values."""

    def test_null_and_absent(self):
        """NULL has a line of its own, a column that is not in the image none."""
        table_map = table_map_body(INT * 3, nullable=[0, 2])
        assert lines_of(WRITE, "01 05000000", [[0, 1]], table_map, verbose=2) == [
            b"### INSERT INTO `db`.`t`",
            b"### SET",
            b"###   @1=NULL /* INT meta=0 nullable=1 is_null=1 */",
            b"###   @2=5 /* INT meta=0 nullable=0 is_null=0 */",
        ]

    def test_update(self):
        """Every row of an update has both clauses, each with its own columns."""
        assert lines_of(UPDATE, "00 01000000 00 02000000 00 03000000 01", [[0], [1]], table_map_body(INT * 2)) == [
            b"### UPDATE `db`.`t`", b"### WHERE", b"###   @1=1", b"### SET", b"###   @2=2",
            b"### UPDATE `db`.`t`", b"### WHERE", b"###   @1=3", b"### SET", b"###   @2=NULL",
        ]  # fmt: skip

    def test_delete(self):
        """A delete has a WHERE clause only."""
        assert lines_of(DELETE, "00 01000000", [[0]], table_map_body(INT)) == [
            b"### DELETE FROM `db`.`t`", b"### WHERE", b"###   @1=1",
        ]  # fmt: skip

    def test_backticks_of_names_are_doubled(self):
        """Names are quoted identifiers of SQL."""
        table_map = table_map_body(INT, database="dä".encode(), table=b"a`b")
        assert lines_of(WRITE, "01", [[0]], table_map)[0] == "### INSERT INTO `dä`.`a``b`".encode()

    def test_a_write_without_columns(self):
        """An event without any bytes of rows is a row of defaults; its names are not escaped."""
        assert lines_of(WRITE, "", [[]], table_map_body(INT, table=b"a`b")) == [b"### INSERT INTO `db`.`a`b` VALUES ()"]

    def test_an_image_without_columns_ends_the_event(self):
        """The tool takes an image of no bytes for a mistake, and prints neither clause nor row after it."""
        images = "00 01000000 00 02000000"
        assert lines_of(UPDATE, images, [[], [0]], table_map_body(INT)) == [b"### UPDATE `db`.`t`", b"### WHERE"]
        assert lines_of(UPDATE, images, [[0], []], table_map_body(INT)) == [
            b"### UPDATE `db`.`t`", b"### WHERE", b"###   @1=1", b"### SET",
        ]  # fmt: skip

    def test_geometry_ends_the_event(self):
        """The tool knows no geometries: it says so and prints no more, not even of a NULL."""
        table_map = table_map_body(INT + GEOMETRY + INT, b"\x04", nullable=[1])
        refusal = b"###   @2=!! Don't know how to handle column type=255 meta=4 (0004)"
        rows = "00 01000000 02000000abcd 05000000  00 01000000 02000000abcd 05000000"
        assert lines_of(DELETE, rows, [[0, 1, 2]], table_map, verbose=2) == [
            b"### DELETE FROM `db`.`t`", b"### WHERE", b"###   @1=1 /* INT meta=0 nullable=0 is_null=0 */", refusal,
        ]  # fmt: skip
        assert lines_of(UPDATE, "01 00 01000000", [[1], [0]], table_map) == [
            b"### UPDATE `db`.`t`", b"### WHERE", refusal,
        ]  # fmt: skip

    def test_an_absent_geometry_does_not_end_the_event(self):
        """Only columns of the image count."""
        table_map = table_map_body(INT + GEOMETRY, b"\x04")
        assert len(lines_of(DELETE, "00 01000000 00 02000000", [[0]], table_map)) == 6

    def test_rows_before_a_cut_are_printed(self):
        """An event that ends inside a row gives the rows before it, then an error."""
        table_map = decode_table_map(table_map_body(INT))
        event = decode_rows_event(WRITE, rows_body(bytes.fromhex("00 01000000 00 0200"), 1, [[0]]))
        lines = rows_event_lines(table_map, event, verbose=1)
        assert [next(lines) for _ in range(3)] == [b"### INSERT INTO `db`.`t`", b"### SET", b"###   @1=1"]
        with pytest.raises(TruncatedError):
            next(lines)

    def test_vectors_are_named_with_their_maximum_of_elements(self):
        """The optional metadata says it for each VECTOR column, also of one that is absent or NULL."""
        table_map = table_map_body(
            b"\xf2\x03\xf2", b"\x04\x04", nullable=[2], optional=[(VECTOR_DIMENSIONALITY, b"\x04\xfc\x00\x08")]
        )
        assert lines_of(WRITE, "01", [[2]], table_map, verbose=2)[-1] == (
            b"###   @3=NULL /* VECTOR(2048) meta=4 nullable=1 is_null=1 */"
        )


class TestJson:
    """Documents and diffs."""

    TABLE_MAP = table_map_body(INT + JSON, b"\x04", nullable=[1])

    def test_a_document_is_escaped_like_a_string(self):
        """A string is printed without JSON's own quotes and escapes; inside an array it has them."""
        string = "06000000 0c 04 61220a62"
        array = "0d000000 02 0100 0c00 0c0700 04 61220a62"
        assert lines_of(WRITE, f"00 {string}", [[1]], self.TABLE_MAP)[-1] == rb"""###   @2='a"\nb'"""
        assert lines_of(WRITE, f"00 {array}", [[1]], self.TABLE_MAP)[-1] == rb"""###   @2='["a\\"\\nb"]'"""

    def test_an_invalid_document_has_two_lines(self):
        """The tool says so and goes on in the next line, with the next columns too."""
        table_map = table_map_body(JSON + INT, b"\x04")
        assert lines_of(WRITE, "00 01000000 ff 05000000", [[0, 1]], table_map, verbose=2)[2:] == [
            b"###   @1=Invalid JSON",
            b" /* JSON meta=4 nullable=0 is_null=0 */",
            b"###   @2=5 /* INT meta=0 nullable=0 is_null=0 */",
        ]

    def test_a_partial_update(self):
        """JSON_REPLACE(@2, '$.a', 2): options 1, one JSON column that is partial, null bits, diffs."""
        diffs = bytes.fromhex("00 03 242e61 03 050200")
        images = f"00 01000000  01 01 00 {len(diffs):02x}000000 {diffs.hex()}"
        assert lines_of(PARTIAL, images, [[0], [1]], self.TABLE_MAP, verbose=2)[2:] == [
            b"###   @1=1 /* INT meta=0 nullable=0 is_null=0 */",
            b"### SET",
            b"###   @2=JSON_REPLACE(@2, '$.a', 2) /* JSON meta=4 nullable=1 is_null=0 */",
        ]

    def test_several_diffs_have_several_lines(self):
        """Functions are nested, the first diff innermost; the text goes on in lines of their own."""
        diffs = bytes.fromhex("02 03 242e61  00 03 242e62 03 050200")
        images = f"00 01000000  01 01 00 {len(diffs):02x}000000 {diffs.hex()}"
        assert lines_of(PARTIAL, images, [[0], [1]], self.TABLE_MAP)[4:] == [
            b"###   @2=JSON_REPLACE(",
            b"###      JSON_REMOVE(@2, '$.a'),",
            b"###      '$.b', 2)",
        ]

    def test_documents_and_nulls_in_a_partial_update(self):
        """A column that is not partial is a document; options 0 have no bits of JSON columns."""
        images = "00 01000000  01 00 00 03000000 050200   00 01000000  00 01"
        assert lines_of(PARTIAL, images, [[0], [1]], self.TABLE_MAP) == [
            b"### UPDATE `db`.`t`", b"### WHERE", b"###   @1=1", b"### SET", b"###   @2='2'",
            b"### UPDATE `db`.`t`", b"### WHERE", b"###   @1=1", b"### SET", b"###   @2=NULL",
        ]  # fmt: skip

    def test_an_empty_after_image_of_a_partial_update_ends_nothing(self):
        """Its options take a byte, so that the tool goes on to the next row."""
        assert lines_of(PARTIAL, "00 01000000 00  00 02000000 00", [[0], []], self.TABLE_MAP) == [
            b"### UPDATE `db`.`t`", b"### WHERE", b"###   @1=1", b"### SET",
            b"### UPDATE `db`.`t`", b"### WHERE", b"###   @1=2", b"### SET",
        ]  # fmt: skip


class TestExtraRowInfo:
    """What stands before the rows."""

    NDB = bytes.fromhex("00 0c 00 0100 cf0000001b003800")
    NDB_LINE = b"### Extra row ndb info: data_format: 0, len: 10, data: 0x0100CF0000001B003800"

    def test_recorded_block(self):
        """A transaction id, as printed by `mysqlbinlog` of the same bytes."""
        assert list(extra_row_lines(self.NDB, Operation.WRITE_ROW)) == [self.NDB_LINE]

    def test_extra_row_info_is_printed_before_the_first_row(self):
        """It is printed once per event."""
        lines = lines_of(WRITE, "00 01000000 00 02000000", [[0]], table_map_body(INT), extra=self.NDB)
        assert lines[0] == self.NDB_LINE
        assert len(lines) == 7

    def test_a_block_of_another_format_is_printed_too(self):
        """Whatever the format, the bytes are printed; no bytes are a pair of quotes."""
        assert list(extra_row_lines(bytes.fromhex("00 02 07"), Operation.WRITE_ROW)) == [
            b'### Extra row ndb info: data_format: 7, len: 0, data: ""'
        ]

    def test_partitions(self):
        """A write or delete has one partition, an update that of the after image first, then its source."""
        write, update = bytes.fromhex("01 0300"), bytes.fromhex("01 0300 0a00")
        line = b"### Extra row info for partitioning: partition: 3"
        assert list(extra_row_lines(write, Operation.WRITE_ROW)) == [line]
        assert list(extra_row_lines(write, Operation.DELETE_ROW)) == [line]
        assert list(extra_row_lines(update, Operation.UPDATE_ROW)) == [
            b"### Extra row info for partitioning: source_partition: 10 target_partition: 3"
        ]

    def test_ndb_comes_first(self):
        """Whatever their order; of two NDB blocks the first counts, and an unknown block ends the search."""
        data = bytes.fromhex("01 0300") + self.NDB + bytes.fromhex("00 03 00 ff  09 01 0500")
        assert list(extra_row_lines(data, Operation.WRITE_ROW)) == [
            self.NDB_LINE, b"### Extra row info for partitioning: partition: 3",
        ]  # fmt: skip

    @pytest.mark.parametrize("length", range(1, len(NDB)))
    def test_a_cut_block_is_truncated(self, length: int):
        """Every proper prefix raises our error."""
        with pytest.raises(FormatError):
            list(extra_row_lines(self.NDB[:length], Operation.WRITE_ROW))
