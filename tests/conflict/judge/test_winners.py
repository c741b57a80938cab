"""The operations that won in recordings of real clusters: both engines name the same, with what was compared."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pytest

from conflict.engine.ledger.layout import OUTCOME_PLACE
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.judge.case import ConflictCase
from conflict.rules.decision import stored_precision
from conflict.runs.pipeline import run_by
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.types.values import ABSENT
from tests.corpora import RECORDINGS

# Every kind of function; transactions, roles, refreshes that conflict again, updates that are logged as writes.
CASES = (
    "epoch/hot_3020_type9",
    "epoch_trans/dependent_chain_type8",
    "epoch_trans/hot_3020_type8",
    "epoch2_trans/rewound_type7",
    "max/hot_3021_type7",
    "max_ins/random_1023_type3",
)
Place = tuple[str, int, int]
PLACE = [field.name for field in OUTCOME_PLACE.type]


def read(folder: Path, pattern: str) -> list[dict[str, Any]]:
    """Return the rows of Parquet files of a result, each with its `applier`, the cluster in whose folder it is."""
    return [
        {**row, "applier": path.relative_to(folder).parts[1].removeprefix("applier=")}
        for path in sorted(folder.glob(pattern))
        for row in pads.dataset(str(path), partitioning=None).to_table().to_pylist()
    ]


def winning_values(run: Run, outcome: dict[str, Any], logged: dict[Place, LoggedRow]) -> object:
    """Return what the winner stored of what was compared: its epoch, or its value in the binlog; None if not there."""
    function = run.setups.at_end[outcome["applier"]][outcome["table"]].function
    assert function is not None
    if function.column is None:
        assert outcome["winner_cluster"] == outcome["applier"]
        return stored_precision(outcome["winner_epoch"], function.gci_bits)
    won = logged[outcome["winner_file"], outcome["winner_position"], outcome["winner_row"]]
    assert won.after is not None
    value = won.after.value(run.setups.at_end[outcome["applier"]][outcome["table"]].table.ordinal(function.column))
    return None if value is ABSENT else value or 0


@pytest.mark.parametrize("case", CASES)
def test_winners(case: str, tmp_path: Path) -> None:
    """A winner stored what the loser was compared with; each exceptions row names a rejected operation of its own."""
    run = make_run(ConflictCase.load(RECORDINGS / "conflict" / case).configuration())
    run_by("reference", run, Folder(str(tmp_path / "reference")))
    run_by("local", run, Folder(str(tmp_path / "local")))
    logged = {
        (row.file, row.position, row.row): row
        for cluster in run.clusters
        for file in cluster.log.files
        for row in read_rows(file, schema=run.data_schema)
    }
    found = {}
    for engine in ("reference", "local"):
        outcomes = read(tmp_path / engine, "outcomes/*/*.parquet")
        exceptions = read(tmp_path / engine, "exceptions/*/*.parquet")
        found[engine] = Counter(str(row) for row in outcomes), sorted(str(row) for row in exceptions)
    assert found["reference"] == found["local"]
    setups = run.setups.at_end
    rejected = [row for row in outcomes if row["verdict"] == "REJECTED"]
    assert rejected
    assert all(row["time"] and (row["transaction_id"] or row["ordinal"] < 0) for row in rejected)
    named = [tuple(row[OUTCOME_PLACE.name].values()) for row in exceptions]
    assert sorted(named) == sorted(
        tuple(row[name] for name in PLACE) for row in rejected if setups[row["applier"]][row["table"]].exceptions
    )
    lost = [row for row in rejected if "ROW_IN_CONFLICT" in (row["cause"], row["own_cause"])]
    values = [(winning_values(run, row, logged), row["stored"]) for row in lost]
    assert values
    assert all(won in (None, stored) for won, stored in values)
    assert sum(won is not None for won, _ in values) > len(values) // 2
