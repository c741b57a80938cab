"""Both engines against recordings in which definitions change, or differ between the clusters."""

import pytest

from conflict.judge.case import find_recordings
from conflict.judge.judge import CaseStatus, judge_recording
from tests.corpora import RECORDINGS

BUNDLED = RECORDINGS / "everyday"
CASES = [found.case for found in find_recordings(BUNDLED)]


@pytest.mark.parametrize("use_steps", [True, False], ids=["steps", "binlogs alone"])
@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("case", CASES)
def test_both_engines_agree_with_the_real_clusters(case: str, engine: str, *, use_steps: bool) -> None:
    """In rows, exceptions, counters, stops and messages on tables that are set up again."""
    (found,) = find_recordings(BUNDLED / case)
    verdict = judge_recording(found, engine, use_steps=use_steps)
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")
