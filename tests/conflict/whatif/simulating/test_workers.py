"""Parallel workers of simulated appliers: held against schedules of epochs, laws of all runs, and recordings."""

from pathlib import Path

import numpy as np
import pytest

import conflict
from conflict.whatif.simulating.configuration import ApplierSettings, Model, ModelTable, Site
from conflict.whatif.simulating.kernels.world import Wish
from conflict.whatif.simulating.report import figures_of
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.workload import Mix, Workload
from conflict.whatif.workers import LoggedRows, speedup, waits_for
from tests.conflict.cli.commands import invoke
from tests.conflict.whatif.simulating.models import in_parallel, random_model, random_network
from tests.corpora import SHARED

SECOND, MILLISECOND = 1_000_000, 1000
UPDATES = Workload((60.0,), Mix({Wish.UPDATE: 1.0}))
NOTHING = Workload((0.0,), Mix({Wish.UPDATE: 1.0}))
RECORDED = ("live_workers", "live_compressed_workers")  # with 4 and 8 workers


def waiting(workers: int, records: int) -> Simulated:
    """Simulate an applier that begins when all epochs have arrived."""
    applier = ApplierSettings(per_row=20 * MILLISECOND, stops=((0, 4 * SECOND),), workers=workers)
    first, second = Site("A", 1, NOTHING, applier=applier), Site("B", 2, UPDATES, logs_dependencies=True)
    return simulate(Model((first, second), (ModelTable("t", records),), 2 * SECOND), 3)


@pytest.mark.parametrize("workers", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("records", [5, 100, 2000])
def test_epochs_that_wait_together(workers: int, records: int) -> None:
    """They take as long as the command `workers` says of them, by the rows that they have in common."""
    run = waiting(workers, records)
    epochs = run.world.epochs[1, : int(run.world.site[1]["logged"])]
    epochs = epochs[epochs["last"] > epochs["first"]]
    chosen = np.flatnonzero(epochs["closed"] > run.start)
    sizes = (epochs["last"] - epochs["first"])[chosen]
    rows = np.concatenate([np.arange(*each) for each in epochs[["first", "last"]][chosen].tolist()])
    keys = run.world.changes.rows["key"][rows].astype(np.int64)
    _, waits = waits_for(LoggedRows(np.repeat(np.arange(len(sizes)), sizes), keys, np.zeros(len(keys), np.int64)))
    costs = sizes * 20 * MILLISECOND
    taken = run.world.taken[0, : int(run.world.site[0]["next_foreign"])]
    took = int(taken["applied"].max()) - (run.start + 4 * SECOND)
    assert took == round(int(costs.sum()) / speedup(costs, waits, workers))
    if workers > 1 and records > 5:
        assert took < costs.sum()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("workers", [2, 5])
def test_laws_of_all_runs(seed: int, workers: int) -> None:
    """Epochs begin and commit in their order, as many at a time as there are workers, after those with their rows."""
    draw = random_model if seed % 2 else random_network
    run = simulate(in_parallel(draw(seed, SECOND), workers), seed)
    for here, site in enumerate(run.world.site):
        source = int(run.world.settings[here]["source"])
        taken = run.world.taken[here, : int(site["next_foreign"])]
        assert (np.diff(taken["begun"]) >= 0).all()
        assert (np.diff(taken["applied"]) >= 0).all()
        assert (taken["begun"][workers:] >= taken["applied"][:-workers]).all()
        last = dict[int, int]()
        for place, epoch in enumerate(run.world.epochs[source, : len(taken)] if source >= 0 else ()):
            rows = run.world.changes.rows[int(epoch["first"]) : int(epoch["last"])]
            for key in rows["key"][rows["relayed"] != here + 1].tolist():
                assert taken["begun"][place] >= taken["applied"][last.get(key, place)] or last.get(key, place) == place
                last[key] = place


@pytest.mark.parametrize("seed", range(4))
def test_without_logged_dependencies_they_bring_nothing(seed: int) -> None:
    """By the log of the source, each epoch waits for the one before."""
    model = random_model(seed, SECOND)
    alone, several = (figures_of(simulate(each, seed)) for each in (model, in_parallel(model, 8, logged=False)))
    assert alone == several


@pytest.mark.corpus("conformance")
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_workers(name: str) -> None:
    """Without ndb_log_transaction_dependency each epoch waits for the one before, in the log as in the model."""
    cases = sorted(each.parent for each in Path(SHARED, "conformance", "operations", name).glob("*/scenario.json"))
    assert cases
    for case in cases:
        run = conflict.load_run_file(case)
        for cluster in run.configuration.clusters:
            variables = cluster.given_variables
            assert variables["ndb_log_transaction_dependency"] == "OFF"
            assert int(variables["replica_parallel_workers"]) in (4, 8)
        found = conflict.workers(run).clusters
        assert {times for each in found.values() for times in (each.logged or {0: 0.0}).values()} == {1.0}


def test_what_is_said_of_settings(tmp_path: Path) -> None:
    """Of workers that bring nothing, and of bits that cost conflicts; of neither if they are right."""
    text = """
        seconds = 1
        function = "NDB$EPOCH(2)"
        [clusters.A.applier]
        workers = 4
        [clusters.B]
    """
    (tmp_path / "model.toml").write_text(text)
    code, said = invoke("simulate", tmp_path / "model.toml")
    assert code == 0
    words = " ".join(said.split())
    assert "The 4 workers of A bring nothing: B has ndb_log_transaction_dependency = OFF" in words
    assert "NDB$EPOCH(2) keeps 2 bits" in words
    assert "a global checkpoint has 20 epochs" in words
    right = text.replace("EPOCH(2)", "EPOCH(5)").replace(
        "[clusters.B]", "[clusters.B]\nndb_log_transaction_dependency=true"
    )
    (tmp_path / "model.toml").write_text(right)
    _, said = invoke("simulate", tmp_path / "model.toml")
    assert "bring nothing" not in said
    assert "bits of the number" not in said
