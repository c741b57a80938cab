"""Workloads learnt from recordings of real clusters give what the clusters counted."""

from __future__ import annotations

import itertools
import tomllib
from typing import Any

import attrs
import pytest

from conflict.history.epochs import BinlogEpoch
from conflict.history.timeline import Transaction
from conflict.judge.case import ConflictCase
from conflict.whatif.simulating.clocks import EpochClock
from conflict.whatif.simulating.learning import learn, read_logs, scaled
from conflict.whatif.simulating.model_file import model_text, parse_model
from conflict.whatif.simulating.report import figures_of, run_seeds
from conflict.whatif.simulating.run import simulate
from conflict.whatif.simulating.wishes import _sizes
from ndb_formats.events.rows_event import Operation
from tests.corpora import RECORDINGS

CASES = ["live_2_epoch_type8", "live_3_epoch2_trans_type7"]
# What appliers count: conflicts, rejected rows and transactions, refreshed rows.
COUNTED = ("fn_epoch", "fn_epoch2_trans", "trans_row_reject_count", "trans_reject_count", "refresh_op_count")


@pytest.fixture(scope="module", params=CASES)
def learnt(request: pytest.FixtureRequest) -> tuple[ConflictCase, dict[str, Any]]:
    case = ConflictCase.load(RECORDINGS / "lives" / request.param)
    return case, learn(read_logs(case.configuration()))


def test_recorded_counters_lie_between_the_extremes_of_20_seeds(learnt: tuple[ConflictCase, dict[str, Any]]) -> None:
    """Conflicts, rejects and refreshes of both clusters, though no seed knows who met whom."""
    case, document = learnt
    runs = run_seeds(parse_model(document), 20)
    compared = 0
    for name, expected in case.expected.items():
        if name not in document["clusters"]:
            continue
        for counter in COUNTED:
            full = f"Ndb_conflict_{counter}"
            recorded = int(expected["status_difference"].get(full, 0))
            values = [run["clusters"][name]["counters"].get(full, 0) for run in runs]
            assert min(values) <= recorded <= max(values), (name, counter, recorded, sorted(values))
            compared += recorded > 0
    assert compared >= 2


def test_users_of_one_cluster_alone() -> None:
    """The other one has a log, and its users do nothing; so do they in the simulation."""
    case = ConflictCase.load(RECORDINGS / "everyday/max/ddl_truncate_type7")
    logs = read_logs(case.configuration())
    silent = attrs.evolve(logs[1], epochs=[attrs.evolve(each, transactions=()) for each in logs[1].epochs])
    document = learn((logs[0], silent))
    assert set(document["clusters"]["B"]["workload"]["transactions_per_second"]) == {0.0}
    figures = figures_of(simulate(parse_model(tomllib.loads(model_text(document))), 1))
    assert figures["clusters"]["B"]["transactions"] == 0
    assert figures["clusters"]["A"]["transactions"] > 0


def test_the_text_of_what_was_learnt_is_read_again(learnt: tuple[ConflictCase, dict[str, Any]]) -> None:
    """As TOML it gives the same run."""
    _, document = learnt
    again = tomllib.loads(model_text(document))
    first, second = (figures_of(simulate(parse_model(each), 1)) for each in (document, again))
    assert first == second


def test_users_come_as_often_as_they_did(learnt: tuple[ConflictCase, dict[str, Any]]) -> None:
    """Half as many transactions give half as many changes or less: fewer meet each other."""
    _, document = learnt
    whole, half = (figures_of(simulate(parse_model(scaled(document, each)), 1)) for each in (1, 0.5))
    for name in document["clusters"]:
        changes = [each["clusters"][name]["changes"] for each in (whole, half)]
        assert 0.4 < changes[1] / changes[0] < 0.62


def test_a_checkpoint_that_comes_late() -> None:
    """It has more epochs than others, and pushes on all after it."""
    numbers = [(high << 32) | low for high in (5, 6, 7) for low in range(30 if high == 6 else 20)]
    clock = EpochClock.of(numbers)
    assert (clock.epoch, clock.checkpoint) == (100_000, 2_000_000)
    times = [clock.time(number) for number in numbers]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [100_000] * 69


def test_sizes_of_transactions_that_were_tried() -> None:
    """Of 1000 transactions of two wishes, each with a chance of one half, 500 show one change and 250 show two."""
    assert _sizes({1: 500, 2: 250}, 0.5, 0.0) == {1: 0, 2: pytest.approx(1000)}
    # Each wish fails its transaction with a chance of one fifth, and else does something: 64 of 100 are seen.
    assert _sizes({2: 64}, 0.8, 0.2) == {1: pytest.approx(0), 2: pytest.approx(100)}


def test_epochs_that_last_longer_than_they_should() -> None:
    """Each took 103 ms by the host's clock, and the server stood still for an hour once: epochs last 103 ms."""
    numbers = [(high << 32) | low for high in range(5, 10) for low in range(20)]
    logged = [10**15 + 103_000 * place + 7 + (3_600_000_000 if place >= 50 else 0) for place in range(len(numbers))]
    epochs = [BinlogEpoch(number, (), (), (), committed=at) for number, at in zip(numbers, logged, strict=True)]
    clock = EpochClock.of_log(epochs)
    assert (clock.epoch, clock.checkpoint) == (103_000, 2_060_000)
    assert clock.ended(numbers[60]) == logged[60]


def test_a_log_that_tells_seconds_has_its_numbers_alone() -> None:
    """As of servers without Gtid events."""
    epochs = [BinlogEpoch((5 << 32) | low, (), (), (), committed=10**15 + low // 10 * 10**6) for low in range(20)]
    clock = EpochClock.of_log(epochs)
    assert clock.epoch == 100_000
    assert clock.ended(epochs[3].number) == clock.time(epochs[4].number)


def test_users_change_as_much_as_they_did(learnt: tuple[ConflictCase, dict[str, Any]]) -> None:
    """Over some runs with other seeds than those that fitted it, by 3 % at most."""
    case, document = learnt
    logs = read_logs(case.configuration())
    runs = run_seeds(parse_model(document), 10)
    for log in logs:
        users = itertools.dropwhile(only_inserts, log.transactions())  # what only inserts at first loads the tables
        recorded = sum(len(each.changes) for each in users)
        simulated = sum(run["clusters"][log.name]["changes"] for run in runs) / len(runs)
        assert simulated == pytest.approx(recorded, rel=0.03)


def only_inserts(transaction: Transaction) -> bool:
    return all(change.operation is Operation.WRITE_ROW for change in transaction.changes)
