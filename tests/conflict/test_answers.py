"""What functions about models and formats return: figures as attributes, rows with units, texts, HTML and pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import conflict
from conflict.rules.decision import Cause
from conflict.whatif.simulating.measured import Applier, unit_of
from conflict.whatif.simulating.report import intervals_of
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO, RECORDINGS

MODEL: dict[str, Any] = {
    "seconds": 1,
    "recordcount": 20,
    "seed": 5,
    "function": "NDB$EPOCH()",
    "workload": {"transactions_per_second": 100},
}
GRID = {"function": ["NDB$EPOCH()", "NDB$MAX(x)"], "latency_ms": [10, 200]}


@pytest.fixture(scope="module")
def simulation() -> conflict.Simulation:
    return conflict.simulate(MODEL, seeds=6)


@pytest.fixture(scope="module")
def swept() -> conflict.Sweep:
    return conflict.sweep(MODEL, GRID, seeds=6, workers=1)


def test_figures_of_runs_and_over_runs(simulation: conflict.Simulation) -> None:
    """Those of a run are those of its document; over all runs they are estimates of these numbers."""
    document = simulation.document()
    assert simulation.seeds == tuple(document["seeds"]) == (5, 6, 7, 8, 9, 10)
    for run, said in zip(simulation.runs, document["runs"], strict=True):
        sites = said["clusters"]
        assert run.clusters["A"].applier.conflicts == sites["A"]["applier"]["conflicts"]
        assert run.clusters["B"].window_ms.p99 == sites["B"]["window_ms"]["p99"]
        assert run.lost_updates == sum(site["rejected"] + site["overwritten"] for site in sites.values())
        assert run.stale_ms.max == said["stale_ms"]["max"]
    conflicts = [run.clusters["A"].applier.conflicts for run in simulation.runs]
    found = simulation.clusters["A"].applier.conflicts
    assert (found.median, found.mean) == (np.median(conflicts), pytest.approx(np.mean(conflicts)))
    assert (found.low, found.high) == (min(conflicts), max(conflicts))
    assert found.mean_interval is not None
    assert found.low <= found.mean_interval[0] < found.mean < found.mean_interval[1] <= found.high
    assert simulation.settled
    assert simulation.model == MODEL


def test_every_figure_is_a_row(simulation: conflict.Simulation) -> None:
    """Of every run, with cluster and unit; none is left out, and sums are those of the document."""
    rows = simulation.to_pandas()
    assert list(rows) == ["run", "cluster", "figure", "value", "unit"]
    assert not rows.duplicated(["run", "cluster", "figure"]).any()
    failed = rows[(rows.figure == "applier.conflicts") & (rows.cluster == "A")]
    assert failed.value.tolist() == [run.clusters["A"].applier.conflicts for run in simulation.runs]
    runs = simulation.document()["runs"]
    assert rows[rows.cluster == "A"].figure.nunique() == _leaves([run["clusters"]["A"] for run in runs])
    together = simulation.estimates()
    assert len(together) == len(rows.drop_duplicates(["cluster", "figure"]))
    assert {"median", "mean", "low", "high", "mean_from", "mean_to"} <= {*together}


def _leaves(documents: list[Any]) -> int:
    """Return how many numbers documents have by their paths; what is None everywhere is none."""
    if not isinstance(documents[0], dict):
        return int(any(each is not None for each in documents))
    names = dict.fromkeys(name for each in documents for name in each)
    return sum(_leaves([each[name] for each in documents if name in each]) for name in names)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("stale_ms.p99", "ms"),
        ("applier.stopped_at_ms", "ms"),
        ("simulated_seconds", "s"),
        ("logged_bytes", "bytes"),
        ("row_event_bytes.7", "bytes"),
        ("lost_share", "share"),
        ("applier.share_in_conflict", "share"),
        ("share_of_time_different", "share"),
        ("applier.conflicts_per_second", "1/s"),
        ("counters.Ndb_conflict_fn_max", "count"),
        ("applier.conflicts_by_table.shared_ms_x", "count"),
    ],
)
def test_units(name: str, unit: str) -> None:
    """By the name of the figure, and not by those of tables."""
    assert unit_of(name) == unit


def test_every_cause_is_a_figure() -> None:
    """A new cause of conflicts is a new attribute."""
    assert {cause.name.lower() for cause in Cause if cause} <= {field.name for field in attrs.fields(Applier)}


def test_a_count_that_a_run_lacks_is_0() -> None:
    """Runs leave out status counters that are 0; a moment that did not come is left out."""
    found = intervals_of([{"counters": {"x": 4}, "at": None}, {"counters": {}, "at": 7.0}])
    assert (found["counters"]["x"].median, found["at"].median, found["at"].runs) == (2, 7, 1)


def test_what_is_printed_and_drawn(simulation: conflict.Simulation, swept: conflict.Sweep, tmp_path: Path) -> None:
    """The tables of the command, in HTML too; a picture that a notebook shows and a file keeps."""
    file = tmp_path / "model.json"
    (tmp_path / "model.toml").write_text(
        'seconds = 1\nrecordcount = 20\nseed = 5\nfunction = "NDB$EPOCH()"\n[workload]\ntransactions_per_second = 100\n'
    )
    code, output = invoke("simulate", tmp_path / "model.toml", "--seeds", 6, "--json", file)
    assert code == 0
    assert " ".join(repr(simulation).split()) in " ".join(output.split())
    assert json.loads(file.read_text())["intervals"] == json.loads(json.dumps(simulation.document()["intervals"]))
    assert "All clusters together" in repr(simulation)
    assert "Intervals of 6 runs: bootstrap, 2,000 resamples with seed 1." in repr(simulation)
    assert "<table" in simulation._repr_html_()
    for answer in (simulation, swept):
        drawn = answer.plot()
        assert "<svg" in drawn._repr_svg_()
        assert any(text.get_text().startswith("Lost updates") for text in drawn.texts)
    swept.plot("conflicts").savefig(tmp_path / "conflicts.png")
    assert (tmp_path / "conflicts.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(conflict.ConfigurationError, match=r"no chart conflict .did you mean conflicts"):
        swept.plot("conflict")


def test_a_sweep_of_mappings(swept: conflict.Sweep, tmp_path: Path) -> None:
    """It is that of the same files; numbers of numpy are numbers, and nothing is kept."""
    (tmp_path / "sweep.toml").write_text(
        'seeds = 6\n[grid]\nfunction = ["NDB$EPOCH()", "NDB$MAX(x)"]\nlatency_ms = [10, 200]\n'
    )
    of_file = conflict.sweep(MODEL, tmp_path / "sweep.toml", out=tmp_path / "out", workers=1)
    assert of_file.results.drop_columns("model").equals(swept.results.drop_columns("model"))
    of_numpy = conflict.sweep(MODEL, {**GRID, "latency_ms": np.array([10, 200])}, seeds=6, out=tmp_path / "out")
    assert of_numpy.new == 0
    assert of_numpy.runs == swept.runs
    assert len(conflict.sweep(MODEL, {"latency_ms": [10]}, workers=1).seeds) == 10
    for given, said in (
        ((MODEL,), "there is no grid"),
        ((None, GRID), "there is no model"),
        ((MODEL, {}), "has no axes"),
        ((MODEL, {"latency": [1]}), "unknown entries latency"),
        ((MODEL, {"latency_ms": [1, 1]}), "a list of different values"),
    ):
        with pytest.raises(conflict.ConfigurationError, match=said):
            conflict.sweep(*given)


def test_points_of_a_sweep(swept: conflict.Sweep) -> None:
    """Runs know their points; estimates are of the seeds of one point, differences of the same seeds of two."""
    lost = {(run.point["function"], run.point["latency_ms"], run.seed): run.lost_share for run in swept.runs}
    rows = swept.to_pandas()
    assert list(rows) == ["function", "latency_ms", "run", "cluster", "figure", "value", "unit"]
    shares = rows[rows.figure == "lost_share"]
    assert [*shares.value] == [*lost.values()]
    for row in swept.estimates("lost_share").to_dict("records"):
        own = [share for (*point, _), share in lost.items() if point == [row["function"], row["latency_ms"]]]
        assert (row["median"], row["low"], row["runs"]) == (pytest.approx(np.median(own)), min(own), 6)
    epoch, newest = GRID["function"]
    for row in swept.differences("lost_share").to_dict("records"):
        at = row["latency_ms"]
        own = [lost[epoch, at, seed] - lost[newest, at, seed] for seed in swept.seeds]
        assert (row["first"], row["second"]) == (epoch, newest)
        assert (row["mean"], row["high"]) == (pytest.approx(np.mean(own)), pytest.approx(max(own)))
        assert row["told_apart"] == (not row["mean_from"] <= 0 <= row["mean_to"])
    with pytest.raises(conflict.ConfigurationError, match=r"no figure lost_shares .did you mean lost_share"):
        swept.estimates("lost_shares")
    with pytest.raises(conflict.ConfigurationError, match="no axis seed; axes are function, latency_ms"):
        swept.differences("lost_share", "seed")


def test_a_script_without_a_guard_sweeps_in_processes(tmp_path: Path) -> None:
    """Workers do not run the script again, which would start workers."""
    script = tmp_path / "study.py"
    script.write_text(
        "import conflict.history.tasks, functools\n"
        "conflict.history.tasks.process_runner = functools.partial(conflict.history.tasks.process_runner, alone=0)\n"
        f"swept = conflict.sweep({MODEL!r}, {{'latency_ms': [10]}}, seeds=3, workers=2)\n"
        "print(len(swept.runs), 'once')\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "3 once\n"


def test_searches() -> None:
    """The shortest schedule as numbers, as text, and as rows."""
    found = conflict.diverge(function="NDB$EPOCH2_TRANS()", transactions=2, find=["difference", "lost"])
    assert (found.found, found.complete, len(found.searches)) == (True, True, 2)
    rows = found.to_pandas()
    assert rows.goal.tolist() == ["difference", "lost"]
    assert rows.found.tolist() == [False, True]
    assert rows.steps.tolist()[1] == 3  # docs/diverge.md
    assert "An update is lost after 3 steps" in repr(found)
    assert "<table" in found._repr_html_()
    with pytest.raises(conflict.ConfigurationError, match="--policy needs allows it"):
        conflict.diverge(function="NDB$MAX(x)", binlog_type=8)


def test_requirements_of_one_and_of_all() -> None:
    """One answer in full, or a table of all; as the command says it."""
    one = conflict.requirements(function="NDB$MAX(version)", binlog_type=8)
    assert one.answers[0].status.value == "refused"
    assert one.document()["answers"][0]["status"] == one.to_pandas().status[0]
    table = conflict.requirements(policy="needs", option={"ndb_log_update_minimal": "ON"})
    assert table.to_pandas().groupby("function").size().unique().tolist() == [8]  # binlog types
    code, output = invoke("requirements", "--policy", "needs", "--option", "ndb_log_update_minimal=ON")
    assert code == 0
    assert " ".join(repr(table).split()) == " ".join(output.split())
    with pytest.raises(conflict.ConfigurationError, match="is unknown"):
        conflict.requirements(option="ndb_log_nothing=ON")


def test_how_statements_are_logged(tmp_path: Path) -> None:
    """Statements, or a file of them; outcomes one a row."""
    found = conflict.logging("INSERT INTO t VALUES (UUID())", engine="innodb")
    assert {name.value: each[0].outcomes[0].logged[0].value for name, each in found.by_format.items()} == {
        "STATEMENT": "statement",
        "ROW": "row",
        "MIXED": "row",
    }
    assert found.to_pandas().messages.tolist() == [[1592], [], []]  # ER_BINLOG_UNSAFE_STATEMENT
    (tmp_path / "a.sql").write_text("INSERT INTO t VALUES (UUID());")
    for file in (tmp_path / "a.sql", str(tmp_path / "a.sql")):
        assert conflict.logging(file, engine="innodb").document() == found.document()


def test_a_replica(tmp_path: Path) -> None:
    """Findings by table, and the worst of each."""
    for name, kind in (("source", "BIGINT"), ("replica", "INT")):
        (tmp_path / f"{name}.sql").write_text(f"CREATE TABLE d.t (a INT PRIMARY KEY, b {kind}) ENGINE=InnoDB;")
    found = conflict.check_replica(tmp_path / "source.sql", tmp_path / "replica.sql")
    assert [*found.worst] == ["d.t"]
    assert found.to_pandas().table.unique().tolist() == ["d.t"]
    assert "d.t" in repr(found)
    assert conflict.check_replica(tmp_path / "source.sql", tmp_path / "source.sql").document()["tables"] == {
        "d.t": "guaranteed"
    }


def test_binlogs_in_another_format(tmp_path: Path) -> None:
    """New files, and what became of the changes."""
    case = RECORDINGS / "ndb_formats" / "composite_type7"
    found = conflict.rewrite(case / "binlog.000001", binlog_type=9, schema=case / "schema.sql", out=tmp_path)
    assert found.files == (tmp_path / "binlog.000001",)
    assert found.complete
    assert found.to_pandas()["rows"].sum() == found.rewritten == 18  # as the next test of the command counts: 17 and 1
    assert "kept as logged: 0." in repr(found)
    with pytest.raises(conflict.ConfigurationError, match="there is no such file"):
        conflict.rewrite(tmp_path / "none", binlog_type=9, out=tmp_path / "out")


def test_a_run_file_is_drafted(tmp_path: Path) -> None:
    """Nothing is written without `out`; the run goes to other functions."""
    given = {"schema": DEMO / "schema.sql", "conflict_fn": {"cft.t*": "NDB$EPOCH()"}, "primary": "server1"}
    found = conflict.init(DEMO, **given)
    assert list(tmp_path.iterdir()) == []
    assert repr(found) == found.text
    assert "server_id = 1" in found.text
    assert conflict.resolve(found.run, engine="local").summary.conflicts == 25  # recorded
    written = conflict.init(DEMO, **given, out=tmp_path / "run.toml")
    assert (tmp_path / "run.toml").read_text() == written.text
