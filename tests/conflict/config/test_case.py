"""The folder of a case as a run file: the same run as the judge's, for all commands; and what is wrong with one."""

import json
import shutil
from pathlib import Path

import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.config.case import SCENARIO
from conflict.config.run_file import GivenSchedule, load_run_file
from conflict.errors import ConfigurationError
from conflict.judge.case import ConflictCase
from tests.conflict.cli.commands import invoke
from tests.corpora import RECORDINGS, SHARED, schema_file

CASE = RECORDINGS / "conflict" / "epoch" / "upd_upd_b_first_type8"


def assert_same_run(folder: Path) -> None:
    run, case = load_run_file(folder), ConflictCase.load(folder)
    assert run.configuration == case.configuration()
    assert run.schedule == GivenSchedule(SCENARIO if case.steps else None)
    assert run.inputs == (folder / SCENARIO, *run.configuration.files)


@pytest.mark.parametrize("name", ["conflict", "everyday", "lives"])
def test_every_recording_is_a_run(name: str) -> None:
    folders = [path.parent for path in (RECORDINGS / name).rglob(SCENARIO)]
    assert folders
    for folder in folders:
        assert_same_run(folder)


@pytest.mark.slow
@pytest.mark.corpus("conformance")
@pytest.mark.parametrize("name", ["everyday", "operations", "operations2"])
def test_other_recordings_are_runs(name: str) -> None:
    """Of several SQL nodes and clusters among them."""
    for path in Path(SHARED, "conformance", name).rglob(SCENARIO):
        assert_same_run(path.parent)


def test_commands_take_it(tmp_path: Path) -> None:
    """What is explained of the folder is what is explained of its result, which remembers the folder."""
    result = conflict.resolve(CASE, out=tmp_path / "result", engine="reference")
    assert invoke("conformance", CASE, "--engine", "reference")[0] == ExitCode.DONE
    assert (
        result.counters["A"]["Ndb_conflict_fn_epoch"]
        == (ConflictCase.load(CASE).expected["A"]["status_difference"]["Ndb_conflict_fn_epoch"])
    )
    stories = [conflict.explain(each, table="t1", key=1) for each in (CASE, result)]
    assert stories[0].to_json() == stories[1].to_json()
    assert stories[0].events
    for words in (["check", CASE], ["workers", CASE], ["window", CASE], ["audit", CASE], ["sizes", CASE]):
        code, said = invoke(*words)
        assert code in (ExitCode.DONE, ExitCode.WARNED), said
    assert invoke("report", result.folder.uri, "--out", tmp_path / "report.html")[0] == ExitCode.DONE
    code, said = invoke("lost", CASE)
    assert code == ExitCode.REFUSED
    assert f"{CASE} is a folder of binlogs, not a result; resolve it with ndb-conflict resolve" in said


def test_with_other_arguments_it_is_a_folder_of_binlogs(tmp_path: Path) -> None:
    """They are for bare binlogs."""
    schema = schema_file(CASE, tmp_path)
    given = {"cft.*": "NDB$MAX(x)"}
    result = conflict.resolve(CASE, schema=schema, conflict_fn=given, policy="needs", engine="reference")
    assert result.run["configuration"]["functions"]["server1"]["cft.t1"]["function"] == "NDB$MAX(x)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", f"{SCENARIO}: no JSON"),
        ("[]", f"{SCENARIO}: the scenario is []; it must be a table"),
        ("{}", f"{SCENARIO}: it is not what docs/cases.md says (KeyError('binlog_files'))"),
    ],
)
def test_what_is_no_case(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / SCENARIO).write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        load_run_file(tmp_path)
    assert said in str(raised.value)


def test_a_binlog_that_is_missing(tmp_path: Path) -> None:
    """It is refused, or left out where binlogs need not be there; then records lack its images alone."""
    folder = tmp_path / "case"
    shutil.copytree(CASE, folder)
    result = conflict.resolve(folder, out=tmp_path / "result", engine="reference")
    (name,) = json.loads((folder / SCENARIO).read_text("utf-8"))["binlog_files"]["B"]
    (folder / name).unlink()
    with pytest.raises(ConfigurationError, match=f"{name}: no such binlog"):
        load_run_file(folder)
    a, b = load_run_file(folder, binlogs=False).configuration.clusters
    assert (len(a.files), len(b.files)) == (1, 0)
    with pytest.warns(UserWarning, match=f"{name}: missing"):
        found = conflict.records(result).read_all().to_pylist()
    assert {row["source"] for row in found if row["server_id"] is None} == {"B"}
