"""
What of binlogs cannot be read and is left out, if a user asks for that: a line of JSON for each part of a file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import attrs

from conflict.decoding.staging import staged_file


@attrs.frozen
class LeftOut:
    """
    A part of a file that is left out.

    Attributes:
        file: The file.
        why: Why.
        position: Where it cannot be read further; None for a file that is no binlog.
        start: Position of the first event of the part.
        stop: Position after its last event; None for the end of the file.
    """

    file: str
    why: str
    position: int | None = None
    start: int = 0
    stop: int | None = None

    def tell(self, folder: Path) -> None:
        """Write that into a folder; a task that runs again writes the same."""
        told = {"file": self.file, "position": self.position, "from": self.start, "to": self.stop, "why": self.why}
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{hashlib.sha256(self.file.encode()).hexdigest()[:16]}-{self.start}.json"
        with staged_file(folder / name) as out:
            out.write(json.dumps(told, ensure_ascii=False).encode() + b"\n")
