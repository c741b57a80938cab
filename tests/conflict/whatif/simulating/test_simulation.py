"""Runs that are small enough to be worked out by hand, and laws of all runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause
from conflict.rules.lost_updates import loses
from conflict.rules.replication_table import Role
from conflict.whatif.simulating.configuration import ApplierSettings, Latency, Link, Model, ModelTable, Site
from conflict.whatif.simulating.figures import counters_of, decisions_by_own_cause, decisions_in_order, lost_in
from conflict.whatif.simulating.kernels.loop import run_until
from conflict.whatif.simulating.kernels.world import Stamp, Wish
from conflict.whatif.simulating.report import figures_of
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.workload import Listed, Mix, Workload
from ndb_formats.columnar.kernel import kernel, with_python_values
from ndb_formats.columnar.kernel_mode import Mode, Process
from tests.conflict.whatif.simulating.models import parallel_network, random_model, random_network

SECOND, MILLISECOND = 1_000_000, 1000
UPDATES = Workload((50.0,), Mix({Wish.UPDATE: 1.0}))
NOTHING = Workload((0.0,), Mix({Wish.UPDATE: 1.0}))


def model(function: str | None, first: Site, second: Site, **table: Any) -> Model:
    """Two seconds of two clusters with one table; its function is on the first cluster."""
    functions = {} if function is None else {"A": function}
    made = ModelTable("t", **{"records": 10, "functions": functions, **table})
    return Model((first, second), (made,), 2 * SECOND)


def site(name: str, workload: Workload = UPDATES, **settings: Any) -> Site:
    return Site(name, 1 + (name == "B"), workload, **settings)


def epochs_of(run: Simulated, side: int) -> np.ndarray:
    """The epochs that a cluster logged since its users began."""
    epochs = run.world.epochs[side, : int(run.world.site[side]["logged"])]
    return epochs[epochs["closed"] > run.start]


def taken_of(run: Simulated, side: int) -> np.ndarray:
    """When the other cluster of a pair began with these epochs, and when it had applied them."""
    logged = int(run.world.site[side]["logged"])
    return run.world.taken[1 - side, logged - len(epochs_of(run, side)) : logged]


def test_the_same_seed_gives_the_same_run() -> None:
    """And another seed another one."""
    made = random_model(7)
    first, second, other = (figures_of(simulate(made, seed)) for seed in (3, 3, 4))
    assert first == second
    assert first != other


@pytest.mark.parametrize("draw", [random_model, random_network, parallel_network])
@pytest.mark.parametrize("seed", range(5))
def test_interpreted_a_run_is_the_same(
    seed: int, draw: Callable[[int, int], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it stops on the way: users, epochs, rows, decisions and what appliers logged."""
    made = draw(seed, SECOND)
    compiled = everything_of(simulate(made, seed, lambda done, total: None))
    # Another kernel of the same function, which nothing has compiled yet.
    monkeypatch.setattr(
        "conflict.whatif.simulating.rule_appliers.run_until", with_python_values(kernel(run_until.function))
    )
    monkeypatch.setattr(Process, "mode", Mode.INTERPRETED)
    monkeypatch.setattr(Process, "fixed", True)
    monkeypatch.setattr("conflict.whatif.simulating.run.SLICES", 1)
    for first, second in zip(compiled, everything_of(simulate(made, seed)), strict=True):
        np.testing.assert_array_equal(first, second)


def test_no_call_of_a_kernel_is_a_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a compiled one can take over from an interpreted one, also where nobody looks on."""
    until: list[int] = []
    monkeypatch.setattr(
        "conflict.whatif.simulating.rule_appliers.run_until",
        lambda end, world: until.append(end) or run_until(end, world),
    )
    made = random_model(1, SECOND)
    run = simulate(made, 1)
    steps = np.diff([each for each in until if run.start <= each <= run.start + made.duration])
    assert steps.max() <= made.duration / 50 + 1


def everything_of(run: Simulated) -> list[np.ndarray]:
    """The arrays that a run filled in, up to where it did."""
    world, filled = run.world, run.world.run[0]
    kept = (world.site, world.totals, world.run, world.epochs, world.learnt, world.taken)
    kept += (*world.changes[:2], *world.made, *world.rows)
    parts = {"made": (*world.decisions[:-1],), "sent": (world.work.log.entries, *world.entries)}
    return [*kept, world.stale, *(each[: filled[name]] for name, arrays in parts.items() for each in arrays)]


def test_without_changes_on_one_side_there_is_no_conflict() -> None:
    """Every change is applied, and no row ends different."""
    found = figures_of(simulate(model("NDB$EPOCH()", site("A", NOTHING), site("B")), 1))
    changes = found["clusters"]["B"]["changes"]
    applier = found["clusters"]["A"]["applier"]
    assert applier["received"] == applier["applied"] == changes > 50
    assert applier["conflicts"] == found["rows_that_end_different"] == 0


def test_all_changes_of_an_outage_are_in_conflict() -> None:
    """
    One row, both clusters change it while the link from A is down: nothing of A can come back, so all of B's changes
    meet a row that A changed. A refreshes it, once per epoch of B.
    """
    link = Link(outages=((0, 3 * SECOND),))
    hot = Workload((50.0,), Listed((((Wish.UPDATE, 0),),), (1.0,)))
    run = simulate(model("NDB$EPOCH()", site("A", hot, link=link), site("B", hot), records=1), 1)
    found = figures_of(run)["clusters"]
    mine, theirs = (run.world.made.at[run.own_changes(side)] for side in (0, 1))
    after = int((theirs > mine[0]).sum())  # those that A applies after its own first change
    assert after <= found["A"]["applier"]["conflicts"] <= found["B"]["changes"]
    assert found["A"]["applier"]["conflicts"] == found["B"]["rejected"] == found["A"]["applier"]["row_in_conflict"]
    assert found["A"]["applier"]["refreshes"] <= found["B"]["epochs"]["logged"]


def test_without_a_function_both_sides_overwrite_each_other() -> None:
    """Two clusters that change one row apart from each other swap its values: the rows end different."""
    down = Link(outages=((0, 3 * SECOND),))
    hot = Workload((50.0,), Mix({Wish.UPDATE: 1.0}))
    run = simulate(model(None, site("A", hot, link=down), site("B", hot, link=down), records=1), 1)
    found = figures_of(run)
    assert found["rows_that_end_different"] == 1
    # Of each cluster, the last change is the one that stood when the other cluster's changes came.
    for side in (0, 1):
        overwritten = lost_in(run)[side].overwritten
        assert overwritten.nonzero()[0].tolist() == [len(overwritten) - 1]


def test_the_greater_clock_wins() -> None:
    """With NDB$MAX on both clusters a row ends as the cluster wrote it whose clock is ahead, whoever was last."""
    down = Link(outages=((0, 3 * SECOND),))
    both = {"functions": dict.fromkeys("AB", "NDB$MAX(x)"), "stamp": Stamp.CLOCK, "records": 1}
    first, second = site("A", link=down), site("B", link=down, skew=10 * SECOND)
    run = simulate(model(None, first, second, **both), 1)
    found = figures_of(run)
    assert found["rows_that_end_different"] == 0
    assert found["clusters"]["A"]["rejected"] == found["clusters"]["A"]["changes"]
    assert found["clusters"]["B"]["rejected"] == 0


def test_how_long_changes_take() -> None:
    """The wait for the end of the epoch, the transmission, the latency, and the applier's own time."""
    link = Link(Latency("constant", 30 * MILLISECOND), bandwidth=80_000)  # 1 ms per change of 80 bytes
    applier = ApplierSettings(per_epoch=2 * MILLISECOND, per_row=100)
    once = attrs.evolve(UPDATES, rates=(2.0,))
    run = simulate(model(None, site("A", NOTHING, applier=applier), site("B", once, link=link)), 5)
    epochs = epochs_of(run, 1)
    assert len(epochs) > 1
    counts = epochs["last"] - epochs["first"]
    assert (epochs["arrived"] - epochs["closed"]).tolist() == ((30 + counts) * MILLISECOND).tolist()
    taken = taken_of(run, 1)
    assert (taken["applied"] - taken["begun"]).tolist() == (2 * MILLISECOND + counts * 100).tolist()
    window = figures_of(run)["clusters"]["B"]["window_ms"]
    assert 0 < window["epoch"] <= 100
    assert window["mean"] == pytest.approx(sum(window[part] for part in ("epoch", "link", "queue", "apply")))


def test_a_stopped_applier_applies_nothing() -> None:
    """Epochs queue up until it goes on."""
    stop = ApplierSettings(stops=((0, 2 * SECOND),))
    run = simulate(model(None, site("A", NOTHING, applier=stop), site("B")), 1)
    assert (taken_of(run, 1)["applied"] >= run.start + 2 * SECOND).all()
    assert figures_of(run)["clusters"]["B"]["epochs"]["behind_ms"]["max"] > 1900


def test_transactions_that_read_and_think() -> None:
    """Of two transactions that read a row at once, the first one to commit wins; the other one is tried again."""
    busy = attrs.evolve(UPDATES, rates=(200.0,), think=20 * MILLISECOND, checks=True, retries=1)
    made = model(None, site("A", busy), site("B", NOTHING), records=1)
    users = figures_of(simulate(made, 1))["clusters"]["A"]
    wanted = users["transactions"] + users["failed"]
    assert users["tried_again"] >= users["failed"] > 0
    # At most one can commit in any 20 ms.
    assert users["transactions"] <= 2 * SECOND / (20 * MILLISECOND) + 2
    assert 300 < wanted < 500


def test_an_applier_that_lacks_the_value_to_compare_stops() -> None:
    """Deletes of binlog type 8 do not carry it; the real server stops too."""
    deletes = Workload((20.0,), Mix({Wish.DELETE: 1.0}))
    both = {"functions": dict.fromkeys("AB", "NDB$MAX(x)"), "stamp": Stamp.CLOCK, "binlog_type": 8}
    found = figures_of(simulate(model(None, site("A"), site("B", deletes), **both), 1))
    assert found["clusters"]["A"]["applier"]["stopped_at_ms"] is not None
    assert found["clusters"]["A"]["applier"]["received"] == 0


def test_reads_of_rows_that_differ() -> None:
    """Users of A read a row that only B changes: nearly always while the two differ."""
    reads = Workload((100.0,), Mix({Wish.READ: 1.0}))
    slow = Link(Latency("constant", 500 * MILLISECOND))
    found = figures_of(simulate(model(None, site("A", reads), site("B", link=slow), records=1), 1))["clusters"]["A"]
    assert found["changes"] == 0
    assert 0.9 * found["reads"] < found["stale_reads"] <= found["reads"]


def test_what_is_refused() -> None:
    """What servers refuse, and a role that is missing."""
    with pytest.raises(ConfigurationError, match=r"cluster A refuses table model\.t"):
        simulate(model("NDB$MAX(x)", site("A"), site("B")), 1)
    with pytest.raises(ConfigurationError, match="set its role"):
        simulate(model("NDB$EPOCH2()", site("A"), site("B", role=Role.SECONDARY)), 1)


@pytest.mark.parametrize("seed", range(5))
def test_every_change_is_kept_or_lost_for_a_reason(seed: int) -> None:
    """A change is lost as rejected exactly if its decision says so, and each is decided at most once."""
    run = simulate(random_model(seed), seed)
    for side, each in enumerate(run.model.sites):
        rejected = int(lost_in(run)[side].rejected.sum())
        other = run.model.sites[1 - side].name
        said = [
            one
            for one, cause in zip(decisions_in_order(run), decisions_by_own_cause(run).cause.tolist(), strict=True)
            if one.applier == other and loses(one.verdict, one.operation, Cause(cause))
        ]
        sent = run.world.work.log.entries[: int(run.world.run[0]["sent"])]
        assert rejected <= len(said) <= rejected + int(np.count_nonzero(sent["cluster"] == side)), each.name
    assert all(value >= 0 for counters in counters_of(run).values() for value in counters.values())
