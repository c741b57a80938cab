"""The cells of the zoo: lengths worked out by hand or long known, the schedules as recordings, as a value."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import attrs
import pytest

import conflict
from conflict.rules.counters import conflicts_counted
from conflict.whatif.diverging.scope import Goal
from conflict.whatif.diverging.search import explore
from conflict.whatif.diverging.steps import Commit
from conflict.whatif.zoo.cell import Cell
from conflict.whatif.zoo.pairs import all_functions
from conflict.whatif.zoo.recorded import Recorded
from conflict.whatif.zoo.written import write_recordings
from conflict.whatif.zoo.zoo import Zoo
from tools.recorded_cells import merged, recorded_cells

ROWS = ["NDB$MAX(x)", "NDB$EPOCH()", "NDB$EPOCH2_TRANS()", "none"]
# By row, of type 7: rows differ, update lost, applier stops, deleted row comes back, counters lie.
BY_HAND = {
    "NDB$MAX(x), version": (4, 3, None, 4, 4),
    "NDB$MAX(x), clock": (4, 3, None, 4, 4),
    "NDB$EPOCH()": (5, 3, None, 5, 5),
    "NDB$EPOCH2_TRANS()": (None, 3, None, 5, 4),
    "none": (4, 3, None, None, 4),
}


@pytest.fixture(scope="module")
def zoo() -> Zoo:
    """Some functions under one format, small."""
    return conflict.zoo(function=ROWS, formats=7, columns=1, workers=1)


def test_lengths(zoo: Zoo) -> None:
    """As worked out by hand: see the schedules of docs/zoo.md."""
    rows = itertools.groupby(zoo, lambda cell: cell.row)
    assert {row: tuple(cell.length for cell in group) for row, group in rows} == BY_HAND


def test_what_stops_an_applier() -> None:
    """Type 6 logs deletes with the key alone, and NDB$MAX compares the value that the row had."""
    zoo = conflict.zoo(function="NDB$MAX(x)", formats="6,7", find="stop", transactions=2, values="version", workers=1)
    assert [cell.length for cell in zoo] == [2, None]
    assert zoo.cell("NDB$MAX(x)", "stop", 6).steps == ("the clusters hold 1 row", "A deletes row 1", "B applies")


def test_no_shorter_schedule_has_fewer_transactions(zoo: Zoo) -> None:
    """A scope of one transaction less than a schedule has shows nothing in fewer steps."""
    for cell in zoo:
        if cell.schedule is not None:
            commits = sum(isinstance(step, Commit) for step in cell.schedule)
            scope = attrs.evolve(cell.scope, transactions=commits - 1)
            less = explore(scope, (cell.anomaly,)).reached.get(cell.anomaly)
            assert less is None or len(less) >= len(cell.schedule)


def test_recordings_show_what_cells_claim(zoo: Zoo, tmp_path: Path) -> None:
    """`resolve` finds it from the binlogs and steps of each recording."""
    write_recordings(zoo, tmp_path / "cases")
    for cell in zoo:
        folder = tmp_path / "cases" / cell.pair / cell.anomaly
        assert folder.exists() == (cell.schedule is not None)
        if cell.schedule is None:
            continue
        scenario = json.loads((folder / "scenario.json").read_text())
        assert scenario["binlog_type"] == 7
        result = conflict.resolve(folder / "run.toml", out=folder / "result", engine="reference", policy="needs")
        assert shows(result, cell), cell


def shows(result: conflict.Result, cell: Cell) -> bool:
    """Whether a result shows the anomaly of a cell."""
    is_lost, rows = conflict.lost(result).changes.num_rows > 0, [result.rows(name, "d.t").num_rows for name in "AB"]
    counted = any(conflicts_counted(counters) for counters in result.counters.values())
    return {
        Goal.DIFFERENCE: result.summary.converged is False,
        Goal.LOST: is_lost,
        Goal.STOP: bool(result.summary.stops),
        Goal.RETURNS: max(rows) == 1,  # the row is the only one, and it was deleted
        Goal.COUNTERS: is_lost != counted,
    }[cell.anomaly]


def test_a_zoo_as_a_value(zoo: Zoo) -> None:
    """A cell by its names, a frame, a document, and what a notebook shows."""
    assert len(zoo) == len(BY_HAND) * len(Goal)
    cell = zoo.cell("NDB$MAX(x)", "difference", values="clock")
    assert (cell.row, cell.binlog_type, cell.answer) == ("NDB$MAX(x), clock", 7, "found")
    assert (cell.mark, cell.recorded) == ("recorded", Recorded("9.7.2-cluster", agreed=True))
    assert attrs.evolve(cell, recorded=Recorded("9.7.2-cluster", agreed=False)).mark == "contradicted"
    assert attrs.evolve(cell, recorded=None).mark == "searched"
    assert zoo.cell(None, Goal.RETURNS).answer == "none"
    frame = zoo.to_pandas()
    assert len(frame) == len(zoo)
    assert frame["length"].dropna().min() == 3
    document = zoo.document()
    assert document["bounds"] == {"transactions": 3, "rows": 1, "columns": 1, "outages": 0}
    first = document["zoo"][0]
    assert (first["function"], first["values"], first["anomaly"]) == ("NDB$MAX(x)", "version", "difference")
    assert first["steps"] == list(zoo.cells[0].steps or ())
    assert "<table" in zoo._repr_html_()
    assert "The searches saw" in repr(zoo)
    with pytest.raises(conflict.ConfigurationError, match="the zoo has no cell of NDB"):
        zoo.cell("NDB$OLD(x)", "difference")


def test_what_was_recorded(zoo: Zoo) -> None:
    """What the recorder says of the folders of a zoo becomes the list; what could not be recorded is left out."""
    names = [
        "max_x_version_type7/difference",
        "max_x_version_type7/lost",
        "max_x_version_type7/stop",
        "epoch_type7/lost",
    ]
    outcomes = [{"case": name, "recorded": "EPOCH" not in name.upper(), "agreed": False} for name in names]
    found = list(recorded_cells(zoo.document(), {"server": "9.7.2", "cells": outcomes}))
    assert [(each["anomaly"], each["server"], each["agreed"]) for each in found] == [
        ("difference", "9.7.2", False),
        ("lost", "9.7.2", False),
    ]
    assert found[0]["steps"] == list(zoo.cell("NDB$MAX(x)", "difference").steps or ())
    before = {"cells": [{**found[0], "agreed": True}, {**found[0], "anomaly": "returns", "agreed": True}]}
    both = [(each["anomaly"], each["agreed"]) for each in merged(before, found)["cells"]]
    assert both == [("difference", False), ("lost", False), ("returns", True)]


def test_what_is_refused_has_a_reason() -> None:
    """By the server, which does not make such a table, and by what an operation needs; the other cells are there."""
    zoo = conflict.zoo(function=["NDB$EPOCH2()", "NDB$OLD(x)"], formats="2,8", find="lost", values="clock", workers=1)
    answers = {(cell.function, cell.binlog_type): (cell.answer, cell.refusal) for cell in zoo}
    assert [answers["NDB$EPOCH2()", 2][0], answers["NDB$OLD(x)", 8][0]] == ["refused", "refused"]
    assert "before" in (answers["NDB$OLD(x)", 8][1] or "")
    assert answers["NDB$EPOCH2()", 8] == ("found", None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"function": "NDB$NONE()"}, "unknown conflict resolution function"),
        ({"formats": "1"}, "log nothing"),
        ({"find": "loss"}, "loss is no anomaly; give difference, lost, stop, returns or counters"),
        ({"values": "time"}, "time is no kind of values"),
        ({"rows": 9}, "rows is 9"),
        ({"engine": "reference"}, "engine reference does not search"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, object], said: str) -> None:
    """It is said before anything is searched."""
    with pytest.raises(conflict.ConfigurationError, match=said):
        conflict.zoo(**given)  # type: ignore[arg-type]


@conflict.resolver(reads=["values"])
def last_insert(row: conflict.FoundRow, change: conflict.IncomingChange) -> conflict.Decision:
    """Apply every change of a row that is there, and every insert."""
    return conflict.APPLY if row.exists or change.kind == "write" else conflict.IGNORE


def test_a_resolver_is_a_row(tmp_path: Path) -> None:
    """It ends as no function does, which applies all changes, too; no server runs it, so it is not recorded."""
    asked = {"function": [last_insert, "none"], "formats": 7, "transactions": 2, "columns": 1, "workers": 1}
    zoo = conflict.zoo(**asked, out=tmp_path / "zoo", recordings=tmp_path / "cases")  # type: ignore[arg-type]
    own, none = list(zoo)[: len(Goal)], list(zoo)[len(Goal) :]
    assert [cell.row for cell in own] == ["last_insert()"] * len(Goal)
    assert [cell.length for cell in own] == [cell.length for cell in none] == [4, 3, None, None, 4]
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["none_type7"]
    assert not list((tmp_path / "zoo" / "tests").glob("test_last*"))


def test_the_default_rows() -> None:
    """The nine functions of the server, and none."""
    assert len(all_functions()) == 10
    assert all_functions()[-1] == "none"
