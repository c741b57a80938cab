"""The file that describes a simulation: what it may hold, and how it is refused."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from conflict.errors import ConfigurationError
from conflict.whatif.simulating.kernels.world import Stamp, Wish
from conflict.whatif.simulating.key_choice import Zipfian
from conflict.whatif.simulating.model_file import PRESETS, parse_model
from conflict.whatif.simulating.report import figures_of
from conflict.whatif.simulating.run import simulate
from conflict.whatif.simulating.workload import Mix


def test_an_empty_file_is_a_model() -> None:
    """Two clusters, one table, no function."""
    model = parse_model({})
    assert [site.name for site in model.sites] == ["A", "B"]
    assert [(table.name, table.functions) for table in model.tables] == [("usertable", {})]


def test_words_of_ycsb() -> None:
    """Proportions, the distribution and its constant; a cluster's own words come first."""
    model = parse_model(
        {
            "function": "NDB$MAX(x)",
            "workload": {"readproportion": 0.5, "updateproportion": 0.5, "requestdistribution": "zipfian"},
            "clusters": {"A": {}, "B": {"workload": {"zipfianconstant": 0.5, "readproportion": 0}}},
        }
    )
    first, second = (site.workload for site in model.sites)
    assert isinstance(first.shapes, Mix)
    assert isinstance(second.shapes, Mix)
    assert first.shapes.proportions[Wish.READ] == 0.5
    assert second.shapes.proportions[Wish.READ] == 0
    assert (first.keys[0], second.keys[0]) == (Zipfian(), Zipfian(0.5))
    assert model.tables[0].functions == dict.fromkeys("AB", "NDB$MAX(x)")
    assert model.tables[0].stamp is Stamp.CLOCK


def test_a_function_by_epoch_is_on_the_primary_alone() -> None:
    """Unless it has roles; or a function per cluster is given."""
    assert parse_model({"function": "NDB$EPOCH()", "primary": "B"}).tables[0].functions == {"B": "NDB$EPOCH()"}
    assert set(parse_model({"function": "NDB$EPOCH2()"}).tables[0].functions) == {"A", "B"}
    each = {"A": "NDB$MAX(x)", "B": "NDB$OLD(x)"}
    assert parse_model({"function": each, "x": "clock"}).tables[0].functions == each


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("function", [None, "NDB$EPOCH_TRANS()", "NDB$MAX(x)"])
def test_presets_run(name: str, function: str | None) -> None:
    """With a function or none; a file's own entries come first."""
    small = {"preset": name, "seconds": 1, "drain_seconds": 5, "clusters": {"A": {}, "B": {"epoch_ms": 50}}}
    model = parse_model(small if function is None else {**small, "function": function})
    assert model.sites[1].epoch == 50_000
    assert figures_of(simulate(model, 1))["clusters"]["A"]["transactions"] > 0


def test_the_highest_server_id() -> None:
    """A server id has 32 bits."""
    assert parse_model({"clusters": {"A": {"server_id": 4294967295}, "B": {}}}).sites[0].server_id == 4294967295
    with pytest.raises(
        ConfigurationError, match="server_id is 4294967296; it must be a whole number from 1 to 4294967295"
    ):
        parse_model({"clusters": {"A": {"server_id": 4294967296}, "B": {}}})


BAD: list[tuple[dict[str, Any], str]] = [
    ({"preset": "banks"}, "preset 'banks' is not known (did you mean bank?); give one of bank, inventory"),
    ({"second": 3}, "it has unknown entries second (did you mean seconds?); known are"),
    ({"pre": 3}, "drain_seconds, function, learnt_from, not_arrived, preset, primary, recordcount"),
    (
        {"workload": {"updateproportion": 2}},
        "clusters.A.workload.updateproportion is 2; it must be a number from 0 to 1",
    ),
    ({"seconds": 0}, "seconds is 0; it must be a number from 0.001"),
    ({"clusters": {"A": {}}}, "[clusters] has A alone; a simulation is of two or more clusters"),
    ({"clusters": 3}, "clusters is 3; it must be a table"),
    ({"tables": [{"name": "t"}, {"name": "t"}]}, "it must be tables that each have a name of their own"),
    ({"seconds": 10**6}, "that makes 200,000,000 transactions, and 50,000,000 are the most; simulate fewer seconds"),
    ({"seconds": 10**5, "clusters": {"A": {"epoch_ms": 1}, "B": {}}}, "epochs, and 50,000,000 are the most"),
    ({"tables": [{"name": "t", "colums": 3}]}, "tables.t has unknown entries colums (did you mean columns?)"),
    ({"tables": [{"name": "t", "columns": 99}]}, "tables.t.columns is 99; it must be a whole number from 1 to 62"),
    ({"function": "NDB$MIN(x)"}, "NDB$MIN"),
    ({"function": "NDB$EPOCH2()", "binlog_type": 3}, "updates as writes"),
    (
        {"function": {"C": "NDB$OLD(x)"}},
        "tables.usertable.function is {'C': 'NDB$OLD(x)'}; it must be a function per cluster: A, B",
    ),
    (
        {"workload": {"requestdistribution": "zipf"}},
        "requestdistribution 'zipf' is not known (did you mean zipfian?); give one of uniform",
    ),
    ({"preset": []}, "preset [] is not known"),
    ({"binlog_type": "NO_LOGGING"}, "tables.usertable.binlog_type is 'NO_LOGGING'; it must be one under which changes"),
    ({"seconds": 10**400}, "it must be a number from 0.001 to 1,000,000,000"),
    (
        {"clusters": {"A": {"link": {"outages": [[1, math.inf]]}}, "B": {}}},
        "link.outages#1#2 is inf; it must be a number from 0",
    ),
    ({"clusters": {"A": {"link": {"trace_ms": [["x", 1]]}}, "B": {}}}, "link.trace_ms#1#1 is 'x'; it must be a number"),
    ({"clusters": {"A": {"link": {"trace_ms": [[0, math.nan]]}}, "B": {}}}, "it must be [second, milliseconds]"),
    ({"clusters": {"A": {"link": {"latency": "lognormal", "spread": 99}}, "B": {}}}, "a number from 0 to 10"),
    ({"workload": {"columnsets": {"usertable": [[[2**40], 1]]}}}, "a list of [[numbers of columns, from 1 to 4]"),
    ({"workload": {"columnsets": {"usertable": []}}}, "weights, of which at least one is not 0"),
    ({"workload": {"keyweights": {"usertable": [0]}}}, "a list of weights, one per row, which are not all 0"),
    (
        {"workload": {"transactions_per_second": []}},
        "transactions_per_second is []; it must be a list with a number per slot",
    ),
    ({"workload": {"keyweights": {"usertable": [2, -1]}}}, "keyweights.usertable#2 is -1; it must be a number from 0"),
    ({"workload": {"wishes": [["update", "usertable", math.nan]]}}, "a list of [wish, table, weight]"),
    ({"workload": {"transactions": [[-1, [["update", "usertable"]]]]}}, "a list of [weight, [[wish, table], ...]]"),
    ({"workload": {"rowspertransaction": {"99999999999999": 1}}}, "weights of numbers of rows, up to 1,000,000"),
    ({"workload": {"affinity": 2}}, "clusters.A.workload.affinity is 2; it must be a number from 0 to 1"),
    (
        {"workload": {"tables": {"u": 1}}},
        "workload.tables is {'u': 1}; it must be a table with an entry per table: usertable",
    ),
    ({"workload": {"transactions": [[1, [["updates", "usertable"]]]]}}, "wishes are read, insert, update"),
    (
        {"workload": {"transactions_per_second": -1}},
        "transactions_per_second is -1; it must be a number from 0 to 1,000,000,000",
    ),
    ({"workload": {"rowspertransaction": {"two": 1}}}, "it must be a number of rows, or weights of numbers of rows"),
    (
        {"clusters": {"A": {"link": {"outages": [[2, 1]]}}, "B": {}}},
        "link.outages#1 is [2, 1]; it must be [from, to] in seconds",
    ),
    ({"clusters": {"A": {"link": {"latency": "trace"}}, "B": {}}}, "a list of [second, milliseconds]"),
    ({"clusters": {"A": {"role": "MASTER"}, "B": {}}}, "clusters.A.role is 'MASTER'; it must be one of NONE, PRIMARY"),
    (
        {"clusters": {"A": {"epoch_ms": 5000}, "B": {}}},
        "clusters.A.checkpoint_ms is 2000.0; it must be at least epoch_ms",
    ),
    (
        {"clusters": {"A": {"applier": {"workers": 0}}, "B": {}}},
        "clusters.A.applier.workers is 0; it must be a whole number from 1 to 1024",
    ),
    ({"clusters": {"A": {"role": "NONE"}, "B": {}}, "function": "NDB$EPOCH2()"}, "cluster A has the role NONE"),
]


@pytest.mark.parametrize(("document", "said"), BAD)
def test_what_is_wrong_is_refused_with_its_place(document: dict[str, Any], said: str) -> None:
    """The message says what is wrong and what to give."""
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        parse_model(document)
