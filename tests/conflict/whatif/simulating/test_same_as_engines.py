"""What a simulation says of its own run is what the engines make of it: decisions, counters, rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.reference.replay import resolve
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import ReplicationRow
from conflict.whatif.simulating.configuration import DATABASE, Model
from conflict.whatif.simulating.figures import counters_of, decisions_in_order, final_rows, history_of
from conflict.whatif.simulating.run import Simulated, simulate
from ndb_formats.schema.row_keys import key_of
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.whatif.simulating.models import random_model, random_network
from tests.examples import examples


def key(run: Simulated, table: int, number: int) -> bytes:
    columns = run.model.schema.tables[table].columns[:1]
    return key_of(columns, [number.to_bytes(4, "little")])


def configuration(run: Simulated) -> Run:
    """The run file of a simulation."""
    rows = tuple(
        ReplicationRow(DATABASE, table.name, site.server_id, table.binlog_type, table.functions.get(site.name))
        for table in run.model.tables
        for site in run.model.sites
    )
    clusters = tuple(
        ClusterConfiguration(site.name, (LoggingServer(site.server_id),), site.role) for site in run.model.sites
    )
    return Run(Configuration(clusters, run.model.schema, rows))


def assert_same_as_reference(model: Model, seed: int) -> None:
    run = simulate(model, seed)
    resolution = resolve(history_of(run), run.model.setups)
    tables = run.model.schema.tables
    mine: dict[str, list[Any]] = {site.name: [] for site in run.model.sites}
    for each in decisions_in_order(run):
        row = (tables[each.table].full_name, key(run, each.table, each.key))
        decision = (each.verdict, each.cause, each.incoming, each.stored)
        mine[each.applier].append((each.epoch, each.group, *row, each.operation, each.refresh, *decision))
    theirs: dict[str, list[Any]] = {site.name: [] for site in run.model.sites}
    for outcome in resolution.outcomes:
        row = (outcome.table, outcome.key)
        # An operation that is rejected with its transaction also tells what pass TRACK compared.
        compared = (outcome.incoming, outcome.stored) if outcome.cause is Cause.ROW_IN_CONFLICT else (None, None)
        decision = (outcome.verdict, outcome.cause, *compared)
        place = (outcome.source_epoch, outcome.group)
        theirs[outcome.applier].append((*place, *row, outcome.operation, outcome.refresh, *decision))
    assert theirs == mine
    for side, (name, result) in enumerate(resolution.clusters.items()):
        assert (result.stop is not None) == run.world.site[side]["stopped"]
        assert {k: v for k, v in counters_of(run)[name].items() if v} == {k: v for k, v in result.counters.items() if v}
        assert result.unexplained == 0
        for table, rows in result.rows.items():
            assert sorted(final_rows(run, name, table)) == sorted(rows)


@given(seed=st.integers(0, 2**32 - 1))
@examples(5, long=8)
def test_a_simulation_is_what_the_reference_engine_makes_of_it(seed: int) -> None:
    """Every decision with the values compared, every counter and every row."""
    assert_same_as_reference(random_model(seed, 1_500_000), seed)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=300)
def test_many_simulations_are_what_the_reference_engine_makes_of_them(seed: int) -> None:
    """The same, longer and more often."""
    assert_same_as_reference(random_model(seed), seed)


@given(seed=st.integers(0, 2**32 - 1))
@examples(5, long=8)
def test_rings_and_chains_are_what_the_reference_engine_makes_of_them(seed: int) -> None:
    """The same, of three and four clusters."""
    assert_same_as_reference(random_network(seed), seed)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=300)
def test_many_rings_and_chains_are_what_the_reference_engine_makes_of_them(seed: int) -> None:
    """The same, longer and more often."""
    assert_same_as_reference(random_network(seed, 3_000_000), seed)


@pytest.mark.parametrize("seed", range(2))
def test_the_columnar_engine_makes_the_same_of_it(seed: int) -> None:
    """By way of a History on disk."""
    run = simulate(random_model(seed, 1_000_000), seed)
    history, made = history_of(run), configuration(run)
    assert by_reference(history, made) == by_kernels(history, made, in_process, buckets=2, epochs_per_segment=5)


def test_the_random_models_meet_everything() -> None:
    """Each verdict and each cause occurs, also of reflected and refreshed rows."""
    found: set[tuple[Verdict, Cause]] = set()
    for seed in range(20):
        found.update((each.verdict, each.cause) for each in decisions_in_order(simulate(random_model(seed), seed)))
    causes = {(Verdict.REJECTED, cause) for cause in Cause if cause}
    assert found == causes | {(each, Cause.NONE) for each in (Verdict.APPLIED, Verdict.IGNORED, Verdict.DISCARDED)}
