"""`ndb-conflict simulate` and `ndb-conflict workload`."""

import json
import tomllib
from pathlib import Path

import pytest

from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "model.toml"
    file.write_text(
        'seconds = 2\nfunction = "NDB$EPOCH()"\nrecordcount = 50\n'
        "[workload]\ntransactions_per_second = 200\n[clusters.A.link]\nlatency_ms = 50\n[clusters.B]\n"
    )
    return file


def test_figures_of_several_seeds(model: Path, tmp_path: Path) -> None:
    """The median and the extremes on the terminal; all runs in the JSON file."""
    code, output = invoke("simulate", model, "--seeds", 3, "--json", tmp_path / "out.json")
    assert code == 0
    assert "A median (extremes) B median (extremes)" in output
    assert "Conflicts against the closed form" in output
    assert "3 runs of 2 s, seeds 1 to 3." in output
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["seeds"] == [1, 2, 3]
    runs = [run["clusters"]["A"]["applier"]["conflicts"] for run in document["runs"]]
    conflicts = document["intervals"]["clusters"]["A"]["applier"]["conflicts"]
    assert conflicts == {"median": sorted(runs)[1], "low": min(runs), "high": max(runs)}
    assert document["closed_form"][0]["simulated"] == sorted(runs)[1]


def test_one_run_shows_plain_figures(model: Path) -> None:
    """And its seed, which can be chosen."""
    code, output = invoke("simulate", model, "--seed", 7)
    assert code == 0
    assert "extremes" not in output
    assert "1 run of 2 s, seed 7." in output
    assert invoke("simulate", model, "--seed", 7)[1] == output


def test_result_and_binlogs_of_the_first_run(model: Path, tmp_path: Path) -> None:
    """`conflicts` and `explain` read the result, `resolve` the binlogs; both count what the simulation counted."""
    out, logs, figures = tmp_path / "out", tmp_path / "logs", tmp_path / "figures.json"
    code, output = invoke("simulate", model, "--seeds", 2, "--out", out, "--write-binlogs", logs, "--json", figures)
    assert code == 0
    assert "Binlogs of seed 1" in output
    applier = json.loads(figures.read_text())["runs"][0]["clusters"]["A"]["applier"]
    assert applier["conflicts"] > 0
    counters = json.loads((out / "counters.json").read_text())
    assert counters["A"]["Ndb_conflict_fn_epoch"] == applier["conflicts"]
    code, output = invoke("conflicts", out)
    assert code == 0
    assert "Hottest rows" in output
    code, output = invoke("explain", out, "--table", "model.usertable", "--key", 7)
    assert code == 0
    assert "model.usertable k=7" in output
    code, _ = invoke("resolve", logs / "run.toml", "--out", tmp_path / "again", "--engine", "local")
    assert code == 0
    assert json.loads((tmp_path / "again" / "counters.json").read_text()) == counters


def test_folders_are_replaced_with_force_alone(model: Path, tmp_path: Path) -> None:
    """Without --write-binlogs, the binlogs stand beside the result."""
    out = tmp_path / "out"
    assert invoke("simulate", model, "--out", out)[0] == 0
    assert (tmp_path / "out-binlogs" / "run.toml").is_file()
    code, output = invoke("simulate", model, "--out", out)
    assert code == ExitCode.REFUSED
    assert "out-binlogs exists already" in output
    assert invoke("simulate", model, "--out", out, "--force")[0] == 0


def test_a_file_that_is_wrong_is_refused(model: Path) -> None:
    """With its name, before anything is simulated."""
    model.write_text("seconds = 'long'\n")
    code, output = invoke("simulate", model)
    assert code == ExitCode.REFUSED
    assert "model.toml" in output
    assert "seconds is 'long'; it must be a number" in output


def test_a_workload_learnt_from_binlogs_is_simulated(tmp_path: Path) -> None:
    """From a run file; the file that is written is not overwritten without --force."""
    learnt = tmp_path / "learnt.toml"
    code, output = invoke("workload", DEMO / "run.toml", "--out", learnt)
    assert code == 0
    assert f"from {tomllib.loads(learnt.read_text())['seconds']:g} s of the logs" in output
    assert "t1 (3 rows at first), t2 (3 rows at first), plain (2 rows at first)." in output
    assert invoke("workload", DEMO / "run.toml", "--out", learnt)[0] == ExitCode.REFUSED
    code, output = invoke("simulate", learnt, "--seeds", 2)
    assert code == 0
    assert "row in conflict" in output


OUTAGE = 'seconds = 1\nrecordcount = 50\nfunction = "NDB$EPOCH()"\n{}[clusters.A.link]\noutages = {}\n[clusters.B]\n'


@pytest.mark.parametrize(
    ("top", "outages", "why"),
    [
        ("drain_seconds = 60\n", "[[0.5, 500]]", "drain_seconds ends the run 60 s after the last transaction"),
        ("", "[[0.5]]", "In the model, the link from A stays down."),
    ],
)
def test_what_is_not_settled_at_the_end_is_said(top: str, outages: str, why: str, tmp_path: Path) -> None:
    """In the figures, on the terminal, on the page and by the exit code; not where the run goes on until it is."""
    file, figures, page = tmp_path / "model.toml", tmp_path / "figures.json", tmp_path / "page.html"
    file.write_text(OUTAGE.format(top, outages))
    code, output = invoke("simulate", file, "--json", figures)
    assert code == ExitCode.WARNED
    assert "changes not settled at the end" in output
    assert why in " ".join(output.split())
    (run,) = json.loads(figures.read_text())["runs"]
    left = run["clusters"]["A"]["unsettled"]
    assert 0 < left < run["clusters"]["A"]["changes"]
    assert run["clusters"]["B"]["unsettled"] == 0
    assert invoke("report", figures, "--out", page)[0] == 0
    assert f"up to {left} changes of users" in page.read_text()
    assert ", at least " in page.read_text()
    assert "At least so many: changes were not settled at the end." in page.read_text()
    file.write_text(OUTAGE.format("", "[[0.5, 500]]"))
    code, output = invoke("simulate", file)
    assert (code, "not settled" in output.lower()) == (ExitCode.DONE, False)


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    file = tmp_path / "ring.toml"
    clusters = "".join(f'[clusters.{name}]\nreplicates_from = ["{source}"]\n' for name, source in ("AC", "BA", "CB"))
    work = "[workload]\ntransactions_per_second = 100\n"
    file.write_text(f'seconds = 2\nfunction = "NDB$MAX(x)"\nrecordcount = 10\n{work}{clusters}')
    return file


def test_a_ring_of_three(ring: Path, tmp_path: Path) -> None:
    """Its figures, its result, and the report of it."""
    figures, out = tmp_path / "ring.json", tmp_path / "out"
    code, output = invoke("simulate", ring, "--out", out, "--json", figures)
    assert code == 0
    for text in ("A → B", "C → A", "How long until all clusters had them", "to reach the next cluster"):
        assert text in output
    document = json.loads(figures.read_text())
    applier = document["runs"][0]["clusters"]["B"]["applier"]
    counters = json.loads((out / "counters.json").read_text())
    assert counters["B"]["Ndb_conflict_fn_max"] == applier["conflicts"] > 0
    assert document["closed_form"] == []
    assert invoke("report", figures, "--out", tmp_path / "r.html")[0] == 0
    assert "on 3 clusters" in (tmp_path / "r.html").read_text()


def test_a_sweep_over_rings(ring: Path, tmp_path: Path) -> None:
    """Its points are simulated as any others."""
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(f'model = "{ring.name}"\nseeds = 1\n[grid]\nrecordcount = [5, 50]\n')
    code, output = invoke("sweep", sweep, "--out", tmp_path / "swept")
    assert code == 0, output


def test_no_figure_where_there_is_nothing_to_measure(tmp_path: Path) -> None:
    """No closed form and no window of changes that never arrived, and no number that is none."""
    file, figures = tmp_path / "model.toml", tmp_path / "figures.json"
    common = 'seconds = 1\ndrain_seconds = 1\nfunction = "NDB$EPOCH()"\nrecordcount = 50\n'
    for rate, outage in ((0, "[]"), (200, "[[0, 100]]")):
        work = f"[workload]\ntransactions_per_second = {rate}\n"
        file.write_text(f"{common}{work}[clusters.A.link]\noutages = {outage}\n[clusters.B]\n")
        code, output = invoke("simulate", file, "--json", figures, "--force")
        assert code == (ExitCode.WARNED if rate else ExitCode.DONE)
        assert "closed form" not in output
        assert "in all: the conflict window" in output
        assert "NaN" not in figures.read_text()


def test_a_recording_that_ends_in_an_outage(tmp_path: Path) -> None:
    """What is learnt from it says how many epochs had not arrived; from a whole one it says nothing."""
    model, logs, learnt = tmp_path / "model.toml", tmp_path / "logs", tmp_path / "learnt.toml"
    work = "[workload]\ntransactions_per_second = 100\n"
    for outage, code in (("[[2]]", ExitCode.WARNED), ("[[2, 3]]", ExitCode.DONE)):
        model.write_text(f"seconds = 5\nrecordcount = 50\n{work}[clusters.A.link]\noutages = {outage}\n[clusters.B]\n")
        assert invoke("simulate", model, "--write-binlogs", logs, "--force")[0] == code
        found, output = invoke("workload", logs / "run.toml", "--out", learnt, "--force")
        assert found == code, output
        assert ("epochs of A had not arrived where the binlogs end" in " ".join(output.split())) == bool(code)
        late = tomllib.loads(learnt.read_text()).get("not_arrived", {})
        # Ten epochs a second; those of the last three seconds, all but the first ones of which took longest.
        assert (25 <= late["A"] <= 31 and not late["B"]) if code else not late
        assert invoke("simulate", learnt)[0] == ExitCode.DONE
