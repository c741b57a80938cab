"""
Whether two recordings of one scenario agree, and an engine with one of them.

Epochs, transaction ids and times differ from run to run; rows, what exceptions tables say of them, counters and stops
are to be the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conflict.judge.case import ConflictCase, Recording, RecordingKind
from conflict.judge.judge import CaseStatus, judge_recording

__all__ = ["differences", "disagreement"]

_OF_A_RUN = {"NDB$ORIG_TRANSID"}
_EPOCH = 2  # the third column of an exceptions table


def differences(earlier: Path, later: Path) -> list[str]:
    """Return how the outcomes of two recordings of a scenario differ; counters that one of them lacks are 0 there."""
    before, after = ConflictCase.load(earlier).recorded, ConflictCase.load(later).recorded
    return [line for name in before for line in _differences(name, before[name], after[name])]


def _differences(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if before["applier"]["errno"] != after["applier"]["errno"]:
        yield f"{name}: the applier's error is {after['applier']['errno']}, and was {before['applier']['errno']}"
    for table in sorted(before["tables"].keys() | after["tables"].keys()):
        yield from _rows(f"{name}: {table}", *(each["tables"].get(table) for each in (before, after)))
    for table in sorted(before["exceptions"].keys() & after["exceptions"].keys()):
        yield from _rows(f"{name}: {table}", *(_lasting(each["exceptions"][table]) for each in (before, after)))
    counters = [each["status_difference"] for each in (before, after)]
    for counter in sorted({*counters[0], *counters[1]}):
        was, is_now = (each.get(counter, 0) for each in counters)
        if was != is_now:
            yield f"{name}: {counter} is {is_now}, and was {was}"


def _rows(what: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Iterator[str]:
    was, is_now = ([] if each is None else sorted(map(json.dumps, each["rows"])) for each in (before, after))
    if (before is None) != (after is None) or was != is_now:
        yield f"{what}: rows {_lacking(is_now, was)} in place of {_lacking(was, is_now)}"


def _lacking(rows: Sequence[str], others: Sequence[str]) -> str:
    return ", ".join(row for row in rows if row not in others) or "none"


def _lasting(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Return an exceptions table without what differs from run to run."""
    kept = [place for place, name in enumerate(contents["columns"]) if place != _EPOCH and name not in _OF_A_RUN]
    return {"rows": [[row[place] for place in kept] for row in contents["rows"]]}


def disagreement(folder: Path, engine: str = "reference") -> str:
    """Return the first difference between an engine and a recording; nothing if there is none."""
    verdict = judge_recording(Recording(folder, RecordingKind.CONFLICT, folder.name), engine)
    return "" if verdict.status is CaseStatus.PASS else verdict.detail
