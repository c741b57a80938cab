"""A run is decided by one of the engines; what the kernels cannot decide is a value with its reason."""

from pathlib import Path

import attrs
import pytest

from conflict.engine.ledger.careful import CareKind
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import KeptAlone, Run
from conflict.history.tasks import in_threads
from conflict.judge.case import ConflictCase
from conflict.runs.settled import EVERY_KIND, Settled, SettleOptions, settled
from tests.corpora import RECORDINGS

PLAIN = RECORDINGS / "conflict/epoch/before_refresh_type8"
HIDDEN = RECORDINGS / "operations/hidden_changes/hidden_changes_epoch2_trans_type7"


def recorded(path: Path) -> Run:
    """Return the run of a recording, without the steps that made it."""
    return make_run(ConflictCase.load(path).configuration(), lambda _: {})


def options(folder: Path) -> SettleOptions:
    """Return how a run is settled by the kernels alone."""
    return SettleOptions(out=Folder(str(folder / "out")), history=Folder(str(folder / "history")))


def test_what_the_kernels_decide(tmp_path: Path) -> None:
    """Nobody else decides it, and the rest of the result is written at the end."""
    found = settled(recorded(PLAIN), in_threads, attrs.evolve(options(tmp_path), by_reference=EVERY_KIND))
    assert isinstance(found, Settled)
    assert (found.left, found.by_reference, found.resolved.engine) == (None, None, "")
    assert not (tmp_path / "out/applied_epochs").exists()
    found.write()
    assert (tmp_path / "out/applied_epochs").exists()


def test_what_nobody_decides(tmp_path: Path) -> None:
    """The reason is returned, and nothing of a result is left."""
    assert settled(recorded(HIDDEN), in_threads, options(tmp_path)) is CareKind.UNLOGGED_DOUBTS
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_what_the_reference_engine_decides(tmp_path: Path) -> None:
    """It is what that engine decides alone, and the result says why."""
    run, wanted = recorded(HIDDEN), options(tmp_path)
    found = settled(run, in_threads, attrs.evolve(wanted, by_reference={CareKind.UNLOGGED_DOUBTS}))
    alone = settled(run, in_threads, SettleOptions(out=Folder(str(tmp_path / "alone"))))
    assert isinstance(found, Settled)
    assert isinstance(alone, Settled)
    assert (found.left, alone.left) == (CareKind.UNLOGGED_DOUBTS, None)
    assert (found.by_kernels, found.resolved.engine_reason) == (None, CareKind.UNLOGGED_DOUBTS.value.what)
    assert found.resolved.summary == alone.resolved.summary


def test_what_a_history_alone_has(tmp_path: Path) -> None:
    """The reference engine cannot read it, and does not decide on a part of the rows."""
    run, wanted = recorded(HIDDEN), attrs.evolve(options(tmp_path), by_reference=EVERY_KIND)
    by_time = attrs.evolve(run.span, stop_time=1)
    purged = attrs.evolve(run, span=by_time, kept_alone={"A": KeptAlone(("binlog.000001",), 5)})
    with pytest.raises(HistoryError, match=r"binlog\.000001 are in the History alone"):
        settled(purged, in_threads, wanted)
