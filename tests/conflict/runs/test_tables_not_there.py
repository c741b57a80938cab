"""Tables that one log changes, that no log creates and no schema holds."""

from pathlib import Path

import attrs
import numpy as np
import pytest

import conflict
from conflict.config.run_file import load_run_file
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.history.scheduling.summaries import EpochSizes
from conflict.rules.replication_filter import ReplicationFilter
from conflict.runs.end_of_logs import tables_not_there
from tests.corpora import RECORDINGS

RECORDED = RECORDINGS / "reports/31-create-select"


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_table_of_create_select_may_have_stopped_the_applier(engine: str, tmp_path: Path) -> None:
    """B's applier stopped with 1146, which no log holds: it is said as what may be, and convergence is not known."""
    found = conflict.resolve(RECORDED / "run.toml", out=tmp_path / "out", engine=engine)
    (remark,) = found.run["log_remarks"]
    assert remark["sentence"] == (
        "A changes shop.copy, which is in no schema and which no log creates, as where CREATE TABLE ... SELECT did: "
        "NDB logs its rows alone. The log of B does not name it, and shows no epoch of A after 16260746182682: if B "
        "lacks the table, its applier stopped at the first row with error 1146"
    )
    assert (found.summary.converged, found.summary.contradicted) == (None, 0)


@pytest.fixture(scope="module")
def run() -> Run:
    """Give the recorded run."""
    return make_run(load_run_file(RECORDED / "run.toml").configuration)


def said(run: Run, applied: int | None, *, unread: bool = True, changes: int = 0) -> list[str]:
    """Return what is said if A has epochs 10 and 20, the last one with unread rows or changes, and B applied one."""
    own = EpochSizes(
        np.array([10, 20], np.uint64), np.array([1, changes], np.int64), np.array([False, unread], np.bool_)
    )
    none = EpochSizes(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
    newest = {} if applied is None else {("B", "A"): applied}
    return [each.sentence for each in tables_not_there(run, newest, {"A": own, "B": none})]


def test_nothing_is_said_where_the_applier_went_on(run: Run) -> None:
    """It applied the epoch, or that held nothing; or its log shows nothing at any time, which is said elsewhere."""
    assert len(said(run, 10)) == len(said(run, 10, unread=False, changes=2)) == 1
    assert said(run, 20) == said(run, 10, unread=False) == said(run, None) == []


def test_nothing_is_said_of_a_table_that_the_other_log_names(run: Run) -> None:
    """Then it is there."""
    assert said(attrs.evolve(run, logged_tables={**run.logged_tables, "B": frozenset({"shop.copy"})}), 10) == []


def test_nothing_is_said_of_a_table_that_the_applier_filters(run: Run) -> None:
    """Its rows stop nobody."""
    first, second = run.configuration.clusters
    second = attrs.evolve(second, filter=ReplicationFilter(ignore_table=("shop.copy",)))
    filtered = attrs.evolve(run, configuration=attrs.evolve(run.configuration, clusters=(first, second)))
    assert said(filtered, 10) == []
