"""`compare`, `explain` and `conflicts` say what makes their figures doubtful, as `resolve` does."""

import json
import shutil
from pathlib import Path

import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.config.arguments import DeploymentPolicy
from conflict.config.run_file import load_run_file
from conflict.errors import ConfigurationError
from conflict.judge.case import ConflictCase
from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType
from tests.conflict.cli.commands import invoke
from tests.conflict.whatif.comparing.recorded import compared
from tests.corpora import DEMO, RECORDINGS


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run file of the demo that declares NDB$MAX(x) where NDB$EPOCH() was in force."""
    folder = tmp_path_factory.mktemp("wrong") / "demo"
    shutil.copytree(DEMO, folder)
    text = (folder / "run.toml").read_text().replace("NDB$EPOCH()", "NDB$MAX(x)")
    (folder / "run.toml").write_text(text)
    return folder / "run.toml"


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run file of the demo with a binlog of B that ends inside an event."""
    folder = tmp_path_factory.mktemp("cut") / "demo"
    shutil.copytree(DEMO, folder)
    (folder / "B.binlog.000001").write_bytes((DEMO / "B.binlog.000001").read_bytes()[:9000])
    return folder / "run.toml"


def test_a_function_that_was_not_in_force(wrong: Path, tmp_path: Path) -> None:
    """The binlogs contradict it: it is said first, with the likely causes, and the command ends with 1."""
    code, output = invoke("compare", wrong, "--functions", "OVERWRITE", "--json", tmp_path / "out.json")
    assert code == ExitCode.CONTRADICTED
    assert "The binlogs contradict the run as it is configured: of 81 row changes by appliers, " in output
    assert "which NDB$MAX(x) does not do: another conflict function was in force" in output
    assert output.index("The binlogs contradict") < output.index("best first by")
    assert "* the functions and the format of the run, which the binlogs contradict." in output
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["checks"]["compared_with_binlogs"] == 81  # recorded
    assert document["checks"]["contradicted_by_binlogs"] > 0
    assert {cause["kind"] for cause in document["checks"]["likely_causes"]} == {"conflict function"}
    assert document["doubts"][0].startswith("The binlogs contradict the run as it is configured")
    found = conflict.compare(wrong, functions=["OVERWRITE"])
    for shown in (repr(found), found._repr_html_()):
        assert "The binlogs contradict the run as it is configured" in shown


def test_a_binlog_that_is_cut_short(cut: Path) -> None:
    """File and position are named, what is left out is counted, and the command ends with 3."""
    code, output = invoke("compare", cut, "--functions", "OVERWRITE")
    assert code == ExitCode.CUT_SHORT
    assert "The binlogs of B could not be read to the end:" in output
    assert "B.binlog.000001, position" in output
    assert "Left out at the end: 7 epochs of A, built on epochs of the other cluster" in output


def test_a_binlog_that_is_damaged(tmp_path: Path) -> None:
    """As one that is cut short: what comes before the damage is compared."""
    shutil.copytree(DEMO, tmp_path / "bad")
    file = tmp_path / "bad" / "B.binlog.000001"
    damaged = bytearray(file.read_bytes())
    damaged[6000] ^= 0x10
    file.write_bytes(damaged)
    code, output = invoke("compare", tmp_path / "bad" / "run.toml", "--functions", "OVERWRITE")
    assert (code, "CRC32" in output, "best first by" in output) == (ExitCode.CUT_SHORT, True, True)


def test_a_run_without_objections() -> None:
    """The demo agrees with its binlogs, and nothing is said."""
    found = conflict.compare(DEMO / "run.toml", functions=["OVERWRITE"])
    assert found.doubts == ()
    assert not found.run.contradicted
    code, output = invoke("compare", DEMO / "run.toml", "--functions", "OVERWRITE")
    assert (code, "contradict" in output) == (0, False)


def test_what_only_the_reference_engine_resolves() -> None:
    """It is refused, and not compared wrongly."""
    case = ConflictCase.load(RECORDINGS / "everyday/max/option_no_apply_status_type7")
    with pytest.raises(ConfigurationError, match="do not name the epochs that were applied"):
        compared(case, "OVERWRITE")


def test_roles_that_were_swapped_unsaid() -> None:
    """The binlogs contradict the roles of the run."""
    found = compared(ConflictCase.load(RECORDINGS / "everyday/epoch2/rule_roles_swapped_midway_type7"), "OVERWRITE")
    assert found.run.contradicted
    assert any("another role was in force" in str(doubt) for doubt in found.doubts)


def test_transaction_ids_that_are_missing() -> None:
    """They are a contradiction by themselves."""
    found = compared(ConflictCase.load(RECORDINGS / "everyday/max/option_no_transaction_ids_type7"), "OVERWRITE")
    assert found.run.contradicted
    assert any("ndb_log_transaction_id was OFF" in str(doubt) for doubt in found.doubts)


def test_a_log_that_starts_in_the_middle(tmp_path: Path) -> None:
    """Nothing says so but the changes of rows that are not there; it is said, and no doubt."""
    shutil.copytree(DEMO, tmp_path / "late")
    for name in ("A", "B"):
        file = tmp_path / "late" / f"{name}.binlog.000001"
        whole, ends = file.read_bytes(), list[int]()
        for position, header in read_headers(file):
            if header.type_code in (EventType.QUERY_EVENT, EventType.XID_EVENT):
                ends.append(position + header.size)
        first = next(p for p, header in read_headers(file) if header.type_code == EventType.QUERY_EVENT)
        file.write_bytes(whole[:first] + whole[ends[2 * 5 - 1] :])  # without the first five transactions
    found = conflict.compare(tmp_path / "late" / "run.toml", functions=["OVERWRITE"])
    assert set(found.run.starts) == {"A", "B"}
    assert found.compared < found.changes
    assert not any("middle" in str(doubt) for doubt in found.doubts)


def _resolve(run_file: Path, out: Path) -> None:
    conflict.runs.pipeline.resolve(load_run_file(run_file), str(out), engine="reference", policy=DeploymentPolicy.NEEDS)


@pytest.mark.parametrize("kind", ["wrong", "cut"])
def test_what_a_result_is_doubted_for(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """`conflicts` and `explain` say it first, and in their documents."""
    out = tmp_path / "out"
    _resolve(request.getfixturevalue(kind), out)
    said = {
        "wrong": "The binlogs contradict the run as it is configured: of 81 row changes by appliers",
        "cut": "The binlogs of B could not be read to the end: ",
    }[kind]
    commands = {
        "conflicts": ("conflicts", out),
        "row": ("explain", out, "--table", "cft.t1", "--key", 3),
        "differences": ("explain", out, "--differences"),
    }
    for name, command in commands.items():
        code, output = invoke(*command, "--json", tmp_path / f"{name}.json")
        assert (code, output.startswith(said)) == (0, True), output
        assert said in output
        document = json.loads((tmp_path / f"{name}.json").read_text())
        assert any(each.startswith(said) for each in document["doubts"])
    assert said.strip() in " ".join(repr(conflict.read_result(str(out)).summary).split())
