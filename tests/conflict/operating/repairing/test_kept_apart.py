"""Rows that are kept apart on purpose, by a filter or a channel that is not there, are left to review."""

from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.judge.case import ConflictCase
from conflict.operating.repairing.ended_run import EndedRun, ended_as
from conflict.operating.repairing.planning import Wanted, planned
from conflict.operating.repairing.reading_lost import LOST
from conflict.operating.repairing.winners import Rule
from conflict.runs.run_inputs import run_of
from tests.conflict.operating.repairing.ended_texts import ended_text, row
from tests.corpora import RECORDINGS

# A and B each insert a row of their own in t and in n, and A one more in t, which B's user updates.
ROWS = "A:i1=1,in1=1,i3=1@1 B:i2=2,in2=2@2 {}"
FILTER_B = "a replication filter of B drops changes of the table: it may differ on purpose"
FILTER_A = FILTER_B.replace("B", "A")


def reviewed(ended: EndedRun, wins: str = "A") -> tuple[dict[tuple[str, bytes], str], set[tuple[str, bytes]]]:
    """Return why rows are left to review, and which rows are repaired."""
    plan = planned(ended, Wanted([Rule("*", wins, deletes=True)]))
    assert plan.proof.holds
    repaired = {each.repaired.row for _, found in plan.files for each in found}
    return {each.row: each.reason for each in plan.reviewed}, repaired


@pytest.mark.parametrize("wins", ["A", "B", "newest"])
def test_a_table_that_one_side_drops(wins: str) -> None:
    """B drops changes of n: A's row of it is not on B, on purpose; the rows of t are on both."""
    ended = ended_text(ROWS.format("B:<1@3 A:<2@4"), filtered={"B": {"A": frozenset({"d.n"})}})
    assert reviewed(ended, wins) == ({row(1, "n"): FILTER_B}, set())


def test_a_table_that_both_sides_drop() -> None:
    """Each keeps its own rows."""
    drops = {"B": {"A": frozenset({"d.n"})}, "A": {"B": frozenset({"d.n"})}}
    ended = ended_text(ROWS.format("B:<1@3 A:<2@4"), filtered=drops)
    assert reviewed(ended) == ({row(1, "n"): FILTER_A, row(2, "n"): FILTER_A}, set())


def test_a_filter_of_another_table_keeps_nothing_back() -> None:
    """Rows of t that differ under NDB$MAX are repaired as ever."""
    text = "A:i1=1/0@1 B:<1@2 A:u1=1/0>5/1@3 B:u1=1/0>5/2@4 A:<4@5 B:<3@6"
    ended = ended_text(text, "NDB$MAX(x)", "NDB$MAX(x)", filtered={"B": {"A": frozenset({"d.n"})}})
    assert reviewed(ended) == ({}, {row(1)})


ONE_WAY: list[dict[str, Any]] = [
    {"sources": {"B": "A"}},
    {"ignored": {"A": {"B": frozenset({2})}}},
]


@pytest.mark.parametrize("channels", ONE_WAY, ids=["no channel", "ignored server"])
def test_rows_of_a_cluster_that_nobody_replicates_from(channels: dict[str, Any]) -> None:
    """What users of B change stays there; A's row that B rejected, and no user of B touched, is repaired."""
    applies = "" if "sources" in channels else "A:<2@5"
    text = ROWS.format(f"B:<1@3 B:u3=1>7@4 A:u1=1>1/9@6 B:<6@7 {applies}")
    reasons, repaired = reviewed(ended_text(text, "NDB$MAX(x)", "NDB$MAX(x)", **channels))
    apart = "a user of B changed the row, and A does not replicate from B"
    assert reasons == {row(2): apart, row(2, "n"): apart, row(3): apart}
    assert repaired == {row(1)}


FILTERED = sorted(path.parent for path in RECORDINGS.glob("operations/filter_*/*/scenario.json"))


@pytest.mark.parametrize("folder", FILTERED, ids=lambda path: path.name)
def test_filtered_tables_of_recordings(folder: Path, tmp_path: Path) -> None:
    """No row of a table that a recorded server dropped is repaired, by whichever rule."""
    case = ConflictCase.load(folder)
    run = RunFile(case.path / "run.toml", case.configuration(), GivenSchedule(), ())
    result = conflict.resolve(run, out=tmp_path / "result", engine="reference", policy="needs")
    ended = ended_as(result, run_of(run), LOST.empty_table())
    dropped = {
        table
        for name in ended.clusters
        for table in ended.cluster(name).cluster.filtered[ended.other(name)]
        if "$" not in table
    }
    for wins in (*ended.clusters, "newest"):
        reasons, repaired = reviewed(ended, wins)
        assert dropped.isdisjoint(table for table, _ in repaired)
        apart = {each for each, why in reasons.items() if "a replication filter of" in why}
        assert apart == {each for each in ended.differing if each[0] in dropped}
        assert apart
