"""What a report says of searches that found nothing, and of what was simulated."""

from typing import Any

from conflict.reporting.kinds.diverge import diverge_part
from conflict.reporting.wording.model_words import model_types, model_words

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
    """The whole scope, or as many steps as the limit let it; the function is named once for its searches."""
    limited = {**NONE, "goal": "lost", "complete": False, "states": 1}
    part = diverge_part({"searches": [NONE, limited, {**limited, "binlog_type": 7}]}, "a file")
    assert list(part.telling.sentences) == [
        (
            "Under NDB$MAX(x) and binlog type 6, no applier stops in any schedule of up to 2 transactions, 1 row, 2 "
            "data columns; 270 states were searched."
        ),
        (
            "No update is lost in any schedule of up to 9 steps, where the limit of states ended the search; 1 state "
            "was searched."
        ),
        (
            "Under NDB$MAX(x) and binlog type 7, no update is lost in any schedule of up to 9 steps, where the limit "
            "of states ended the search; 1 state was searched."
        ),
    ]
    assert part.asked["searched"] == "all schedules of up to 2 transactions, 1 row, 2 data columns"
    assert part.asked["resolve column"] == "an update sets it to more than all before"
    assert [row[-1] for row in part.telling.tables[0].rows] == ["with all states", *["at the limit of states"] * 2]


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
