"""`compare` on recordings whose first files were purged: what it counts is what the whole recording gives."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import conflict
from conflict.engine.columnar.bucket_round import with_own_causes
from conflict.engine.kernels.lost_changes import TimedDecisions, lost_changes
from conflict.judge.case import ConflictCase, find_recordings
from conflict.whatif.comparing import compare_tasks
from conflict.whatif.comparing.comparison import Comparison
from conflict.whatif.comparing.known_part import DecidedBucket, KnownPart
from conflict.whatif.comparing.telling import tell_comparison
from tests.conflict.cli.commands import invoke
from tests.conflict.purged_logs import purged, purged_demo
from tests.conflict.whatif.comparing.recorded import compared
from tests.corpora import DEMO, RECORDINGS, SHARED

FUNCTIONS = "NDB$EPOCH(),NDB$EPOCH_TRANS(),NDB$EPOCH2_TRANS(),NDB$OLD(x),NDB$MAX_DEL_WIN_INS(x),LAST_COMMIT,OVERWRITE"


@attrs.define
class Watch:
    """
    What became of each change under each pair, as it was decided bucket by bucket.

    Attributes:
        found: By pair in the order of the decisions, and by cluster, epoch and number: whether the change was compared,
            its verdicts, and whether it was lost by a rejection and by being overwritten.
    """

    found: list[dict[tuple[str, int, int], tuple[bool, list[tuple[int, int]], bool, bool]]] = attrs.field(factory=list)

    def add(self, place: int, made: DecidedBucket, known: KnownPart | None, written: Any) -> None:
        """Take what was decided of a bucket under a pair."""
        self.found += [{} for _ in range(place + 1 - len(self.found))]
        decisions, rows = made.folded.decisions, made.bucket.rows
        judged = with_own_causes(made.folded, made.clusters, made.applies, made.bucket.key_table)
        timed = TimedDecisions(made.applies.applier, made.folded.own_end, judged)
        lost = lost_changes(timed, [each.key for each in rows], written, len(made.bucket.key_table))
        lost = lost if known is None else known.lost
        applier = made.applies.applier[decisions.apply]
        for side, cluster in enumerate(made.clusters):
            verdicts: dict[int, list[tuple[int, int]]] = {}
            for each in np.flatnonzero((decisions.source >= 0) & (applier == 1 - side)).tolist():
                verdict = int(decisions.verdict[each]), int(decisions.cause[each])
                verdicts.setdefault(int(decisions.source[each]), []).append(verdict)
            compares = np.ones(len(rows[side]), np.bool_) if known is None else known.own[side]
            for number, (epoch, ordinal) in enumerate(
                zip(rows[side].epoch.tolist(), rows[side].ordinal.tolist(), strict=True)
            ):
                self.found[place][cluster.name, epoch, ordinal] = (
                    bool(compares[number]),
                    verdicts.get(number, []),
                    bool(lost[side].rejected[number]),
                    bool(lost[side].overwritten[number]),
                )


def watched(monkeypatch: pytest.MonkeyPatch, case: ConflictCase, *, cut: bool = False) -> tuple[Comparison, Watch]:
    """Compare a recording, or the rest of one, and keep what became of each change under pairs that do not stop."""
    watch, plain = Watch(), compare_tasks._figures
    counts: dict[int, int] = {}

    def figures(loaded: Any, made: DecidedBucket, decided: Any, known: KnownPart | None = None) -> Any:
        place = counts.setdefault(made.bucket.number, 0)
        counts[made.bucket.number] += 1
        watch.add(place, made, known, loaded.written)
        return plain(loaded, made, decided, known)

    with monkeypatch.context() as patched:
        patched.setattr(compare_tasks, "_figures", figures)
        found = compared(case, FUNCTIONS, empty=None if cut else True)
    assert not any(row.figures is None or row.figures.stops for row in found.rows)
    return found, watch


def assert_as_the_whole(whole: Watch, cut: tuple[Comparison, Watch]) -> int:
    """Check every change that was compared; return how many there are under one pair."""
    found, watch = cut
    counts = set()
    for mine, every in zip(watch.found, whole.found, strict=True):
        compares = {name: each for name, each in mine.items() if each[0]}
        assert {name: each[1:] for name, each in compares.items()} == {name: every[name][1:] for name in compares}
        counts.add(len(compares))
    assert counts == {found.compared}, "the same changes count under all pairs"
    for row in found.rows:
        assert row.figures is not None
        assert sum(row.figures.compared.values()) == found.compared
        assert row.figures.conflicts >= sum(each[0] for each in row.figures.lost.values())
    return found.compared


def live_3() -> ConflictCase:
    """Return a live run under NDB$EPOCH2_TRANS whose images have all columns."""
    return ConflictCase.load(RECORDINGS / "lives" / "live_3_epoch2_trans_type7")


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.2, 0.2), (0.5, 0.4), (0, 0.5)])
def test_a_live_run(shares: tuple[float, float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Transactions are judged; most changes after the first fifth are compared."""
    case = live_3()
    whole = watched(monkeypatch, case)[1]
    cut = watched(monkeypatch, purged(case, tmp_path / "cut", shares), cut=True)
    assert assert_as_the_whole(whole, cut) > (0.3 * cut[0].changes if shares == (0.2, 0.2) else 0)


@pytest.mark.slow
@pytest.mark.corpus("conformance/lives")
def test_every_live_run_of_type_7(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same of the corpus; images of other types lack columns, and pairs stop."""
    for each in find_recordings(SHARED / "conformance" / "lives"):
        case = ConflictCase.load(each.path)
        if not case.path.name.endswith("type7"):
            continue
        whole = watched(monkeypatch, case)[1]
        for number, shares in enumerate([(0.2, 0.2), (0.5, 0.5), (0.2, 0.8)]):
            folder = tmp_path / case.path.name / str(number)
            assert_as_the_whole(whole, watched(monkeypatch, purged(case, folder, shares), cut=True))


@pytest.fixture
def late(tmp_path: Path) -> Path:
    """Return a run file of the demo whose logs lack their first third."""
    return purged_demo(tmp_path / "late", 1 / 3)


def test_it_is_said_once(late: Path, tmp_path: Path) -> None:
    """On the terminal, in the document, and on the page of a report: how many changes could not be compared."""
    functions = "NDB$EPOCH(),NDB$MAX_DELETE_WIN(x),OVERWRITE"
    code, output = invoke("compare", late, "--functions", functions, "--out", tmp_path / "out")
    found = conflict.compare(late, functions=functions)
    document = found.to_json()
    assert code == 0
    assert 0 < found.compared < found.changes
    said = f"of {found.changes} changes {found.changes - found.compared} could not be compared"
    assert output.count("start in the middle") == 1
    assert said in output
    assert f"{found.compared} of {found.changes} changes" in output
    assert set(document["starts_in_the_middle"]) == {"A", "B"}
    assert (document["changes"], document["compared_changes"]) == (found.changes, found.compared)
    assert {each["compared_changes"] for each in found.to_arrow().to_pylist()} == {found.compared}
    assert invoke("report", tmp_path / "out", "--out", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("start in the middle") == 1
    assert f"{found.compared} of {found.changes} changes of users" in page


def test_the_share_is_of_what_was_compared(late: Path) -> None:
    """Not of all changes."""
    found = conflict.compare(late, functions=["NDB$EPOCH()", "NDB$EPOCH2()"])
    lost = found.rows[0].figures
    assert lost is not None
    said = tell_comparison(found.to_json())
    assert (
        said.headline == f"Which function loses least is not known: {found.compared} of 54 changes could be compared."
    )
    assert found.compared == 1


def test_nothing_is_left_to_compare(tmp_path: Path) -> None:
    """One epoch of each log shows nothing of what was before: no function is said to be best."""
    purged_demo(tmp_path / "late", 1)
    text = (tmp_path / "late" / "run.toml").read_text()
    (tmp_path / "late" / "run.toml").write_text(f'start = "middle"\n{text}')
    found = conflict.compare(tmp_path / "late" / "run.toml", functions=["NDB$EPOCH()", "NDB$EPOCH2()"])
    told = tell_comparison(found.to_json())
    assert (found.compared, told.headline) == (0, "")
    assert any("There is none left to compare" in each for each in told.sentences)


def test_a_log_from_the_start_says_nothing_of_it() -> None:
    """All changes count."""
    found: Mapping[str, Any] = conflict.compare(DEMO / "run.toml", functions=["OVERWRITE"]).to_json()
    assert (found["starts_in_the_middle"], found["compared_changes"]) == ({}, found["changes"])
    assert "middle" not in "".join(tell_comparison(found).sentences)
