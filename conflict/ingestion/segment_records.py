"""
The records of segments that were read: each says that its segment is done, and what is in it.
"""

from __future__ import annotations

import attrs

from conflict.grid.documents import read_object, to_json
from conflict.grid.folder import Folder
from conflict.grid.manifest import SegmentFacts
from ndb_formats.types.column_types import WireType

__all__ = ["STAGED", "SegmentRecord", "load_record", "record_path", "write_record"]

STAGED = "staged"  # the folder of what an ingest deletes when it ends


@attrs.frozen
class SegmentRecord:
    """
    What was read of a segment.

    Attributes:
        facts: What is in it.
        types: Wire types of the columns of each table that it mentions.
        error: Why it could not be read to its end; None if it could.
        left_out: Row operations of the epoch that the error cut off.
        wrong_key: Whether the error is that a table has another primary key (`ndb_formats.errors.WrongKeyError`).
    """

    facts: SegmentFacts
    types: dict[str, tuple[WireType, ...]]
    error: str | None
    left_out: int
    wrong_key: bool = False


def record_path(cluster: str, segment: int) -> str:
    """Return the path of the record of one segment below the History."""
    return f"{STAGED}/segments/cluster={cluster}/segment={segment:05d}.json"


def write_record(history: Folder, cluster: str, segment: int, record: SegmentRecord) -> None:
    """Record that a segment is done."""
    history.write_json(record_path(cluster, segment), to_json(record))


def load_record(history: Folder, cluster: str, segment: int) -> SegmentRecord:
    """Return the record of a segment that is done."""
    return read_object(history, record_path(cluster, segment), SegmentRecord)
