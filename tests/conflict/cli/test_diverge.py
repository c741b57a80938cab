"""`ndb-conflict diverge`."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from conflict.cli.refusals import ExitCode
from conflict.whatif.diverging.scope import Goal
from tests.conflict.cli.commands import invoke


def test_the_shortest_schedule_as_timeline_document_and_recording(tmp_path: Path) -> None:
    """What was found exits with 1; the recording resolves to the rows of the timeline."""
    out = tmp_path / "found"
    words = ("--function", "NDB$EPOCH()", "--find", "difference")
    code, output = invoke("diverge", *words, "--json", tmp_path / "out.json", "--recording", out)
    assert code == ExitCode.CONTRADICTED
    assert "The clusters end different after 5 steps (" in output
    assert "end row 1: v = 3 no row 1" in output
    (found,) = json.loads((tmp_path / "out.json").read_text())["searches"]
    assert (found["goal"], found["found"], found["steps"]) == ("difference", True, 5)
    assert found["ending"] == {"A": "row 1: v = 3", "B": "no row 1"}
    assert [line["cluster"] for line in found["timeline"]] == [None, "A", "B", "B", "B", "A"]
    assert found["timeline"][1]["text"] == "epoch 3: deletes row 1"
    code, output = invoke("conformance", out, "--engine", "reference")
    assert code == 0, output
    code, output = invoke("resolve", out / "difference" / "run.toml", "--engine", "reference", "--out", tmp_path / "r")
    assert code == 0
    assert "the clusters did not converge" in output


def test_what_is_not_applied_where_a_schedule_ends(tmp_path: Path) -> None:
    """An update is lost before the other one arrives, so its cluster's rows are not final; a difference is."""
    words = ("--function", "NDB$MAX(x)", "--find", "lost", "--find", "difference", "--json", tmp_path / "out.json")
    code, output = invoke("diverge", *words)
    assert code == ExitCode.CONTRADICTED
    unsettled = "Not settled at the end: 1 row operation of A, not applied on the other cluster"
    assert output.count(unsettled) == 1
    lost, difference = json.loads((tmp_path / "out.json").read_text())["searches"]
    assert (lost["unsettled"], difference["unsettled"]) == ({"A": 1, "B": 0}, {"A": 0, "B": 0})
    assert invoke("report", tmp_path / "out.json", "--out", tmp_path / "r.html")[0] == 0
    assert (tmp_path / "r.html").read_text().count(unsettled) == 1


def test_none_in_the_scope(tmp_path: Path) -> None:
    """It says what was searched, exits with 0, and writes no folder for what was not found."""
    words = ("--function", "NDB$EPOCH2_TRANS()", "--transactions", 2, "--find", "difference", "--find", "stop")
    code, output = invoke("diverge", *words, "--recording", tmp_path / "none", "--json", tmp_path / "out.json")
    assert code == 0
    assert output.count(": none up to 2 transactions, 1 row, 1 data column (") == 2
    assert "No schedule lets the clusters end different under NDB$EPOCH2_TRANS()" in output
    assert "No schedule stops an applier" in output
    assert not (tmp_path / "none").exists()
    searches = json.loads((tmp_path / "out.json").read_text())["searches"]
    assert [(each["found"], each["complete"]) for each in searches] == [(False, True), (False, True)]


def test_all_is_looked_for_by_default(tmp_path: Path) -> None:
    """Each goal is told, and stands in the document."""
    code, output = invoke("diverge", "--transactions", "1", "--json", tmp_path / "out.json")
    assert code == 0
    assert output.count("none up to 1 transaction") == len(Goal)
    searches = json.loads((tmp_path / "out.json").read_text())["searches"]
    assert [each["goal"] for each in searches] == [goal.value for goal in Goal]


def test_a_limit_is_a_warning() -> None:
    """The scope was not searched whole."""
    code, output = invoke("diverge", "--function", "NDB$EPOCH2()", "--find", "difference", "--limit", 40)
    assert code == ExitCode.WARNED
    assert "the limit of states ended the search" in output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--function", "NDB$MAX(x)", "--binlog-type", "8"), "--policy needs allows it"),
        (("--function", "NDB$EPOCH2()", "--binlog-type", "2"), "refuse the table"),
        (("--recording", "/"), "exists already"),
        (("--binlog-type", "77"), "77"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], said: str) -> None:
    """Before anything is searched."""
    code, output = invoke("diverge", *words)
    assert code == ExitCode.REFUSED
    assert said in output


def test_on_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Levels that Spark expands come to the same."""
    words = ("diverge", "--function", "NDB$MAX(x)", "--find", "difference")
    assert spark.version
    invoke(*words, "--json", tmp_path / "alone.json")
    monkeypatch.setattr("conflict.whatif.diverging.search._WIDE", 30)
    invoke(*words, "--spark", "--json", tmp_path / "spark.json")
    alone, spread = (json.loads((tmp_path / f"{name}.json").read_text())["searches"][0] for name in ("alone", "spark"))
    assert {**spread, "seconds": alone["seconds"]} == alone


def test_without_a_schedule_there_is_no_recording(tmp_path: Path) -> None:
    """And it is said; a goal that is given twice is looked for once."""
    asked = ("--transactions", 1, "--find", "stop", "--find", "stop", "--recording", tmp_path / "out")
    code, output = invoke("diverge", *asked)
    assert code == 0
    assert output.count("No schedule stops an applier") == 1
    assert f"there is no recording in {tmp_path / 'out'}." in output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("column", ["K", "V", "id", "a'b", 'a"b', "a`b", "größe"])
def test_any_name_of_a_column(column: str, tmp_path: Path) -> None:
    """The table has no other column of that name, whatever its letter case; the recording can be resolved."""
    words = ("--function", f"NDB$MAX({column})", "--find", "difference", "--recording", tmp_path / "out")
    assert invoke("diverge", *words)[0] == ExitCode.CONTRADICTED
    code, output = invoke("conformance", tmp_path / "out", "--engine", "reference")
    assert code == 0, output
    run = tmp_path / "out" / "difference" / "run.toml"
    code, output = invoke("resolve", run, "--engine", "reference", "--out", tmp_path / "r")
    assert code == 0, output


def test_a_recording_that_cannot_be_written(tmp_path: Path) -> None:
    """It is refused before the search."""
    (tmp_path / "file").write_text("")
    code, output = invoke("diverge", "--find", "difference", "--recording", tmp_path / "file" / "out")
    assert code == ExitCode.REFUSED
    assert "nothing can be written into" in output
    assert "The clusters end different" not in output
