"""
Recordings on disk: which folders hold one, and of what kind.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import attrs

from conflict.errors import ConfigurationError

__all__ = ["Recording", "RecordingKind", "find_recordings"]


class RecordingKind(Enum):
    """The kinds of recordings, by the file that marks a folder; if there are several, the first decides."""

    CONFLICT = "scenario.json"  # two clusters that replicate to each other
    FORMAT = "statements.json"  # row events of statements
    LOGGING = "decisions.json"  # which statements are logged, and how
    BINLOG = "result.json"  # mysqlbinlog's text of a file
    SIZES = "sizes.json"  # sizes of events


@attrs.frozen
class Recording:
    """
    A recording on disk.

    Attributes:
        path: Its folder.
        kind: Its kind.
        case: Its folder below the folder that was searched.
    """

    path: Path
    kind: RecordingKind
    case: str

    @property
    def part(self) -> str:
        """The part of the corpus: ``conflict``, ``live``, ``binlogs``, ``formats/ndb``, ..."""
        if self.kind is RecordingKind.CONFLICT:
            return "live" if (self.path / "transactions.jsonl").exists() else "conflict"
        if self.kind is RecordingKind.BINLOG:
            return "binlogs"
        parts = self.path.resolve().parts
        if "formats" not in parts:
            return "formats"
        start = len(parts) - 1 - parts[::-1].index("formats")
        return "/".join(parts[start : start + 2])


def find_recordings(folder: Path) -> list[Recording]:
    """
    Return every recording at or below a folder, in order.

    Raises:
        ConfigurationError: There is none.
    """
    found = [
        Recording(path, kind, path.name if path == folder else path.relative_to(folder).as_posix())
        for path in sorted({marker.parent for kind in RecordingKind for marker in folder.rglob(kind.value)})
        for kind in [next(kind for kind in RecordingKind if (path / kind.value).exists())]
    ]
    if not found:
        markers = ", ".join(kind.value for kind in RecordingKind)
        message = f"{folder} holds no recording; the folder of a recording holds one of {markers}"
        raise ConfigurationError(message)
    return found
