"""
Recordings on disk: which folders hold one, of what kind, and what one of clusters in conflict recorded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

from conflict.config.case import SCENARIO, Case
from conflict.errors import ConfigurationError


class RecordingKind(Enum):
    """The kinds of recordings, by the file that marks a folder; if there are several, the first decides."""

    CONFLICT = SCENARIO  # two clusters that replicate to each other
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


@attrs.frozen
class ConflictCase(Case):
    """
    One case: its input, and the recorded result.

    Attributes:
        expected: Contents of its `expected.json`.
    """

    expected: dict[str, Any] = attrs.field(repr=False)

    @classmethod
    def load(cls, path: Path) -> ConflictCase:
        """Read a case from its folder."""
        scenario = json.loads((path / SCENARIO).read_text("utf-8"))
        expected = json.loads((path / "expected.json").read_text("utf-8"))
        return cls(path, scenario, expected)

    @property
    def recorded(self) -> dict[str, dict[str, Any]]:
        """What was recorded of each cluster: the given tables, and counters of each SQL node and of all together."""
        if "servers" not in self.scenario:
            return self.expected
        known = {table["name"] for table in self.scenario["tables"]}
        clusters = {
            name: {**own, "tables": {table: rows for table, rows in own["tables"].items() if table in known}}
            for name, own in self.expected["clusters"].items()
        }
        return {
            name: {
                **clusters[name],
                **_together([self.expected["servers"][each] for each in servers]),
                "servers": {
                    self.scenario["servers"][each]["server_id"]: self.expected["servers"][each]["status_difference"]
                    for each in servers
                },
            }
            for name, servers in self.servers.items()
        }


def _together(servers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was recorded of some SQL nodes as if they were one; the start of their error logs is not there."""
    counters = Counter[str]()
    for each in servers:
        counters.update(each["status_difference"])
    stopped = next((each["applier"] for each in servers if each.get("applier", {}).get("errno")), servers[0]["applier"])
    return {"status_difference": dict(counters), "applier": stopped}
