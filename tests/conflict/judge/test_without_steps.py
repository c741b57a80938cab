"""The schedule from the binlogs alone: recordings judged without what their steps tell."""

from collections import Counter
from copy import deepcopy
from functools import cache
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.judge.case import ConflictCase, find_recordings
from conflict.judge.judge import CaseStatus, judge_all, judge_recording
from conflict.judge.judged_run import JudgedRun
from conflict.runs.pipeline import run_by
from tests.corpora import RECORDINGS, SHARED

BUNDLED = RECORDINGS / "conflict"
CASES = [found.case for found in find_recordings(BUNDLED) if not found.case.startswith(("parse", "replication_table"))]
# Circular or wrong if untraced epochs were placed as early as possible; a replica set back; stops; unique values.
LOCAL = [
    "max_del_win_ins/rewound_type7",
    "max/probe_type8",
    "old/probe_type6",
    "old/unique_key_type7",
    "epoch2_trans/spanning_text_table_type7",
]
SEEDS = range(200)


@pytest.mark.parametrize("case", CASES)
def test_the_reference_engine_agrees_without_steps(case: str) -> None:
    """It agrees as it is, or by candidates."""
    (found,) = find_recordings(BUNDLED / case)
    verdict = judge_recording(found, "reference", use_steps=False)
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


@pytest.mark.parametrize("case", LOCAL)
def test_the_local_engine_agrees_without_steps(case: str) -> None:
    """The columnar engine places the same epochs, from the rows that they touch."""
    (found,) = find_recordings(BUNDLED / case)
    verdict = judge_recording(found, "local", use_steps=False)
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


@cache
def judged(case: str) -> tuple[JudgedRun, dict[str, Any]]:
    """Return a bundled case, resolved without steps, and its recording."""
    loaded = ConflictCase.load(BUNDLED / case)
    with TemporaryDirectory() as folder:
        run = run_by("reference", make_run(loaded.configuration()), Folder(folder))
        return JudgedRun.read(loaded, Folder(folder), run), loaded.expected


def changed(expected: dict[str, Any], chance: Random) -> tuple[dict[str, Any], str] | None:
    """Return a recording with one value, row or counter changed, and what it was; None if there is nothing of it."""
    wrong = deepcopy(expected)
    side = chance.choice(sorted(wrong))
    kind = chance.choice(["value", "row", "counter", "exceptions value", "exceptions row"])
    if kind == "counter":
        counters = wrong[side]["status_difference"]
        counters[chance.choice(sorted(counters))] += chance.choice([-3, -1, 1, 3])
        return wrong, kind
    tables = wrong[side]["exceptions" if kind.startswith("exceptions") else "tables"]
    rows = chance.choice([tables[name]["rows"] for name in sorted(tables)] or [[]])
    if not rows:
        return None
    place = chance.randrange(len(rows))
    if kind.endswith("row"):
        del rows[place]
        return wrong, kind
    # The fourth column of an exceptions row is its number, which passes that are rolled back can move.
    columns = [at for at, value in enumerate(rows[place]) if isinstance(value, int) and (at != 3 or kind == "value")]
    if not columns:
        return None
    rows[place][chance.choice(columns)] += 1
    return wrong, kind


def test_a_wrong_recording_does_not_pass() -> None:
    """200 seeded changes of a row, a counter or an exceptions row: none lies inside the joint candidates."""
    tried, inside = Counter[str](), []
    for seed in SEEDS:
        chance = Random(seed)
        found = None
        while found is None:
            case = chance.choice(CASES[::3])
            run, expected = judged(case)
            found = changed(expected, chance)
        wrong, kind = found
        tried[kind] += 1
        comparison = run.compare(wrong)
        if not comparison.differences:
            assert comparison.by_candidates, (seed, case, kind)
            inside.append((seed, case, kind))
    assert sum(tried.values()) == 200
    assert inside == []


@pytest.mark.slow
@pytest.mark.corpus("conformance/conflict")
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_every_recording_of_the_corpus_agrees_without_steps(engine: str) -> None:
    """All functions, and the rows of mysql.ndb_replication."""
    verdicts = judge_all(find_recordings(SHARED / "conformance" / "conflict"), engine, use_steps=False)
    assert {verdict.case: verdict.detail for verdict in verdicts if verdict.status is not CaseStatus.PASS} == {}
