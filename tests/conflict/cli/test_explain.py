"""`ndb-conflict explain`: the stories of the demo."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conflict import explain
from conflict.cli.refusals import ExitCode
from conflict.explaining.events import EVENTS
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo's result, made of a copy of its binlogs."""
    folder = tmp_path_factory.mktemp("explained")
    shutil.copytree(DEMO, folder / "demo")
    code, output = invoke("resolve", folder / "demo/run.toml", "--engine", "reference", "--out", folder / "out")
    assert code == 0, output
    return folder / "out"


def test_a_row(result: Path, tmp_path: Path) -> None:
    """Who wrote it, what was compared, who won, where it stands, what follows."""
    code, output = invoke("explain", result, "--table", "cft.t1", "--key", "3", "--json", tmp_path / "story.json")
    assert code == 0
    assert "13 16:00:16.744 A commits an update in epoch 5321464479756" in output
    assert (
        "the row was changed here in epoch 5321464479756, and only epochs up to 5321464479747 had come back" in output
    )
    assert "so A's row stays and the change from B loses. What won is the update of A in its epoch" in output
    assert "one refresh for the rejections of events 15 and 16" in output
    assert "What won is the update of A in its epoch 5321464479756 (event 13)" in output
    assert "the operation: B.binlog.000001, position 6305, row 1" in output
    assert "leads to event 17" in output
    document = json.loads((tmp_path / "story.json").read_text())
    assert [event["number"] for event in document["events"]] == list(range(1, 23))
    assert document["differs"] is False


def test_an_exceptions_row_and_its_picture(result: Path, tmp_path: Path) -> None:
    """The event that it stands for is marked; the picture is there as a whole, and not drawn over a file."""
    arguments = ("explain", result, "--exception", 1, "--plot", tmp_path / "story.svg")
    code, output = invoke(*arguments)
    assert (code, "> 7 16:00:15.765 A rejects B's delete (event 4)" in output) == (0, True)
    assert "cft.t1$EX on A: NDB$server_id=1" in output
    assert "NDB$CFT_CAUSE=ROW_DOES_NOT_EXIST" in output
    assert "What won is the delete of A in its epoch 5321464479746 (event 6)" in output
    assert [int(each) for each in re.findall(r"(\d+) 16:00:\d\d\.\d{3} [AB] ", output)] == [4, 6, 7]
    assert "… 1 other event …" in output
    assert f"ndb-conflict explain {result} --table cft.t1 --key k=3" in output
    assert output.endswith(f"The picture is in {tmp_path / 'story.svg'}.")
    assert "asked for: delete of 4: rejected" in (tmp_path / "story.svg").read_text()
    assert invoke(*arguments)[0] == ExitCode.REFUSED
    assert invoke("explain", result, "--exception", 26)[1] == "there is no exceptions row 26; there are 25"


def test_a_refresh_that_changes_nothing(result: Path) -> None:
    """B had applied A's write before the refresh of the row came."""
    _, output = invoke("explain", result, "--table", "cft.t1", "--key", "2")
    assert "the refresh was applied and changed nothing: the row was as on A already" in output
    assert "one refresh for" not in output


def test_differences_print_the_events_that_they_cite(result: Path) -> None:
    """Each once: the changes that were written last, and where they were applied."""
    _, output = invoke("explain", result, "--differences")
    for said in ("B commits a write", "A commits an update", "A applies B's write", "B applies A's update"):
        assert output.count(said) == 1


def test_a_transaction(result: Path) -> None:
    """Its operations, and what was decided on each."""
    code, output = invoke("explain", result, "--transaction", 13889933684992)
    assert code == 0
    assert output.startswith("Transaction 13889933684992 of B, committed in epoch 5312874545158")
    assert output.count("A rejects B's update") == 2
    assert invoke("explain", result, "--transaction", 5)[0] == ExitCode.REFUSED


def test_an_exceptions_row_by_its_primary_key(result: Path) -> None:
    """The four values as a DBA selects them from the exceptions table."""
    code, output = invoke("explain", result, "--exception", "1,2,5312874545162,1")
    assert (code, output) == invoke("explain", result, "--exception", 1)
    assert "NDB$master_epoch=5312874545162, NDB$count=1" in re.sub(r"\s+", " ", output)
    assert invoke("explain", result, "--exception", "1, 2, 5312874545162, 1", "--table", "t1") == (0, output)


def test_a_story_as_text(result: Path) -> None:
    """What it is of, an entry for each event that the command prints, and how the row ends."""
    text = str(explain(result, table="cft.t1", key=3))
    assert text.splitlines()[0] == "cft.t1 k=3"
    assert [int(each) for each in re.findall(r"^(?:> )?(\d+) ", text, re.MULTILINE)] == [*range(1, 23)]
    assert text.splitlines()[-1] == "At the end the row is the same on A and B: no row"
    text = str(explain(result, exception=1))
    assert [*map(int, re.findall(r"^(?:> )?(\d+) ", text, re.MULTILINE))] == [4, 6, 7]
    assert re.findall(r"^> (\d+) ", text, re.MULTILINE) == ["7"]
    assert str(explain(result, transaction=13889933684992)).startswith("Transaction 13889933684992 of B, committed in ")


def test_differences(result: Path, tmp_path: Path) -> None:
    """The one row of the demo that ends different, and none in a table that converged."""
    code, output = invoke("explain", result, "--differences", "--json", tmp_path / "differences.json")
    assert (code, "cft.plain id=3" in output, "Event 10 parted them: on B" in output) == (0, True, True)
    assert json.loads((tmp_path / "differences.json").read_text())["differences"][0]["parted_by"] == 10
    events = tmp_path / "events.parquet"
    code, _ = invoke("explain", result, "--differences", "--parquet", events)
    table = pq.read_table(events)
    assert (code, table.schema.names) == (0, EVENTS.names)
    assert set(table["key"].to_pylist()) == {"id=3"}
    assert table["number"].to_pylist() == [*range(1, len(table) + 1)]
    none = invoke("explain", result, "--differences", "--table", "cft.t1")
    assert none == (0, "All rows of cft.t1 end the same.")


def test_rows_that_are_not_known_are_not_the_same(result: Path, tmp_path: Path) -> None:
    """Without final rows, the one row of the demo that ends different is not found."""
    out, answers = tmp_path / "out", tmp_path / "answers.json"
    demo = result.parent / "demo/run.toml"
    assert invoke("resolve", demo, "--engine", "local", "--no-final-rows", "--out", out)[0] == 0
    code, output = invoke("explain", out, "--differences", "--json", answers)
    assert code == 0
    assert "Not all rows at the end are known of cft.t1, cft.t2, cft.plain" in output
    assert "No known rows with a primary key end different." in output
    assert json.loads(answers.read_text())["not_known"] == ["cft.t1", "cft.t2", "cft.plain"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "ask for one thing"),
        (("--key", "3"), "ask for one thing"),
        (
            ("--table", "cft.t9", "--key", "3"),
            "the result has no table cft.t9 (did you mean cft.t2?); it has cft.t1, cft.t2 and cft.plain",
        ),
        (("--table", "cft.t2", "--key", "3"), "of table cft.t2 it is a=..., b=..."),
        (("--table", "cft.t1", "--key", "99"), "nothing happened to the row k=99 of cft.t1"),
        (("--differences", "--exception", "1"), "--differences stands alone"),
        (("--table", "cft.t1", "--key", str(1 << 64)), f"nothing happened to the row k={1 << 64} of cft.t1"),
        (("--transaction", str((1 << 64) - 1)), f"no binlog has a transaction with the id {(1 << 64) - 1}"),
        (("--transaction", str(1 << 64)), f"{1 << 64} is no id of a transaction"),
        (("--transaction", "C:5"), "the result has no cluster C; it has A, B"),
        (("--transaction", "B:x"), "B:x is no id of a transaction"),
        (("--transaction", "A:13889933684992"), "no binlog of A has a transaction with the id 13889933684992"),
        (("--exception", "1,2,5312874545162"), "1,2,5312874545162 is no exceptions row; give its number"),
        (("--exception", "1,2,5312874545162,2"), "there is no exceptions row 1,2,5312874545162,2; there are 25"),
        (("--exception", "first"), "first is no exceptions row; give its number"),
        (("--exception", "99"), "there is no exceptions row 99; there are 25"),
        (("--exception", "1", "--table", "cft.plain"), "there is no exceptions row 1 of cft.plain; there are none"),
        (("--exception", "1", "--table", "cft.t9"), "the result has no table cft.t9"),
    ],
)
def test_what_is_refused(result: Path, arguments: tuple[str, ...], message: str) -> None:
    """A sentence says what to ask for."""
    code, output = invoke("explain", result, *arguments)
    assert (code, message in output) == (ExitCode.REFUSED, True)


def test_a_binlog_that_changed(tmp_path: Path) -> None:
    """Nothing is told from binlogs that are not those of the result."""
    shutil.copytree(DEMO, tmp_path / "demo")
    invoke("resolve", tmp_path / "demo/run.toml", "--engine", "reference", "--out", tmp_path / "out")
    binlog = tmp_path / "demo/B.binlog.000001"
    whole = binlog.read_bytes()
    for changed, words in ((whole + b"x", "and had"), (whole[:-1] + b"x", "has changed"), (None, "is missing")):
        binlog.unlink()
        if changed is not None:
            binlog.write_bytes(changed)
        code, output = invoke("explain", tmp_path / "out", "--exception", 1)
        assert (code, words in output, "B.binlog.000001" in output) == (ExitCode.REFUSED, True, True)
        binlog.touch()


def test_a_run_file(tmp_path: Path) -> None:
    """A run file is resolved first; no result is left."""
    code, output = invoke("explain", DEMO / "run.toml", "--table", "cft.plain", "--key", "id=3")
    assert (code, "The row ends different. x and n differ." in output) == (0, True)
    assert not list(tmp_path.iterdir())


def test_keys_in_any_order_and_tables_without_database(result: Path) -> None:
    """The same story of cft.t2, whose key is (a, b)."""
    _, wanted = invoke("explain", result, "--table", "cft.t2", "--key", "a=0, b=w3")
    assert wanted.startswith("cft.t2 a=0, b=w3")
    for key in ("b=w3, a=0", "b=w3,a=0"):
        assert invoke("explain", result, "--table", "t2", "--key", key) == (0, wanted)
    for key in ("b=w3", "b=w3, a=0, c=1, a", "0, b=w3"):
        assert invoke("explain", result, "--table", "t2", "--key", key)[0] == ExitCode.REFUSED
    differing = invoke("explain", result, "--differences", "--table", "t2")
    assert differing == invoke("explain", result, "--differences", "--table", "cft.t2")


def test_the_end_of_a_long_story(result: Path, tmp_path: Path) -> None:
    """By number and by time; the file has the whole story, and the numbers of events stay."""
    asked = ("explain", result, "--table", "t1", "--key", "3")
    code, output = invoke(*asked, "--last", "2", "--json", tmp_path / "story.json")
    assert code == 0
    assert "2 of 22 events are shown." in output
    assert re.findall(r"(\d+) \d\d:\d\d:\d\d\.\d{3} [AB] ", output)[0] in ("20", "21")
    events = json.loads((tmp_path / "story.json").read_text())["events"]
    assert len(events) == 22
    _, output = invoke(*asked, "--since", "2026-11-20 18:00:17+02:00")
    assert re.search(r" [1-9]\d? of 22 events are shown\.", output)
    assert "16:00:16." not in output.partition("events are shown.")[2].partition("At the end")[0]
    assert invoke(*asked[:2], "--differences", "--last", "2")[0] == ExitCode.REFUSED


def test_binlogs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """By the folders of the clusters, as servers give the same name to their binlogs."""
    text = (DEMO / "run.toml").read_text()
    for cluster in ("A", "B"):
        (tmp_path / cluster).mkdir()
        shutil.copy(DEMO / f"{cluster}.binlog.000001", tmp_path / cluster / "binlog.000001")
        text = text.replace(f"{cluster}.binlog.*", f"{cluster}/binlog.*")
    for name in ("schema.sql", "steps.json"):
        shutil.copy(DEMO / name, tmp_path)
    (tmp_path / "run.toml").write_text(text)
    code, output = invoke("explain", tmp_path / "run.toml", "--table", "t1", "--key", "3")
    assert (code, "the operation: B/binlog.000001, position 6305, row 1" in output) == (0, True)
