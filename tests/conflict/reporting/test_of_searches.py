"""What a report says of searches that found nothing, and of what was simulated."""

from typing import Any

from conflict.whatif.diverging.part import diverge_part
from conflict.whatif.diverging.telling import scope_words, tell_searches
from conflict.whatif.simulating.words import model_types, model_words
from tests.conflict.reporting.conftest import SEARCH

NONE: dict[str, Any] = {
    "goal": "stop",
    "function": "NDB$MAX(x)",
    "binlog_type": 6,
    "values": "clock",
    "bounds": {"transactions": 2, "rows": 1, "columns": 2, "epochs": None, "outages": 0},
    "found": False,
    "complete": True,
    "states": 270,
    "depth": 9,
}


def test_a_search_without_a_schedule_says_how_far_it_went() -> None:
    """The whole scope, or as many steps as the limit let it; several searches stand in one table."""
    limited = {**NONE, "goal": "lost", "complete": False, "states": 1}
    part = diverge_part({"searches": [NONE, limited]}, "a file")
    assert list(part.telling.sentences) == [
        (
            "No schedule stops an applier under NDB$MAX(x), binlog type 6: none up to 2 transactions, 1 row, 2 data "
            "columns (270 states)."
        ),
        (
            "No schedule loses an update under NDB$MAX(x), binlog type 6: none up to 9 steps; the limit of states "
            "ended the search (1 state)."
        ),
    ]
    assert part.asked["searched"] == "all schedules of up to 2 transactions, 1 row, 2 data columns"
    assert part.asked["resolve column"] == "an update sets it to more than all before"
    (table,) = part.telling.tables
    assert [list(row[2:]) for row in table.rows] == [
        ["stop", "none found", 270, "with all states"],
        ["lost", "none found", 1, "at the limit of states"],
    ]
    bounded = {**NONE, "bounds": {**NONE["bounds"], "epochs": 2, "outages": 1}}
    assert scope_words(bounded).endswith("2 epochs with transactions on each cluster, 1 outage")


def test_a_schedule_is_a_table() -> None:
    """With a column for each cluster, from the rows at first to those at the end, and what is not settled then."""
    (table,) = tell_searches([{**SEARCH, "unsettled": {"A": 1, "B": 0}}]).tables
    assert table.title == "The clusters end different after 1 step (17 states) under NDB$EPOCH(), binlog type 7"
    assert table.rows == [
        ["start", "row 1 is there", "row 1 is there"],
        [1, "deletes row 1", ""],
        ["end", "no rows", "row 1"],
    ]
    assert table.note.startswith("Not settled at the end: 1 row operation of A,")


def test_a_model_in_words() -> None:
    """What it says, and the binlog type that it has without saying so; a preset has its own."""
    model = {
        "function": {"A": "NDB$EPOCH()", "B": "NDB$MAX(x)"},
        "seconds": 20,
        "tables": [{"name": "t"}, {"name": "u", "binlog_type": 6}],
        "workload": {"transactions_per_second": [10, 20]},
        "clusters": {"A": {"link": {"latency_ms": 40}}, "B": {"link": {"trace_ms": [[0, 1]]}}},
    }
    assert model_words(model) == {
        "conflict function": "NDB$EPOCH() on A, NDB$MAX(x) on B",
        "binlog type": "7, 6",
        "latency of links": "from A 40 ms; 1 ms from B in the median, as in the binlogs",
        "simulated": "20 s",
    }
    assert model_types({}) == ["7"]
    assert model_words({"preset": "bank"})["simulated"].startswith("preset bank")
