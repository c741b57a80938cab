"""What is wrong with compared values: each kind in binlogs worked by hand, with old values in the log and without."""

import json
from collections import Counter
from pathlib import Path

import pytest

import conflict
from conflict.operating.audit.findings import AuditFinding
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

NOW = 1_700_000_000  # the first second of typed histories, whose epoch N commits 0.1 s times N later
FORMATS = (2, 3, 6, 7)


def findings(
    folder: Path, history: conflict.History, function: str = "NDB$MAX(x)", binlog_type: int = 7
) -> dict[tuple[str, str], AuditFinding]:
    """Return the findings on a typed history by kind and cluster."""
    run = history.to_binlogs(folder / "run", function, binlog_type)
    return {(each.kind.value, each.cluster): each for each in conflict.audit(run).findings}


@pytest.mark.parametrize("binlog_type", FORMATS)
def test_values_that_rise(tmp_path: Path, binlog_type: int):
    """Nothing is found where every change of a row has a greater value, whoever made it; a new row begins anew."""
    history = conflict.History(
        A=["insert 1 x=5", "update 1 x=7", "apply 1", "update 1 x=9", "delete 1", "insert 1 x=1"],
        B=["insert 2 x=3", "apply 1", "apply 2"],
    )
    assert findings(tmp_path, history, binlog_type=binlog_type) == {}


@pytest.mark.parametrize("binlog_type", FORMATS)
def test_a_value_that_falls(tmp_path: Path, binlog_type: int):
    """A's third change is lower than its second one; B's is lower than what it applied from A."""
    history = conflict.History(
        A=["insert 1 x=5", "update 1 x=7", "update 1 x=6"], B=["apply 1", "apply 2", "update 1 x=4"]
    )
    found = findings(tmp_path, history, binlog_type=binlog_type)
    assert {key: each.count for key, each in found.items()} == {("falls", "A"): 1, ("falls", "B"): 1}
    first = found["falls", "A"].first[0]
    assert (first.key, first.value, first.before, first.epoch) == ("id=1", 6, 7, 3 << 32)
    assert Path(first.file).name == "A.binlog.000001"
    change = conflict.read_binlog(first.file, "d.t").to_arrow().to_pylist()[2]
    assert (first.position, first.row) == (change["position"], change["row"])
    applied = 7 if binlog_type in (6, 7) else 5  # an update logged as a write is rejected: the row exists
    assert (found["falls", "B"].first[0].value, found["falls", "B"].first[0].before) == (4, applied)


@pytest.mark.parametrize("binlog_type", FORMATS)
def test_an_update_that_leaves_the_value(tmp_path: Path, binlog_type: int):
    """Two updates of another column; the first is named."""
    history = conflict.History(A=["insert 1 v=0 x=5", "update 1 v=1", "update 1 v=2"], B=["apply 1"])
    found = findings(tmp_path, history, binlog_type=binlog_type)
    assert {key: each.count for key, each in found.items()} == {("unchanged", "A"): 2}
    assert found["unchanged", "A"].first[0].epoch == 2 << 32


@pytest.mark.parametrize("binlog_type", FORMATS)
def test_a_tie(tmp_path: Path, binlog_type: int):
    """Both set 8 on row 1, and the rows end different; the same value on other rows is none."""
    history = conflict.History(
        start=["insert 1 x=1", "insert 2 x=1", "insert 3 x=1"],
        A=["update 1 v=1 x=8", "update 2 x=9", "apply 1", "apply 2"],
        B=["update 1 v=2 x=8", "update 3 x=9", "apply 1", "apply 2"],
    )
    assert history.resolve("NDB$MAX(x)").converged is False
    found = findings(tmp_path, history, binlog_type=binlog_type)
    assert list(found) == [("tie", "A")]
    tie = found["tie", "A"]
    assert tie.count == 1
    assert [(each.cluster, each.key, each.value) for each in tie.first] == [("A", "id=1", 8), ("B", "id=1", 8)]


def test_a_value_that_came_from_the_other_cluster_is_no_tie(tmp_path: Path):
    """B leaves the 8 that A set: it is unchanged, not set twice."""
    history = conflict.History(A=["insert 1 v=0 x=8"], B=["apply 1", "update 1 v=5"])
    found = findings(tmp_path, history, binlog_type=6)
    assert {key: each.count for key, each in found.items()} == {("unchanged", "B"): 1}


@pytest.mark.parametrize("binlog_type", FORMATS)
def test_null(tmp_path: Path, binlog_type: int):
    """NULL in an insert and in an update."""
    history = conflict.History(A=["insert 1 x=NULL", "insert 2 x=4", "update 2 x=NULL"], B=["apply 1"])
    found = findings(tmp_path, history, binlog_type=binlog_type)
    assert {key: each.count for key, each in found.items()} == {("null", "A"): 2}
    assert (found["null", "A"].first[0].key, found["null", "A"].first[0].value) == ("id=1", None)


def test_a_clock_that_is_ahead(tmp_path: Path):
    """A's second value is 4.8 s later than its commit, 0.2 s after the first second; its others are not."""
    history = conflict.History(A=[f"insert 1 x={NOW - 1}", f"update 1 x={NOW + 5}", f"insert 2 x={NOW}"], B=["apply 1"])
    found = findings(tmp_path, history)
    assert {key: each.count for key, each in found.items()} == {("ahead", "A"): 1}
    ahead = found["ahead", "A"]
    assert (ahead.longest_ms, ahead.unit, ahead.first[0].value) == (4800.0, "seconds", NOW + 5)


def test_milliseconds_that_are_ahead(tmp_path: Path):
    """The same in a BIGINT of milliseconds."""
    table = "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED) ENGINE=NDB"
    history = conflict.History(
        A=[f"insert 1 x={NOW * 1000 + 50}", f"update 1 x={NOW * 1000 + 1200}"], B=["apply 1"], tables=table
    )
    found = findings(tmp_path, history)
    assert list(found) == [("ahead", "A")]
    assert (found["ahead", "A"].longest_ms, found["ahead", "A"].unit) == (1000.0, "milliseconds")


def test_versions_are_no_moments(tmp_path: Path):
    """Values that count are not compared with clocks, however large."""
    history = conflict.History(A=["insert 1 x=4000000000", "update 1 x=4000000001"], B=["apply 1"])
    assert findings(tmp_path, history) == {}


def test_old_asks_for_equal_values(tmp_path: Path):
    """Under NDB$OLD values need not rise."""
    history = conflict.History(A=["insert 1 x=5", "update 1 x=4", "update 1 v=1"], B=["apply 1"])
    found = findings(tmp_path, history, "NDB$OLD(x)", 6)
    assert {key: each.count for key, each in found.items()} == {("unchanged", "A"): 1}


def test_the_command(tmp_path: Path):
    """A finding, its document and exit code 4; no function by column, and exit code 0."""
    run = conflict.History(A=["insert 1 x=5", "update 1 x=4"], B=["apply 1"]).to_binlogs(tmp_path / "run", "NDB$MAX(x)")
    code, said = invoke("audit", run, "--json", tmp_path / "audit.json")
    assert (code, "1 finding on the values that functions compare" in said) == (4, True)
    document = json.loads((tmp_path / "audit.json").read_text())
    assert Counter(each["kind"] for each in document["findings"]) == {"falls": 1}
    assert document["changes"] == [
        {"table": "d.t", "cluster": "A", "changes": 2},
        {"table": "d.t", "cluster": "B", "changes": 0},
    ]
    code, said = invoke("audit", DEMO / "run.toml")
    assert (code, "No conflict function here compares a column." in said) == (0, True)
