"""
Judges an engine by recordings, one verdict per case.

Without the steps of a recording, its replicas may have been set back: they apply epochs again. Where that changes
nothing, no binlog shows it, nor how often it happened, nor after which epoch. How often is taken from the recording, as
all that is compared; the epochs are tried.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import islice, product
from typing import Any

import attrs

from conflict.errors import ConflictError, NotBuiltError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.scheduling.hints import hints_of_steps
from conflict.history.scheduling.schedule import ClusterHints, Hint, Hints, HintsOf
from conflict.history.scheduling.summaries import Summary
from conflict.judge.case import ConflictCase, Recording, RecordingKind
from conflict.judge.format_differences import binlog_differences, format_differences
from conflict.judge.judged_run import JudgedComparison, compare_readings, read_readings
from conflict.judge.logging_differences import judge_decisions, logging_counts, logging_differences
from conflict.judge.other_resolver import OtherDecisions, decide_otherwise
from conflict.judge.size_differences import size_differences
from conflict.rules.functions import FunctionSpec
from conflict.runs.pipeline import ENGINES, ResolveOptions
from ndb_formats.errors import FormatError

_MOST = 200
Asked = tuple[str, Sequence[FunctionSpec]]  # a resolver as `conflict_fn` has it, and the known functions


def set_back_candidates(
    steps: Sequence[Mapping[str, Any]], summaries: Mapping[str, Sequence[Summary]]
) -> Iterator[ClusterHints]:
    """
    Yield what the epochs may have been after which replicas were set back, 200 times at most; the vaguest come first.

    Args:
        steps: Steps of a scenario; if no replica was set back in them, there are no candidates.
        summaries: Per cluster, its own epochs.
    """
    times = Counter(step["applier"] for step in steps if step.get("action") == "rewind")
    if not times:
        return
    arriving = {
        name: [each.number for other in summaries if other != name for each in summaries[other]] for name in summaries
    }
    ways = [product([None, *arriving[name]], repeat=times[name]) for name in summaries]
    known = sorted(product(*ways), key=lambda way: sum(last is not None for lasts in way for last in lasts))
    for way in islice(known, _MOST):
        yield {name: _hints(arriving[name], lasts) for name, lasts in zip(summaries, way, strict=True)}


def _hints(epochs: Sequence[int], lasts: Sequence[int | None]) -> Hints:
    """Return what is known if an applier was set back after each of some epochs; None for one that is not known."""
    never = Hint(applied=False)
    return [{epoch: never for epoch in epochs if last is not None and epoch > last} for last in (*lasts, None)]


class CaseStatus(StrEnum):
    """Whether an engine agrees with a recording."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    FAIL = "fail"
    NOT_YET = "not yet"
    DIFFERS = "differs"  # of a resolver that decides otherwise than the clusters did


@attrs.frozen
class CaseVerdict:
    """
    How an engine did on a case.

    Attributes:
        part: Part of the corpus that the case belongs to.
        case: Its folder.
        engine: The engine.
        status: Passed, failed, or not judged yet.
        detail: The first difference, or why the case is not judged yet, or counts of what passed.
        undecided: How many decisions its binlogs leave open.
        by_candidates: Whether it agrees only with other candidates of these than those that were chosen.
        function: The recorded function; None where the recording is of none.
        binlog_type: The NDB binlog type of its tables; None likewise.
        anomaly: What happens in it.
        other: What a resolver decides in its place.
    """

    part: str
    case: str
    engine: str
    status: CaseStatus
    detail: str
    undecided: int = 0
    by_candidates: bool = False
    function: str | None = None
    binlog_type: int | None = None
    anomaly: str | None = None
    other: OtherDecisions | None = None


def judge_all(
    recordings: Sequence[Recording],
    engine: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    use_steps: bool = True,
    resolver: Asked | None = None,
) -> Iterator[CaseVerdict]:
    """Judge an engine, or a resolver, by recordings, one after the other; see `judge_recording`."""
    if resolver is not None:
        recordings = [each for each in recordings if each.kind is RecordingKind.CONFLICT]
    for done, recording in enumerate(recordings):
        progress(done, len(recordings))
        verdict = (
            judge_recording(recording, engine, use_steps=use_steps)
            if resolver is None
            else judge_resolver(recording, resolver)
        )
        yield attrs.evolve(verdict, **_about(recording))
    progress(len(recordings), len(recordings))


_SETTING = re.compile(r"_type\d+|_\d+")


def _about(recording: Recording) -> dict[str, Any]:
    """Return function, binlog type and anomaly of a recording of clusters in conflict."""
    if recording.kind is not RecordingKind.CONFLICT:
        return {}
    scenario = json.loads((recording.path / RecordingKind.CONFLICT.value).read_text("utf-8"))
    what = _SETTING.sub("", recording.path.name).replace("_", " ")
    return {"function": scenario.get("fn"), "binlog_type": scenario.get("binlog_type"), "anomaly": what}


def judge_resolver(recording: Recording, resolver: Asked) -> CaseVerdict:
    """Compare what a resolver decides with what the clusters of a recording decided."""
    made = partial(CaseVerdict, recording.part, recording.case, "reference")
    try:
        other = decide_otherwise(ConflictCase.load(recording.path), *resolver)
    except NotBuiltError as error:
        return made(CaseStatus.NOT_YET, str(error))
    except (ConflictError, FormatError) as error:
        return made(CaseStatus.FAIL, str(error))
    status = CaseStatus.DIFFERS if other.differences else CaseStatus.PASS
    return made(status, _first([str(each) for each in other.differences]), other=other)


def judge_recording(recording: Recording, engine: str, *, use_steps: bool = True) -> CaseVerdict:
    """Run an engine on a recording and compare; without the steps, the binlogs alone tell what was applied when."""
    if recording.kind is RecordingKind.LOGGING:
        return _logging_verdict(recording, engine)
    found = JudgedComparison([])
    try:
        found = _compare(recording, engine, use_steps=use_steps)
        status, detail = CaseStatus.FAIL if found.differences else CaseStatus.PASS, _first(found.differences)
    except NotBuiltError as error:
        status, detail = CaseStatus.NOT_YET, str(error)
    except (ConflictError, FormatError) as error:
        status, detail = CaseStatus.FAIL, str(error)
    return CaseVerdict(
        recording.part, recording.case, engine, status, detail, found.undecided, by_candidates=found.by_candidates
    )


def _logging_verdict(recording: Recording, engine: str) -> CaseVerdict:
    verdicts = judge_decisions(recording.path)
    differences = logging_differences(verdicts)
    status, detail = CaseStatus.FAIL if differences else CaseStatus.PASS, _first(differences)
    return CaseVerdict(recording.part, recording.case, engine, status, detail or logging_counts(verdicts))


def _compare(recording: Recording, engine: str, *, use_steps: bool) -> JudgedComparison:
    """Compare an engine with a recording."""
    if recording.kind is RecordingKind.CONFLICT:
        return _compare_conflict(ConflictCase.load(recording.path), engine, use_steps=use_steps)
    if recording.kind is RecordingKind.FORMAT:
        return JudgedComparison(list(format_differences(recording.path)))
    if recording.kind is RecordingKind.BINLOG:
        return JudgedComparison(list(binlog_differences(recording.path)))
    return JudgedComparison(list(size_differences(recording.path / recording.kind.value)))


def _first(differences: Sequence[str]) -> str:
    more = f" (and {len(differences) - 1} more differences)" if len(differences) > 1 else ""
    return f"{differences[0]}{more}" if differences else ""


def _compare_conflict(case: ConflictCase, engine: str, *, use_steps: bool) -> JudgedComparison:
    if use_steps:
        return _compare_run(case, engine, lambda summaries: hints_of_steps(case.steps, summaries))
    epochs: dict[str, Sequence[Summary]] = {}

    def note_epochs(summaries: Mapping[str, Sequence[Summary]]) -> ClusterHints:
        epochs.update(summaries)
        return {}

    found = _compare_run(case, engine, note_epochs)
    for hints in set_back_candidates(case.steps, epochs) if found.differences else ():
        other = _compare_run(case, engine, partial(_given, hints))
        if not other.differences:
            return attrs.evolve(other, by_candidates=True)
    return found


def _given(hints: ClusterHints, _: Mapping[str, Sequence[Summary]]) -> ClusterHints:
    return hints


def _compare_run(case: ConflictCase, engine: str, hints_of: HintsOf) -> JudgedComparison:
    with tempfile.TemporaryDirectory() as folder:
        options = ResolveOptions(whole_open_epochs=True)
        run = ENGINES[engine](make_run(case.configuration(), hints_of), Folder(folder), options=options)
        readings = read_readings(case, Folder(folder), run)
    undecided = sum(run.summary.undecided.values()) + sum(each.rows for each in run.settled)
    return compare_readings(readings, case.recorded, undecided)
