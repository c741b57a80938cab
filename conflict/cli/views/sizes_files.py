"""
What is known of each file whose sizes are measured: whose it is, from when to when its changes are, and its sizes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from conflict.ingestion.plan import files_document
from ndb_formats.binlog_reader import first_event
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.size_report import SizeReport
from ndb_formats.events.rows_event import ROWS_EVENTS
from ndb_formats.rules.formats import FORMATS

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
        sizes: Its part of the figures of all files.
    """

    file: Path
    size: int
    first: int | None = None
    last: int | None = None
    sizes: dict[str, Any] = attrs.field(factory=dict)

    def add(self, chunk: EventChunk) -> None:
        """Take the times of a chunk of its events."""
        times = chunk.timestamps[np.isin(chunk.types, _ROWS)]
        if len(times):
            found = int(times.min()), int(times.max())
            self.first = found[0] if self.first is None else min(self.first, found[0])
            self.last = found[1] if self.last is None else max(self.last, found[1])

    def measured(self, before: SizeReport, after: SizeReport) -> None:
        """Take its sizes from those of all files before it, and with it."""
        (frame, logged, formats), (now_frame, now_logged, now_formats) = _totals(before), _totals(after)
        self.sizes = {
            "frame": now_frame - frame,
            "logged": now_logged - logged,
            "formats": {
                form.name: {bound: now[bound] - then[bound] for bound in now}
                for form, then, now in zip(FORMATS, formats, now_formats, strict=True)
            },
        }

    def document(self) -> dict[str, Any]:
        """Return what is known; the server is that of the first event, None in a file without one."""
        event = first_event(self.file, verify=False)
        return {
            "server_id": None if event is None else event.header.server_id,
            **files_document([self.file])[0],
            "first_change": _moment(self.first),
            "last_change": _moment(self.last),
            **self.sizes,
        }


def _totals(report: SizeReport) -> tuple[int, int, list[dict[str, int]]]:
    """Return the bytes that all formats share, those of the rows events as logged, and their bounds in each format."""
    changes = report.changes
    bounds = [{"least": each.least.bytes, "most": each.most.bytes} for each in changes.formats]
    return report.frame.bytes, changes.logged.bytes, bounds


def _moment(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
