"""The CRC32 of events, where the processor multiplies polynomials and where it does not."""

import os
import subprocess
import sys
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.columnar.kernels.checksums import crc32

# What a processor without that instruction runs, on lengths around each of its steps.
ELSEWHERE = """
import zlib
import numpy as np
from ndb_formats.columnar.kernels import checksums
assert not checksums.FOLDS
data = np.frombuffer(bytes(range(256)) * 2, np.uint8)
print([length for length in range(300) if checksums.crc32(data, 3, 3 + length) != zlib.crc32(data[3 : 3 + length])])
"""


@given(data=st.binary(max_size=300), start=st.integers(0, 20), times=st.integers(1, 20))
def test_crc32(data: bytes, start: int, times: int) -> None:
    """It is that of zlib, of any stretch."""
    long = data * times
    place = min(start, len(long))
    assert crc32(np.frombuffer(long, np.uint8), place, len(long)) == zlib.crc32(long[place:])


def test_crc32_without_the_instruction() -> None:
    """It is the same elsewhere."""
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
