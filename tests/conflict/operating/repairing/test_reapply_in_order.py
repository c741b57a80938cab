"""Lost changes of a row are applied again in order, and one that is left stops the older ones: worked out by hand."""

from collections.abc import Mapping

import pytest

from conflict.history.timeline import Origin
from conflict.operating.repairing.newest import ChangeOrder
from conflict.operating.repairing.planning import Wanted, planned
from tests.conflict.operating.repairing.ended_texts import ended_text, lost_of, row

# Type 6: events name the columns that were set. A sets v of row 1 while B sets what is put in; A rejects all of B.
ROW_OF_A = "A:i1=1/0@1 B:<1@2 A:<2@3 A:u1=/0>/7@4 {} A:<5@10 A:<6@11 A:<7@12 B:<4@13 B:<10@14 B:<11@15 B:<12@16"
X, V = "B:u1=1>5@{}", "B:u1=/0>/9@{}"


def plan_of(text: str, function: str) -> tuple[dict[int, list[int]], Mapping[int, str]]:
    """Return, by row, the values that statements leave, and, by position in the log, why lost changes are left."""
    ended = ended_text(text, function, binlog_type=6)
    plan = planned(ended, Wanted(reapply=True, lost=lost_of(ended), deletes=True))
    assert plan.proof.holds
    statements = [each.repaired for _, found in plan.files for each in found]
    after = {
        number: [int.from_bytes(each.after[place] or b"", "little") for place in (1, 2)] if each.after else []
        for number in (1, 2, 3)
        for each in statements
        if each.row == row(number)
    }
    return after, {each.change.origin.position: each.reason for each in plan.reviewed if each.change is not None}


@pytest.mark.parametrize(
    ("changes", "after", "left"),
    [
        (
            (X, V),
            {},
            {500: "a later change of the row does not fit on top of it: update, B.000001", 600: "v is"},
        ),
        ((V, X), {1: [5, 7]}, {500: "v is not what the change found"}),
        ((X, "B:u1=/0>/9@{}", "B:u1=5>6@{}"), {}, {500: "a later", 600: "v is not", 700: "x is not what the change"}),
        (("B:u1=1>1@{}", V, X), {1: [5, 7]}, {500: "a later change of the row", 600: "v is not what the change found"}),
        ((X, "B:u1=5>6@{}", "B:u1=6>8@{}"), {1: [8, 7]}, {}),
    ],
)
def test_one_that_is_left_stops_the_older_ones(
    changes: tuple[str, ...], after: dict[int, list[int]], left: dict[int, str]
) -> None:
    """A set v, so that changes of v do not fit; those of x before one of v are left, those after it are applied."""
    text = " ".join(each.format(5 + number) for number, each in enumerate(changes))
    shown = ROW_OF_A.format(text if len(changes) == 3 else f"{text} B:in9=1@7")
    found, why = plan_of(shown, "NDB$EPOCH()")
    assert found == after
    assert why.keys() == left.keys()
    assert all(why[place].startswith(words) for place, words in left.items())


DELETED_THEN_UPDATED = """
    A:i1=1/0,i2=1/0,i3=1/0@1 B:<1@2 A:<2@3 A:u2=/0>/7@4 B:d1=1/0,u2=1>5@5 A:<5@6 B:<4@7 B:<6@8 A:<7@9 A:<8@10
    A:u3=/0>/7@11 B:u1=1>2,u3={}@12 A:<12@13 B:<11@14 B:<13@15
"""
OTHER = "another change of its transaction does not fit"
ON_TOP = "a later change of the row does not fit on top of it: update, B.000001, position 1200"


def test_a_row_that_was_updated_after_a_lost_delete_stays() -> None:
    """
    A rejects a delete of row 1 with its transaction, and later an update of it with another one.

    The delete fits, the update does not, because row 3 of its transaction has moved. The user wanted the row last.
    """
    found, why = plan_of(DELETED_THEN_UPDATED.format("/0>/9"), "NDB$EPOCH_TRANS()")
    assert found == {}
    assert why == {500: ON_TOP, 501: OTHER, 1200: OTHER, 1201: "v is not what the change found"}


def test_an_update_of_the_row_that_a_lost_delete_had_removed() -> None:
    """The same, and the update fits on the row that the refresh brought back: it is applied, and the delete is not."""
    found, why = plan_of(DELETED_THEN_UPDATED.format("1>9"), "NDB$EPOCH_TRANS()")
    assert found == {1: [2, 0], 3: [9, 7]}
    assert why == {500: ON_TOP, 501: OTHER}


def test_changes_that_were_made_after_a_refresh_fit_without_the_older_ones() -> None:
    """A refresh brought x = 1 back between two updates of x: the newer one found that, and is applied alone."""
    text = """
        A:i1=1/0@1 B:<1@2 A:<2@3 A:u1=/0>/7@4 B:u1=1>5@5 A:<5@6 B:<4@7 B:<6@8 B:u1=1>8@9 A:<7@10 A:u1=/7>/6@11
        A:<8@12 A:<9@13 B:<11@14 B:<13@15
    """
    found, why = plan_of(text, "NDB$EPOCH()")
    assert found == {1: [8, 6]}
    assert why == {500: "a later change of the row does not fit on top of it: update, B.000001, position 900"}


def test_a_delete_that_is_the_last_is_applied_again() -> None:
    """The same, without the update: the row goes, and row 2 gets what its transaction set."""
    text = """
        A:i1=1/0,i2=1/0@1 B:<1@2 A:<2@3 A:u2=/0>/7@4 B:d1=1/0,u2=1>5@5 A:<5@6 B:<4@7 B:<6@8
    """
    assert plan_of(text, "NDB$EPOCH_TRANS()") == ({1: [], 2: [5, 7]}, {})


# Both users set x to 5, and v to what is put in; both changes are rejected, because no x is greater.
BOTH = "A:i1=1/0@1 B:<1@2 A:u1=1/0>5/{}@3 B:u1=1/0>5/2@4 A:<4@5 B:<3@6"
ALREADY = "B had the row like that already, as after a repair"


@pytest.mark.parametrize("function", ["NDB$MAX(x)", "NDB$MAX_INS(x)", "NDB$MAX_DELETE_WIN(x)"])
def test_a_repair_that_was_rejected_lost_nothing(function: str) -> None:
    """The repair gives A's row the values of B's, after B's change arrived there; B rejects that, and has them."""
    ended = ended_text(f"{BOTH.format(1)} A:u1=5/1>5/2@7 B:<7@8", function, function)
    assert not ended.differing
    plan = planned(ended, Wanted(reapply=True, lost=lost_of(ended)))
    why = {(each.change.cluster, each.change.origin.position): each.reason for each in plan.reviewed if each.change}
    assert why.keys() == {("A", 300), ("B", 400), ("A", 700)}
    assert [place for place, reason in why.items() if reason == ALREADY] == [("A", 700)]


def test_the_same_change_on_both_clusters_at_once_is_lost() -> None:
    """Each user added 4 to x, and did not know of the other; that one of them counts for nothing is no repair."""
    ended = ended_text(BOTH.format(2), "NDB$MAX(x)", "NDB$MAX(x)")
    plan = planned(ended, Wanted(reapply=True, lost=lost_of(ended)))
    assert len(plan.reviewed) == 2
    assert ALREADY not in {each.reason for each in plan.reviewed}


def test_a_repair_that_was_applied_changes_nothing() -> None:
    """
    A rejects B's x, which is lower; the repair at 7 s gives A's row the values of B's, and B applies that.

    At 9 s a user of A sets the values that are there: that is no repair, but a wish, which B's row has already.
    """
    ended = ended_text(
        "A:i1=1/0@1 B:<1@2 A:u1=1/0>5/1@3 B:<3@4 B:u1=5/1>4/2@5 A:<5@6 A:u1=5/1>4/2@7 B:<7@8 A:u1=4/2>4/2@9 B:<9@10",
        "NDB$MAX(x)",
    )
    order = ChangeOrder(ended)
    assert not ended.differing
    found = [order.repeats(("A", (at, 0)), Origin("/logs/A.000001", at * 100)) for at in (3, 7, 9)]
    assert found == [False, True, False]
