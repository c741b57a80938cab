"""Floating point numbers as text, judged by Python's own: from all bits, near powers, with few digits and with many."""

import math
import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ndb_formats.columnar.value_texts import value_texts

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
