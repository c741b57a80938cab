"""A simulation of more than two clusters, written as binlogs, is what `resolve` makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.config.arguments import DeploymentPolicy
from conflict.config.run_file import load_run_file
from conflict.results.result import Result, read_result
from conflict.runs.pipeline import ResolveOptions, resolve
from conflict.whatif.simulating.figures import counters_of, decisions_in_order, final_rows
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.run_folder import RUN_FILE, run_folder, write_run
from tests.conflict.whatif.simulating.models import random_network
from tests.examples import examples

COLUMNS = ("source_epoch", "group", "table", "key", "operation", "verdict", "cause", "incoming", "stored")


def decisions(run: Simulated, cluster: str) -> list[str]:
    """What the applier of a cluster decided, as the columns of a result."""
    tables, found = run.model.schema.tables, []
    for each in decisions_in_order(run):
        if each.applier == cluster:
            cause = each.cause.name if each.cause else ""
            place = (each.epoch, each.group, tables[each.table].full_name, f"k={each.key}", each.operation.name)
            found.append(str((*place, each.verdict.name, cause, each.incoming, each.stored)))
    return sorted(found)


def assert_same(run: Simulated, result: Result) -> None:
    """Every decision with the values compared, every counter, every row."""
    for name, counters in counters_of(run).items():
        theirs = [
            str(tuple((row[column] or "") if column == "cause" else row[column] for column in COLUMNS))
            for row in result.outcomes(name).to_pylist()
        ]
        assert sorted(theirs) == decisions(run, name)
        assert {each: result.counters[name].get(each, 0) for each in counters} == counters
        for table in run.model.schema.tables:
            rows = result.rows(name, table.full_name).to_pylist()
            held = final_rows(run, name, table.full_name)
            assert sorted(str(list(row.values())) for row in rows) == sorted(str(list(row)) for row in held)


def assert_resolves_to_itself(seed: int, folder: Path) -> None:
    run = simulate(random_network(seed), seed)
    with run_folder(folder / "run") as work:
        write_run(run, work)
    made, out = load_run_file(folder / "run" / RUN_FILE), str(folder / "result")
    done = resolve(
        made, out, engine="reference", policy=DeploymentPolicy.NEEDS, options=ResolveOptions(all_outcomes=True)
    )
    assert not done.contradicted
    assert_same(run, read_result(out))


@given(seed=st.integers(0, 2**32 - 1))
@examples(5, long=6)
def test_resolve_finds_the_simulation_in_its_binlogs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With the schedule: every decision, counter and row."""
    assert_resolves_to_itself(seed, tmp_path_factory.mktemp("run"))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_resolve_finds_many_simulations_in_their_binlogs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same more often."""
    assert_resolves_to_itself(seed, tmp_path_factory.mktemp("run"))
