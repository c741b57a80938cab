"""Both engines against recordings of a real pair of NDB clusters: the judge of what is right."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from conflict.conformance.judge import NOT_YET, PASS, find_cases, judge, report

RECORDINGS = Path(__file__).parents[1] / "recordings" / "conflict"
CASES = [found.case for found in find_cases(RECORDINGS)]


@pytest.mark.parametrize("case", CASES)
def test_the_reference_engine_equals_the_real_cluster(case: str) -> None:
    """Rows, exceptions, counters, stops and refusals are those recorded."""
    (found,) = find_cases(RECORDINGS / case)
    verdict = judge(found, "reference")
    assert (verdict.status, verdict.detail) == (PASS, "")


@pytest.mark.parametrize(
    "case",
    [
        "max/hot_3021_type7",
        "max/probe_type8",
        "max/ex_lower_case_name_type7",
        "max/resolve_type_float_unsigned_type7",
        "epoch/hot_3020_type9",
        "epoch/random_28_type8",
        "epoch/table_with_text_type7",
        "epoch/extra_gci_bits_0_type7",
    ],
)
def test_the_spark_engine_equals_the_real_cluster(case: str, spark: SparkSession) -> None:
    """The same, through the grid and Spark."""
    assert spark.version
    (found,) = find_cases(RECORDINGS / case)
    verdict = judge(found, "spark")
    assert (verdict.status, verdict.detail) == (PASS, "")


def test_every_kind_of_recording_is_here() -> None:
    """Both functions, and types 2, 3, 7, 8 and 9, are among the bundled recordings."""
    assert {"max", "epoch"} == {case.split("/")[0] for case in CASES}
    assert {"2", "3", "7", "8", "9"} == {case[-1] for case in CASES}


SHARED = Path(__file__).parents[2].parent / "shared" / "conformance" / "conflict"
# What these recordings need is not built: replicas set back, unique keys, and (symmetric) the end of a
# recording whose last epoch cannot be told to have been taken.
OPEN = {"rewound_type7", "unique_key_type7"}
UNDECIDED = {"symmetric_type7"}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["reference", "spark"])
@pytest.mark.parametrize("function", ["max", "epoch"])
def test_the_whole_corpus(engine: str, function: str) -> None:
    """Where the whole corpus lies beside the project, every case of the two functions that is built passes."""
    folder = SHARED / function if SHARED.exists() else RECORDINGS / function
    verdicts = list(report(folder, engine))
    assert len(verdicts) >= 15
    assert {verdict.case for verdict in verdicts if verdict.status == NOT_YET} <= OPEN
    assert {verdict.case for verdict in verdicts if verdict.status not in (PASS, NOT_YET)} <= UNDECIDED
