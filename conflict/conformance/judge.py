"""
Finds recorded cases below a folder and judges an engine by each.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from conflict.conformance.case import ConflictCase
from conflict.conformance.expectation import differences
from conflict.conformance.format_case import binlog_differences, format_differences
from conflict.conformance.setup_words import setup_differences
from conflict.errors import ConflictError, NotBuiltError
from conflict.grid.folder import Folder
from conflict.history.steps import hints_of_steps
from conflict.pipeline import ENGINES, Run
from conflict.results.files import read_rows
from conflict.results.layout import exceptions_path
from conflict.results.model import ClusterResult
from ndb_formats.errors import FormatError

__all__ = ["FoundCase", "Verdict", "find_cases", "judge", "report", "to_json"]

PASS, FAIL, NOT_YET = "pass", "fail", "not yet"
# A folder is a case if it holds one of these; the first that fits decides its kind.
_MARKERS = ("scenario.json", "statements.json", "decisions.json", "result.json", "sizes.json")


@attrs.frozen
class FoundCase:
    """
    A case on disk.

    Attributes:
        path: Its folder.
        part: First folders of the corpus that it belongs to: ``conflict``, ``live``, ``formats/ndb``, ...
        case: Its folder below the one that was searched.
    """

    path: Path
    part: str
    case: str


@attrs.frozen
class Verdict:
    """
    How an engine did on a case.

    Attributes:
        part: First folders of the corpus that the case belongs to.
        case: Its folder.
        engine: The engine.
        status: Passed, failed, or not judged yet.
        detail: The first difference, or why the case is not judged yet.
        undecided: How many decisions its binlogs leave open. A case with any is judged by what may have been.
    """

    part: str
    case: str
    engine: str
    status: str
    detail: str
    undecided: int = 0


def find_cases(folder: Path) -> list[FoundCase]:
    """Return every case at or below a folder, in order."""
    found = []
    for path in sorted({marker.parent for name in _MARKERS for marker in folder.rglob(name)}):
        case = path.relative_to(folder).as_posix()
        found.append(FoundCase(path, _part(path), path.name if case == "." else case))
    return found


def _part(path: Path) -> str:
    if (path / "scenario.json").exists():
        return "live" if (path / "transactions.jsonl").exists() else "conflict"
    if (path / "result.json").exists():
        return "binlogs"
    places = path.resolve().parts
    if "formats" in places:
        return "/".join(places[len(places) - places[::-1].index("formats") - 1 :][:2])
    return "formats"


def judge(found: FoundCase, engine: str) -> Verdict:
    """Run an engine on a case and compare."""
    try:
        if (found.path / "scenario.json").exists():
            return _judge_conflict(found, engine)
        status, detail = _judge(found.path)
    except NotBuiltError as error:
        status, detail = NOT_YET, str(error)
    except (ConflictError, FormatError) as error:
        status, detail = FAIL, str(error)
    return Verdict(found.part, found.case, engine, status, detail)


def _judge(path: Path) -> tuple[str, str]:
    if (path / "statements.json").exists():
        return _verdict(list(format_differences(path)))
    if (path / "result.json").exists():
        return _verdict(list(binlog_differences(path)))
    message = "which statements are logged how, and sizes of statements"
    raise NotBuiltError(message)


def _verdict(found: list[str]) -> tuple[str, str]:
    if not found:
        return PASS, ""
    more = f" (and {len(found) - 1} more differences)" if len(found) > 1 else ""
    return FAIL, found[0] + more


def _judge_conflict(found: FoundCase, engine: str) -> Verdict:
    case = ConflictCase.load(found.path)
    configuration = case.configuration()
    with tempfile.TemporaryDirectory() as folder:
        out = Folder(folder)
        run = ENGINES[engine](configuration, out, lambda summaries: hints_of_steps(case.steps, summaries))
        results = _read_results(case, out, run)
    ranges = run.summary.counter_ranges
    database, setups = case.scenario["database"], configuration.setups()
    said = [line for side, want in case.expected.items() for line in setup_differences(side, want, setups[side])]
    different = list(differences(case.expected, database, results, setups, ranges))
    status, detail = _verdict([*run.errors.values(), *said, *different])
    open_questions = sum(run.summary.undecided.values()) + sum(each.rows for each in run.settled)
    return Verdict(found.part, found.case, engine, status, detail, open_questions)


def _read_results(case: ConflictCase, out: Folder, run: Run) -> dict[str, ClusterResult]:
    configuration = case.configuration()
    results = {}
    for name, setups in configuration.setups().items():
        result = ClusterResult(counters=run.summary.counters[name], stop=run.summary.stops.get(name))
        for table, setup in setups.items():
            if setup.refusal is None:
                result.rows[table] = read_rows(out, f"rows/{name}/{table}", setup.table)
        for definition in configuration.schema.tables:
            # A table that no function writes to stays empty, whatever is wrong with its definition.
            path = exceptions_path(name, definition.full_name)
            if definition.full_name not in setups:
                result.exceptions[definition.full_name] = read_rows(out, path, definition)
        results[name] = result
    return results


def report(
    folder: Path, engine: str, progress: Callable[[int, int], None] = lambda done, total: None
) -> Iterator[Verdict]:
    """Judge every case below a folder, one after the other."""
    cases = find_cases(folder)
    for done, found in enumerate(cases):
        progress(done, len(cases))
        yield judge(found, engine)
    progress(len(cases), len(cases))


def to_json(verdicts: list[Verdict]) -> dict[str, Any]:
    """Return verdicts as a document."""
    counts = Counter(verdict.status for verdict in verdicts)
    return {
        "counts": {status: counts.get(status, 0) for status in (PASS, FAIL, NOT_YET)},
        "cases": [attrs.asdict(verdict) for verdict in verdicts],
    }
