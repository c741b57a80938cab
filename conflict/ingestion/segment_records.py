"""
The records of segments that were read: each says that its segment is done, and what is in it.
"""

from __future__ import annotations

from typing import Any, Self

import attrs

from conflict.grid.documents import to_json, types_from_json
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
    """

    facts: SegmentFacts
    types: dict[str, tuple[WireType, ...]]
    error: str | None
    left_out: int

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read the document."""
        facts, types = SegmentFacts(**document["facts"]), types_from_json(document["types"])
        return cls(facts, types, document["error"], document["left_out"])


def record_path(cluster: str, segment: int) -> str:
    """Return the path of the record of one segment below the History."""
    return f"{STAGED}/segments/cluster={cluster}/segment={segment:05d}.json"


def write_record(history: Folder, cluster: str, segment: int, record: SegmentRecord) -> None:
    """Record that a segment is done."""
    history.write_json(record_path(cluster, segment), to_json(record))


def load_record(history: Folder, cluster: str, segment: int) -> SegmentRecord:
    """Return the record of a segment that is done."""
    return SegmentRecord.from_json(history.read_json(record_path(cluster, segment)))
