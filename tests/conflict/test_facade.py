"""What `import conflict` gives: load, resolve, read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import conflict
from tests.corpora import DEMO


def test_a_run_is_loaded_resolved_and_read(tmp_path: Path):
    """In three calls, with the recorded counters and rows of the demo."""
    out = str(tmp_path / "result")
    run = conflict.resolve(conflict.load_run_file(DEMO / "run.toml"), out, engine="local")
    assert (run.changes, run.summary.converged) == (90, False)
    result = conflict.read_result(out)
    assert result.counters["A"]["Ndb_conflict_fn_epoch"] == 25  # recorded
    assert result.run["differing_rows"] == {"cft.t1": 0, "cft.t2": 0, "cft.plain": 1}
    assert (result.outcomes("A").num_rows, result.applied_epochs("B").num_rows) == (25, 16)
    assert (result.rows("B", "cft.t1").num_rows, result.exceptions("A", "cft.t1$EX").num_rows) == (2, 10)
    assert result.rows("B", "cft.none").num_rows == 0


def test_a_folder_without_a_result_is_refused(tmp_path: Path):
    """By its name."""
    with pytest.raises(conflict.HistoryError, match="there is no result in"):
        conflict.read_result(str(tmp_path))


def test_every_name_can_be_had_and_none_loads_more_than_it_needs():
    """Importing the package loads neither Spark nor the compiled kernels."""
    assert [name for name in conflict.__all__ if not hasattr(conflict, name)] == []
    code = "import sys, json, conflict; conflict.load_run_file; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"pyspark", "numba", "pyarrow"} & set(json.loads(done.stdout)) == set()
    with pytest.raises(AttributeError, match="module conflict has no attribute nothing"):
        _ = conflict.nothing
