"""Extra row info: what NDB adds to a rows event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import TruncatedError
from ndb_formats.events.rows_event import ConflictFlag, ExtraRowInfo, decode_extra_row_info, encode_extra_row_info

REFLECTED, REFRESH, READ = ConflictFlag.REFLECTED, ConflictFlag.REFRESH, ConflictFlag.READ
INFOS = st.builds(
    ExtraRowInfo,
    st.none() | st.integers(0, 2**64 - 1),
    st.none() | st.integers(0, 2**16 - 1).map(ConflictFlag),
)


@pytest.mark.parametrize(
    ("data", "info"),
    [
        ("0000", ExtraRowInfo()),
        ("010000319000f2150000", ExtraRowInfo(0x000015F200903100)),  # recorded
        ("0100ffffffffffffffff", ExtraRowInfo(2**64 - 1)),
        ("02000100", ExtraRowInfo(None, REFLECTED)),
        ("0300010000000000000006 00", ExtraRowInfo(1, REFRESH | READ)),
    ],
)
def test_golden_vectors(data: str, info: ExtraRowInfo):
    """Presence bits, then the transaction id and the conflict flags that they announce."""
    assert decode_extra_row_info(bytes.fromhex(data)) == info
    assert encode_extra_row_info(info) == bytes.fromhex(data)


@given(INFOS)
def test_round_trip(info: ExtraRowInfo):
    """Every info comes back; what was not logged stays None and does not become 0."""
    assert decode_extra_row_info(encode_extra_row_info(info)) == info


@given(INFOS, st.binary(min_size=1, max_size=8))
def test_fields_of_a_later_version_are_ignored(info: ExtraRowInfo, more: bytes):
    """Bytes after the known fields do no harm."""
    assert decode_extra_row_info(encode_extra_row_info(info) + more) == info


@given(INFOS)
def test_every_proper_prefix_is_truncated(info: ExtraRowInfo):
    """A block that is cut anywhere is a truncation."""
    data = encode_extra_row_info(info)
    for length in range(len(data)):
        with pytest.raises(TruncatedError):
            decode_extra_row_info(data[:length])


def test_unknown_flags_are_kept():
    """A flag that this version does not know is not lost."""
    assert int(decode_extra_row_info(bytes.fromhex("02000180")).flags) == 0x8001
