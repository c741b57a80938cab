"""What each axis does to a model."""

from typing import Any

from conflict.model.model_file import parse_model
from conflict.sweeping.axes import AXES, document_at

BASE: dict[str, Any] = {
    "seconds": 10,
    "function": "NDB$EPOCH()",
    "tables": [{"name": "t", "function": "NDB$MAX(x)", "binlog_type": 8}, {"name": "u"}],
    "clusters": {
        "london": {"workload": {"transactions_per_second": 7, "requestdistribution": "latest"}},
        "paris": {"link": {"latency": "trace", "trace_ms": [[0, 5]], "bytes_per_second": 9}},
    },
}


def test_axes() -> None:
    """Each reaches both clusters or all tables, whatever these had of their own."""
    expected: dict[str, tuple[Any, dict[str, Any]]] = {
        "function": (
            "NDB$OLD(x)",
            {"function": "NDB$OLD(x)", "tables": [{"name": "t", "binlog_type": 8}, {"name": "u"}]},
        ),
        "binlog_type": (9, {"binlog_type": 9, "tables": [{"name": "t", "function": "NDB$MAX(x)"}, {"name": "u"}]}),
        "latency_ms": (
            3,
            {
                "clusters": {
                    "london": {**BASE["clusters"]["london"], "link": {"latency_ms": 3}},
                    "paris": {"link": {"latency_ms": 3, "bytes_per_second": 9}},
                }
            },
        ),
        "clock_skew_ms": (
            4,
            {"clusters": {**BASE["clusters"], "paris": {**BASE["clusters"]["paris"], "clock_skew_ms": 4}}},
        ),
        "zipfianconstant": (
            0.9,
            {
                "workload": {"requestdistribution": "zipfian", "zipfianconstant": 0.9},
                "clusters": {**BASE["clusters"], "london": {"workload": {"transactions_per_second": 7}}},
            },
        ),
        "transactions_per_second": (
            20,
            {
                "workload": {"transactions_per_second": 20},
                "clusters": {**BASE["clusters"], "london": {"workload": {"requestdistribution": "latest"}}},
            },
        ),
        "outage_seconds": (
            2,
            {
                "clusters": {
                    "london": {**BASE["clusters"]["london"], "link": {"outages": [[5, 7]]}},
                    "paris": {"link": {**BASE["clusters"]["paris"]["link"], "outages": [[5, 7]]}},
                }
            },
        ),
    }
    assert expected.keys() == AXES.keys()
    for name, (value, changed) in expected.items():
        assert document_at(BASE, {name: value}) == {**BASE, **changed}


def test_entries_of_the_model_are_axes() -> None:
    """By their names with dots; a model without clusters has A and B."""
    assert (
        document_at({}, {"workload.retries": 2, "clusters.A.epoch_ms": 50, "latency_ms": 1})
        == {
            "workload": {"retries": 2},
            "clusters": {"A": {"epoch_ms": 50, "link": {"latency_ms": 1}}},
        }
        or parse_model(document_at({}, {"latency_ms": 1})).sites[1].link.latency.middle == 1000
    )
