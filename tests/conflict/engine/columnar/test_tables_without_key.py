"""
A table without a primary key beside others, in both engines, and against a model of its rows.
"""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conflict.config.configuration import Span
from conflict.config.run_file import load_run_file
from conflict.engine.columnar.beyond_kernels import compares_reflected
from conflict.history.grid.folder import Folder
from conflict.history.ingestion import segment_task
from conflict.history.ingestion.segment_arrays import UnreadableError
from conflict.history.model import History
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.tasks import in_process
from conflict.judge.case import RecordingKind, find_recordings
from conflict.rules.counters import REFLECTED_RECEIVED, TRANSACTION_ROW_REJECTS
from conflict.runs.pipeline import run_by
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference, cut_anywhere
from tests.conflict.judge.test_options import write_run_file
from tests.conflict.keyless_histories import (
    FUNCTIONS,
    LOOSE,
    LooseModel,
    cut_at,
    judges_transactions,
    reflects,
    with_loose_rows,
    with_loose_table,
)
from tests.conflict.keyless_logs import Arrived, Change, Epoch, keyless_run
from tests.conflict.random_histories import ROLES, SETTINGS, configuration, make_history
from tests.corpora import RECORDINGS, SHARED
from tests.examples import examples


def others(found: dict[str, Any]) -> dict[str, Any]:
    """Return exceptions rows and final rows of the tables with a primary key, and the counters of conflicts."""
    parts = {name: each for name, each in found.items() if name.split()[0] in ("rows", "exceptions", "epochs")}
    counters = {
        cluster: {name: value for name, value in each.items() if name != REFLECTED_RECEIVED}
        for cluster, each in found["counters"].items()
    }
    for cluster, rejected in Counter(
        row["applier"] for row in operations(found) if row["table"] == LOOSE and row["verdict"] == "REJECTED"
    ).items():
        counters[cluster][TRANSACTION_ROW_REJECTS] -= rejected
    kept = {cluster: {name: value for name, value in each.items() if value} for cluster, each in counters.items()}
    return {name: each for name, each in parts.items() if "loose" not in name} | {"counters": kept}


def operations(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the outcomes of all operations."""
    return [dict(row) | {"applier": side} for side in "AB" for row in found[f"outcomes {side}"].elements()]


def rejected_transactions(found: dict[str, Any]) -> dict[tuple[str, int, int], set[int]]:
    """Return the transactions in conflict, by applier, foreign epoch and own epoch."""
    rejected = defaultdict(set)
    for row in operations(found):
        if row["cause"] == "TRANS_IN_CONFLICT":
            rejected[row["applier"], row["source_epoch"], row["epoch"]].add(row["group"])
    return rejected


def loose_rows(found: dict[str, Any], side: str) -> Counter[tuple[Any, ...]]:
    """Return the rows of the table without a primary key on one cluster."""
    return Counter(tuple(row) for row in found[f"rows {side} loose"])


def stopped_by_loose_rows(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return, per applier that stopped because of such a row, how many epochs it had applied, and the error."""
    stops = found["summary"]["stops"].items()
    return {name: (len(found[f"epochs {name}"]), int(stop["error"])) for name, stop in stops if stop["table"] == LOOSE}


@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(40, 120), setting=st.integers(0, len(SETTINGS) - 1))
@examples(5, long=10)
def test_an_applier_that_does_not_find_a_row_applies_nothing_after_it(seed: int, steps: int, setting: int) -> None:
    """
    Error 1032: rows and counters are those of the log that is cut before the epoch that stopped the applier.

    Half of the updates and deletes are of rows of the other cluster, which may not be there.
    """
    run = configuration(setting)
    assume(not compares_reflected(run))
    history, whole = make_history(seed, steps, complete=True), with_loose_table(run)
    loose = with_loose_rows(history, seed, foreign=0.5)
    found = by_reference(loose, whole)
    stops = stopped_by_loose_rows(found)
    assume(stops)
    assert {error for _, error in stops.values()} == {1032}
    cut = by_reference(cut_at(loose, {name: count for name, (count, _) in stops.items()}), whole)
    assert not stopped_by_loose_rows(cut)
    assert cut["counters"] == found["counters"]
    for part in ("rows", "exceptions", "epochs", "outcomes"):
        assert {name: cut[name] for name in cut if name.startswith(part)} == {
            name: found[name] for name in found if name.startswith(part)
        }


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(10, 120),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from(ROLES),
    function=st.sampled_from(FUNCTIONS),
)
@examples(5, long=20)
def test_inserts_updates_and_deletes_without_a_key(
    seed: int, steps: int, setting: int, roles: Any, function: str | None
) -> None:
    """
    Rows without a key are what the model says, and no other row, exception or counter knows of them.

    Where an applier stops because it does not find one, the rest is what the kernels make of the log up to there.
    """
    run = configuration(setting, roles)
    assume(not compares_reflected(run))
    history = make_history(seed, steps, complete=True, roles=roles)
    loose, whole = with_loose_rows(history, seed), with_loose_table(run, function)
    check(history, loose, run, whole)


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(10, 120),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from(ROLES),
    function=st.sampled_from(FUNCTIONS),
)
@examples(5, long=20)
def test_equal_rows(seed: int, steps: int, setting: int, roles: Any, function: str | None) -> None:
    """Both engines give the same of rows with few values: many are equal, and transactions depend on each other."""
    run = configuration(setting, roles)
    assume(not compares_reflected(run))
    history = make_history(seed, steps, complete=True, roles=roles)
    loose, whole = with_loose_rows(history, seed, values=3), with_loose_table(run, function)
    assert by_kernels(loose, whole, in_process, buckets=2, epochs_per_segment=3) == by_reference(loose, whole)


@pytest.mark.parametrize("row_by_row", [False, True])
@pytest.mark.parametrize("case", ["epoch2_trans/no_primary_key_apart_type7", "none/no_primary_key_type2"])
def test_recorded_runs(case: str, row_by_row: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded runs are resolved beside the kernels, as the reference engine resolves them."""
    if row_by_row:
        monkeypatch.setattr(segment_task, "read_columns", Mock(side_effect=UnreadableError))
    run = load_run_file(write_run_file(case, tmp_path)).configuration
    found = run_by("local", make_run(run), Folder(str(tmp_path / "out")))
    expected = run_by("reference", make_run(run), Folder(str(tmp_path / "expected")))
    assert not found.engine
    assert set(found.summary.careful) == {"no_primary_key"}
    # The reference engine needs no rounds, and takes all rows alike.
    assert attrs.evolve(found.summary, rounds=(), careful={}) == expected.summary


def check(history: History, loose: History, run: Any, whole: Any) -> Counter[int]:
    """Compare both engines and the model; return the errors with which such rows stopped appliers."""
    found = by_reference(loose, whole)
    stops = stopped_by_loose_rows(found)
    assert by_kernels(loose, whole, in_process, buckets=2, epochs_per_segment=3) == found
    until = {name: count for name, (count, _) in stops.items()}
    expected = by_kernels(cut_at(history, until), run, in_process, buckets=2, epochs_per_segment=3)
    assert others(found) == others(expected)
    applied = {side: len(found[f"epochs {side}"]) for side in "AB"}
    model = LooseModel(rejected_transactions(expected), applied, reflects(whole))
    model.run(loose)
    assert {side: +model.rows[side] for side in "AB"} == {side: loose_rows(found, side) for side in "AB"}
    assert all(count == applied[name] for name, count in model.missing.items())
    if not judges_transactions(whole):  # else the epoch that stopped may have had transactions in conflict
        missing = {name: count for name, (count, error) in stops.items() if error == 1032}
        assert missing.items() <= model.missing.items()
    return Counter(error for _, error in stops.values())


@pytest.mark.parametrize("shown", [[(None, (6, 6))], []])
@pytest.mark.parametrize("first", [((1, 1), None), ((1, 1), (1, 2))])
def test_a_log_that_starts_in_the_middle(first: Change, shown: list[Change], tmp_path: Path) -> None:
    """
    A row that is changed and was never inserted was there before: the applier found it, and does not stop.

    If the log of A shows nothing of its applier, it is contradicted, and another role is one of the causes.
    """
    log_a = [Epoch(1, [(None, (5, 5))]), Epoch(2, [first]), Epoch(3, Arrived(11, shown))]
    log_b = [Epoch(11, [(None, (6, 6))]), Epoch(12, Arrived(1, [(None, (5, 5))])), Epoch(13, Arrived(2, [first]))]
    schema = "CREATE TABLE h (a INT, b INT); CREATE TABLE t (k INT PRIMARY KEY);"
    run = make_run(attrs.evolve(keyless_run(tmp_path, (schema, None), (log_a, log_b)), span=Span(empty=None)))
    found = run_by("local", run, Folder(str(tmp_path / "out")))
    expected = run_by("reference", run, Folder(str(tmp_path / "expected")))
    assert found.engine == ("" if shown else "reference")
    assert found.likely_causes == expected.likely_causes
    assert found.starts == expected.starts == {"A": 1, "B": 11}
    assert found.summary.stops == {}
    assert attrs.evolve(found.summary, rounds=(), careful={}) == expected.summary


@pytest.mark.parametrize("case", ["epoch2_trans/no_primary_key_apart_type7", "max_ins/no_primary_key_type8"])
def test_recorded_runs_from_the_middle(case: str, tmp_path: Path) -> None:
    """Also where transactions are rejected, no whole run is left to the reference engine."""
    assert set(cut_anywhere(RECORDINGS / "everyday" / case, tmp_path)) == {""}


@pytest.mark.slow
@pytest.mark.corpus("conformance/everyday")
def test_all_recorded_runs_from_the_middle(tmp_path: Path) -> None:
    """The same of every recording of such tables."""
    left = Counter[str]()
    for number, found in enumerate(find_recordings(SHARED / "conformance" / "everyday")):
        if "no_primary_key" in found.case and found.kind is RecordingKind.CONFLICT:
            left += cut_anywhere(found.path, tmp_path / str(number))
    assert set(left) == {""}
    assert left.total() > 100
