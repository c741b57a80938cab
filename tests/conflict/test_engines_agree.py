"""The reference engine and the kernels give the same answer on any History."""

import tempfile
from collections import Counter
from typing import Any

import attrs
import pyarrow.dataset as pads
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conflict.config.configuration import Configuration
from conflict.grid.folder import Folder
from conflict.grid.tables import TableNumbers, table_numbers
from conflict.grid.writer import write_history
from conflict.history.model import History
from conflict.jobs.resolve_job import resolve_history
from conflict.jobs.runner import Runner, in_process
from conflict.reference.replay import resolve
from conflict.results.files import read_rows, summarize_resolution, write_resolution
from conflict.results.layout import APPLIED_EPOCHS, applied_epochs_path, exceptions_path
from conflict.results.summary import RunSummary
from conflict.rules.functions import FUNCTIONS, Cell
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.roles import Role
from conflict.rules.user_policies import add_functions, policies_of_tables
from tests.conflict.random_histories import (
    BINLOG_TYPES,
    ROLES,
    SETTINGS,
    USUAL_ROLES,
    configuration,
    make_history,
)


def _contents(out: Folder, run: Configuration, summary: RunSummary) -> dict[str, Any]:
    """Everything that a result holds, in an order that does not depend on buckets."""
    found: dict[str, Any] = {"summary": summary.to_json(), "counters": summary.counters}
    for cluster, setups in run.setups().items():
        found[f"epochs {cluster}"] = out.read_table(applied_epochs_path(cluster), APPLIED_EPOCHS).to_pylist()
        path = f"outcomes/applier={cluster}"
        outcomes = pads.dataset(f"{out.uri}/{path}").to_table().to_pylist() if out.exists(path) else []
        found[f"outcomes {cluster}"] = Counter(tuple(row.items()) for row in outcomes)
        path = f"undecided/applier={cluster}"
        undecided = pads.dataset(f"{out.uri}/{path}").to_table().to_pylist() if out.exists(path) else []
        found[f"undecided {cluster}"] = sorted(str(each) for each in undecided)
        for table in run.schema.tables:
            if table.full_name in setups:
                found[f"rows {cluster} {table.name}"] = sorted(
                    read_rows(out, f"rows/{cluster}/{table.full_name}", table), key=str
                )
            else:
                rows = read_rows(out, exceptions_path(cluster, table.full_name), table)
                found[f"exceptions {cluster} {table.name}"] = sorted(rows, key=str)
    return found


def _without_comparison(contents: dict[str, Any]) -> dict[str, Any]:
    """
    Leave out the comparison with recorded consequences, as a made-up History has none.
    """
    for figure in ("compared_with_binlogs", "contradicted_by_binlogs"):
        contents["summary"].pop(figure)
    return contents


def by_reference(history: History, run: Configuration) -> dict[str, Any]:
    """Resolve with the reference engine."""
    setups = run.setups()
    resolution = resolve(history, setups, skip_missing=run.skip_missing)
    with tempfile.TemporaryDirectory() as folder:
        write_resolution(Folder(folder), history, setups, resolution, all_outcomes=True)
        summary = summarize_resolution(resolution, setups, {name: {} for name in setups})
        return _without_comparison(_contents(Folder(folder), run, summary))


def by_kernels(
    history: History,
    run: Configuration,
    runner: Runner,
    *,
    buckets: int,
    epochs_per_segment: int,
    final_rows: bool = True,
) -> dict[str, Any]:
    """Resolve with the kernels, by way of the grid on disk."""
    numbers: TableNumbers = table_numbers(run)
    with tempfile.TemporaryDirectory() as folder:
        grid, out = Folder(f"{folder}/history"), Folder(f"{folder}/out")
        write_history(history, numbers, grid, buckets=buckets, epochs_per_segment=epochs_per_segment)
        options = {"use_evidence": False, "final_rows": final_rows, "all_outcomes": True}
        summary = resolve_history(runner, run, grid, out, **options)
        return _without_comparison(_contents(out, run, summary))


RUNS = {
    "seed": st.integers(0, 2**32 - 1),
    "steps": st.integers(0, 120),
    "complete": st.booleans(),
    "setting": st.integers(0, len(SETTINGS) - 1),
    "roles": st.sampled_from([*[USUAL_ROLES] * 4, *ROLES]),
    "binlog_type": st.sampled_from(BINLOG_TYPES),
    "skip_missing": st.booleans(),
    "buckets": st.integers(1, 3),
    "epochs_per_segment": st.sampled_from([1, 3, 1000]),
}


@given(**RUNS)
@settings(max_examples=300)
@example(
    seed=0,
    steps=0,
    complete=True,
    setting=0,
    roles=USUAL_ROLES,
    binlog_type=7,
    skip_missing=False,
    buckets=1,
    epochs_per_segment=1,
)
def test_kernels_agree_with_the_reference_engine(
    seed: int,
    steps: int,
    complete: bool,
    setting: int,
    roles: tuple[Role, Role],
    binlog_type: int,
    skip_missing: bool,
    buckets: int,
    epochs_per_segment: int,
) -> None:
    """
    Outcomes, exceptions rows with their numbers, counters, rows and stops are equal, however the grid is cut.
    """
    history = make_history(seed, steps, complete=complete, roles=roles)
    run = attrs.evolve(configuration(setting, roles, binlog_type), skip_missing=skip_missing)
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, in_process, buckets=buckets, epochs_per_segment=epochs_per_segment)


POLICIES = st.fixed_dictionaries(
    {
        "write": st.sampled_from([Cell.APPLY, Cell.REJECT_IF_PRESENT, Cell.GREATER, Cell.AT_LEAST, Cell.LESS]),
        "update": st.sampled_from(sorted(set(Cell) - {Cell.REJECT_IF_PRESENT, Cell.BY_EPOCH})),
        "delete": st.sampled_from(sorted(set(Cell) - {Cell.REJECT_IF_PRESENT, Cell.BY_EPOCH})),
    }
)


@given(seed=RUNS["seed"], steps=st.integers(0, 60), policies=st.tuples(POLICIES, POLICIES), skip_missing=st.booleans())
@settings(max_examples=100)
def test_policies_of_users_give_the_same_in_both_engines(
    seed: int, steps: int, policies: tuple[dict[str, Cell], dict[str, Cell]], skip_missing: bool
) -> None:
    """Rows of a run file decide as the reference engine does, also beside functions of the server."""
    tables = [
        {"name": name, **{operation: cell.words for operation, cell in policy.items()}}
        for name, policy in zip(("FIRST", "SECOND"), policies, strict=True)
    ]
    rows = (
        ReplicationRow("db", "judged", 0, 7, "FIRST(x)"),
        ReplicationRow("db", "other", 1, 7, "SECOND(x)"),
        ReplicationRow("db", "other", 2, 7, "NDB$MAX(x)"),
    )
    functions = add_functions(FUNCTIONS, policies_of_tables(tables))
    run = attrs.evolve(configuration(0), replication=rows, functions=functions, skip_missing=skip_missing)
    history = make_history(seed, steps, complete=True)
    assert by_reference(history, run) == by_kernels(history, run, in_process, buckets=2, epochs_per_segment=3)


@pytest.mark.parametrize("seed", range(6))
def test_spark_agrees_with_the_reference_engine(seed: int, spark_run: Runner) -> None:
    """The same, with every bucket a task of a real Spark session."""
    history, run = make_history(seed, 300, complete=seed % 2 == 0), configuration(len(SETTINGS) - 1 - seed)
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, spark_run, buckets=3, epochs_per_segment=2)


@pytest.mark.slow
@given(**RUNS)
@settings(max_examples=1000)
def test_kernels_agree_with_the_reference_engine_at_length(
    seed: int,
    steps: int,
    complete: bool,
    setting: int,
    roles: tuple[Role, Role],
    binlog_type: int,
    skip_missing: bool,
    buckets: int,
    epochs_per_segment: int,
) -> None:
    """Outcomes, exceptions, counters and rows are equal on many more Histories."""
    history = make_history(seed, 3 * steps, complete=complete, roles=roles)
    run = attrs.evolve(configuration(setting, roles, binlog_type), skip_missing=skip_missing)
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, in_process, buckets=buckets, epochs_per_segment=epochs_per_segment)
