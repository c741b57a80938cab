"""A simulation of more than two clusters, written as binlogs, is what `resolve` makes of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.compatibility.deployment import Policy
from conflict.config.run_file import load_run_file
from conflict.model.configuration import Model, ModelTable
from conflict.model.kernels.world import Stamp
from conflict.model.network.run import Network, simulate_network
from conflict.model.network.run_folder import write_network
from conflict.model.network.station import Station
from conflict.model.run_folder import RUN_FILE, run_folder
from conflict.pipeline import resolve
from conflict.result import Result, read_result
from conflict.rules.roles import Role
from conflict.runs.options import ResolveOptions
from ndb_formats.schema.tables import Table
from tests.conflict.model.models import BY_COLUMN, random_model

SHAPES = (
    {"A": "C", "B": "A", "C": "B"},  # source of each cluster: a ring
    {"A": "", "B": "A", "C": "B"},  # a chain
    {"A": "B", "B": "A", "C": "B"},  # a ring of two, and one behind
    {"A": "B", "B": "", "C": "B"},  # a tree
)
COLUMNS = ("source_epoch", "group", "table", "key", "operation", "verdict", "cause", "incoming", "stored")


def random_network(seed: int, duration: int = 1_500_000) -> Model:
    """Return a model of three clusters; the same for the same seed."""
    chance = Random(seed)
    model, other = (random_model(chance.randrange(2**32), duration) for _ in range(2))
    shape = chance.choice(SHAPES)
    third = attrs.evolve(model.sites[0], link=other.sites[0].link, applier=other.sites[0].applier)
    sites = tuple(
        attrs.evolve(
            site, name=name, server_id=number, role=Role.NONE, replicates_from=(shape[name],) if shape[name] else ()
        )
        for number, (name, site) in enumerate(zip("ABC", (*model.sites, third), strict=True), start=1)
    )
    tables = tuple(_table(chance, table) for table in model.tables)
    return attrs.evolve(model, sites=sites, tables=tables, drain=chance.choice([0, 60_000_000]))


def _table(chance: Random, table: ModelTable) -> ModelTable:
    if chance.random() < 0.2:
        return attrs.evolve(table, functions={})
    functions = dict.fromkeys("ABC", chance.choice(BY_COLUMN))
    stamp = chance.choice([Stamp.CLOCK, Stamp.VERSION])
    return attrs.evolve(table, functions=functions, stamp=stamp, binlog_type=chance.choice([7, 7, 7, 6, 8, 9]))


def decisions(station: Station) -> list[str]:
    """What the applier of a cluster decided, as the columns of a result."""
    found = []
    for each in station.replayed.outcomes:
        key = f"k={int.from_bytes(each.key[-4:], 'little')}"
        cause = each.cause.name if each.cause else ""
        place = (each.source_epoch, each.group, each.table, key, each.operation.name)
        found.append(str((*place, each.verdict.name, cause, each.incoming, each.stored)))
    return sorted(found)


def held(station: Station, table: Table) -> list[str]:
    """The rows of a table that a cluster holds."""
    rows = [row.payloads for (name, _), row in station.replayed.store.rows.items() if name == table.full_name]
    places = range(len(table.columns))
    payloads = ([row.get(place) for place in places] for row in rows)
    return sorted(str([None if each is None else int.from_bytes(each, "little") for each in row]) for row in payloads)


def assert_same(run: Network, result: Result) -> None:
    """Every decision with the values compared, every counter, every row."""
    for station in run.stations:
        name, counters = station.site.name, station.replayed.result.counters
        theirs = [
            str(tuple((row[column] or "") if column == "cause" else row[column] for column in COLUMNS))
            for row in result.outcomes(name).to_pylist()
        ]
        assert sorted(theirs) == decisions(station)
        assert {each: result.counters[name].get(each, 0) for each in counters} == counters
        for table in run.model.schema.tables:
            rows = result.rows(name, table.full_name).to_pylist()
            assert sorted(str(list(row.values())) for row in rows) == held(station, table)


def assert_resolves_to_itself(seed: int, folder: Path) -> None:
    run = simulate_network(random_network(seed), seed)
    with run_folder(folder / "run") as work:
        write_network(run, work)
    made, out = load_run_file(folder / "run" / RUN_FILE), str(folder / "result")
    done = resolve(made, out, engine="reference", policy=Policy.NEEDS, options=ResolveOptions(all_outcomes=True))
    assert not done.contradicted
    assert_same(run, read_result(out))


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6)
def test_resolve_finds_the_simulation_in_its_binlogs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With the schedule: every decision, counter and row."""
    assert_resolves_to_itself(seed, tmp_path_factory.mktemp("run"))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_resolve_finds_many_simulations_in_their_binlogs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same more often."""
    assert_resolves_to_itself(seed, tmp_path_factory.mktemp("run"))
