"""
GEOMETRY: a spatial reference system and well-known binary, kept as bytes.

    srid    u32
    wkb     byte order u8, type u32, coordinates; always little-endian

Source: MySQL `spatial.h` (`SRID_SIZE`, `WKB_HEADER_SIZE`).
"""

from __future__ import annotations

import attrs

from ndb_formats.cursor import Cursor

__all__ = ["Geometry"]

_SRID_SIZE = 4


@attrs.frozen
class Geometry:
    """
    A spatial value; equal to another one of the same bytes.

    Attributes:
        data: Its bytes.
    """

    data: bytes

    @property
    def srid(self) -> int:
        """
        The number of its spatial reference system; 0 is the plane.

        Raises:
            TruncatedError: There are fewer than four bytes.
        """
        return Cursor(self.data).uint(_SRID_SIZE)

    @property
    def wkb(self) -> bytes:
        """The geometry as well-known binary."""
        return self.data[_SRID_SIZE:]
