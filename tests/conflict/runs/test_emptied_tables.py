"""
Tables that are emptied while changes of them are under way: the rows are those that the clusters had.

The worlds do what clusters can do, and their binlogs hold what NDB logs; nothing else is given. So the law holds for
functions, sides and places among the epochs that no recording has.
"""

import tempfile
from pathlib import Path
from random import Random

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.config.run_file import load_run_file
from conflict.engine.ledger.layout import rows_folder
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.results.files import read_rows
from conflict.rules.functions import FUNCTIONS
from conflict.rules.replication_table import Role
from conflict.runs.pipeline import ENGINES
from tests.conflict.emptying_worlds import EmptyingWorld, write_emptying_world
from tests.conflict.worlds import random_steps, world
from tests.examples import examples

SERVER_FUNCTIONS = [
    None,
    *("NDB$OLD(x)", "NDB$MAX(x)", "NDB$MAX_DELETE_WIN(x)", "NDB$MAX_INS(x)", "NDB$MAX_DEL_WIN_INS(x)"),
    *("NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"),
]
TABLES = ("t", "n")


def emptied(function: str | None, seed: int, *, settled: bool, folder: Path) -> tuple[EmptyingWorld, Run]:
    """Return a world in which tables were emptied, and the run of its binlogs."""
    roles = {"A": Role.PRIMARY, "B": Role.SECONDARY} if function and "EPOCH2" in function else {}
    alone = function is not None and "EPOCH" in function and not roles
    made = EmptyingWorld(world(function, only_first=alone, roles=roles, shows_applied=True), Random(seed))
    made.run(random_steps(seed, 120, "tn"), 0.06)
    if settled:
        made.settle()
    for cluster in (0, 1):
        made.world.close(cluster)
    run = load_run_file(write_emptying_world(made, function, folder)).configuration
    clusters = tuple(attrs.evolve(each, role=roles.get(each.name, Role.NONE)) for each in run.clusters)
    judged, plain = run.replication
    rows = (
        (attrs.evolve(judged, server_id=1), attrs.evolve(judged, server_id=2, conflict_fn=None)) if alone else (judged,)
    )
    return made, make_run(attrs.evolve(run, clusters=clusters, replication=(*rows, plain)))


def check(function: str | None, seed: int, *, settled: bool) -> int:
    """Resolve with both engines, and compare; return how many statements left a trace."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made, run = emptied(function, seed, settled=settled, folder=folder)
        for engine in ("reference", "local"):
            out = Folder(str(folder / engine))
            resolved = ENGINES[engine](run, out)
            assert not resolved.contradicted
            assert not resolved.moves.repeated
            for number, cluster in enumerate(run.clusters):
                for table in TABLES:
                    expected = {
                        key: tuple(int.from_bytes(value or b"", "little") for value in values)
                        for key, values in made.world.contents(number, table).items()
                    }
                    definition = next(each for each in run.schema.tables if each.name == table)
                    found = read_rows(out, rows_folder(cluster.name, f"d.{table}"), definition)
                    assert {key: tuple(rest) for key, *rest in found} == expected
    return len(made.traces)


@examples(8, long=20)
@given(st.sampled_from(SERVER_FUNCTIONS), st.integers(0, 10**6), st.booleans())
def test_rows_are_those_of_the_clusters(function: str | None, seed: int, settled: bool) -> None:
    """On either side, at any place among the epochs; all applied in the end, or under way."""
    check(function, seed, settled=settled)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.sampled_from(SERVER_FUNCTIONS), st.integers(0, 10**6), st.booleans())
def test_rows_are_those_of_the_clusters_in_many_worlds(function: str | None, seed: int, settled: bool) -> None:
    """The same, more often."""
    check(function, seed, settled=settled)


def test_statements_leave_traces() -> None:
    """The law says something: appliers of this world wrote the rows that look like those of epochs."""
    assert check("NDB$MAX(x)", 2, settled=True) > 0


def test_all_functions_are_tried() -> None:
    """Every function of the server is among them."""
    named = {name.removeprefix("NDB$").partition("(")[0] for name in SERVER_FUNCTIONS if name}
    assert {each.name.removeprefix("NDB$") for each in FUNCTIONS} == named


def test_epochs_between_statements() -> None:
    """A world in which epochs without a trace stand between statements that no epoch parts."""
    check("NDB$MAX_DEL_WIN_INS(x)", 3001, settled=False)
