"""GEOMETRY: SRID and WKB, kept as they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import TruncatedError
from ndb_formats.types.column_types import WireType, codec_of
from ndb_formats.types.values import Geometry

CODEC = codec_of(WireType(ColumnCode.GEOMETRY, 4))


@pytest.mark.parametrize(
    ("data", "srid", "wkb"),
    [
        # INSERT INTO m_geo VALUES (..., ST_GeomFromText('POINT(1 1)'), ST_GeomFromText('POINT(10 20)', 4326))
        ("000000000101000000000000000000f03f000000000000f03f", 0, "0101000000000000000000f03f000000000000f03f"),
        ("e6100000010100000000000000000034400000000000002440", 4326, "010100000000000000000034400000000000002440"),
    ],
)
def test_recorded_geometries(data: str, srid: int, wkb: str):
    """MySQL 9.7.4: the number of the reference system, then well-known binary."""
    geometry = CODEC.decode(bytes.fromhex(data))
    assert isinstance(geometry, Geometry)
    assert (geometry.srid, geometry.wkb) == (srid, bytes.fromhex(wkb))
    assert CODEC.encode(geometry) == bytes.fromhex(data)


@given(st.binary(max_size=40))
def test_any_bytes_are_kept(data: bytes):
    """The bytes come back as they were, whether or not they are a geometry."""
    assert CODEC.encode(CODEC.decode(data)) == data


@pytest.mark.parametrize("length", range(4))
def test_a_geometry_without_srid(length: int):
    """Fewer than four bytes have no reference system."""
    with pytest.raises(TruncatedError):
        _ = Geometry(bytes(length)).srid
