"""Commands on logs whose first files were purged: each takes them, and says so once."""

import json
import tomllib
from pathlib import Path

import pytest

import conflict
from conflict.history.ingestion.logged_epochs import scan_epochs
from tests.conflict.cli.commands import invoke
from tests.conflict.purged_logs import purged_demo, purged_log
from tests.corpora import DEMO

SAID = "start in the middle"


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run file of the demo whose logs lack their first third."""
    return purged_demo(tmp_path_factory.mktemp("purged") / "late", 1 / 3)


@pytest.fixture(scope="module")
def result(late: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Resolve it."""
    out = tmp_path_factory.mktemp("result") / "out"
    code, output = invoke("resolve", late, "--out", out)
    assert (code, output.count(SAID)) == (0, 1)
    return out


def test_conflicts(result: Path, tmp_path: Path) -> None:
    """What is open is no conflict that is counted in silence."""
    code, output = invoke("conflicts", result, "--json", tmp_path / "out.json")
    assert (code, output.count(SAID)) == (0, 1)
    (said,) = [each for each in json.loads((tmp_path / "out.json").read_text())["doubts"] if SAID in each]
    open_decisions = sum(json.loads((result / "run.json").read_text())["undecided"].values())
    assert (f"{open_decisions} decision" in said) == bool(open_decisions)


@pytest.mark.parametrize("asked", [("--differences",), ("--table", "cft.t1", "--key", 3)])
def test_explain(asked: tuple[object, ...], result: Path, tmp_path: Path) -> None:
    """Of a row, and of all that differ."""
    code, output = invoke("explain", result, *asked, "--json", tmp_path / "out.json")
    assert (code, output.count(SAID)) == (0, 1)
    assert sum(SAID in each for each in json.loads((tmp_path / "out.json").read_text())["doubts"]) == 1


def test_a_report(result: Path, tmp_path: Path) -> None:
    """One result, one sentence."""
    assert invoke("report", result, "--out", tmp_path / "page.html")[0] == 0
    assert (tmp_path / "page.html").read_text().count(SAID) == 1


def test_a_model_is_learnt_and_simulated(late: Path, tmp_path: Path) -> None:
    """The model says what it lacks, and so do a simulation and a sweep of it."""
    code, output = invoke("workload", late, "--out", tmp_path / "model.toml")
    assert (code, output.count(SAID)) == (0, 1)
    assert "others are not known" in output
    assert set(tomllib.loads((tmp_path / "model.toml").read_text())["starts_in_the_middle"]) == {"A", "B"}
    code, output = invoke("simulate", tmp_path / "model.toml")
    assert (code, output.count(SAID)) == (0, 1)
    (tmp_path / "sweep.toml").write_text('model = "model.toml"\n[grid]\nlatency_ms = [1, 2]\n')
    code, output = invoke("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "sweep", "--workers", 1)
    assert (code, output.count(SAID)) == (0, 1), output


def test_a_log_that_starts_long_before_the_other(tmp_path: Path) -> None:
    """Users of a cluster are not taken to be idle while its log is missing: the model is of the common time."""
    late = purged_demo(tmp_path / "late", 0)
    purged_log(DEMO / "B.binlog.000001", 2, 0.6, late.parent / "B.binlog.000001")
    whole, found = conflict.workload(DEMO / "run.toml"), conflict.workload(late)
    assert found["seconds"] < 0.8 * whole["seconds"]
    rates = found["clusters"]["B"]["workload"]["transactions_per_second"]
    assert any(rates[: len(rates) // 2])
    epochs = len(scan_epochs(1, [DEMO / "A.binlog.000001"]))
    assert len(found["clusters"]["A"]["link"]["trace_ms"]) <= epochs


def test_sizes_do_not_depend_on_rows(late: Path) -> None:
    """Each event has its size, whatever its row was before: there is nothing to be said."""
    code, output = invoke("sizes", late)
    assert code == 0
    assert SAID not in output
