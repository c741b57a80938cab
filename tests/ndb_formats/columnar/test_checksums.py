"""The CRC32 of events."""

import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.columnar.kernels.words import crc32


@given(data=st.binary(max_size=300), start=st.integers(0, 20))
def test_it_is_that_of_zlib(data: bytes, start: int) -> None:
    """For any slice of an array."""
    first = min(start, len(data))
    assert crc32(np.frombuffer(data, np.uint8), first, len(data)) == zlib.crc32(data[first:])
