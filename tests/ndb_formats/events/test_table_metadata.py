"""Optional metadata of a Table_map event: each field both ways, and whole events of recordings."""

from contextlib import suppress
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.errors import CorruptError, FormatError, TruncatedError
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.events.table_metadata import (
    DefaultCharset,
    MetadataField,
    TableMetadata,
    decode_table_metadata,
    encode_table_metadata,
)
from tests.ndb_formats.building import packed, table_map_body
from tests.ndb_formats.recordings import COMPOSITE, EPOCH, METADATA, TYPES

# Attribute, its value, the field: type, length and value.
FIELDS = [
    ("signedness", (True, False, True, False, False, False, False, False), "01 01 a0"),
    ("signedness", (False,) * 8 + (True,) + (False,) * 7, "01 02 0080"),
    ("default_charset", DefaultCharset(255), "02 03 fcff00"),
    ("default_charset", DefaultCharset(8, ((0, 63), (2, 255))), "02 07 08 003f 02fcff00"),
    ("column_charset", (8, 255, 63), "03 05 08 fcff00 3f"),
    ("column_name", ("id", "ä"), "04 06 026964 02c3a4"),
    ("set_str_value", ((b"x", b"y"), (b"\xe4",)), "05 08 02 0178 0179 01 01e4"),
    ("enum_str_value", ((b"one", b""),), "06 06 02 036f6e65 00"),
    ("geometry_type", (0, 1, 7), "07 03 00 01 07"),
    ("simple_primary_key", (1, 0), "08 02 01 00"),
    ("primary_key_with_prefix", ((3, 7), (2, 0), (1, 300)), "09 08 03 07 02 00 01 fc2c01"),
    ("enum_and_set_default_charset", DefaultCharset(8, ((1, 63),)), "0a 03 08 013f"),
    ("enum_and_set_column_charset", (8, 63), "0b 02 08 3f"),
    ("column_visibility", (True, True, False, True, False, False, False, False), "0c 01 d0"),
    ("vector_dimensionality", (4, 2048), "0d 04 04 fc0008"),
]
ALL = "".join({attribute: data for attribute, _, data in FIELDS}.values()).replace(" ", "")


@pytest.mark.parametrize(("attribute", "value", "data"), FIELDS)
def test_each_field(attribute: str, value: object, data: str):
    """A field alone is its attribute alone, and its bytes come back."""
    metadata = decode_table_metadata(bytes.fromhex(data))
    assert {name: found for name, found in attrs.asdict(metadata, recurse=False).items() if found} == {
        attribute: value,
        "order": (int(data[:2], 16),),
    }
    assert encode_table_metadata(metadata) == bytes.fromhex(data)
    assert encode_table_metadata(TableMetadata(**{attribute: value})) == bytes.fromhex(data)


def test_no_metadata_has_no_fields():
    """An event without metadata has none of the fields, and gives no bytes."""
    assert decode_table_metadata(b"") == TableMetadata()
    assert encode_table_metadata(TableMetadata()) == b""


def test_an_empty_field_is_not_absent():
    """A field of no bytes is an empty tuple, not None, and stays."""
    metadata = decode_table_metadata(bytes.fromhex("04 00"))
    assert metadata.column_name == ()
    assert encode_table_metadata(metadata) == b"\x04\x00"


def test_every_field_has_an_attribute():
    """The server's names are the attributes' names."""
    names = {field.name for field in attrs.fields(TableMetadata)}
    assert names == {kind.name.lower() for kind in MetadataField} | {"unknown", "order"}


def test_fields_of_later_versions_are_kept():
    """An unknown type keeps its bytes and its place."""
    data = bytes.fromhex("0e 02 abcd 01 01 80 ff 00")
    metadata = decode_table_metadata(data)
    assert metadata.unknown == ((14, b"\xab\xcd"), (255, b""))
    assert metadata.signedness == (True,) + (False,) * 7
    assert encode_table_metadata(metadata) == data


def test_without_an_order_fields_are_in_that_of_the_server():
    """What was added to a decoded value comes after it; a value made from nothing has the server's order."""
    made = TableMetadata(column_visibility=(True,) * 8, column_name=("a",), signedness=(), unknown=((14, b"x"),))
    assert encode_table_metadata(made).hex(" ") == "01 00 04 02 01 61 0c 01 ff 0e 01 78"
    changed = attrs.evolve(decode_table_metadata(bytes.fromhex("0c 01 ff")), column_name=("a",), unknown=((14, b"x"),))
    assert encode_table_metadata(changed).hex(" ") == "0c 01 ff 04 02 01 61 0e 01 78"


def test_a_removed_field_is_not_written():
    """The order names fields, it does not make them."""
    metadata = attrs.evolve(decode_table_metadata(bytes.fromhex("01 01 80 0c 01 ff")), signedness=None)
    assert encode_table_metadata(metadata).hex(" ") == "0c 01 ff"


def test_a_field_that_is_there_twice_is_refused():
    """Two of one type contradict each other."""
    with pytest.raises(CorruptError, match="field 4 of a table's metadata is there twice"):
        decode_table_metadata(bytes.fromhex("04 00 04 00"))


def test_collations_by_default():
    """Columns that are not named have the default."""
    assert DefaultCharset(8, ((0, 63), (2, 255))).of(4) == (63, 8, 255, 8)


def test_primary_key_in_either_form():
    """Parts have a prefix of 0 where the whole column counts."""
    assert TableMetadata(simple_primary_key=(2, 0)).primary_key == ((2, 0), (0, 0))
    assert TableMetadata(primary_key_with_prefix=((2, 7),)).primary_key == ((2, 7),)
    assert TableMetadata().primary_key == ()


@pytest.mark.parametrize("length", range(1, len(ALL) // 2))
def test_every_proper_prefix_is_read_or_refused(length: int):
    """Cut between two fields it is metadata, cut inside one it is truncated."""
    data = bytes.fromhex(ALL)[:length]
    with suppress(TruncatedError):
        assert encode_table_metadata(decode_table_metadata(data)) == data


@pytest.mark.parametrize(
    ("case", "count"),
    [
        (TYPES / "binlog.000001", 34),
        (COMPOSITE / "binlog.000001", 23),
        (METADATA / "binlog.000001", 24),
        (EPOCH / "A.binlog.000001", 8),
    ],
    ids=str,
)
def test_recorded_events_give_the_same_bytes(case: Path, count: int):
    """Every Table_map of the recordings comes back, in its own order and in the one taken for the server's."""
    maps = [decode_table_map(event.body) for event in read_events(case) if event.type is EventType.TABLE_MAP_EVENT]
    assert len(maps) == count
    for table_map in maps:
        metadata = decode_table_metadata(table_map.metadata)
        assert metadata.unknown == ()
        assert encode_table_metadata(metadata) == table_map.metadata
        assert encode_table_metadata(attrs.evolve(metadata, order=())) == table_map.metadata


def test_a_vector_has_a_collation_too():
    """VECTOR, VARCHAR, VARCHAR: the three collations are 63 (bytes), 8 and 255, in this order."""
    table_map = decode_table_map(
        table_map_body(b"\xf2\x0f\x0f", b"\x04\x14\x00\x14\x00", optional=[(3, b"\x3f\x08\xfc\xff\x00")])
    )
    assert table_map.collations == (63, 8, 255)


TEXT = st.binary(max_size=300)
NUMBERS = st.lists(st.integers(0, 2**64 - 1), max_size=5).map(tuple)
PAIRS = st.lists(st.tuples(st.integers(0, 70000), st.integers(0, 70000)), max_size=3).map(tuple)
CHARSETS = st.builds(DefaultCharset, st.integers(0, 70000), PAIRS)
BITS = st.integers(0, 3).flatmap(lambda size: st.tuples(*[st.booleans()] * (8 * size)))
MEMBERS = st.lists(st.lists(TEXT, max_size=3).map(tuple), max_size=3).map(tuple)
METADATA_VALUES = st.builds(
    TableMetadata,
    signedness=st.none() | BITS,
    default_charset=st.none() | CHARSETS,
    column_charset=st.none() | NUMBERS,
    column_name=st.none() | st.lists(st.text(max_size=5), max_size=3).map(tuple),
    set_str_value=st.none() | MEMBERS,
    enum_str_value=st.none() | MEMBERS,
    geometry_type=st.none() | NUMBERS,
    simple_primary_key=st.none() | NUMBERS,
    primary_key_with_prefix=st.none() | PAIRS,
    enum_and_set_default_charset=st.none() | CHARSETS,
    enum_and_set_column_charset=st.none() | NUMBERS,
    column_visibility=st.none() | BITS,
    vector_dimensionality=st.none() | NUMBERS,
    unknown=st.dictionaries(st.integers(14, 255), TEXT, max_size=2).map(lambda found: tuple(found.items())),
)


@given(METADATA_VALUES)
def test_decode_is_the_inverse_of_encode(metadata: TableMetadata):
    """Any metadata comes back from its bytes."""
    decoded = decode_table_metadata(encode_table_metadata(metadata))
    assert attrs.evolve(decoded, order=()) == metadata


@given(st.lists(st.tuples(st.integers(0, 20), TEXT), max_size=4))
def test_any_bytes_are_read_or_refused(fields: list[tuple[int, bytes]]):
    """Nothing but our own errors leaves the decoder."""
    data = b"".join(bytes([kind]) + packed(len(value)) + value for kind, value in fields)
    with suppress(FormatError):
        decode_table_metadata(data)
