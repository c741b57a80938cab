"""The reference engine finds in a History what it finds in the binlogs that it was made of."""

from pathlib import Path

import attrs
import pytest

from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.layout import DEFAULT_OPTIONS
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import read_cluster
from conflict.history.run import KeptAlone, Run
from conflict.history.tasks import in_threads
from conflict.judge.case import ConflictCase
from conflict.runs.ingest_job import ingest
from conflict.runs.reference_run import run_in_memory
from conflict.runs.resolving.resolve_job import run_of_part
from conflict.runs.rows.readings_of_history import readings_of_history
from conflict.runs.rows.task_inputs import WHOLE
from conflict.runs.settled import EVERY_KIND, Settled, SettleOptions, settled
from tests.corpora import RECORDINGS

HIDDEN = "operations/hidden_changes/hidden_changes_epoch2_trans_type7"
NAMES = [
    *(HIDDEN, "operations/truncate", "operations/filter_ignore_table", "lives/live_3_epoch2_trans_type7"),
    *("conflict/epoch2_trans", "conflict/max_del_win_ins", "conflict/epoch_trans"),
]


def runs_of(name: str) -> list[Run]:
    """Return the runs of a recording, or of one in a folder: whole, and from the middle of one log."""
    path = RECORDINGS / name
    path = path if (path / "scenario.json").exists() else min(path.iterdir())
    run = make_run(ConflictCase.load(path).configuration(), lambda _: {})
    if run.definitions:  # which are followed in whole logs alone
        return [run]
    epochs = read_cluster(run.clusters[1], run).epochs
    first = {run.clusters[1].name: epochs[len(epochs) // 2].number}
    return [run, attrs.evolve(run, span=attrs.evolve(run.span, first=first, empty=None))]


@pytest.mark.parametrize("name", NAMES)
def test_a_history_tells_what_binlogs_do(name: str, tmp_path: Path) -> None:
    """Figures, counters, doubts and what was under way are equal."""
    for number, run in enumerate(runs_of(name)):
        history, out = Folder(str(tmp_path / f"history-{number}")), Folder(str(tmp_path / f"out-{number}"))
        held = ingest(in_threads, run, history, with_holes=run.span.cuts).manifest
        common = run_of_part(run, history, out, (WHOLE, {}, held), DEFAULT_OPTIONS)
        found, expected = (
            run_in_memory(run, out.below(part), readings=readings)[0]
            for part, readings in (("history", readings_of_history(run, common, held)), ("binlogs", None))
        )
        assert found.to_json("reference") == expected.to_json("reference")
        assert found.summary.counters == expected.summary.counters


def test_binlogs_that_are_gone(tmp_path: Path) -> None:
    """Rows that a History alone has are resolved by the reference engine, if it tells all of them."""
    run, history = runs_of(HIDDEN)[0], Folder(str(tmp_path / "history"))
    held = ingest(in_threads, run, history).manifest
    wanted = SettleOptions(out=Folder(str(tmp_path / "out")), history=history, held=held, by_reference=EVERY_KIND)
    whole = settled(run, in_threads, wanted)
    purged = attrs.evolve(run, kept_alone={"A": KeptAlone(held.files["A"], 5)})
    found = settled(purged, in_threads, attrs.evolve(wanted, out=Folder(str(tmp_path / "purged"))))
    assert isinstance(whole, Settled)
    assert isinstance(found, Settled)
    assert found.left is CareKind.UNLOGGED_DOUBTS
    assert found.resolved.summary == whole.resolved.summary
