"""`lost`: every change of a user that did not survive, why, and what took its place."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pytest

import conflict
from conflict.config.configuration import Span
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.errors import ConfigurationError, HistoryError
from conflict.judge.case import ConflictCase
from conflict.operating.repairing.logged_images import images_at
from conflict.operating.repairing.lost import Losses
from conflict.operating.repairing.reading_lost import count_not_known, read_lost
from conflict.results.conflicts import ALL
from tests.conflict.cli.commands import invoke
from tests.conflict.whatif.comparing.recorded import compared
from tests.corpora import DEMO, RECORDINGS

RANDOM = sorted(path.parent for path in RECORDINGS.glob("conflict/*/random*/scenario.json"))
OTHERS = sorted(
    path.parent
    for name in ("conflict/*/hot*", "conflict/*/concurrent*", "lives/*", "everyday/*/ddl_*")
    for path in RECORDINGS.glob(f"{name}/scenario.json")
)


def assert_as_compared(folder: Path, out: Path, engine: str) -> None:
    """Lost changes are those that `compare` counts: rejected ones, and others that were overwritten."""
    case = ConflictCase.load(folder)
    run = RunFile(case.path / "run.toml", case.configuration(), GivenSchedule(), ())
    found = read_lost(conflict.resolve(run, out=out, engine=engine, policy="needs"), ALL)
    (used,) = [row.figures for row in compared(case, "OVERWRITE").rows if row.used]
    assert used is not None
    for name, (rejected, overwritten, lost) in used.lost.items():
        mine = [row for row in found.to_pylist() if row["cluster"] == name]
        assert len(mine) == lost
        assert sum(row["cause"] is not None for row in mine) == rejected
        assert sum(row["overwritten_in"] is not None for row in mine) == overwritten
    images = images_at(found, case.configuration(), {})
    assert images["server_id"].null_count == 0
    for row in images.to_pylist():
        assert (row["before"] is None) == (row["operation"] == "WRITE_ROW")
        assert (row["after"] is None) == (row["operation"] == "DELETE_ROW")


@pytest.mark.parametrize("folder", RANDOM, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_as_many_as_compare_counts(folder: Path, tmp_path: Path) -> None:
    """Recordings of random statements, under every function."""
    assert_as_compared(folder, tmp_path / "result", "local")


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_delete_of_a_gone_row_loses_nothing(engine: str, tmp_path: Path) -> None:
    """Under NDB$EPOCH2_TRANS it puts its transaction in conflict; the insert of one of these is lost, and no delete."""
    folder = RECORDINGS / "conflict" / "epoch2_trans" / "delete_delete_type8"
    assert_as_compared(folder, tmp_path / "result", engine)
    result = conflict.read_result(str(tmp_path / "result"))
    rejected = [row["operation"] for row in result.conflicts.to_pylist() if row["own_cause"] == "ROW_DOES_NOT_EXIST"]
    assert rejected == ["DELETE_ROW", "DELETE_ROW"]
    assert [row["operation"] for row in read_lost(result, ALL).to_pylist()] == ["WRITE_ROW"]
    assert conflict.conflicts(result)["of_gone_rows"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("folder", OTHERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_as_many_in_other_recordings(folder: Path, engine: str, tmp_path: Path) -> None:
    """Recordings of hot rows, live load and tables whose definitions change."""
    assert_as_compared(folder, tmp_path / "result", engine)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of the demo."""
    out = tmp_path_factory.mktemp("lost") / "result"
    conflict.resolve(DEMO / "run.toml", out=out, engine="reference")
    return out


def test_a_change_and_what_took_its_place(demo: Path) -> None:
    """Two changes of the demo, read off its binlogs by hand: one rejected, one overwritten."""
    rows = conflict.lost(str(demo)).changes.to_pylist()
    by_place = {(Path(row["file"]).name, row["position"], row["row"]): row for row in rows}
    rejected = by_place["B.binlog.000001", 1448, 1]
    assert (rejected["table"], rejected["key"]) == ("cft.t2", "a=2, b=z2")
    assert (rejected["rejected_by"], rejected["cause"], rejected["overwritten_in"]) == ("A", "ROW_IN_CONFLICT", None)
    assert dict(rejected["before"]) == {"a": "2", "b": "z2"}
    assert dict(rejected["after"]) == {"b": "z2", "d": "884.00", "x": "122", "f": "184.0", "w": "yew53"}
    assert (rejected["winner_cluster"], rejected["winner_position"], rejected["refreshed"]) == ("A", 2419, False)
    overwritten = by_place["A.binlog.000001", 1930, 0]
    assert (overwritten["table"], overwritten["key"], overwritten["cause"]) == ("cft.plain", "id=2", None)
    assert overwritten["overwritten_in"] is not None
    assert dict(overwritten["after"]) == {"id": "2", "x": "129", "n": "birch12"}
    assert (overwritten["winner_cluster"], overwritten["winner_operation"]) == ("B", "WRITE_ROW")


def test_a_refresh_is_followed_back_to_a_change_of_a_user(demo: Path) -> None:
    """What a refresh sent was a user's change, whose place is known, in every case of the demo."""
    found = conflict.read_result(str(demo))
    won_by_refreshes = [row for row in found.conflicts.to_pylist() if row["winner_refresh"]]
    rows = [row for row in conflict.lost(found).changes.to_pylist() if row["refreshed"]]
    assert won_by_refreshes
    assert len(rows) == len(won_by_refreshes)
    for row in rows:
        assert row["winner_cluster"] == "A"
        assert row["winner_file"].endswith("A.binlog.000001")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_files(demo: Path, suffix: str, tmp_path: Path) -> None:
    """Each format holds every change with its images; an absent column is left out, NULL is null."""
    target = tmp_path / f"lost{suffix}"
    found = conflict.lost(str(demo), table="t2", out=target)
    rows: list[dict[str, Any]]
    if suffix == ".csv":
        with target.open(newline="") as file:
            rows = [{**row, "after": json.loads(row["after"] or "null")} for row in csv.DictReader(file)]
    elif suffix == ".jsonl":
        rows = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    else:
        rows = [{**row, "after": row["after"] and dict(row["after"])} for row in pq.read_table(target).to_pylist()]
    expected = [row["after"] and dict(row["after"]) for row in found.changes.to_pylist()]
    assert expected
    assert [row["after"] for row in rows] == expected


def test_one_row(demo: Path) -> None:
    """By its key, as `explain` takes it; other rows and tables are left out."""
    every = conflict.lost(demo)
    mine = [row for row in every.changes.to_pylist() if (row["table"], row["key"]) == ("cft.t2", "a=0, b=w3")]
    given: list[str | dict[str, object]] = ["a=0, b=w3", '{"b": "w3", "a": 0}', {"a": 0, "b": "w3"}]
    for key in given:
        found = conflict.lost(demo, table="t2", key=key)
        assert found.changes.to_pylist() == mine
        assert (found.document()["table"], found.document()["key"]) == ("cft.t2", "a=0, b=w3")
    code, said = invoke("lost", demo, "--table", "cft.t2", "--key", "a=0, b=w3")
    assert code == 0
    assert f"{len(mine)} changes of users of cft.t2 a=0, b=w3 were lost" in said
    none = invoke("lost", demo, "--table", "t2", "--key", "a=99, b=x")[1]
    assert "No change of a user of cft.t2 a=99, b=x was lost." in none
    assert invoke("lost", demo, "--key", "1") == (2, "a key is of a table; give that, too (--table)")


def test_what_is_told(demo: Path, tmp_path: Path) -> None:
    """Figures on the terminal and in the document; they add up."""
    document = tmp_path / "lost.json"
    code, output = invoke("lost", demo, "--json", document, "--top", "2")
    assert code == 0
    headline = "33 of 90 changes of users were lost: the other cluster rejected 23, and 10 others were overwritten."
    assert headline in " ".join(output.split())
    told = json.loads(document.read_text("utf-8"))
    assert (told["lost"], told["rejected"], told["overwritten"]) == (33, 23, 10)
    assert sum(each["lost"] for each in told["by_table"]) == 33


@pytest.mark.parametrize(
    ("name", "epoch", "key", "said"),
    [
        (
            "random_27_type7",
            3822520893449,
            "a=1, b=w7",
            "Of 2 more changes it is not known whether they were rejected.",
        ),
        ("hot_3021_type7", 5244155068423, "k=1", "Of 1 more change it is not known whether it was rejected."),
    ],
)
def test_what_is_not_known_is_said(name: str, epoch: int, key: str, said: str, tmp_path: Path) -> None:
    """Changes of a row that is older than the epoch from which on the logs are read; others are listed."""
    case = ConflictCase.load(RECORDINGS / "conflict" / "max" / name)
    middle = attrs.evolve(case.configuration(), span=Span(first={"A": epoch}, empty=False))
    run = RunFile(case.path / "run.toml", middle, GivenSchedule(), ())
    result = conflict.resolve(run, out=tmp_path / "result", engine="reference")
    unknown = [row for row in result.outcomes().to_pylist() if row["verdict"] == "CANNOT_TELL"]
    assert {row["key"] for row in unknown} == {key}
    changes = read_lost(result, ALL)
    places = {(row["file"], row["position"], row["row"]) for row in changes.to_pylist()}
    assert places.isdisjoint((row["file"], row["position"], row["row"]) for row in unknown)
    images = images_at(changes, middle, {})
    found = Losses(result, ALL, images, count_not_known(result, ALL, changes), ())
    assert found.not_known == len(unknown)
    assert said in " ".join(repr(found).split())


def test_tables_without_a_primary_key_are_named(tmp_path: Path) -> None:
    """Their rows cannot be told apart, so nobody knows which change was overwritten."""
    case = ConflictCase.load(RECORDINGS / "everyday" / "none" / "no_primary_key_type2")
    run = RunFile(case.path / "run.toml", case.configuration(), GivenSchedule(), ())
    result = conflict.resolve(run, out=tmp_path / "result", engine="reference")
    found = Losses(result, ALL, read_lost(result, ALL), 0, ())
    (said,) = found.not_looked_for
    assert "day.t1" in said


def test_binlogs_that_are_gone_and_files_without_a_format(tmp_path: Path) -> None:
    """Both are said, and nothing is written."""
    shutil.copytree(DEMO, tmp_path / "demo")
    result = conflict.resolve(tmp_path / "demo" / "run.toml", out=tmp_path / "result", engine="reference")
    with pytest.raises(ConfigurationError, match="says its format"):
        conflict.lost(result, out=tmp_path / "lost.txt")
    (tmp_path / "demo" / "B.binlog.000001").unlink()
    with pytest.raises(HistoryError, match="is missing"):
        conflict.lost(result, out=tmp_path / "lost.csv")
    assert not (tmp_path / "lost.csv").exists()
