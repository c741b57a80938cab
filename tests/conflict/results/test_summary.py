"""The figures of a run."""

import attrs

from conflict.engine.ledger.resolution import Stop
from conflict.engine.ledger.summary import BucketSummary, add_summaries, stop_to_json
from conflict.history.timeline import Origin
from conflict.rules.stops import ServerStop
from ndb_formats.events.rows_event import Operation

MAX, REFRESH = "Ndb_conflict_fn_max", "Ndb_conflict_refresh_op_count"
ORIGIN = Origin("binlog.000001", 400, 35, 2)
STOP = Stop(ServerStop.MISSING_INFORMATION, 2**64 - 1, "d.t", "x", Operation.UPDATE_ROW, ORIGIN, "what to do")


def bucket(count: int, differing: int = 0) -> BucketSummary:
    """Return the summary of a bucket in which each thing happened so many times."""
    return BucketSummary(
        counters={"A": {MAX: count}, "B": {MAX: 0, REFRESH: count}},
        tables={"A": {"d.t": {"applied": count, "rejected": 1}}, "B": {"d.t": {"applied": 0, "rejected": 0}}},
        rows={"A": {"d.t": count}, "B": {"d.t": count}},
        differing_rows={"d.t": differing, "d.n": 0},
        compared=10 * count,
        contradicted=count - 1,
        unexplained={"A": 0, "B": count},
    )


def test_added_up():
    """Every figure is the sum over the buckets; counters that no bucket has are 0."""
    summary = add_summaries([bucket(1), bucket(3, differing=2)], {})
    assert (summary.counters["A"][MAX], summary.counters["B"][MAX], summary.counters["B"][REFRESH]) == (4, 0, 4)
    assert summary.counters["A"]["Ndb_conflict_fn_epoch2_trans"] == 0
    assert len(summary.counters["A"]) == 18
    assert summary.tables == {
        "A": {"d.t": {"applied": 4, "rejected": 2}},
        "B": {"d.t": {"applied": 0, "rejected": 0}},
    }
    assert summary.rows == {"A": {"d.t": 4}, "B": {"d.t": 4}}
    assert summary.differing_rows == {"d.t": 2, "d.n": 0}
    assert (summary.compared, summary.contradicted, summary.unexplained) == (40, 2, {"A": 0, "B": 4})


def test_the_parts_stay_as_they_were():
    """Adding up changes no bucket's figures."""
    first, second = bucket(1), bucket(3)
    add_summaries([first, second], {})
    assert (first, second) == (bucket(1), bucket(3))


def test_converged():
    """Clusters converge if no row of any table differs."""
    assert add_summaries([bucket(1), bucket(1)], {}).converged is True
    assert add_summaries([bucket(1, differing=1), bucket(1)], {}).converged is False


def test_contradictions_leave_open_what_happened():
    """Where the binlogs contradict the result, it is not known whether the clusters converged, nor any range."""
    summary = add_summaries([bucket(1), bucket(2)], {})
    assert summary.contradicted == 1
    assert summary.converged is None
    assert summary.to_json()["counter_ranges"] is None


def test_document():
    """The document says everything in plain types."""
    contradictions = {"B": {"d.t": {"derived nothing, shown CHANGED": 1}}}
    document = add_summaries([attrs.evolve(bucket(2), contradictions=contradictions)], {"B": STOP}).to_json()
    assert document == {
        "converged": None,
        "tables": {"A": {"d.t": {"applied": 2, "rejected": 1}}, "B": {"d.t": {"applied": 0, "rejected": 0}}},
        "rows": {"A": {"d.t": 2}, "B": {"d.t": 2}},
        "differing_rows": {"d.t": 0, "d.n": 0},
        "overwritten": {},
        "compared_with_binlogs": 20,
        "contradicted_by_binlogs": 1,
        "contradictions": contradictions,
        "unexplained_changes": {"A": 0, "B": 2},
        "undecided": {},
        "epochs_not_examined": 0,
        "not_known": {},
        "open_places": {},
        "ndb_count_more": {},
        "skipped_epochs": [],
        "counter_ranges": None,
        "stops": {"B": stop_to_json(STOP)},
    }


def test_stop():
    """A stop names the operation, and where it is in the binlog."""
    assert stop_to_json(STOP) == {
        "error": 1296,
        "foreign_epoch": 18446744073709551615,
        "table": "d.t",
        "column": "x",
        "operation": "UPDATE_ROW",
        "origin": {"file": "binlog.000001", "position": 400, "payload_position": 35, "row": 2},
        "message": "what to do",
        "server": "Binlog event missing info necessary for conflict detection.  "
        "Check binlog format options on upstream cluster.",
    }
