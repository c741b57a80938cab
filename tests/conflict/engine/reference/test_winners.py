"""Which operation a rejected one lost against, and which operations put their transactions in conflict."""

import pytest

from conflict.engine.ledger.resolution import LastWrite, Outcome
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation
from tests.conflict.histories import resolved

WRITE, UPDATE = Operation.WRITE_ROW, Operation.UPDATE_ROW
# Row 1 exists on both, and that came back to A.
BASE = "A:i1=1@1 B:<1@11 A:<11@2 "


def rejected(text: str, function: str) -> list[Outcome]:
    """Return what A rejected, where it alone has the function."""
    return [each for each in resolved(text, function).outcomes if each.verdict is Verdict.REJECTED]


@pytest.mark.parametrize(
    ("text", "function", "winner"),
    [
        (BASE + "A:u1=1>5@3 B:u1=1>9@12 A:<12@4", "NDB$EPOCH()", LastWrite("A", 3, UPDATE)),
        (BASE + "A:u1=1>5@3 A:u1=5>6@4 B:u1=1>9@12 A:<12@5", "NDB$EPOCH()", LastWrite("A", 4, UPDATE)),
        ("A:i1=5@3 B:i1=6@11 A:<11@4", "NDB$MAX(x)", LastWrite("A", 3, WRITE)),
        (BASE + "B:u1=1>9@12 B:u1=9>8@13 A:<12@3 A:<13@4", "NDB$MAX(x)", LastWrite("B", 12, UPDATE)),
        (BASE + "B:u1=1>9,u1=9>8@12 A:<12@3", "NDB$MAX(x)", LastWrite("B", 12, UPDATE)),
        (BASE + "A:d1=1@3 B:u1=1>9@12 A:<12@4", "NDB$MAX(x)", None),
    ],
    ids=["own change", "the later one", "insert", "applied before", "in the same epoch", "row missing"],
)
def test_the_operation_that_won(text: str, function: str, winner: LastWrite | None):
    """It is what last wrote the row that the rejected operation met."""
    (outcome,) = rejected(text, function)
    assert outcome.winner == winner


def test_a_refresh_wins_over_what_comes_before_it_is_back():
    """The first operation loses against A's update, the second against the refresh that followed."""
    first, second = rejected(BASE + "A:u1=1>5@3 B:u1=1>9@12 B:u1=9>8@13 A:<12@4 A:<13@5", "NDB$EPOCH()")
    assert first.winner == LastWrite("A", 3, UPDATE)
    assert second.winner == LastWrite("A", 4, WRITE, refresh=True)


def test_what_put_transactions_in_conflict():
    """Row 1 did, by A's update; the operation on row 2, and the second transaction on it, did not."""
    text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:u1=1>9,u2=1>9@12 B:u2=9>8@12 A:<12@4"
    first, *others = rejected(text, "NDB$EPOCH_TRANS()")
    assert (first.cause, first.own_cause) == (Cause.TRANS_IN_CONFLICT, Cause.ROW_IN_CONFLICT)
    assert (first.transaction_id, first.stored, first.winner) == (201, 3, LastWrite("A", 3, UPDATE))
    assert [(each.group, each.transaction_id, each.own_cause, each.winner) for each in others] == [
        (0, 201, Cause.NONE, None),
        (1, 202, Cause.NONE, None),
    ]


def test_what_the_undone_pass_wrote_can_win():
    """Pass TRACK applies the first insert, finds the row there for the second one, and is rolled back."""
    (outcome,) = rejected(BASE + "B:i2=1@12 B:i2=2@12 A:<12@3", "NDB$EPOCH_TRANS()")
    assert (outcome.group, outcome.own_cause) == (1, Cause.ROW_ALREADY_EXISTS)
    assert outcome.winner == LastWrite("B", 12, WRITE)


def test_exceptions_rows_name_their_outcomes():
    """Each rejected operation has one row, in the order of the rows."""
    found = resolved(BASE + "A:u1=1>5@3 B:u1=1>9@12 B:u1=9>8@13 A:<12@4 A:<13@5", "NDB$EPOCH()", exceptions="t$EX")
    outcomes = [each.place for each in found.outcomes if each.verdict is Verdict.REJECTED]
    assert found.clusters["A"].excepted == {"d.t$EX": outcomes}
