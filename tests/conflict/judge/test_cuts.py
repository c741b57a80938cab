"""The rest of a recording that is cut anywhere agrees with the whole, wherever it decides."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer, Span
from conflict.errors import ConflictError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import read_cluster
from conflict.judge.case import ConflictCase, find_recordings
from conflict.runs.pipeline import ENGINES
from tests.conflict.cuts import CutRecording, Figures
from tests.conflict.purged_logs import purged_log
from tests.corpora import RECORDINGS, SHARED
from tests.examples import examples

BUNDLED = sorted(path.parent for path in (RECORDINGS / "conflict").glob("*/*_type*/scenario.json"))
CUTS = 5


@cache
def recording(path: Path) -> CutRecording | None:
    """Return a recording; None if it cannot be resolved, or cannot be cut."""
    try:
        found = CutRecording.load(path)
    except ConflictError:
        return None
    return found if found.agrees and found.places else None


@given(path=st.sampled_from(BUNDLED), place=st.integers(0, 2**16))
@examples(10, long=40)
def test_the_rest_of_a_recording_agrees_with_the_whole(path: Path, place: int) -> None:
    """Outcomes and final rows are those of the whole, or left open."""
    whole = recording(path)
    if whole is not None:
        figures = whole.compare(**dict([whole.places[place % len(whole.places)]]))
        assert (figures.cuts, figures.wrong) == (1, [])


def test_nearly_all_is_decided_with_whole_before_images() -> None:
    """Binlog type 7 logs what a row was before a change."""
    figures = Figures()
    for path in [each for each in BUNDLED if each.name.endswith("_type7")]:
        whole = recording(path)
        if whole is not None:
            for part in (3, 2):
                figures += whole.compare(**dict([whole.places[len(whole.places) // part]]))
    assert figures.wrong == []
    assert figures.compared > 200
    assert figures.cannot_tell < figures.compared / 10


@pytest.mark.slow
@pytest.mark.corpus("conformance/conflict")
def test_all_recordings_of_the_corpus_from_the_middle(record_property: Callable[[str, object], None]) -> None:
    """Each is cut at five places."""
    figures, of_type_7 = Figures(), Figures()
    for found in find_recordings(SHARED / "conformance" / "conflict"):
        whole = recording(found.path)
        if whole is None:
            continue
        for place in Random(found.case).sample(whole.places, min(CUTS, len(whole.places))):
            mine = whole.compare(**dict([place]))
            figures += mine
            if found.case.endswith("_type7"):
                of_type_7 += mine
    for name in ("cuts", "compared", "cannot_tell"):
        record_property(name, getattr(figures, name))
    assert figures.wrong == []
    assert figures.cuts > 1500
    assert of_type_7.cannot_tell < of_type_7.compared / 10


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_logs_without_their_first_files_are_not_contradicted(share: float, engine: str, tmp_path: Path) -> None:
    """
    Both logs lack their first epochs, and not up to one moment, as where two servers purge their files.

    A conflict in the first epochs depends on what had come back to A before. It changed rows in epochs that B had
    applied before B's log starts.
    """
    configuration = ConflictCase.load(RECORDINGS / "lives" / "live_2_epoch_type8").configuration()
    clusters = _purged(configuration, share, tmp_path)
    found = attrs.evolve(configuration, clusters=clusters, span=Span(empty=None))
    resolved = ENGINES[engine](make_run(found), Folder(str(tmp_path / "out")))
    assert resolved.run.span.empty is None
    assert not resolved.contradicted
    assert resolved.summary.compared > 1_000


def test_a_row_is_judged_before_its_change_also_where_others_are_not_known(tmp_path: Path) -> None:
    """
    A's applier deleted nothing in an epoch whose log shows, before it, A's own insert of the row.

    The row was judged before the insert. Other rows of that epoch are older than the log.
    """
    configuration = ConflictCase.load(RECORDINGS / "lives" / "live_2_epoch_type8").configuration()
    cut = attrs.evolve(configuration, span=Span(first={"A": 2061584302082}))
    resolved = ENGINES["local"](make_run(cut), Folder(str(tmp_path)))
    assert not resolved.contradicted
    assert resolved.summary.compared > 1_000


def test_a_secondary_rejects_no_transactions_also_from_the_middle(tmp_path: Path) -> None:
    """
    B, the secondary, applied no update of a row that it had deleted and inserted again before the commit.

    The row was judged in between. Other rows of that epoch are older than the logs; none is rejected with it.
    """
    configuration = ConflictCase.load(RECORDINGS / "lives" / "live_3_epoch2_trans_type7").configuration()
    found = attrs.evolve(configuration, clusters=_purged(configuration, 0.2, tmp_path), span=Span(empty=None))
    resolved = ENGINES["reference"](make_run(found), Folder(str(tmp_path / "out")))
    assert resolved.starts
    assert not resolved.contradicted
    assert resolved.summary.compared > 1_000


@pytest.mark.slow
@pytest.mark.corpus("conformance/lives")
def test_live_runs_that_are_read_from_a_moment_on_are_not_contradicted(tmp_path: Path) -> None:
    """Each from three seconds on; transactions are judged though rows of others in their epoch are not known."""
    for number, found in enumerate(find_recordings(SHARED / "conformance" / "lives")):
        configuration = ConflictCase.load(found.path).configuration()
        run = make_run(configuration)
        times = sorted(each.committed for each in read_cluster(run.clusters[0], run).epochs if each.committed)
        for place in (4, 2, 1.5):
            moment = times[int(len(times) / place)] // 1_000_000
            cut = attrs.evolve(configuration, span=Span(empty=None, first_time=moment))
            resolved = ENGINES["local"](make_run(cut), Folder(str(tmp_path / f"{number}-{place}")))
            assert not resolved.contradicted, (found.path, moment)


def _purged(configuration: Configuration, share: float, folder: Path) -> tuple[ClusterConfiguration, ...]:
    """Return the clusters without the first epochs of each log."""
    clusters = []
    for each in configuration.clusters:
        (whole,) = each.files
        file = purged_log(whole, each.server_id, share, folder / f"{each.name}.000002")
        clusters.append(attrs.evolve(each, servers=(LoggingServer(each.server_id, (file,)),)))
    return tuple(clusters)
