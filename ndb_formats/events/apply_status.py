"""
Rows of `mysql.ndb_apply_status`: which epoch a binlog transaction of NDB is, and which foreign epochs it applied.

    server_id  INT UNSIGNED     the server that the epoch is of
    epoch      BIGINT UNSIGNED
    log_name   VARCHAR(255)     empty in the row that the NDB injector writes for its own epoch

Other columns follow, which nobody reads. A table of this name with other columns is not NDB's, and says nothing of
epochs; nor does an image that leaves out one of the three.
Source: MySQL manual, "NDB Cluster Replication Schema and Tables".
"""

from __future__ import annotations

from collections.abc import Sequence

from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage
from ndb_formats.types.column_types import WireType

__all__ = ["EPOCH", "LOG_NAME", "SERVER_ID", "epoch_of", "has_status_columns", "is_status_image"]

SERVER_ID, EPOCH, LOG_NAME = _PLACES = tuple(range(3))
_TYPES = (ColumnCode.LONG, ColumnCode.LONGLONG, ColumnCode.VARCHAR)


def has_status_columns(types: Sequence[WireType]) -> bool:
    """Return whether the columns of a table are those of `ndb_apply_status`."""
    return tuple(wire.code for wire in types[: len(_TYPES)]) == _TYPES


def is_status_image(present: Sequence[int] | None) -> bool:
    """Return whether an image with these columns tells of an epoch."""
    return present is not None and tuple(present[: len(_PLACES)]) == _PLACES


def epoch_of(after: RowImage | None) -> int | None:
    """Return the epoch that a row names as that of its own binlog transaction; None if it names none."""
    if after is None or not is_status_image(after.present) or after.payloads[LOG_NAME]:
        return None
    return int.from_bytes(after.payloads[EPOCH] or b"", "little")
