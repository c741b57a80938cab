"""Table_map: the type of each column, and what else the event says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import FormatError, UnsupportedError
from ndb_formats.events.table_map import TableMap, bits, decode_table_map
from ndb_formats.types.column_types import WireType
from tests.ndb_formats.building import bitmap, packed, table_map_body

# INT, VARCHAR(20), DECIMAL(10,3), YEAR, BIGINT, BLOB, CHAR(10) of utf8mb4
TYPES = bytes([3, 15, 246, 13, 8, 252, 254])
METADATA = bytes.fromhex("1400 0a03 02 fe28")
WIRE_TYPES = (
    WireType(ColumnCode.LONG),
    WireType(ColumnCode.VARCHAR, 20),
    WireType(ColumnCode.NEWDECIMAL, 10, 3),
    WireType(ColumnCode.YEAR),
    WireType(ColumnCode.LONGLONG),
    WireType(ColumnCode.BLOB, 2),
    WireType(ColumnCode.STRING, 40),
)
SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, COLUMN_NAME, PRIMARY_KEY, VISIBILITY = 1, 2, 3, 4, 8, 12
NAMES = (SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, COLUMN_NAME)


def test_recorded_event():
    """A Table_map event of MySQL NDB Cluster 9.7.4, byte for byte (mysql.ndb_apply_status)."""
    body = bytes.fromhex(
        "ab00000000000100 056d7973716c00 106e64625f6170706c795f7374617475730005 03080f0808 02ff00 00 01 01 f8 02 01 08"
    )
    assert decode_table_map(body) == TableMap(
        171,
        "mysql",
        "ndb_apply_status",
        (
            WireType(ColumnCode.LONG),
            WireType(ColumnCode.LONGLONG),
            WireType(ColumnCode.VARCHAR, 255),
            WireType(ColumnCode.LONGLONG),
            WireType(ColumnCode.LONGLONG),
        ),
        (False,) * 5,
        unsigned=(True, True, False, True, True),
        collations=(None, None, 8, None, None),
        flags=1,
        metadata=bytes.fromhex("0101f8 020108"),
    )


def test_without_optional_metadata_nothing_is_guessed():
    """Signs, collations and names are None if the event does not say."""
    table_map = decode_table_map(table_map_body(TYPES, METADATA, nullable=[1, 6]))
    assert table_map.full_name == "db.t"
    assert table_map.types == WIRE_TYPES
    assert table_map.nullable == (False, True, False, False, False, False, True)
    assert (table_map.unsigned, table_map.collations, table_map.names) == (None, None, None)


def test_a_table_id_has_six_bytes():
    """Table ids reach 2^48 - 1."""
    assert decode_table_map(table_map_body(b"", table_id=2**48 - 1)).table_id == 2**48 - 1


def test_names_are_utf8():
    """Database and table names are UTF-8 of up to 255 bytes."""
    table_map = decode_table_map(table_map_body(b"", database="größe".encode(), table=b"t" * 255))
    assert table_map.full_name == "größe." + "t" * 255


def test_a_wide_table_has_a_packed_column_count():
    """More than 250 columns take a length of three bytes."""
    table_map = decode_table_map(table_map_body(bytes([3]) * 300, nullable=[299]))
    assert len(table_map.types) == 300
    assert table_map.nullable.index(True) == 299


def test_signedness_has_one_bit_per_numeric_column_highest_first():
    """INT, DECIMAL, YEAR and BIGINT have a bit; text has none."""
    table_map = decode_table_map(table_map_body(TYPES, METADATA, optional=[(SIGNEDNESS, b"\xb0")]))
    assert table_map.unsigned == (True, False, False, True, True, False, False)


def test_signedness_of_recorded_numbers():
    """The bits of a recorded table: every second column UNSIGNED, BIT without a bit, YEAR unsigned."""
    # The types are those of a TINYINT, SMALLINT, MEDIUMINT, INT, two BIGINT, DECIMAL, FLOAT, DOUBLE, BIT and YEAR.
    types = bytes([1, 2, 9, 3, 8, 8, 246, 4, 5, 16, 13])
    body = table_map_body(types, bytes.fromhex("0c04 04 08 0500"), optional=[(SIGNEDNESS, b"\x55\x40")])
    assert [number for number, unsigned in enumerate(decode_table_map(body).unsigned) if unsigned] == [1, 3, 5, 7, 10]


def test_default_charset_names_the_exceptions():
    """One collation for all text, then pairs of (text column, collation)."""
    optional = [(DEFAULT_CHARSET, packed(255) + packed(1) + packed(63))]
    table_map = decode_table_map(table_map_body(TYPES, METADATA, optional=optional))
    assert table_map.collations == (None, 255, None, None, None, 63, 255)


def test_column_charset_names_them_all():
    """One collation per text column, in order."""
    optional = [(COLUMN_CHARSET, packed(8) + packed(63) + packed(309))]
    table_map = decode_table_map(table_map_body(TYPES, METADATA, optional=optional))
    assert table_map.collations == (None, 8, None, None, None, 63, 309)


# GEOMETRY and three BLOB columns.
_GEOMETRY = table_map_body(
    bytes([255, 252, 252, 252]),
    bytes([4, 2, 2, 2]),
    optional=[(DEFAULT_CHARSET, packed(45) + packed(0) + packed(63))],
)


@pytest.mark.parametrize(("server", "collations"), [("9.7.0", (None, 63, 45, 45)), ("", (None, 63, 45, 45))])
def test_mysql_gives_a_geometry_no_collation(server: str, collations: tuple[int | None, ...]):
    """The first collation is that of the BLOB after it."""
    assert decode_table_map(_GEOMETRY, server).collations == collations


def test_mariadb_gives_a_geometry_a_collation():
    """The first collation is its own: `binary`. So it is in logs of MariaDB 10.11."""
    assert decode_table_map(_GEOMETRY, "10.11.6-MariaDB-log").collations == (63, 45, 45, 45)


def test_column_names():
    """Names are taken with their lengths, in UTF-8."""
    names = ("id", "s", "größe", "y", "", "b", "c" * 64)
    value = b"".join(packed(len(name.encode())) + name.encode() for name in names)
    table_map = decode_table_map(table_map_body(TYPES, METADATA, optional=[(COLUMN_NAME, value)]))
    assert table_map.names == names


def test_other_metadata_is_skipped():
    """Primary keys, visibility and kinds of later versions do not disturb those that follow."""
    optional = [(PRIMARY_KEY, b"\0"), (VISIBILITY, b"\xff"), (200, b"x" * 300), (SIGNEDNESS, b"\x80")]
    table_map = decode_table_map(table_map_body(TYPES, METADATA, optional=optional))
    assert table_map.unsigned == (True, False, False, False, False, False, False)


def test_an_unknown_column_type_is_refused():
    """A type of a later version is named with its column."""
    with pytest.raises(UnsupportedError, match="column @2: column type code 99 "):
        decode_table_map(table_map_body(bytes([3, 99])))


def test_only_complete_prefixes_decode():
    """Cut anywhere, the event is an error of ours, except where a piece of optional metadata ends."""
    optional = [(SIGNEDNESS, b"\x90"), (DEFAULT_CHARSET, packed(255)), (COLUMN_NAME, b"\x01a" * 7)]
    ends = [len(table_map_body(TYPES, METADATA, optional=optional[:count])) for count in range(4)]
    body = table_map_body(TYPES, METADATA, optional=optional)
    decoded = []
    for length in range(len(body) + 1):
        try:
            decode_table_map(body[:length])
        except FormatError:
            continue
        decoded.append(length)
    assert decoded == ends


@given(st.binary(max_size=80))
def test_any_bytes_are_a_table_map_or_our_error(data: bytes):
    """No other exception leaves, whatever the bytes."""
    try:
        table_map = decode_table_map(data)
    except FormatError:
        return
    assert len(table_map.types) == len(table_map.nullable)


@given(st.data())
def test_a_changed_byte_gives_a_table_map_or_our_error(data: st.DataObject):
    """Damage that a checksum did not find is an error of ours or another table."""
    body = bytearray(table_map_body(TYPES, METADATA, optional=[(SIGNEDNESS, b"\x90"), (DEFAULT_CHARSET, b"\x08")]))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        table_map = decode_table_map(bytes(body))
    except FormatError:
        return
    assert len(table_map.types) == len(table_map.nullable)


@given(st.integers(0, 40).flatmap(lambda count: st.tuples(st.just(count), st.sets(st.integers(0, max(count - 1, 0))))))
def test_bits_are_read_lowest_first(case: tuple[int, set[int]]):
    """A bitmap gives back the places that were set in it."""
    count, places = case
    places = {place for place in places if place < count}
    assert {place for place, bit in enumerate(bits(bitmap(sorted(places), count), count)) if bit} == places


def test_bits_beyond_the_count_are_ignored():
    """Unused bits of the last byte are not columns."""
    assert bits(b"\xff\xff", 9) == (True,) * 9
