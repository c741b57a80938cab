"""The reference engine and the kernels give the same answer on any History."""

import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from conflict.engine.columnar.beyond_kernels import changes_functions, compares_reflected
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.history.tasks import Runner, in_process
from conflict.resolvers.user_policies import add_functions
from conflict.rules.functions import FUNCTIONS, Cell, FunctionSpec
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.runs.pipeline import run_by
from tests.conflict.changing_logs import PLACES, write_logs
from tests.conflict.changing_logs import SETTINGS as CHANGING
from tests.conflict.engine.columnar.both_engines import (
    binlogs_by_kernels,
    binlogs_by_reference,
    by_kernels,
    by_reference,
    with_care,
)
from tests.conflict.random_histories import (
    BINLOG_TYPES,
    FILTERS,
    ROLES,
    SETTINGS,
    USUAL_ROLES,
    Dropped,
    configuration,
    make_history,
    with_changing_roles,
)
from tests.examples import examples

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
@examples(22, long=90)
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
    run = configuration(setting, roles, binlog_type, skip_missing=skip_missing)
    assume(not compares_reflected(run))
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, in_process, buckets=buckets, epochs_per_segment=epochs_per_segment)


@given(**{**RUNS, "dropped": st.sampled_from(FILTERS)})
@examples(12, long=90)
def test_they_agree_where_appliers_drop_changes(
    seed: int,
    steps: int,
    complete: bool,
    setting: int,
    roles: tuple[Role, Role],
    binlog_type: int,
    skip_missing: bool,
    buckets: int,
    epochs_per_segment: int,
    dropped: Dropped,
) -> None:
    """Also with filters, whatever else the dropped changes would have done; and no row is left to the reference."""
    history = make_history(seed, steps, complete=complete, roles=roles, dropped=dropped)
    run = configuration(setting, roles, binlog_type, skip_missing=skip_missing, dropped=dropped)
    assume(not compares_reflected(run))
    found, careful = with_care(history, run, in_process, buckets=buckets, epochs_per_segment=epochs_per_segment)
    assert found == by_reference(history, run)
    assert not careful


@given(
    **{
        **RUNS,
        "setting": st.sampled_from([place for place, rows in enumerate(SETTINGS) if "EPOCH2" in str(rows)]),
        "binlog_type": st.sampled_from([7, 9]),
    }
)
@examples(16, long=200)
def test_they_agree_where_roles_change(
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
    """Also where an applier judges as primary for some epochs, and as another role for others."""
    history = with_changing_roles(make_history(seed, steps, complete=complete, roles=roles), seed)
    run = configuration(setting, roles, binlog_type, skip_missing=skip_missing)
    assume(not compares_reflected(run, dict.fromkeys("AB", frozenset(Role))))
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, in_process, buckets=buckets, epochs_per_segment=epochs_per_segment)


@given(
    seed=RUNS["seed"],
    steps=st.integers(10, 120),
    setting=st.integers(0, len(CHANGING) - 1),
    roles=RUNS["roles"],
    statements=st.integers(1, 5),
    buckets=st.integers(1, 3),
    segment_bytes=st.sampled_from([600, 3000, 10**9]),
    where=st.sampled_from(PLACES),
)
@examples(9, long=60)
def test_they_agree_where_definitions_change(
    seed: int,
    steps: int,
    setting: int,
    roles: tuple[Role, Role],
    statements: int,
    buckets: int,
    segment_bytes: int,
    where: str,
) -> None:
    """Also where tables are altered, renamed, emptied, dropped and created again in the logs, on either side."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(write_logs(Path(folder), seed, steps, setting, statements=statements, roles=roles, where=where))
        assume(not (changes_functions(run.setups.over_time) or compares_reflected(run)))
        expected = binlogs_by_reference(run)
        assert expected == binlogs_by_kernels(run, buckets=buckets, segment_bytes=segment_bytes)


def test_a_table_that_gets_another_function_is_left_to_the_reference_engine(tmp_path: Path) -> None:
    """By its new name; the result says which engine resolved it."""
    found = (write_logs(tmp_path, seed, 60, 6, statements=3, roles=USUAL_ROLES) for seed in range(100))
    run = next(run for run in map(make_run, found) if changes_functions(run.setups.over_time))
    found_run = run_by("local", run, Folder(str(tmp_path / "out")))
    assert (found_run.engine, found_run.engine_reason) == ("reference", "a table gets another conflict function")


def test_reflected_values_that_are_compared_are_left_to_the_reference_engine() -> None:
    """A before image that a primary reflects has the resolve column, of which the kernels know nothing."""
    mixed = [("judged", 1, "NDB$MAX(x)"), ("judged", 2, "NDB$EPOCH2_TRANS()"), ("other", 1, "NDB$MAX_INS(x)")]
    setting = SETTINGS.index(mixed)
    assert compares_reflected(configuration(setting, (Role.SECONDARY, Role.PRIMARY), 7))
    assert not compares_reflected(configuration(setting, (Role.PRIMARY, Role.SECONDARY), 7))


POLICIES = st.fixed_dictionaries(
    {
        "write": st.sampled_from(sorted(set(Cell) - {Cell.REJECT_IF_MISSING, Cell.EQUAL, Cell.BY_EPOCH})),
        "update": st.sampled_from(sorted(set(Cell) - {Cell.REJECT_IF_PRESENT, Cell.BY_EPOCH})),
        "delete": st.sampled_from(sorted(set(Cell) - {Cell.REJECT_IF_PRESENT, Cell.BY_EPOCH})),
    }
)


@given(seed=RUNS["seed"], steps=st.integers(0, 60), policies=st.tuples(POLICIES, POLICIES), skip_missing=st.booleans())
@examples(12, long=1000)
def test_policies_of_users_give_the_same_in_both_engines(
    seed: int, steps: int, policies: tuple[dict[str, Cell], dict[str, Cell]], skip_missing: bool
) -> None:
    """Any cells decide as the reference engine does, also beside functions of the server."""
    specs = [
        FunctionSpec(name, f"Ndb_conflict_fn_{name.lower()}", **policy)
        for name, policy in zip(("FIRST", "SECOND"), policies, strict=True)
    ]
    rows = (
        ReplicationRow("db", "judged", 0, 7, "FIRST(x)"),
        ReplicationRow("db", "other", 1, 7, "SECOND(x)"),
        ReplicationRow("db", "other", 2, 7, "NDB$MAX(x)"),
    )
    functions = add_functions(FUNCTIONS, specs)
    given = configuration(0, skip_missing=skip_missing).configuration
    run = Run(attrs.evolve(given, replication=rows, functions=functions))
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
    run = configuration(setting, roles, binlog_type, skip_missing=skip_missing)
    assume(not compares_reflected(run))
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, in_process, buckets=buckets, epochs_per_segment=epochs_per_segment)
