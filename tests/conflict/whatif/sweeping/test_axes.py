"""What each axis does to a model."""

import re
from typing import Any

import pytest

from conflict.errors import ConfigurationError
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.sweeping.sweep_file import AXES, document_at

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


@pytest.mark.parametrize(
    ("common", "own", "expected"),
    [
        (None, [None, None], [None, None]),
        (None, ["f", {}], [None, {}]),
        (None, ["f", None], [None, {}]),
        ("f", [None, {}], [None, {}]),
        ("f", [{}, {}], [None, None]),
        ({"A": "f"}, [None, {"B": "g"}], [None, None]),
    ],
)
def test_tables_without_a_function_stay_so(common: object, own: list[object], expected: list[object]) -> None:
    """A function is set on the tables that have one, as a comparison tries it; on all of them if none has."""

    def named(functions: list[object]) -> list[dict[str, object]]:
        tables = zip(("t", "u"), functions, strict=True)
        return [{"name": name} | ({} if each is None else {"function": each}) for name, each in tables]

    base = {"tables": named(own)} | ({} if common is None else {"function": common})
    assert document_at(base, {"function": "new"}) == {"function": "new", "tables": named(expected)}


def test_an_outage_is_in_the_middle_of_the_seconds_of_its_point() -> None:
    """Also if the grid names the outage first."""
    document = document_at({"seconds": 10}, {"outage_seconds": 2, "seconds": 20})
    assert document["clusters"]["A"]["link"]["outages"] == [[10, 12]]


@pytest.mark.parametrize(
    ("base", "point", "said"),
    [
        ({"seconds": "x"}, {"outage_seconds": 1}, "seconds is 'x'; it must be a number from 0"),
        ({}, {"outage_seconds": "x"}, "outage_seconds is 'x'; it must be a number from 0"),
        ({"clusters": {"A": {"workload": 5}}}, {"zipfianconstant": 1}, "workload is no table of the model"),
        ({"tables": 5}, {"function": "NDB$MAX(x)"}, "tables is 5"),
        ({"tables": [5]}, {"function": "NDB$MAX(x)"}, "tables#1 is 5; it must be a table"),
    ],
)
def test_a_model_of_another_shape_is_refused(base: dict[str, Any], point: dict[str, Any], said: str) -> None:
    """By the axis that meets it, or else by the model."""
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        parse_model(document_at(base, point))


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


def test_clusters_keep_their_order() -> None:
    """An entry of the second cluster, in a model that names none, leaves the first one the primary."""
    point = {"clusters.B.epoch_ms": 50, "clusters.A.epoch_ms": 60}
    model = parse_model(document_at({"function": "NDB$EPOCH()"}, point))
    assert [(site.name, site.epoch) for site in model.sites] == [("A", 60_000), ("B", 50_000)]
    assert model.tables[0].functions == {"A": "NDB$EPOCH()"}
    assert [site.name for site in parse_model(document_at({}, {"clusters.B.epoch_ms": 50})).sites] == ["A", "B"]
