"""Floating point numbers as text, judged by Python's own: from all bits, near powers, with few digits and with many."""

import math
import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ndb_formats.columnar.json_columns import JsonReader
from ndb_formats.columnar.value_texts import value_texts
from ndb_formats.types.json_values import json_text

_JSON_DOUBLE = 0xB

BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
FEW_DIGITS = st.builds(lambda number, places: number / 10**places, st.integers(-(10**17), 10**17), st.integers(0, 24))
POWERS = st.integers(-1074, 1023).map(lambda power: math.ldexp(1.0, power))
NEIGHBOURS = st.builds(math.nextafter, POWERS | FEW_DIGITS, st.sampled_from([math.inf, -math.inf]))


@given(st.lists(BITS | FEW_DIGITS | POWERS | NEIGHBOURS | st.floats(), max_size=50))
@example([0.0, -0.0, 5e-324, 2e-323, 2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740993.0, 1e22, 1e23])
@example([1e15, 1e16, 123456789012345678.0, 0.0001, 0.00001, 0.00012345678901234567, math.inf, -math.inf, math.nan])
def test_they_are_what_python_shows(numbers: Sequence[float]) -> None:
    assert value_texts(pa.array(numbers, pa.float64())).to_pylist() == list(map(repr, numbers))


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_null_is_no_text_and_a_slice_is_its_own_numbers(kind: pa.DataType) -> None:
    numbers = pa.array([None, 0.5, None, -2.0, 0.1], kind)
    shown = [repr(float(np.float32(0.1))) if kind == pa.float32() else "0.1"]
    assert value_texts(numbers).to_pylist() == [None, "0.5", None, "-2.0", *shown]
    assert value_texts(numbers[3:]).to_pylist() == ["-2.0", *shown]
    assert value_texts(numbers[:0]).to_pylist() == []


@given(st.lists(BITS | FEW_DIGITS | POWERS | NEIGHBOURS, min_size=1, max_size=50))
@example([0.0, -0.0, 1e14, 1e15, 123456789012345.0, 1234567890123456.0, 1e-15, 1e-16, math.inf, -math.inf, math.nan])
def test_in_a_json_document_they_are_what_the_scalar_codec_prints(numbers: Sequence[float]) -> None:
    documents = b"".join(struct.pack("<IBd", 9, _JSON_DOUBLE, number) for number in numbers)
    cells = (13 * np.arange(len(numbers))).astype(np.uint32)
    found = JsonReader(4).texts(np.frombuffer(documents + bytes(8), np.uint8), 0, cells)
    assert found is not None
    offsets, text = found
    pairs = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    assert [text[start:stop].tobytes().decode() for start, stop in pairs] == list(map(json_text, numbers))
