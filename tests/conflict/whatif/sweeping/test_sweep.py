"""`ndb-conflict sweep`: a grid that goes on where it was stopped."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conflict.cli.refusals import ExitCode
from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import only_writer
from conflict.history.tasks import Progress, Runner, in_process
from conflict.whatif.sweeping.sweep import BORDERS, RESULTS, SweepRun, run_sweep
from conflict.whatif.sweeping.sweep_file import load_sweep
from tests.conflict.cli.commands import invoke

MODEL = "seconds = 1\nrecordcount = 20\nseed = 5\n[workload]\ntransactions_per_second = 100\n"
GRID = """
model = "model.toml"
seeds = 2
[grid]
function = ["NDB$EPOCH()", "NDB$MAX(x)"]
latency_ms = [0, 200]
"""


@pytest.fixture
def sweep_file(tmp_path: Path) -> Path:
    (tmp_path / "model.toml").write_text(MODEL)
    file = tmp_path / "sweep.toml"
    file.write_text(GRID)
    return file


def no_progress(stage: str, done: int, total: int) -> None:
    """Show nothing."""


def stopping_after(count: int) -> Runner:
    """Return a runner that is interrupted after some tasks."""

    def run(function: Callable[[SweepRun], None], tasks: list[SweepRun], progress: Progress) -> list[None]:
        in_process(function, tasks[:count], progress)
        raise KeyboardInterrupt

    return run  # type: ignore[return-value]


def test_a_sweep_that_was_stopped_goes_on(sweep_file: Path, tmp_path: Path) -> None:
    """Its results are, byte for byte, those of one that was not; what was finished is not simulated again."""
    sweep = load_sweep(sweep_file)
    whole, stopped = Folder(str(tmp_path / "whole")), Folder(str(tmp_path / "stopped"))
    assert run_sweep(sweep, whole, in_process, None, no_progress).new == 8
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, stopped, stopping_after(3), None, no_progress)
    assert not stopped.exists("run.json")
    swept = run_sweep(sweep, stopped, in_process, None, no_progress)
    assert (swept.needed, swept.new) == (8, 5)
    assert stopped.read_bytes(RESULTS) == whole.read_bytes(RESULTS)


def test_the_rows_of_a_sweep(sweep_file: Path, tmp_path: Path) -> None:
    """One per point and seed, with its figures as `simulate` has them, and the model that `simulate` takes."""
    code, output = invoke("sweep", sweep_file, "--out", tmp_path / "out", "--workers", 1)
    assert code == 0
    assert "8 runs; 0 from an earlier sweep, 8 new." in output
    rows = pq.read_table(tmp_path / "out" / RESULTS).to_pylist()
    points = [(row["function"], row["latency_ms"], row["seed"]) for row in rows]
    functions = ("NDB$EPOCH()", "NDB$MAX(x)")
    assert points == [(name, latency, seed) for name in functions for latency in (0, 200) for seed in (5, 6)]
    row = rows[3]
    model = json.loads(row["model"])
    assert (model["function"], model["recordcount"]) == ("NDB$EPOCH()", 20)
    assert [model["clusters"][name]["link"] for name in "AB"] == [{"latency_ms": 200}] * 2
    alone = tmp_path / "alone.toml"
    alone.write_text(
        'seconds = 1\nrecordcount = 20\nfunction = "NDB$EPOCH()"\n[workload]\ntransactions_per_second = 100\n'
        "[clusters.A.link]\nlatency_ms = 200\n[clusters.B.link]\nlatency_ms = 200\n"
    )
    assert invoke("simulate", alone, "--seed", 6, "--json", tmp_path / "alone.json")[0] == 0
    (run,) = json.loads((tmp_path / "alone.json").read_text())["runs"]
    sites = run["clusters"].values()
    assert row["conflicts"] == sum(site["applier"]["conflicts"] for site in sites)
    assert row["lost_updates"] == sum(site["rejected"] + site["overwritten"] for site in sites)
    assert row["A_window_ms_mean"] == run["clusters"]["A"]["window_ms"]["mean"]


def test_a_larger_grid_simulates_only_what_is_new(sweep_file: Path, tmp_path: Path) -> None:
    """In the same folder; the results are those of a sweep that had all points from the start."""
    sweep_file.write_text(GRID.replace("[0, 200]", "[0]"))
    assert invoke("sweep", sweep_file, "--out", tmp_path / "out", "--workers", 1)[0] == 0
    sweep_file.write_text(GRID)
    assert (
        "4 from an earlier sweep, 4 new." in invoke("sweep", sweep_file, "--out", tmp_path / "out", "--workers", 1)[1]
    )
    assert invoke("sweep", sweep_file, "--out", tmp_path / "other", "--workers", 1)[0] == 0
    assert (tmp_path / "out" / RESULTS).read_bytes() == (tmp_path / "other" / RESULTS).read_bytes()


def test_what_cannot_be_swept_is_refused(sweep_file: Path, tmp_path: Path) -> None:
    """Before anything is simulated, with the place."""
    for old, new, text in (
        ('"NDB$MAX(x)"', '"NDB$MOST(x)"', "at function NDB$MOST(x), latency_ms 0: "),
        ("latency_ms", "latency", "unknown entries latency"),
        ("[0, 200]", "200", "grid.latency_ms is 200; it must be a list of different values"),
        ("[0, 200]", "[1, 1]", "it must be a list of different values"),
        ("latency_ms", '"seconds.long"', "seconds is no table of the model"),
        ('model = "model.toml"', "", "there is no model; give the name of its file"),
        ("latency_ms", "seed", "grid.seed is an axis; give the number of seeds"),
        ("seeds = 2", "seeds = 1000000", "[grid] makes 4,000,000 runs, 1,000,000 at each point"),
    ):
        sweep_file.write_text(GRID.replace(old, new))
        with pytest.raises(ConfigurationError) as caught:
            load_sweep(sweep_file)
        assert text in str(caught.value)
        assert "sweep.toml" in str(caught.value)
    sweep_file.write_text(GRID)
    (tmp_path / "other").mkdir()
    code, output = invoke("sweep", sweep_file, "--out", tmp_path / "other")
    assert code == ExitCode.REFUSED
    assert "is no folder of a sweep" in output


def test_axes_that_are_no_numbers(tmp_path: Path) -> None:
    """Truth values, lists and tables are columns of the results, and of the borders in the same words."""
    file = tmp_path / "sweep.toml"
    file.write_text(
        """
seeds = 1
[model]
seconds = 1
recordcount = 20
x = "clock"
[grid]
latency_ms = [0, 200]
"workload.check_reads" = [true, false]
transactions_per_second = [[20], [40, 80]]
function = ["NDB$MAX(x)", { A = "NDB$EPOCH()" }]
"""
    )
    code, output = invoke(
        "sweep", file, "--out", tmp_path / "out", "--find", "lost_updates >= 0", "--over", "latency_ms", "--workers", 1
    )
    assert code == 0
    assert "16 runs; 0 from an earlier sweep, 16 new." in output
    names = ["workload.check_reads", "transactions_per_second", "function"]
    results, borders = (pq.read_table(tmp_path / "out" / name).select(names) for name in (RESULTS, BORDERS))
    points = {tuple(row.values()) for row in results.to_pylist()}
    rates, functions = ("[20]", "[40, 80]"), ("NDB$MAX(x)", '{"A": "NDB$EPOCH()"}')
    assert points == set(itertools.product((True, False), rates, functions))
    assert {tuple(row.values()) for row in borders.to_pylist()} == points


def test_a_figure_that_is_empty(sweep_file: Path, tmp_path: Path) -> None:
    """The condition holds nowhere, and the reason is said; the distance is in the document."""
    find = ("--find", "A_applier_stopped_at_ms < 9", "--over", "latency_ms", "--within", 20)
    code, output = invoke("sweep", sweep_file, "--out", tmp_path / "out", "--workers", 1, *find)
    assert code == 0
    assert "A_applier_stopped_at_ms is empty in 8 runs of the grid; the condition does not hold there." in output
    assert json.loads((tmp_path / "out" / "run.json").read_text())["within"] == 20
    assert invoke("sweep", sweep_file, "--out", tmp_path / "out", "--within", 20)[0] == ExitCode.REFUSED


def test_files_of_runs_that_are_damaged(sweep_file: Path, tmp_path: Path) -> None:
    """One without content, as after a power failure, is made again; of others is said which to delete."""
    out = tmp_path / "out"
    assert invoke("sweep", sweep_file, "--out", out, "--workers", 1)[0] == 0
    whole = (out / RESULTS).read_bytes()
    (file, *_) = sorted((out / "runs").iterdir())
    file.write_bytes(b"")
    assert "7 from an earlier sweep, 1 new." in invoke("sweep", sweep_file, "--out", out, "--workers", 1)[1]
    assert (out / RESULTS).read_bytes() == whole
    for content in ("{", "{}", "[]"):
        file.write_text(content)
        code, output = invoke("sweep", sweep_file, "--out", out, "--workers", 1)
        assert code == ExitCode.REFUSED
        assert f"{file} is damaged; delete this file, and run the sweep again" in output


def test_a_folder_by_another_name(sweep_file: Path, tmp_path: Path) -> None:
    """A sweep that writes a folder keeps out another one that has a link to it."""
    out = tmp_path / "out"
    assert invoke("sweep", sweep_file, "--out", out, "--workers", 1)[0] == 0
    (tmp_path / "link").symlink_to(out)
    with only_writer(Folder(str(out))):
        code, output = invoke("sweep", sweep_file, "--out", tmp_path / "link", "--workers", 1)
    assert code == ExitCode.REFUSED
    assert "is being written by process" in output


def test_runs_that_are_not_settled_are_said(tmp_path: Path) -> None:
    """
    In the table, the figures, the report and the exit code; no condition holds for what is lost at least.

    Without the limit the runs go on until the link is back: a longer outage loses no less.
    """
    model = "drain_seconds = 10\n" + MODEL
    (tmp_path / "model.toml").write_text(model)
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text('model = "model.toml"\nseeds = 1\n[grid]\noutage_seconds = [0, 100]\n')
    find = ("--find", "lost_share < 0.9", "--over", "outage_seconds", "--within", 50)
    code, output = invoke("sweep", file, "--out", out, "--workers", 1, *find)
    assert code == ExitCode.WARNED
    assert "≥" in output
    assert "changes were not settled at the end" in output
    down = pq.read_table(out / RESULTS).to_pylist()[1]
    assert down["lost_share"] < 0.9 < down["lost_share_at_most"] == 1.0
    assert down["unsettled_changes"] == down["A_unsettled"] + down["B_unsettled"] > 0
    (border,) = pq.read_table(out / BORDERS).to_pylist()
    assert border["fails"] is not None
    assert invoke("report", out, "--out", tmp_path / "r.html")[0] == 0
    page = (tmp_path / "r.html").read_text()
    assert "in 1 run changes were not settled at the end" in page
    assert "Where changes were not settled at the end, at least so many." in page
    (tmp_path / "model.toml").write_text(MODEL)
    file.write_text('model = "model.toml"\nseeds = 1\n[grid]\noutage_seconds = [0, 1, 100]\n')
    assert invoke("sweep", file, "--out", tmp_path / "whole", "--workers", 1)[0] == ExitCode.DONE
    rows = pq.read_table(tmp_path / "whole" / RESULTS).to_pylist()
    assert [row["lost_updates"] for row in rows] == sorted(row["lost_updates"] for row in rows)
    assert [row["unsettled_changes"] for row in rows] == [0, 0, 0]
