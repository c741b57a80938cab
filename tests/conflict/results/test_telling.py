"""What is told of a result, from its document."""

import io
import json
from pathlib import Path

import attrs
import pytest
from rich.console import Console

import conflict
from conflict.config.run_file import load_run_file
from conflict.engine.ledger.summary import RoundFigures, RunSummary
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.judge.case import ConflictCase
from conflict.results.run_document import RunDocument
from conflict.results.telling import tell_examples, tell_result
from conflict.rules.replication_table import Role
from conflict.runs.pipeline import ENGINES
from conflict.telling.terminal import print_telling
from conflict.telling.value import Table, Telling, shown
from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType
from tests.corpora import DEMO, RECORDINGS

NOTHING = RunSummary({}, {"A": {}, "B": {}}, {"A": {}, "B": {}}, {"cft.t1": 0}, 0, 0, {}, {})


def told(summary: RunSummary, changes: int) -> Telling:
    """Return what is told of a run with these figures."""
    run = RunDocument(Run(load_run_file(DEMO / "run.toml").configuration), summary, changes, {}, {}, {}, {})
    return tell_result(run.to_json("local"))


def table_with(telling: Telling, *headings: str) -> Table:
    """Return the table that has these headings."""
    (found,) = (each for each in telling.tables if {*headings} <= {*each.headings})
    return found


def test_the_number_of_rounds_is_told() -> None:
    """Clusters that correct each other need hundreds of them; without a conflict they say nothing."""
    rounds = tuple(RoundFigures(rows, 3, 1) for rows in (100, 50, *[20] * 400))
    (said,) = told(attrs.evolve(NOTHING, rounds=rounds), 7).sentences
    assert said.startswith("3 transactions in conflict")
    assert "402 rounds" in said
    assert not told(attrs.evolve(NOTHING, rounds=(RoundFigures(100, 0, 0),)), 7).sentences


def test_nothing_that_was_read_does_not_converge(tmp_path: Path) -> None:
    """Binlogs without a change of the tables tell nothing of what the tables hold."""
    words = "The binlogs hold no row change of the clusters' own"
    assert told(NOTHING, 0).headline.startswith(words)
    assert "did not converge" in told(attrs.evolve(NOTHING, differing_rows={"cft.t1": 1}), 0).headline
    files = [tmp_path / f"{name}.binlog.000001" for name in "AB"]
    for file in files:
        headers = read_headers(DEMO / file.name)
        first = next(position for position, header in headers if header.type_code == EventType.QUERY_EVENT)
        file.write_bytes((DEMO / file.name).read_bytes()[:first])
    schema = DEMO / "schema.sql"
    result = conflict.resolve(*files, schema=schema, engine="reference", out=tmp_path / "out")
    assert repr(result.summary).startswith(words)


def test_no_figure_is_cut_in_80_columns() -> None:
    """Also where verdicts occur that are rare, and names are long."""
    figures = {"applied": 1_234_567, "ignored": 345_678, "rejected": 456_789, "refreshes": 567_891}
    figures |= {"discarded": 678_912, "skipped": 789_123, "cannot_tell": 891_234}
    summary = attrs.evolve(
        NOTHING,
        tables={"amsterdam": {"shop.orders_of_customers": figures}},
        undecided={"A": 1_891_234},
        counter_ranges={"A": {"Ndb_conflict_trans_detect_iter_count": (1_234_567, 2_345_678)}},
    )
    out = io.StringIO()
    print_telling(Console(file=out, width=80), told(summary, 7))
    said = out.getvalue()
    assert all(f"{figure:,}" in said for figure in (*figures.values(), 1_891_234, 2_345_678))
    assert all(heading in said for heading in ("conflicts", "refreshed", "discarded", "skipped", "cannot tell"))
    assert max(map(len, said.splitlines())) <= 80


def test_an_alarm_comes_before_the_figures() -> None:
    """Every other table says that it is not what happened."""
    tallies = {"A": {"cft.t1": {"applied": 2}}}
    contradictions = {"A": {"cft.t1": {"derived CHANGED, shown nothing": 2}}}
    summary = attrs.evolve(NOTHING, tables=tallies, compared=3, contradicted=2, contradictions=contradictions)
    telling = told(summary, 7)
    assert telling.alarms[0].startswith("The binlogs contradict the run")
    assert "of 3 row changes by appliers, 2 differ" in telling.alarms[0]
    shown_otherwise, *others = telling.tables
    assert shown_otherwise.rows == [("A", "cft.t1", "derived CHANGED, shown nothing", 2)]
    assert len(others) >= 2
    assert all("not what happened" in each.title for each in others)
    again = told(attrs.evolve(summary, contradicted=0, contradictions={}), 7)
    assert not any("not what happened" in each.title for each in again.tables)


def test_the_binlogs_of_the_demo() -> None:
    """Its figures, in the order of the document; the summary of its README.md has them."""
    result = conflict.resolve(DEMO / "run.toml", engine="reference")
    telling = result.summary.telling
    assert telling.headline == "90 row changes, 25 conflicts; the clusters did not converge."
    received = table_with(telling, "received", "conflicts")
    assert received.rows[0] == ("A", "cft.t1", 13, 3, 0, 10, 6)
    rows = [[shown(cell) for cell in row] for row in table_with(telling, "differing").rows]
    assert rows[0] == ["cft.t1", "NDB$EPOCH(6)", "2", "2", "0"]
    assert rows[2] == ["cft.plain", "none", "2", "2", "1"]
    causes = table_with(telling, "row in conflict")
    assert sum(sum(row[2:]) for row in causes.rows) == 25  # type: ignore[arg-type]  # figures


def test_what_binlogs_leave_open() -> None:
    """What is not known of older rows, decisions, and counters; each in a table with its cluster."""
    summary = attrs.evolve(
        NOTHING,
        not_known={"A": {"cft.t1": {"rows": 2, "rows_in_part": 1, "columns": 3}}, "B": {}},
        undecided={"B": 4},
        counter_ranges={"B": {"Ndb_conflict_fn_old": (1, 2)}},
    )
    telling = told(summary, 7)
    assert table_with(telling, "rows known in part").rows == [("A", "cft.t1", 2, 1, 3)]
    assert table_with(telling, "decisions").rows == [("B", 4, 0)]
    assert table_with(telling, "at least").rows == [("B", "Ndb_conflict_fn_old", 1, 2)]
    assert not told(NOTHING, 7).tables[1:]


def test_an_example_says_where_it_stands() -> None:
    """A rejected operation with its file and position, and why; a value that is compared is named."""
    result = conflict.resolve(DEMO / "run.toml", engine="reference")
    outcome = result.conflicts.sort_by("source_epoch").slice(0, 1).to_pylist()[0]
    (listing,) = tell_examples(result.run, [outcome]).listings
    (entry,) = listing.entries
    assert entry.label == "B → A"
    assert outcome["key"] in entry.head
    assert f"position {outcome['position']}" in entry.head
    assert "was rejected" in entry.lines[0]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_an_applier_that_went_on_did_not_stop(engine: str, tmp_path: Path) -> None:
    """Roles that are not given would stop both appliers; their binlogs show what they applied afterwards."""
    configuration = ConflictCase.load(RECORDINGS / "conflict/epoch2/role_pass_type7").configuration()
    clusters = tuple(attrs.evolve(each, role=Role.NONE) for each in configuration.clusters)
    run = make_run(attrs.evolve(configuration, clusters=clusters))
    document = json.loads(json.dumps(ENGINES[engine](run, Folder(str(tmp_path))).to_json(engine)))
    alarms = [each for each in tell_result(document).alarms if "error 1296" in each]
    assert len(alarms) == 2
    assert all("would have stopped, but its binlog shows that it went on" in each for each in alarms)
    assert not any("was undone" in each for each in alarms)
