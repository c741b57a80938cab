"""`ndb-conflict conflicts`: the demo's result, counted."""

import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import conflict
from conflict.cli.refusals import ExitCode
from conflict.config.database_names import DatabaseNames
from conflict.config.option_values import By
from conflict.engine.ledger.layout import OUTCOMES
from conflict.history.grid.folder import Folder
from conflict.results.conflicts import count_conflicts, read_conflicts, totals_of
from conflict.results.told_conflicts import tell_conflicts
from conflict.telling.terminal import print_telling
from tests.conflict.cli.commands import invoke
from tests.conflict.judge.test_options import write_run_file
from tests.corpora import DEMO


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo's result."""
    out = tmp_path_factory.mktemp("result") / "out"
    code, output = invoke("resolve", DEMO / "run.toml", "--engine", "reference", "--out", out)
    assert code == 0, output
    return out


def test_at_a_glance(result: Path):
    """25 conflicts are recorded, 10 of them on t1 and 15 on t2."""
    code, output = invoke("conflicts", result)
    assert code == 0
    assert output.startswith("25 conflicts: changes that A rejected, in 2 tables")
    assert "cft.t2 A 15 3 11" in output
    assert "cft.t1 A 10 3 7" in output
    assert "Conflicts by cause" in output
    assert "row already exists A 4" in output
    assert "and 1 row more: ndb-conflict conflicts " in output


def test_other_figures_of_a_result(result: Path):
    """Refreshes and lost updates are fewer than conflicts, and the output says why."""
    code, output = invoke("conflicts", result)
    conflicts = conflict.read_result(str(result)).conflicts.to_pylist()
    gone = [(each["operation"], each["cause"]) == ("DELETE_ROW", "ROW_DOES_NOT_EXIST") for each in conflicts]
    places = [(each["source_epoch"], each["table"], each["key"]) for each in conflicts]
    refreshed = {place for place, deletes_nothing in zip(places, gone, strict=True) if not deletes_nothing}
    assert (code, sum(gone), len(refreshed)) == (0, 2, 18)  # Ndb_conflict_refresh_op_count of the other cluster: 18
    assert re.search("delete a row that was gone already 2 ", output)
    assert re.search("rows that A refreshed, once per epoch 18 ", output)
    assert conflict.conflicts(result)["of_gone_rows"] == 2
    assert "refreshed" not in invoke("conflicts", result, "--table", "cft.t1")[1]


@pytest.mark.parametrize(
    ("case", "counted", "left"), [("max/ddl_truncate_type7", 2, 0), ("max/foreign_key_cascade_type7", 0, 1)]
)
def test_open_decisions_are_told_from_conflicts(case: str, counted: int, left: int, tmp_path: Path):
    """Some are conflicts as the result decides them; others are not, as where an epoch may not have been applied."""
    invoke("resolve", write_run_file(case, tmp_path), "--out", tmp_path / "out")
    assert sum(conflict.read_result(tmp_path / "out").run["undecided"].values()) == counted + left
    output = invoke("conflicts", tmp_path / "out")[1]
    for words, number in (("counted as conflicts", counted), ("not counted", left)):
        assert ([*map(int, re.findall(rf"open decisions [^,]*, {words} (\d+)", output))] or [0]) == [number]


def test_counts_by_one_thing(result: Path, tmp_path: Path):
    """The JSON file has all rows, the terminal as many as are asked for."""
    file = tmp_path / "keys.json"
    code, output = invoke("conflicts", result, "--by", "key", "--top", 1, "--json", file)
    assert (code, "Conflicts by table" in output) == (0, False)
    assert "and 5 rows more" in output
    document = json.loads(file.read_text())
    assert (document["conflicts"], document["first"]) == (25, "2026-11-20T16:00:15.187435+00:00")
    assert list(document["by"]) == ["key"]
    assert sum(row["conflicts"] for row in document["by"]["key"]) == 25


def test_since(result: Path):
    """Moments are UTC, or have an offset; after the last conflict there are none."""
    times = "2026-11-20 16:00:15 to 2026-11-20 16:00:18 UTC"
    others = f"At other times the result has 25 conflicts. The conflicts committed from {times}."
    utc = invoke("conflicts", result, "--since", "2026-11-20 16:00:17")
    assert "since 2026-11-20 16:00:17 UTC: changes that A rejected" in utc[1]
    assert invoke("conflicts", result, "--since", "2026-11-20 17:00:17+01:00") == utc
    code, output = invoke("conflicts", result, "--since", "2026-11-21")
    assert (code, output) == (0, f"There are no conflicts since 2026-11-21 00:00:00 UTC. {others}")


def test_what_is_refused(result: Path, tmp_path: Path):
    """No result, one of another version, a moment that is none, a file that is there."""
    code, output = invoke("conflicts", tmp_path)
    assert (code, "there is no result in" in output) == (ExitCode.REFUSED, True)
    (tmp_path / "run.json").write_text('{"engine": "local"}')
    (tmp_path / "counters.json").write_text("{}")
    code, output = invoke("conflicts", tmp_path)
    assert (code, "another version" in output) == (ExitCode.REFUSED, True)
    for since in ("yesterday", "9999-12-31T23:59:59-14:00"):
        code, output = invoke("conflicts", result, "--since", since)
        assert (code, f"--since {since}: not a date and time" in output) == (ExitCode.REFUSED, True)
    assert invoke("conflicts", result, "--json", result / "run.json", "--force")[0] == ExitCode.REFUSED


def test_texts_of_the_data_are_no_markup_and_move_no_cursor(tmp_path: Path):
    """A key can hold anything; headings are whole at 80 columns."""
    folder = tmp_path / "outcomes" / "applier=A"
    folder.mkdir(parents=True)
    row = {"table": "d.[red]", "key": "k=\x1b[2J\n" + "x" * 90, "verdict": "REJECTED", "cause": "TRANS_IN_CONFLICT"}
    plain = {"source_epoch": 2**64 - 1, "epoch": 1, "group": 0, "ordinal": 0, "own_cause": "ROW_IN_CONFLICT"}
    rows = [{**dict.fromkeys(OUTCOMES.names), **row, **plain, "source": "B", "transaction_id": 2**64 - 1}]
    pq.write_table(pa.Table.from_pylist(rows, OUTCOMES), folder / "bucket=00000.parquet")
    found = read_conflicts(Folder(str(tmp_path)), ["A"])
    console = Console(width=80, record=True, file=io.StringIO())
    counts = {by: count_conflicts(found, by, DatabaseNames()) for by in By}
    print_telling(console, tell_conflicts(totals_of(found), counts, 5, "r"))
    shown = console.export_text()
    assert "d.[red]" in shown
    assert "k=\\x1b[2J\\n" in shown
    assert "\x1b" not in shown
    assert "1 conflict: changes that A rejected, in 1 table, on 1 row, of 1 transaction." in shown.replace("\n", " ")
    assert str(2**64 - 1) in shown
    assert "in conflict through" in shown
    assert "not known" in shown  # its time


def test_a_table_and_an_end(result: Path, tmp_path: Path) -> None:
    """Parts by time add up to the whole of a table, however it is named; the document says what was counted."""
    counts = []
    for number, options in enumerate(
        ((), ("--until", "2026-11-20 16:00:17"), ("--since", "2026-11-20 18:00:17+02:00"))
    ):
        code, _ = invoke("conflicts", result, "--table", "t2", *options, "--json", tmp_path / f"{number}.json")
        document = json.loads((tmp_path / f"{number}.json").read_text())
        assert (code, document["table"], document["tables"]) == (0, "cft.t2", 1)
        counts.append(document["conflicts"])
    assert counts[0] == 15 == counts[1] + counts[2]
    assert 0 < counts[1] < 15
    assert json.loads((tmp_path / "1.json").read_text())["until"] == "2026-11-20T16:00:17+00:00"
    by = conflict.read_result(str(result)).conflicts_by("table", until="2026-11-20 16:00:17", table="t2")
    assert by["conflicts"].to_pylist() == [counts[1]]
    code, output = invoke("conflicts", result, "--table", "cft.t2", "--until", "2026-11-20")
    assert output.startswith(
        "There are no conflicts of cft.t2 before 2026-11-20 00:00:00 UTC. "
        "At other times the result has 15 conflicts of cft.t2. The"
    )
    assert invoke("conflicts", result, "--table", "t3")[0] == ExitCode.REFUSED
    assert invoke("conflicts", result, "--until", "never")[0] == ExitCode.REFUSED
