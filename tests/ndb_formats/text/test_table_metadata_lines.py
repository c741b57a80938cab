"""Columns and primary keys as `mysqlbinlog --print-table-metadata` prints them."""

import re

import attrs
import pytest

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.text.table_metadata_lines import table_metadata_lines
from tests.ndb_formats.building import table_map_body
from tests.ndb_formats.recordings import METADATA

SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, COLUMN_NAME, SET_STR_VALUE, ENUM_STR_VALUE = range(1, 7)
GEOMETRY_TYPE, SIMPLE_PRIMARY_KEY, PRIMARY_KEY_WITH_PREFIX, CHOICE_CHARSET, CHOICE_CHARSETS = range(7, 12)
COLUMN_VISIBILITY, VECTOR_DIMENSIONALITY = 12, 13
HIDDEN_KEY = 4


def lines_of(types: str, metadata: str = "", optional: dict[int, str] | None = None, *, flags: int = 0) -> list[str]:
    """Return the lines of a table; all columns may be NULL."""
    codes = bytes.fromhex(types)
    fields = [(kind, bytes.fromhex(value)) for kind, value in (optional or {}).items()]
    body = table_map_body(codes, bytes.fromhex(metadata), nullable=range(len(codes)), optional=fields)
    return [line.decode("latin-1") for line in table_metadata_lines(attrs.evolve(decode_table_map(body), flags=flags))]


def test_recorded_tables():
    """Every line under the Table_map events of the recording with full metadata."""
    printed = (METADATA / "mysqlbinlog.txt").read_bytes().split(b"\n")
    expected = [line for line in printed if re.match(rb"# (Columns\(|        |Primary Key\()", line)]
    assert len(expected) == 210
    maps = [
        decode_table_map(event.body)
        for event in read_events(METADATA / "binlog.000001")
        if event.type is EventType.TABLE_MAP_EVENT
    ]
    assert [line for table_map in maps for line in table_metadata_lines(table_map)] == expected


def test_an_event_without_metadata():
    """Types alone are printed; text cannot be told from bytes and has its length in bytes."""
    assert lines_of("03 0f fe fe fc ff f2", "2800 f701 fe28 02 04 04") == [
        "# Columns(INT,",
        "#         VARBINARY(40),",
        "#         ENUM,",
        "#         BINARY(40),",
        "#         BLOB,",
        "#         GEOMETRY,",
        "#         VECTOR(0))",
    ]


@pytest.mark.parametrize(
    ("types", "metadata", "expected"),
    [
        ("11", "00", "TIMESTAMP"),
        ("11", "06", "TIMESTAMP(6)"),
        ("12", "03", "DATETIME(3)"),
        ("13", "00", "TIME"),
        ("0a", "", "DATE"),
        ("0d", "", "YEAR"),
        ("10", "0501", "BIT(13)"),
        ("f6", "1e0a", "DECIMAL(30,10)"),
        ("fc", "01", "TINYBLOB"),
        ("fc", "04", "LONGBLOB"),
        ("fc", "05", "INVALID_BLOB(5)"),
        ("f5", "04", "JSON"),
    ],
)
def test_types(types: str, metadata: str, expected: str):
    """A type is printed with its fraction digits, bits, precision or size."""
    assert lines_of(types, metadata) == [f"# Columns({expected})"]


@pytest.mark.parametrize(
    ("types", "metadata", "collation", "expected"),
    [
        ("0f", "2800", "ff", "VARCHAR(10) CHARSET utf8mb4 COLLATE utf8mb4_0900_ai_ci"),
        ("fe", "fe1e", "21", "CHAR(10) CHARSET utf8mb3 COLLATE utf8mb3_general_ci"),
        ("fe", "ce20", "36", "CHAR(200) CHARSET utf16 COLLATE utf16_general_ci"),
        ("fe", "fe04", "3f", "BINARY(4)"),
        ("fc", "03", "08", "MEDIUMTEXT CHARSET latin1 COLLATE latin1_swedish_ci"),
        ("fc", "03", "3f", "MEDIUMBLOB"),
        ("0f", "2800", "11", "VARBINARY(40)"),
    ],
)
def test_text(types: str, metadata: str, collation: str, expected: str):
    """Lengths are in characters of the character set; an unknown collation (17) leaves the length in bytes."""
    number = "fcff00" if collation == "ff" else collation
    assert lines_of(types, metadata, {DEFAULT_CHARSET: number}) == [f"# Columns({expected})"]
    assert lines_of(types, metadata, {COLUMN_CHARSET: number}) == [f"# Columns({expected})"]


def test_signs():
    """A bit per numeric column; YEAR has one that is not printed, other columns have none."""
    assert lines_of("03 0a 0d 04 05", "04 08", {SIGNEDNESS: "e0"}) == [
        "# Columns(INT UNSIGNED,",
        "#         DATE,",
        "#         YEAR,",
        "#         FLOAT UNSIGNED,",
        "#         DOUBLE)",
    ]


def test_names_and_members_are_escaped():
    """Backticks of a name are doubled; quotes, backslashes and control characters have a backslash."""
    assert lines_of(
        "fe fe",
        "f701 f801",
        {
            COLUMN_NAME: "03 612760 02 620a",
            ENUM_STR_VALUE: "02 02 6127 03 5c0960",
            SET_STR_VALUE: "01 04 000d08e4",
            CHOICE_CHARSETS: "08 3f",
        },
    ) == [
        r"# Columns(`a\'``` ENUM('a\'', '\\\t`') CHARSET latin1 COLLATE latin1_swedish_ci,",
        "#         `b\\n` SET('\\0\\r\\bä') CHARSET binary COLLATE binary)",
    ]


def test_visibility_and_nullability():
    """INVISIBLE comes last, NOT NULL after the type."""
    optional = [(SIGNEDNESS, b"\x80"), (COLUMN_VISIBILITY, b"\x40")]
    table_map = decode_table_map(table_map_body(b"\x03\x03", nullable=[1], optional=optional))
    assert table_metadata_lines(table_map) == [b"# Columns(INT UNSIGNED NOT NULL INVISIBLE,", b"#         INT)"]


def test_geometries_and_vectors():
    """Kinds and sizes go to the columns of their type, in order; an unknown kind is a number."""
    optional = {GEOMETRY_TYPE: "07 08", VECTOR_DIMENSIONALITY: "05", DEFAULT_CHARSET: "3f"}
    assert lines_of("ff f2 ff", "04 04 04", optional) == [
        "# Columns(GEOMCOLLECTION,", "#         VECTOR(5),", "#         INVALID_GEOMETRY_TYPE(8))",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("optional", "expected"),
    [
        ({SIMPLE_PRIMARY_KEY: "01 00"}, "1, 0"),
        ({SIMPLE_PRIMARY_KEY: "01 00", COLUMN_NAME: "01 61 02 6227"}, "b', a"),
        ({PRIMARY_KEY_WITH_PREFIX: "01 07 00 00", COLUMN_NAME: "01 61 01 62"}, "b(7), a"),
    ],
)
def test_primary_keys(optional: dict[int, str], expected: str):
    """Parts are names as they are, or numbers where names are not known, and the characters that count."""
    assert lines_of("03 03", "", optional)[-1] == f"# Primary Key({expected})"


class TestHiddenKey:
    """A generated invisible primary key."""

    def test_it_is_known_without_metadata(self):
        """The first column has all properties that such a key has, and the key its name."""
        assert lines_of("08 03", flags=HIDDEN_KEY) == [
            "# Columns(`my_row_id` BIGINT UNSIGNED NOT NULL INVISIBLE AUTO_INCREMENT,",
            "#         INT)",
            "# Primary Key(my_row_id)",
        ]

    def test_metadata_goes_first(self):
        """What the event says of the column is not said twice."""
        optional = {SIGNEDNESS: "80", COLUMN_NAME: "09 6d795f726f775f6964 01 61", COLUMN_VISIBILITY: "40"}
        assert lines_of("08 03", "", {**optional, SIMPLE_PRIMARY_KEY: "00"}, flags=HIDDEN_KEY) == [
            "# Columns(`my_row_id` BIGINT UNSIGNED NOT NULL INVISIBLE AUTO_INCREMENT,",
            "#         `a` INT)",
            "# Primary Key(my_row_id)",
        ]


def test_types_of_old_servers_have_no_name():
    """DATETIME of before MySQL 5.6: the tool goes on without comma and line, and without a visibility for it."""
    assert lines_of("03 0c 03", "", {COLUMN_VISIBILITY: "80"}) == [
        "# Columns(INT,",
        "#         INVALID_TYPE(12)INT INVISIBLE)",
    ]
