"""Both engines against recordings of a real pair of NDB clusters: the judge of what is right."""

import json

import pytest
from pyspark.sql import SparkSession

from conflict.judge.case import find_recordings
from conflict.judge.judge import CaseStatus, judge_all, judge_recording
from tests.corpora import RECORDINGS, SHARED

BUNDLED = RECORDINGS / "conflict"
CASES = [found.case for found in find_recordings(BUNDLED)]
# Folders of recordings: one per function, and two on configuration.
FUNCTIONS = (
    "old",
    "max",
    "max_delete_win",
    "max_ins",
    "max_del_win_ins",
    "epoch",
    "epoch_trans",
    "epoch2",
    "epoch2_trans",
)
OTHERS = ("parse", "replication_table")
# A few of each function: stops, refusals, roles, transactions, replicas that were set back, open decisions.
ON_SPARK = [
    "old/probe_type6",
    "old/unique_key_type7",
    "max/hot_3021_type7",
    "max/probe_type8",
    "max/ex_lower_case_name_type7",
    "max/resolve_type_float_unsigned_type7",
    "max_delete_win/one_key_many_ops_type7",
    "max_ins/random_1023_type3",
    "max_del_win_ins/rewound_type7",
    "epoch/hot_3020_type9",
    "epoch/random_28_type8",
    "epoch/table_with_text_type7",
    "epoch/extra_gci_bits_0_type7",
    "epoch/symmetric_type7",
    "epoch_trans/hot_3020_type8",
    "epoch_trans/no_transaction_ids_type7",
    "epoch2/role_both_primary_type7",
    "epoch2/role_none_type7",
    "epoch2_trans/rewound_type7",
    "epoch2_trans/spanning_text_table_type7",
]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("case", CASES)
def test_both_engines_agree_with_the_real_clusters(case: str, engine: str) -> None:
    """In rows, exceptions, counters, stops and refusals; the kernels in this process, by way of a History on disk."""
    (found,) = find_recordings(BUNDLED / case)
    verdict = judge_recording(found, engine)
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


@pytest.mark.parametrize("case", ON_SPARK)
def test_the_spark_engine_agrees_with_the_real_clusters(case: str, spark: SparkSession) -> None:
    """Through the grid and Spark."""
    assert spark.version
    (found,) = find_recordings(BUNDLED / case)
    verdict = judge_recording(found, "spark")
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


def test_every_function_and_binlog_type_is_bundled() -> None:
    """All nine functions, and all binlog types that log something."""
    assert {*FUNCTIONS, *OTHERS} == {case.split("/")[0] for case in CASES}
    assert set("02346789") == {case[-1] for case in CASES if "_type" in case}
    for name in FUNCTIONS:
        assert sum(case.startswith(f"{name}/") for case in CASES) >= 8


def test_stops_and_refusals_are_bundled() -> None:
    """Appliers that stopped (1022, 1146, 1296), and tables that could not be created (1005, 1626)."""
    recorded = [json.loads(path.read_text("utf-8")) for path in BUNDLED.glob("*/*/expected.json")]
    sides = [side for expected in recorded for side in expected.values()]
    assert {side["applier"]["errno"] for side in sides} == {0, 1022, 1146, 1296}
    refused = [
        message["error"][0] for side in sides for message in side.get("setup_messages", ()) if "error" in message
    ]
    assert set(refused) == {1005, 1626}


@pytest.mark.slow
@pytest.mark.corpus("conformance/conflict")
@pytest.mark.parametrize("engine", ["reference", "local", "spark"])
@pytest.mark.parametrize("function", [*FUNCTIONS, *OTHERS])
def test_both_engines_agree_with_every_recording_of_the_corpus(engine: str, function: str) -> None:
    """By folder of the corpus."""
    verdicts = judge_all(find_recordings(SHARED / "conformance" / "conflict" / function), engine)
    assert {verdict.case: verdict.detail for verdict in verdicts if verdict.status is not CaseStatus.PASS} == {}


@pytest.mark.slow
@pytest.mark.corpus("conformance/live")
@pytest.mark.parametrize("engine", ["reference", "local", "spark"])
def test_both_engines_agree_with_the_long_recording(engine: str) -> None:
    """Four connections a side, both appliers running: counters that depend on open decisions are in their ranges."""
    (verdict,) = judge_all(find_recordings(SHARED / "conformance" / "live"), engine)
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")
