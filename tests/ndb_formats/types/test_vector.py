"""VECTOR: floats of single precision that keep every bit."""

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import CorruptError
from ndb_formats.types.column_types import WireType, codec_of
from ndb_formats.types.values import Vector

CODEC = codec_of(WireType(ColumnCode.VECTOR, 4))


@pytest.mark.parametrize(
    ("data", "floats", "text"),
    [
        # STRING_TO_VECTOR('[1,2.5,-3,0.125]') in MySQL 9.7.4, and a binlog of MySQL 9.0.
        (
            "0000803f00002040000040c00000003e",
            (1.0, 2.5, -3.0, 0.125),
            "[1,2.5,-3,0.125]",
        ),
        (
            "cdcc8c3f666606406666464033338340",
            (1.100000023841858, 2.0999999046325684, 3.0999999046325684, 4.099999904632568),
            "[1.1,2.1,3.1,4.1]",
        ),
    ],
)
def test_recorded_vectors(data: str, floats: tuple[float, ...], text: str):
    """The numbers are those of the statement, and so is the text."""
    vector = CODEC.decode(bytes.fromhex(data))
    assert isinstance(vector, Vector)
    assert (vector.floats, vector.text) == (floats, text)
    assert CODEC.encode(vector) == CODEC.encode(floats) == bytes.fromhex(data)


@given(st.lists(st.binary(min_size=4, max_size=4), max_size=8).map(b"".join))
def test_every_bit_is_kept(data: bytes):
    """Also those of a NaN, whose bits a Python float may change."""
    vector = CODEC.decode(data)
    assert CODEC.encode(vector) == data
    assert vector == CODEC.decode(data)
    assert vector.floats == struct.unpack(f"<{len(data) // 4}f", data) or any(map(_is_nan, vector.floats))


@given(st.lists(st.binary(min_size=4, max_size=4), max_size=8).map(b"".join))
def test_every_bit_can_be_had_back_from_the_text(data: bytes):
    """The numbers of the JSON, as floats of four bytes; or the bytes themselves, where JSON has no such number."""
    text = Vector(data).text
    if text.startswith("0x"):
        assert not all(map(math.isfinite, Vector(data).floats))
        assert bytes.fromhex(text[2:]) == data
    else:
        numbers = json.loads(text)
        assert struct.pack(f"<{len(numbers)}f", *numbers) == data


def _is_nan(number: float) -> bool:
    return number != number  # noqa: PLR0124  # only NaN does


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_part_of_a_float_is_corrupt(length: int):
    """A vector has a whole number of floats."""
    with pytest.raises(CorruptError, match=f"{length} bytes"):
        CODEC.decode(bytes(length))
