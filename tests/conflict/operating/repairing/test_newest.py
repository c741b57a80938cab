"""Which row has the newest change of a user: small Histories, worked out by hand."""

from pathlib import Path

import pytest

import conflict
from conflict.operating.repairing.ended_run import EndedRun, ended_as
from conflict.operating.repairing.planning import Planned, Wanted, planned
from conflict.operating.repairing.reading_lost import LOST
from conflict.operating.repairing.winners import NEWEST, Rule
from conflict.runs.run_inputs import run_of
from ndb_formats.events.rows_event import Operation
from tests.conflict.changing_logs import FIRST
from tests.conflict.histories import key
from tests.conflict.operating.repairing.ended_texts import PRIMARY_A, ended_text, row
from tests.conflict.small_logs import WRITE, SmallLogs

# A deletes the row, B updates it; B receives the delete, and inserts the row anew. A rejects the update and refreshes
# the row, which is a delete; then it applies the insert. The refresh removes the row that B inserted.
INSERTED_ANEW = """
    A:i1=1@1  B:<1@2  A:<2@3  A:d1=1@4  B:u1=1>5@5  B:<4@6  B:i1=9@8  A:<5@9  A:<6@10  A:<8@11  B:<9@20
"""


def newest(ended: EndedRun) -> Planned:
    """Return the plan by which the newest change wins."""
    plan = planned(ended, Wanted([Rule("*", NEWEST, deletes=True)]))
    assert plan.proof.holds
    return plan


def made_at(ended: EndedRun, cluster: str, number: int = 1) -> tuple[str, int] | None:
    """Return cluster and second of the change of a user that a row has on a cluster."""
    by = ended.last_change(cluster, row(number))
    return None if by is None else (by.cluster, by.epoch)


@pytest.mark.parametrize("function", ["NDB$EPOCH()", "NDB$EPOCH_TRANS()"])
def test_a_refresh_has_the_time_of_the_change_that_it_sends_on(function: str) -> None:
    """The refresh committed at 9 s and sends a delete of 4 s, so that the insert of 8 s is newer and stays."""
    ended = ended_text(INSERTED_ANEW, function)
    assert ended.state("A", row(1)) is not None
    assert ended.state("B", row(1)) is None
    assert (made_at(ended, "A"), made_at(ended, "B")) == (("B", 8), ("A", 4))
    ((cluster, (statement,)),) = newest(ended).files
    assert (cluster, statement.repaired.operation) == ("B", Operation.WRITE_ROW)
    assert "A wins (*=newest); it has the insert of B, B.000001, position 800" in statement.repaired.why


def test_a_reflected_change_is_that_of_the_user() -> None:
    """The primary of NDB$EPOCH2 reflects the insert; B takes it after the refresh, and has its own insert again."""
    ended = ended_text(INSERTED_ANEW + "B:<11@21", "NDB$EPOCH2()", "NDB$EPOCH2()", roles=PRIMARY_A)
    assert not ended.differing
    assert (made_at(ended, "A"), made_at(ended, "B")) == (("B", 8), ("B", 8))


def test_a_refresh_of_several_own_changes_has_the_time_of_the_last() -> None:
    """A changed the row at 4 and 6 s before it refreshed it at 7 s; what it changes at 8 s is not in that refresh."""
    ended = ended_text(
        "A:i1=1@1 B:<1@2 A:<2@3 A:u1=1>2@4 B:u1=1>5@5 A:u1=2>3@6 A:<5@7 A:u1=3>4@8 B:<4@9 B:<6@10 B:<7@11",
        "NDB$EPOCH()",
    )
    assert (made_at(ended, "A"), made_at(ended, "B")) == (("A", 8), ("A", 6))


def test_a_refresh_of_a_change_that_came_from_the_other_cluster() -> None:
    """
    A's row 1 is as B's update of 4 s left it, when A rejects a transaction of B for row 2 and refreshes both rows.

    So row 1 has B's update of 4 s on both clusters, and row 2 A's of 6 s.
    """
    ended = ended_text(
        "A:i1=1,i2=1@1 B:<1@2 A:<2@3 B:u1=1>5@4 A:<4@5 A:u2=1>7@6 B:u1=5>6,u2=1>8@8 A:<8@9 B:<6@10 B:<9@11",
        "NDB$EPOCH_TRANS()",
    )
    assert not ended.differing
    assert [made_at(ended, name) for name in "AB"] == [("B", 4)] * 2
    assert [made_at(ended, name, 2) for name in "AB"] == [("A", 6)] * 2


def test_a_refresh_of_a_row_that_never_was() -> None:
    """A rejects B's insert with its transaction and refreshes the row, which it never had: no change says when."""
    ended = ended_text("A:i2=1@1 B:<1@2 A:<2@3 A:u2=1>7@4 B:i1=5,u2=1>8@5 A:<5@6 B:<4@7 B:<6@8", "NDB$EPOCH_TRANS()")
    assert not ended.differing
    assert [made_at(ended, name) for name in "AB"] == [None] * 2


def test_a_rejected_change_leaves_the_one_before() -> None:
    """A applies the first of two changes of one epoch of B, and rejects the second: its row has the first."""
    ended = ended_text("A:i1=1/0@1 B:<1@2 B:u1=1/0>5/1@4 B:u1=5/1>4/2@4 A:<4@5", "NDB$MAX(x)", "NDB$MAX(x)")
    by = ended.last_change("A", row(1))
    assert by is not None
    assert by.origin is not None
    assert (by.place, by.origin.position) == ((4, 0), 400)
    ((cluster, (statement,)),) = newest(ended).files
    assert (cluster, statement.repaired.why.split(";")[0]) == ("A", "equal, B wins (*=newest)")


# Both rows are as their own users left them, as neither value is greater: A's change is of 3 s, B's of 4 s.
SIDE_BY_SIDE = "A:i1=1/0@1 B:<1@2 A:u1=1/0>5/1@3 B:u1=1/0>5/2@{} A:<{}@5 B:<3@6"


@pytest.mark.parametrize(
    ("at", "ahead", "winner"),
    [
        (4, 0, "B"),
        (3, 0, "the time of its last change is the same on both clusters"),
        # B's clock says 6.2 where A applied that epoch at 5, and 4.2 where B applied what A made at 1.
        (4, 2.2, "the clock of B is 1.2 s ahead or more"),
        # B's clock says 0.2 where B applied what A made at 1.
        (4, -1.8, "the clock of A is 0.8 s ahead or more"),
        (4, 9.2, "the clock of B is 8.2 s ahead or more"),
        (4, -3.5, "the clock of A is 2.5 s ahead or more"),
    ],
)
def test_changes_side_by_side_are_compared_by_clocks(at: int, ahead: float, winner: str) -> None:
    """The later one wins; where the clocks are the same, or are shown to differ by that much, the row is reviewed."""
    ended = ended_text(SIDE_BY_SIDE.format(at, at), "NDB$MAX(x)", "NDB$MAX(x)", ahead=ahead)
    plan = newest(ended)
    if len(winner) == 1:
        ((cluster, (statement,)),) = plan.files
        assert (ended.other(cluster), statement.kind) == (winner, "equal")
    else:
        assert [each.reason.startswith(winner) for each in plan.reviewed] == [True]


@pytest.mark.parametrize("ahead", [0, 30, -30])
def test_what_had_seen_the_other_is_newer_by_any_clock(ahead: float) -> None:
    """B changes the row after it got A's change, with a lower x that A rejects; clocks do not matter."""
    ended = ended_text("A:i1=1/0@1 B:<1@2 A:u1=1/0>5/1@3 B:<3@4 B:u1=5/1>4/2@5 A:<5@6", "NDB$MAX(x)", ahead=ahead)
    ((cluster, _),) = newest(ended).files
    assert cluster == "A"


def test_rows_with_the_same_last_change_are_reviewed() -> None:
    """Under type 6, B's update of v reaches a row of A whose x differs: the last change is the same on both."""
    ended = ended_text("A:i1=1/0@1 B:<1@2 A:u1=1>5@3 B:u1=1>4@4 A:<4@5 B:u1=4>6/2@7 A:<7@8", None, None, binlog_type=6)
    assert made_at(ended, "A") == made_at(ended, "B")


def test_what_truncate_removed_has_no_last_change(tmp_path: Path) -> None:
    """Row 3 was inserted, and TRUNCATE removed it: no change of a user says so; the other table keeps what it has."""
    logs = SmallLogs()
    logs.commit("A", (WRITE, "judged", (3, 1, 1)), (WRITE, "other", (8, 1, 1)))
    logs.take("B", (WRITE, "judged", (3, 1, 1)), (WRITE, "other", (8, 1, 1)))
    logs.define("TRUNCATE TABLE judged", {"judged": FIRST})
    logs.rotate()
    logs.commit("A", (WRITE, "judged", (4, 1, 1)))
    logs.take("B", (WRITE, "judged", (4, 1, 1)))
    run = conflict.load_run_file(logs.write(tmp_path))
    result = conflict.resolve(run, out=tmp_path / "result", engine="reference")
    ended = ended_as(result, run_of(run), LOST.empty_table())
    for name in "AB":
        assert ended.last_change(name, ("d.judged", key(3))) is None
        assert ended.last_change(name, ("d.judged", key(4))) is not None
        assert ended.last_change(name, ("d.other", key(8))) is not None
