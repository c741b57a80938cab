"""Rules in Python in a simulation: a function of the server, said again in Python, gives all its figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.errors import ConfigurationError
from conflict.resolvers.resolver import Resolver
from conflict.rules.seen import FoundRow, IncomingChange

AFTER, BEFORE = "column after", "column before"
# Users whose work depends on what appliers left: they check what they read, and try again.
MODEL: dict[str, Any] = {
    "recordcount": 12,
    "columns": 2,
    "seconds": 3,
    "workload": {
        "transactions_per_second": 40,
        "rowspertransaction": {"1": 3, "3": 1},
        "updateproportion": 0.6,
        "insertproportion": 0.1,
        "deleteproportion": 0.15,
        "upsertproportion": 0.15,
        "insertkeys": "any",
        "columnsperupdate": 1,
        "think_ms": 20,
        "check_reads": True,
        "retries": 2,
        "retry_delay_ms": 10,
    },
    "clusters": {
        "A": {"link": {"latency_ms": 80, "outages": [[1.0, 1.5]]}},
        "B": {"link": {"latency_ms": 50}, "clock_skew_ms": 30},
    },
}


@conflict.resolver(column=True, needs={"write": AFTER, "update": AFTER, "delete": BEFORE}, reads=[])
def newest(row: FoundRow, change: IncomingChange) -> conflict.Decision:
    """NDB$MAX, by its page in the manual: the greater value stays; a delete must know the value that it deletes."""
    if change.kind == "write":
        return conflict.reject("ROW_ALREADY_EXISTS") if row.exists else conflict.APPLY
    if not row.exists:
        return conflict.reject("ROW_DOES_NOT_EXIST")
    value = change.before if change.kind == "delete" else change.after
    assert value is not None
    assert row.value is not None
    wins = value == row.value if change.kind == "delete" else value > row.value
    return conflict.APPLY if wins else conflict.reject("ROW_IN_CONFLICT", value, row.value)


@conflict.resolver(reads=["unseen"], transactional=True)
def first_come(row: FoundRow, change: IncomingChange) -> conflict.Decision:
    """NDB$EPOCH_TRANS: what was changed here, and is not known to have come back, stays, with its transaction."""
    if change.kind == "write" and row.exists:
        return conflict.reject("ROW_ALREADY_EXISTS")
    if change.kind != "write" and not row.exists:
        return conflict.reject("ROW_DOES_NOT_EXIST")
    return conflict.reject() if row.unseen else conflict.APPLY


@conflict.resolver(needs={"update": "changed before"}, reads=["values"])
def sum_of_changes(row: FoundRow, change: IncomingChange) -> conflict.Decision:
    """Add what an update adds."""
    if not row.exists:
        return conflict.APPLY if change.kind == "write" else conflict.IGNORE
    if change.kind != "update":
        return conflict.APPLY
    values = [each["c1"] for each in (row.values, change.new, change.old)]
    here, new, old = (value for value in values if isinstance(value, int))
    return conflict.merge(c1=(here + new - old) % 2**64)


def figures(simulation: Any, counter: str) -> dict[tuple[int, str | None, str], float]:
    """Return all figures of all runs; a counter that bears the name of the function without it."""
    rows = simulation.to_pandas().itertuples()
    return {
        (row.run, row.cluster, row.figure.replace(f"Ndb_conflict_fn_{counter}", "counter")): row.value for row in rows
    }


def test_max_in_python_is_max() -> None:
    """Losses, conflicts by cause, retries, stale reads, times and bytes: all figures are those of the kernels."""
    theirs = conflict.simulate({**MODEL, "function": "NDB$MAX(x)", "binlog_type": 7}, seeds=2)
    mine = conflict.simulate({**MODEL, "function": "NDB$MAX(x)", "binlog_type": 7}, function=newest, seeds=2)
    assert theirs.conflicts.median > 5
    assert figures(mine, "newest") == figures(theirs, "max")


def test_epoch_trans_in_python_is_epoch_trans() -> None:
    """With refreshed rows, transactions in conflict and those that depend on them; on the primary alone."""
    theirs = conflict.simulate({**MODEL, "function": "NDB$EPOCH_TRANS()"})
    name = f"{__name__}:first_come()"
    mine = conflict.simulate({**MODEL, "function": {"A": name}})
    assert theirs.clusters["A"].applier.refreshes.median > 5
    assert theirs.clusters["A"].applier.trans_in_conflict.median > 5
    assert figures(mine, "first_come") == figures(theirs, "epoch_trans")


def test_a_merge_loses_nothing() -> None:
    """Both clusters raise 4 rows by turns; sums stay equal, and nothing is rejected or overwritten."""
    workload = {"transactions_per_second": 30, "updateproportion": 1.0}
    model = {"recordcount": 4, "columns": 1, "seconds": 2, "workload": workload, "binlog_type": 7}
    model["clusters"] = {"A": {"link": {"latency_ms": 80}}, "B": {"link": {"latency_ms": 50}}}
    plain, merged = conflict.simulate(model), conflict.simulate(model, function=sum_of_changes)
    assert plain.lost_updates.median > 10
    assert plain.rows_that_end_different.median > 0
    assert (merged.lost_updates.median, merged.rows_that_end_different.median) == (0, 0)
    for side in "AB":
        applier = merged.clusters[side].applier
        assert applier.applied.median == applier.received.median
        assert applier.conflicts.median == 0


def test_a_sweep_names_it(tmp_path: Path) -> None:
    """A resolver is an axis' value beside functions of the server; its runs are made each time."""
    grid = {"function": ["NDB$MAX(x)", newest, f"{__name__}:newest(x)"]}
    swept = conflict.sweep(MODEL, grid, seeds=1, out=tmp_path / "sweep", workers=1)
    shares = [run.lost_share for run in swept.runs]
    assert len(set(shares)) == 1
    assert shares[0] > 0
    assert [run.point["function"] for run in swept.runs] == [
        "NDB$MAX(x)",
        f"{__name__}:newest",
        f"{__name__}:newest(x)",
    ]
    again = conflict.sweep(MODEL, grid, seeds=1, out=tmp_path / "sweep", workers=1)
    assert (swept.new, again.new) == (3, 2)
    assert [run.lost_share for run in again.runs] == shares


def test_a_program_decides(tmp_path: Path) -> None:
    """A program gives what the same rule in Python does."""
    program = tmp_path / "always.py"
    program.write_text(
        "import sys\nfor line in sys.stdin:\n    print('\"apply\"' if '\"exists\": true' in line or "
        '\'"operation": "write"\' in line else \'"ignore"\', flush=True)\n'
    )
    command = Resolver.command([sys.executable, str(program)], name="always", reads=[])
    assert figures(conflict.simulate(MODEL, function=command), "always") == figures(conflict.simulate(MODEL), "always")


def test_refused(tmp_path: Path) -> None:
    """Binlogs of what no server runs; more than two clusters; a resolver that no process finds again."""
    with pytest.raises(ConfigurationError, match="no server runs newest, so there are no binlogs of it"):
        conflict.simulate(MODEL, function=newest, write_binlogs=tmp_path / "logs")
    ring = {
        "clusters": {"A": {"replicates_from": ["C"]}, "B": {"replicates_from": ["A"]}, "C": {"replicates_from": ["B"]}}
    }
    with pytest.raises(ConfigurationError, match="newest is no row of cells, and such a rule is simulated between two"):
        conflict.simulate({"seconds": 1, **ring}, function=newest)
    unnamed = conflict.resolver(name="unnamed", reads=[])(
        lambda row, _: conflict.APPLY if row.exists else conflict.IGNORE
    )
    with pytest.raises(ConfigurationError, match="does not lead back to a resolver"):
        conflict.sweep(MODEL, {"function": [unnamed]}, seeds=1)
