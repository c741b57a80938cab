"""Live load: the binlogs alone explain what the appliers did, and both engines find the same."""

from functools import cache
from tempfile import TemporaryDirectory

import pytest

from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.judge.case import ConflictCase, find_recordings
from conflict.judge.judge import CaseStatus, judge_all
from conflict.judge.judged_run import JudgedRun
from conflict.runs.pipeline import ENGINES, ResolveOptions
from tests.corpora import RECORDINGS, SHARED

# Rows judged earlier, epochs gone through again, open moments; and the same with transactions and reflected rows.
CASES = ["live_2_epoch_type8", "live_3_epoch2_trans_type7"]


@cache
def resolved(case: str, engine: str) -> JudgedRun:
    """Resolve a bundled run without steps."""
    loaded = ConflictCase.load(RECORDINGS / "lives" / case)
    with TemporaryDirectory() as folder:
        options = ResolveOptions(whole_open_epochs=True)
        run = ENGINES[engine](make_run(loaded.configuration()), Folder(folder), options=options)
        return JudgedRun.read(loaded, Folder(folder), run)


@pytest.mark.parametrize("case", CASES)
def test_the_binlogs_explain_it(case: str) -> None:
    """No change by an applier is left unexplained; rows are those recorded, and all else is among the candidates."""
    judged = resolved(case, "reference")
    assert judged.resolved.summary.contradicted == 0
    assert len(judged.resolved.settled) == 2
    found = judged.compare(ConflictCase.load(RECORDINGS / "lives" / case).expected)
    assert (found.differences, found.by_candidates) == ([], True)


@pytest.mark.parametrize("case", CASES)
def test_both_engines_find_the_same(case: str) -> None:
    """Rows, exceptions, counters and their ranges, and what is open."""
    one, other = resolved(case, "reference"), resolved(case, "local")
    for side, result in one.results.items():
        assert result.counters == other.results[side].counters
        assert {name: sorted(rows, key=str) for name, rows in result.rows.items()} == {
            name: sorted(rows, key=str) for name, rows in other.results[side].rows.items()
        }
        assert result.exceptions == other.results[side].exceptions
    assert one.resolved.settled == other.resolved.settled
    first, second = one.resolved.summary, other.resolved.summary
    assert (first.contradicted, first.counter_ranges) == (second.contradicted, second.counter_ranges)
    assert [(each.applier, each.position, each.rows) for each in sorted(first.open_epochs, key=str)] == [
        (each.applier, each.position, each.rows) for each in sorted(second.open_epochs, key=str)
    ]


@pytest.mark.slow
@pytest.mark.corpus("conformance/lives")
@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("use_steps", [True, False])
def test_every_live_run(engine: str, use_steps: bool) -> None:
    """All of the corpus agree, as they are or by candidates."""
    verdicts = list(judge_all(find_recordings(SHARED / "conformance" / "lives"), engine, use_steps=use_steps))
    assert [each.detail for each in verdicts if each.status is not CaseStatus.PASS] == []
