"""`ndb-conflict init`, and `resolve` of bare binlogs."""

import json
import re
from pathlib import Path

import pytest

from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.conflict.judge.test_options import write_run_file
from tests.corpora import DEMO

GIVEN = (DEMO, "--schema", DEMO / "schema.sql", "--conflict-fn", "cft.t*=NDB$EPOCH()", "--primary", "server1")


def test_bare_binlogs_and_their_run_file_give_the_same_result(tmp_path: Path) -> None:
    """Recorded counters of the demo, by either way; the run file is not written over."""
    run_file, results = tmp_path / "run.toml", [tmp_path / "bare", tmp_path / "written"]
    assert invoke("init", *GIVEN, "--out", run_file)[0] == ExitCode.DONE
    code, output = invoke("resolve", *GIVEN, "--out", results[0], "--engine", "reference")
    assert code == ExitCode.DONE, output
    assert "Cluster server1 is server 1: 1 binlog file, A.binlog.000001." in output
    assert invoke("resolve", run_file, "--out", results[1], "--engine", "reference")[0] == ExitCode.DONE
    counters = [json.loads((result / "counters.json").read_text()) for result in results]
    assert counters[0] == counters[1]
    assert counters[0]["server1"]["Ndb_conflict_fn_epoch"] == 25  # recorded by the real clusters
    before = run_file.read_text()
    code, output = invoke("init", *GIVEN, "--out", run_file)
    assert code == ExitCode.REFUSED
    assert "exists already" in output
    assert run_file.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((DEMO / "run.toml", "--conflict-fn", "cft.t1=NDB$EPOCH()"), "is a run file"),
        ((DEMO, "--conflict-fn", "cft.t1"), "give TABLE=FUNCTION"),
        ((DEMO, "--conflict-fn", "a.b=NDB$EPOCH()", "--ndb-replication", DEMO / "ndb_replication.csv"), "give one"),
        ((DEMO,), "no schema is given"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: tuple[object, ...], what: str, tmp_path: Path) -> None:
    """Before anything is written."""
    code, output = invoke("resolve", *arguments, "--out", tmp_path / "result")
    assert code == ExitCode.REFUSED
    assert what in output
    assert list(tmp_path.iterdir()) == []


def test_the_engine_is_chosen_and_said(tmp_path: Path) -> None:
    """Without Spark's variables and with memory enough, the columnar engine resolves a run in this process."""
    code, output = invoke("resolve", DEMO / "run.toml", "--out", tmp_path / "result")
    assert code == ExitCode.DONE
    assert "The local engine resolved this: it takes about 512 MiB of memory for 30 KiB of binlogs" in output
    assert json.loads((tmp_path / "result/run.json").read_text())["engine"] == "local"


@pytest.mark.parametrize(
    ("case", "engine", "code"),
    [
        ("epoch2/rule_roles_swapped_midway_type7", "reference", ExitCode.DONE),
        ("max/foreign_key_cascade_type7", "local", ExitCode.DONE),
        ("max/ddl_truncate_type7", "local", ExitCode.DONE),
    ],
)
def test_the_engine_is_said_once(case: str, engine: str, code: ExitCode, tmp_path: Path) -> None:
    """Also where only what was read shows that the reference engine has to resolve the run, or some of its rows."""
    found, output = invoke("resolve", write_run_file(case, tmp_path), "--out", tmp_path / "result")
    assert found == code
    assert re.findall(r"The (\w+) engine", output) == [engine]
    assert ("Resolved with care" in output) == ("foreign_key" in case)
    assert "in conflict, found in" not in output  # no function judges transactions
