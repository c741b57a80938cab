"""The rows that are open are found in columns: the same ones, with the same answers, as the reference engine finds."""

import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.config.configuration import Configuration
from conflict.config.run_file import load_run_file
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.judge.case import ConflictCase
from conflict.results.run_document import RunDocument
from conflict.rules.replication_table import Role
from conflict.runs.pipeline import ResolveOptions, run_by
from conflict.runs.resolving import settling
from conflict.runs.rows.states_over_time import states_decide
from conflict.runs.rows.task_inputs import TaskInputs
from tests.conflict.world_binlogs import write_world
from tests.conflict.worlds import random_steps, world
from tests.corpora import RECORDINGS
from tests.examples import examples

EARLY = st.lists(st.integers(0, 3), min_size=1, max_size=4)
FUNCTIONS = ["NDB$EPOCH()", "NDB$MAX(x)", "NDB$OLD(x)", "NDB$MAX_DELETE_WIN(x)", "NDB$MAX_INS(x)"]


def figures(run: RunDocument) -> dict[str, object]:
    """Return what a run says of moments; the numbers of operations are among those that were read."""
    rows = {
        (epoch.applier, epoch.foreign_epoch, epoch.position): [
            attrs.evolve(
                row,
                answers=tuple(
                    attrs.evolve(answer, operations=tuple(attrs.evolve(each, number=0) for each in answer.operations))
                    for answer in row.answers
                ),
            )
            for row in epoch.rows
        ]
        for epoch in run.summary.open_epochs
    }
    summary = run.summary
    return {
        "rows": rows,
        "ranges": summary.counter_ranges,
        "undecided": summary.undecided,
        "contradicted": summary.contradicted,
        "not examined": summary.not_examined,
    }


def compare(function: str, seed: int, early: list[int]) -> int:
    """Resolve the binlogs of a world with both engines; return how many rows are open."""
    made = world(function, shows_applied=True)
    made.early = early
    made.run(random_steps(seed, 60, "tn"))
    for cluster in (0, 1):
        made.close(cluster)
    with tempfile.TemporaryDirectory() as folder:
        run = load_run_file(write_world(made, function, Path(folder))).configuration
        found = run_by("reference", make_run(run), Folder(f"{folder}/reference"))
        if found.summary.contradicted:  # each engine explains what it can of such binlogs
            return 0
        for whole in (False, True):
            options = ResolveOptions(whole_open_epochs=whole)
            assert figures(run_by("local", make_run(run), Folder(f"{folder}/{whole}"), options=options)) == figures(
                found
            )
    return sum(len(epoch.rows) for epoch in found.summary.open_epochs)


@examples(5, long=8)
@given(st.sampled_from(FUNCTIONS), st.integers(0, 10_000), EARLY)
def test_the_same_rows_are_open(function: str, seed: int, early: list[int]) -> None:
    """Rows that were judged early, in binlogs that do not say so: with the open rows alone, and with whole epochs."""
    compare(function, seed, early)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from(FUNCTIONS), st.integers(0, 10_000), EARLY)
def test_the_same_rows_are_open_in_many_worlds(function: str, seed: int, early: list[int]) -> None:
    """The same, more often."""
    compare(function, seed, early)


@pytest.mark.parametrize("seed", [2, 37])
def test_rows_are_open(seed: int) -> None:
    """There are such rows in these worlds, and their binlogs contradict nothing."""
    assert compare("NDB$EPOCH()", seed, [0, 2]) > 0


def test_an_applier_that_changed_nothing(tmp_path: Path) -> None:
    """A delete came to nothing, as the row was another one by then, or was not there between two of its own changes."""
    run = ConflictCase.load(RECORDINGS / "conflict" / "max_ins" / "concurrent_5021_type7").configuration()
    found = run_by("local", make_run(run), Folder(str(tmp_path / "local")))
    assert [(each.applier, len(each.rows), len(each.rows[0].answers)) for each in found.summary.open_epochs] == [
        ("B", 1, 2)
    ]
    assert figures(found) == figures(run_by("reference", make_run(run), Folder(str(tmp_path / "reference"))))


BY_EPOCH = ["NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"]


def one_sided(function: str, seed: int, early: list[int], folder: Path, binlog_type: int) -> Configuration:
    """Return the run of a world in which one cluster alone sends back what it refreshed or applied."""
    roles = {"A": Role.PRIMARY, "B": Role.SECONDARY} if "EPOCH2" in function else {}
    made = world(function, only_first=not roles, roles=roles, binlog_type=binlog_type, shows_applied=True)
    made.early = early
    made.run(random_steps(seed, 200, "tn"))
    for cluster in (0, 1):
        made.close(cluster)
    run = load_run_file(write_world(made, function, folder)).configuration
    clusters = tuple(attrs.evolve(each, role=roles.get(each.name, Role.NONE)) for each in run.clusters)
    rows = [attrs.evolve(row, binlog_type=binlog_type) for row in run.replication]
    if not roles:
        (first,), (second,) = (each.server_ids for each in clusters)
        rows = [
            attrs.evolve(rows[0], server_id=first),
            attrs.evolve(rows[0], server_id=second, conflict_fn=None),
            rows[1],
        ]
    return attrs.evolve(run, clusters=clusters, replication=tuple(rows))


def states_as_replayed(
    function: str, seed: int, early: list[int], binlog_type: int, kept: str | None = None
) -> tuple[bool, int]:
    """
    Compare what states tell with what a replay does; return whether they were used, and what they had to explain.

    The History has the column `kept` for functions that are tried on it.
    """
    used = []

    def tell(run: TaskInputs) -> bool:
        used.append(states_decide(run))
        return used[-1]

    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        run = make_run(one_sided(function, seed, early, folder, binlog_type))
        if kept is not None:
            tables = [setup.table for setup in run.setups.first["A"].values()]
            run = attrs.evolve(run, kept_columns={each.full_name: kept for each in tables if each.find(kept)})
        found = []
        for how in (tell, lambda run: False):
            patch.setattr(settling, "states_decide", how)
            out = folder / str(len(found))
            resolved = run_by("local", run, Folder(str(out)))
            files = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.parquet"))}
            found.append((figures(resolved), resolved.summary.settled, resolved.summary.counters, files))
    assert found[0] == found[1]
    return bool(used) and all(used), len(found[0][1])


@examples(5, long=20)
@given(st.sampled_from(BY_EPOCH), st.integers(0, 10_000), EARLY, st.sampled_from([7, 8]))
def test_states_say_what_a_replay_does(function: str, seed: int, early: list[int], binlog_type: int) -> None:
    """Rows that a function by epoch judges are known by where they were changed: moments and results are the same."""
    states_as_replayed(function, seed, early, binlog_type)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.sampled_from(BY_EPOCH), st.integers(0, 10_000), EARLY, st.sampled_from([7, 8]))
def test_states_say_what_a_replay_does_in_many_worlds(
    function: str, seed: int, early: list[int], binlog_type: int
) -> None:
    """The same, more often."""
    states_as_replayed(function, seed, early, binlog_type)


@pytest.mark.parametrize(
    ("function", "seed", "early", "explained"),
    [("NDB$EPOCH()", 2, [0, 2], 0), ("NDB$EPOCH2()", 2, [0, 2], 0), ("NDB$EPOCH_TRANS()", 4, [3, 1], 1)],
)
def test_columns_that_no_function_compares_need_no_replay(
    function: str, seed: int, early: list[int], explained: int
) -> None:
    """A comparison keeps them in its History, for the functions that it tries."""
    assert states_as_replayed(function, seed, early, 8, kept="x") == (True, explained)
