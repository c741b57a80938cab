"""Collation: when two keys are the same key."""

from decimal import Decimal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.schema.row_keys import key_of, key_text
from ndb_formats.schema.tables import Column
from ndb_formats.types.column_types import WireType, codec_of

ID = Column("id", "int")


def text_column(collation: str) -> Column:
    """Return a VARCHAR column of a collation."""
    return Column("s", "varchar", 20, charset=collation.split("_", maxsplit=1)[0], collation=collation)


def same(collation: str, one: str, two: str) -> bool:
    """Whether two texts are one key."""
    column = text_column(collation)
    encoding = {"latin1": "cp1252"}.get(column.charset, "utf-8")
    return key_of([column], [one.encode(encoding)]) == key_of([column], [two.encode(encoding)])


@pytest.mark.parametrize(
    ("collation", "one", "two", "equal"),
    [
        ("latin1_swedish_ci", "abc", "ABC", True),
        ("latin1_bin", "abc", "ABC", False),
        ("utf8mb4_0900_ai_ci", "abc", "ABC", True),
        ("utf8mb4_0900_as_ci", "abc", "ABC", True),
        ("utf8mb4_0900_as_cs", "abc", "ABC", False),
        ("utf8mb4_bin", "abc", "ABC", False),
        ("utf8mb4_0900_ai_ci", "café", "CAFE", True),
        ("utf8mb4_general_ci", "café", "cafe", True),
        ("utf8mb4_0900_as_ci", "café", "cafe", False),
        ("utf8mb4_0900_as_ci", "CAFÉ", "café", True),
        ("utf8mb4_0900_ai_ci", "straße", "STRASSE", True),
        ("utf8mb4_bin", "é", "e", False),
        # Trailing blanks: PAD SPACE before the 0900 collations, NO PAD in them.
        ("latin1_swedish_ci", "a", "a  ", True),
        ("latin1_bin", "a", "a ", True),
        ("utf8mb4_bin", "a", "a ", True),
        ("utf8mb4_general_ci", "a", "a ", True),
        ("utf8mb4_0900_ai_ci", "a", "a ", False),
        ("utf8mb4_0900_bin", "a", "a ", False),
        # Only blanks at the end, and only blanks.
        ("latin1_swedish_ci", " a", "a", False),
        ("latin1_swedish_ci", "a b", "ab", False),
        ("latin1_swedish_ci", "a\t", "a", False),
        ("latin1_swedish_ci", "", "   ", True),
    ],
)
def test_equality_of_text(collation: str, one: str, two: str, equal: bool):
    """Two texts are one key exactly when their collation says so."""
    assert same(collation, one, two) is equal


# The characters that latin1_swedish_ci takes as equal (MySQL, ctype-latin1.cc, sort_order_latin1).
SWEDISH_CLASSES = [
    "AaÀÁÂÃàáâã", "Bb", "CcÇç", "DdÐð", "EeÈÉÊËèéêë", "Ff", "Gg", "Hh", "IiÌÍÎÏìíîï", "Jj", "Kk", "Ll", "Mm",
    "NnÑñ", "OoÒÓÔÕòóôõ", "Pp", "Qq", "Rr", "Ss", "Tt", "UuÙÚÛùúû", "Vv", "Ww", "Xx", "YyÜÝüý", "Zz",
    "[Åå", "\\ÄÆäæ", "]Öö", "Øø", "Þþ",
]  # fmt: skip


def test_swedish_classes_are_exact():
    """Of all 256 characters of latin1, those and only those are equal that the server's table says."""
    column = text_column("latin1_swedish_ci")
    classes: dict[bytes, set[int]] = {}
    for byte in range(256):
        classes.setdefault(key_of([column], [bytes([byte])]), set()).add(byte)
    expected = [{letter.encode("cp1252")[0] for letter in letters} for letters in SWEDISH_CLASSES]
    alone = set(range(256)).difference(*expected)
    assert sorted(map(sorted, classes.values())) == sorted([*map(sorted, expected), *([byte] for byte in alone)])


def test_integers_are_keys_by_their_bytes():
    """Two integers are one key if they are equal."""
    assert key_of([ID], [b"\x01\0\0\0"]) == key_of([ID], [b"\x01\0\0\0"])
    assert key_of([ID], [b"\x01\0\0\0"]) != key_of([ID], [b"\x02\0\0\0"])


@pytest.mark.parametrize("type_", ["enum", "set"])
def test_members_compare_as_numbers(type_: str):
    """Member 65 and member 97 of an ENUM are two keys, though their bytes are 'A' and 'a'."""
    members = tuple(f"m{place}" for place in range(100 if type_ == "enum" else 7))
    column = Column("e", type_, charset="latin1", collation="latin1_swedish_ci", members=members)
    assert key_of([column], [b"A"]) != key_of([column], [b"a"])
    assert key_of([column], [b" "]) != key_of([column], [b""])


def test_null_differs_from_every_value():
    """NULL is another key than the empty string."""
    column = text_column("latin1_swedish_ci")
    assert key_of([column], [None]) != key_of([column], [b""])


def test_bytes_cannot_move_between_the_columns_of_a_key():
    """('ab', 'c') and ('a', 'bc') are two keys."""
    columns = [text_column("latin1_bin")] * 2
    assert key_of(columns, [b"ab", b"c"]) != key_of(columns, [b"a", b"bc"])


def test_a_key_needs_all_its_columns():
    """A payload too few is a mistake of the caller."""
    with pytest.raises(ValueError, match="zip"):
        key_of([ID, ID], [b"\x01\0\0\0"])


LETTERS = st.text("abcXYZäÖé ñ[]\\ßÿ", max_size=6)
CI = st.sampled_from(["latin1_swedish_ci", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci"])


@given(CI, LETTERS)
def test_ci_collations_ignore_letter_case(collation: str, text: str):
    """Swapping the case of ASCII letters never makes another key."""
    swapped = "".join(letter.swapcase() if letter.isascii() else letter for letter in text)
    assert same(collation, text, swapped)


@given(
    st.sampled_from(["latin1_swedish_ci", "latin1_bin", "utf8mb4_general_ci", "utf8mb4_bin"]),
    LETTERS,
    st.integers(0, 5),
)
def test_pad_space_collations_ignore_trailing_blanks(collation: str, text: str, blanks: int):
    """Any number of blanks at the end is the same key."""
    assert same(collation, text, text + " " * blanks)


@given(st.sampled_from(["utf8mb4_0900_ai_ci", "utf8mb4_0900_bin"]), LETTERS, st.integers(1, 5))
def test_no_pad_collations_compare_trailing_blanks(collation: str, text: str, blanks: int):
    """A blank at the end makes another key."""
    assert not same(collation, text, text + " " * blanks)


@given(LETTERS, LETTERS)
def test_bin_collations_distinguish_all_texts(one: str, two: str):
    """Under latin1_bin two texts are one key only if they differ in trailing blanks alone."""
    assert same("latin1_bin", one, two) is (one.rstrip(" ") == two.rstrip(" "))


@given(st.lists(st.none() | st.binary(max_size=6), max_size=4), st.lists(st.none() | st.binary(max_size=6), max_size=4))
def test_binary_keys_are_equal_only_if_all_parts_are(one: list[bytes | None], two: list[bytes | None]):
    """For columns without a collation a key is as good as its parts."""
    columns = [Column("b", "varbinary", 6)] * 4
    same_key = key_of(columns[: len(one)], one) == key_of(columns[: len(two)], two)
    assert same_key is (one == two)


def test_key_text_is_readable():
    """A key prints as column=value, text as it compares, bytes as hex, NULL as NULL, members by name."""
    columns = [
        ID,
        text_column("latin1_swedish_ci"),
        Column("b", "varbinary", 4),
        Column("n", "int"),
        Column("e", "enum", charset="latin1", collation="latin1_bin", members=("x", "y")),
    ]
    codecs = [
        codec_of(WireType(ColumnCode.LONG)),
        codec_of(WireType(ColumnCode.VARCHAR, 20), charset="latin1"),
        codec_of(WireType(ColumnCode.VARCHAR, 4)),
        codec_of(WireType(ColumnCode.LONG)),
        codec_of(WireType(ColumnCode.ENUM, 1), members=("x", "y")),
    ]
    key = key_of(columns, [b"\xfe\xff\xff\xff", b"TWO ", b"\0\xff", None, b"\x02"])
    assert key_text(columns, codecs, key) == "id=-2, s=two, b=00ff, n=NULL, e=y"


def test_decimal_keys_never_have_an_exponent():
    """All digits after the point print."""
    codec = codec_of(WireType(ColumnCode.NEWDECIMAL, 20, 10))
    key = key_of([Column("d", "decimal", 20, 10)], [codec.encode(Decimal("1E-10"))])
    assert key_text([Column("d", "decimal", 20, 10)], [codec], key) == "d=0.0000000001"


def test_only_the_prefix_of_a_key_counts():
    """A prefix counts characters of a text, and bytes of a column without a character set."""
    text = attrs.evolve(text_column("utf8mb4_0900_ai_ci"), key_prefix=2)
    assert key_of([text], ["éab".encode()]) == key_of([text], [b"EAC"]) != key_of([text], [b"eb"])
    assert key_of([Column("b", "varbinary", 6, key_prefix=2)], [b"abc"]) == key_of(
        [Column("b", "varbinary", 6)], [b"ab"]
    )


def test_key_text_of_other_bytes_than_text():
    """Bytes that are no text in the character set print escaped."""
    codec = codec_of(WireType(ColumnCode.VARCHAR, 20), charset="utf8mb4")
    column = text_column("utf8mb4_bin")
    assert key_text([column], [codec], key_of([column], [b"a\xff"])) == "s=a\\udcff"
