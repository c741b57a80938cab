"""Row images: which columns are there, and their values."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, SchemaError, TruncatedError, UnsupportedError
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of, layout_of_types, put_image, take_image
from ndb_formats.events.table_map import TableMap
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.types.column_types import WireType, codec_of
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import ABSENT
from tests.strategies import TYPED_VALUES, TypedValue

TYPES = (
    WireType(ColumnCode.LONG),
    WireType(ColumnCode.VARCHAR, 20),
    WireType(ColumnCode.TINY),
    WireType(ColumnCode.ENUM, 1),
    WireType(ColumnCode.JSON, 4),
)
TABLE = parse_create_table(
    "CREATE TABLE d.t (id INT UNSIGNED, s VARCHAR(20) CHARACTER SET latin1, i TINYINT, e ENUM('x','y'), j JSON)"
)
TABLE_MAP = TableMap(7, "d", "t", TYPES, (True,) * 5)
LAYOUT = layout_of(TABLE_MAP, TABLE)


def image_of(data: str, present: tuple[int, ...]) -> RowImage:
    """Take one image out of bytes that hold nothing else."""
    cursor = Cursor(bytes.fromhex(data))
    image = take_image(cursor, LAYOUT, present)
    assert cursor.remaining == 0
    return image


class TestTakeImage:
    """Null bits, then the values that are present and not NULL."""

    def test_all_columns(self):
        """Every column of a full image has its value."""
        image = image_of("10 ffffffff 01e9 80 02", (0, 1, 2, 3, 4))
        assert image.by_name() == {"id": 4294967295, "s": "é", "i": -128, "e": "y", "j": None}
        assert len(image) == 5

    def test_absent_null_and_empty_are_three_things(self):
        """A column not in the image is ABSENT, one with its null bit set is None, an empty string is ''."""
        image = image_of("02 00", (1, 2))
        assert [image.value(place) for place in (0, 1, 2)] == [ABSENT, "", None]
        assert [image.raw(place) for place in (0, 1, 2)] == [ABSENT, b"", None]
        assert image.values() == {1: "", 2: None}

    def test_null_bits_count_only_the_columns_present(self):
        """The second null bit belongs to the second column that is present, not to column 1."""
        assert image_of("02 05000000", (0, 3)).values() == {0: 5, 3: None}

    def test_nine_columns_take_two_bytes_of_null_bits(self):
        """Null bits fill whole bytes, lowest bit first."""
        codecs = (codec_of(WireType(ColumnCode.TINY)),) * 9
        layout = RowLayout("d.t", tuple("abcdefghi"), (WireType(ColumnCode.TINY),) * 9, codecs)
        cursor = Cursor(bytes.fromhex("7f01 05"))
        assert take_image(cursor, layout, tuple(range(9))).values() == {**dict.fromkeys(range(9)), 7: 5}

    def test_an_image_of_no_columns(self):
        """No columns take no bytes."""
        image = image_of("", ())
        assert (len(image), image.values(), image.value(0)) == (0, {}, ABSENT)

    def test_a_cut_value_names_table_and_column(self):
        """An image that ends in a value says in which."""
        with pytest.raises(TruncatedError) as caught:
            take_image(Cursor(bytes.fromhex("00 05000000 0361")), LAYOUT, (0, 1))
        assert (caught.value.table, caught.value.column) == ("d.t", "s")


class TestValues:
    """Values are decoded when they are asked for."""

    def test_a_broken_document_does_not_affect_other_columns(self):
        """JSON is stepped over and kept; what is wrong with it is found by who asks for its text."""
        image = image_of("00 05000000 02000000abcd", (0, 4))
        assert image.values() == {0: 5, 4: JsonDocument(b"\xab\xcd")}
        with pytest.raises(CorruptError, match="JSON: type 0xab"):
            _ = image.values()[4].text

    def test_a_member_the_definition_lacks_names_table_and_column(self):
        """An ENUM number that the definition does not have is the definition's fault."""
        with pytest.raises(SchemaError, match=r"table d\.t, column e: holds member 3"):
            image_of("00 03", (3,)).values()


class TestLayout:
    """A Table_map event and a definition, joined."""

    def test_layout_takes_names_and_facts_from_the_definition(self):
        """Names, signs, character sets and members come from the definition."""
        assert LAYOUT.names == ("id", "s", "i", "e", "j")
        assert [codec.decode(b"\xff" * 4) for codec in LAYOUT.codecs[:1]] == [2**32 - 1]
        assert LAYOUT.table == "d.t"

    def test_another_number_of_columns_is_refused(self):
        """A definition with other columns is of another time."""
        with pytest.raises(SchemaError, match=r"table d\.t: its definition has 1 columns and the binlog 5"):
            layout_of(TABLE_MAP, parse_create_table("CREATE TABLE d.t (id INT)"))

    @pytest.mark.parametrize(
        ("definition", "column"),
        [
            ("id BIGINT UNSIGNED, s VARCHAR(20), i TINYINT, e ENUM('x'), j JSON", "id"),
            ("id INT, s INT, i TINYINT, e ENUM('x'), j JSON", "s"),
            ("id INT, s VARCHAR(20), i TINYINT, e SET('x'), j JSON", "e"),
            ("id INT, s VARCHAR(20), i TINYINT, e ENUM('x'), j TEXT", "j"),
        ],
    )
    def test_another_type_is_refused_with_its_column(self, definition: str, column: str):
        """A definition with another type names the first such column."""
        with pytest.raises(SchemaError, match="the definition says") as caught:
            layout_of(TABLE_MAP, parse_create_table(f"CREATE TABLE d.t ({definition})"))
        assert caught.value.column == column

    def test_layout_of_types_is_that_of_the_event(self):
        """The types alone give the same layout as the event that holds them."""
        assert layout_of_types(TABLE, TYPES) == LAYOUT

    def test_without_anything_columns_are_numbered_and_text_is_bytes(self):
        """Neither definition nor metadata: @1, signed integers, bytes, numbers of members."""
        layout = layout_of(TABLE_MAP)
        image = take_image(Cursor(bytes.fromhex("10 ffffffff 01e9 80 02")), layout, (0, 1, 2, 3, 4))
        assert image.by_name() == {"@1": -1, "@2": b"\xe9", "@3": -128, "@4": 2, "@5": None}

    def test_without_a_definition_the_metadata_of_the_event_is_used(self):
        """Names, signs and collations of the event are used."""
        event = attrs.evolve(
            TABLE_MAP,
            unsigned=(True, False, True, False, False),
            collations=(None, 8, None, None, None),
            names=("a", "b", "c", "d", "e"),
        )
        image = take_image(Cursor(bytes.fromhex("10 ffffffff 01e9 80 02")), layout_of(event), (0, 1, 2, 3, 4))
        assert image.by_name() == {"a": 2**32 - 1, "b": "é", "c": 128, "d": 2, "e": None}

    def test_a_type_without_a_layout_is_refused(self):
        """A column that cannot be stepped over makes all rows unreadable."""
        with pytest.raises(UnsupportedError, match="DECIMAL"):
            layout_of(TableMap(7, "d", "t", (WireType(ColumnCode.DECIMAL),), (True,)))


@st.composite
def images(draw: st.DrawFn) -> RowImage:
    """Return an image of any columns of a table of any types, some of them NULL."""
    columns: list[TypedValue] = draw(st.lists(TYPED_VALUES, min_size=1, max_size=10))
    names = tuple(f"c{place}" for place in range(len(columns)))
    layout = RowLayout(
        "d.t", names, tuple(column.wire for column in columns), tuple(column.codec for column in columns)
    )
    present = tuple(sorted(draw(st.sets(st.sampled_from(range(len(columns)))))))
    payloads = []
    for place in present:
        codec = columns[place].codec
        payload = codec.encode(columns[place].value)[: 256**codec.width - 1 if codec.prefixed else None]
        payloads.append(None if draw(st.booleans()) else payload)
    return RowImage(layout, present, tuple(payloads))


@given(images(), st.binary(max_size=3))
def test_take_is_the_inverse_of_put(image: RowImage, after: bytes):
    """Every image comes back from its bytes, and what follows stays."""
    cursor = Cursor(put_image(image) + after)
    assert take_image(cursor, image.layout, image.present) == image
    assert cursor.rest() == after


@given(images())
def test_every_proper_prefix_of_an_image_is_truncated(image: RowImage):
    """An image that is cut anywhere is a truncation."""
    data = put_image(image)
    for length in range(len(data)):
        with pytest.raises(TruncatedError):
            take_image(Cursor(data[:length]), image.layout, image.present)


def test_put_image_vector():
    """Null bits first, then length and bytes of what is not NULL."""
    assert put_image(RowImage(LAYOUT, (0, 1, 2), (b"\x05\0\0\0", b"ab", None))).hex() == "0405000000026162"


def test_layouts_of_one_table_are_equal():
    """Two layouts made from equal facts compare equal."""
    assert layout_of(TABLE_MAP, TABLE) == LAYOUT
    assert layout_of(TABLE_MAP) != LAYOUT
