"""
Judges an engine by recordings, one verdict per case.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import attrs

from conflict.config.configuration import Configuration
from conflict.conformance.case import ConflictCase
from conflict.conformance.corpus import Recording, RecordingKind
from conflict.conformance.format_differences import binlog_differences, format_differences
from conflict.conformance.result_differences import result_differences
from conflict.conformance.setup_differences import setup_differences
from conflict.errors import ConflictError, NotBuiltError
from conflict.grid.folder import Folder
from conflict.history.steps import hints_of_steps
from conflict.pipeline import ENGINES
from conflict.results.files import read_rows
from conflict.results.layout import exceptions_path
from conflict.results.model import ClusterResult
from conflict.results.run_document import Run
from ndb_formats.errors import FormatError

__all__ = ["CaseStatus", "CaseVerdict", "judge", "judge_all", "verdicts_json"]


class CaseStatus(StrEnum):
    """Whether an engine agrees with a recording."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    FAIL = "fail"
    NOT_YET = "not yet"


@attrs.frozen
class CaseVerdict:
    """
    How an engine did on a case.

    Attributes:
        part: Part of the corpus that the case belongs to.
        case: Its folder.
        engine: The engine.
        status: Passed, failed, or not judged yet.
        detail: The first difference, or why the case is not judged yet.
        undecided: How many decisions its binlogs leave open; such a case is judged by what may have been decided.
    """

    part: str
    case: str
    engine: str
    status: CaseStatus
    detail: str
    undecided: int = 0


def judge_all(
    recordings: Sequence[Recording],
    engine: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    use_steps: bool = True,
) -> Iterator[CaseVerdict]:
    """Judge an engine by recordings, one after the other; see `judge`."""
    for done, recording in enumerate(recordings):
        progress(done, len(recordings))
        yield judge(recording, engine, use_steps=use_steps)
    progress(len(recordings), len(recordings))


def judge(recording: Recording, engine: str, *, use_steps: bool = True) -> CaseVerdict:
    """Run an engine on a recording and compare; without the steps, the binlogs alone tell what was applied when."""
    undecided = 0
    try:
        differences, undecided = _differences(recording, engine, use_steps=use_steps)
        status, detail = CaseStatus.FAIL if differences else CaseStatus.PASS, _first(differences)
    except NotBuiltError as error:
        status, detail = CaseStatus.NOT_YET, str(error)
    except (ConflictError, FormatError) as error:
        status, detail = CaseStatus.FAIL, str(error)
    return CaseVerdict(recording.part, recording.case, engine, status, detail, undecided)


def _differences(recording: Recording, engine: str, *, use_steps: bool) -> tuple[list[str], int]:
    """
    Return all differences, and how many decisions the binlogs leave open.

    Raises:
        NotBuiltError: Recordings of this kind cannot be judged.
    """
    if recording.kind is RecordingKind.CONFLICT:
        return _conflict_differences(ConflictCase.load(recording.path), engine, use_steps=use_steps)
    if recording.kind is RecordingKind.FORMAT:
        return list(format_differences(recording.path)), 0
    if recording.kind is RecordingKind.BINLOG:
        return list(binlog_differences(recording.path)), 0
    message = "which statements are logged, and how large events are, is not modelled"
    raise NotBuiltError(message)


def _first(differences: Sequence[str]) -> str:
    more = f" (and {len(differences) - 1} more differences)" if len(differences) > 1 else ""
    return f"{differences[0]}{more}" if differences else ""


def _conflict_differences(case: ConflictCase, engine: str, *, use_steps: bool) -> tuple[list[str], int]:
    configuration, expected = case.configuration(), case.expected
    with tempfile.TemporaryDirectory() as folder:
        out = Folder(folder)
        hints_of = (lambda summaries: hints_of_steps(case.steps, summaries)) if use_steps else None
        run = ENGINES[engine](configuration, out, hints_of)
        results = _read_results(configuration, out, run)
    database, setups = case.scenario["database"], configuration.setups()
    differences = [
        *run.errors.values(),
        *(line for side, want in expected.items() for line in setup_differences(side, want, setups[side])),
        *result_differences(expected, database, results, setups, run.summary.counter_ranges),
    ]
    return differences, sum(run.summary.undecided.values()) + sum(each.rows for each in run.settled)


def _read_results(configuration: Configuration, out: Folder, run: Run) -> dict[str, ClusterResult]:
    results = {}
    for name, setups in configuration.setups().items():
        result = ClusterResult(counters=run.summary.counters[name], stop=run.summary.stops.get(name))
        for table, setup in setups.items():
            if setup.refusal is None:
                result.rows[table] = read_rows(out, f"rows/{name}/{table}", setup.table)
        for definition in configuration.schema.tables:
            # An exceptions table that no function writes to stays empty, whatever is wrong with its definition.
            if definition.full_name not in setups:
                path = exceptions_path(name, definition.full_name)
                result.exceptions[definition.full_name] = read_rows(out, path, definition)
        results[name] = result
    return results


def verdicts_json(verdicts: Sequence[CaseVerdict]) -> dict[str, Any]:
    """Return verdicts as a document."""
    counts = Counter(verdict.status for verdict in verdicts)
    return {
        "counts": {status.value: counts[status] for status in CaseStatus},
        "cases": [attrs.asdict(verdict) for verdict in verdicts],
    }
