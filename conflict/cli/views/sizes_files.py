"""
What is known of each file whose sizes are measured: whose it is, and from when to when its changes are.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ndb_formats.binlog_reader import first_event
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.events.rows_event import ROWS_EVENTS

__all__ = ["FileFacts"]

_ROWS = np.array(sorted(ROWS_EVENTS), np.int64)


@attrs.define
class FileFacts:
    """
    A binlog file that is read.

    Attributes:
        file: Its path.
        size: Its bytes.
        first: When its first rows event was logged, in seconds since 1970; None before one was read.
        last: When the last one was.
    """

    file: Path
    size: int
    first: int | None = None
    last: int | None = None

    def add(self, chunk: EventChunk) -> None:
        """Take the times of a chunk of its events."""
        times = chunk.timestamps[np.isin(chunk.types, _ROWS)]
        if len(times):
            found = int(times.min()), int(times.max())
            self.first = found[0] if self.first is None else min(self.first, found[0])
            self.last = found[1] if self.last is None else max(self.last, found[1])

    def document(self) -> dict[str, Any]:
        """Return what is known; the server is that of the first event, None in a file without one."""
        event = first_event(self.file, verify=False)
        return {
            "server_id": None if event is None else event.header.server_id,
            "bytes": self.size,
            "first_change": _moment(self.first),
            "last_change": _moment(self.last),
        }


def _moment(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
