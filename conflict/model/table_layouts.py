"""
How the rows of simulated tables are stored: an INT key and BIGINT columns.
"""

from __future__ import annotations

from collections.abc import Iterable

from conflict.rules.table_setup import TableSetup
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowLayout, layout_of_types
from ndb_formats.types.column_types import WireType

__all__ = ["KEY_BYTES", "VALUE_BYTES", "layouts_of"]

KEY_BYTES, VALUE_BYTES = 4, 8
_INT, _BIGINT = WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG)


def layouts_of(setups: Iterable[TableSetup]) -> dict[str, RowLayout]:
    """Return how the rows of each table are read, by ``database.table``."""
    return {
        setup.table.full_name: layout_of_types(setup.table, (_INT, *[_BIGINT] * (len(setup.table.columns) - 1)))
        for setup in setups
    }
