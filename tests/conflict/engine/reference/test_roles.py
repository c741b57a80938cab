"""NDB$EPOCH2: roles, reflected operations, and what delete-delete comes to under each function."""

import pytest

from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import Role
from ndb_formats.events.rows_event import ConflictFlag, Operation
from tests.conflict.histories import counters, replayed, resolved, rows

EPOCH, EPOCH_TRANS, EPOCH2, EPOCH2_TRANS = "NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"
ROLES = {"A": Role.PRIMARY, "B": Role.SECONDARY}
# Row 1 with x = 1 on both sides, and cluster A knows that its epoch 1 has arrived.
BASE = "A:i1=1@1 B:<1@11 A:<11@2 "
# Both delete row 1, and B inserts it again before it hears of A's delete.
DELETE_DELETE_INSERT = BASE + "A:d1=1@3 B:d1=1@12 B:i1=7@13 A:<12?@4 A:<13@5 B:<3@14 "
APPLIED, REJECTED, IGNORED, DISCARDED = Verdict.APPLIED, Verdict.REJECTED, Verdict.IGNORED, Verdict.DISCARDED


def verdicts(text: str, name: str, *, function: str = EPOCH2) -> list[Verdict]:
    """Return the verdicts on the operations that one cluster received after `BASE`."""
    found = resolved(text, function, function, roles=ROLES)
    return [each.verdict for each in found.outcomes if each.applier == name and each.source_epoch not in (1, 11)]


class TestReflected:
    """What the primary applies comes back to the secondary."""

    def test_how_it_is_logged(self):
        """Under the primary's own server id, flagged, in the format of the table."""
        primary = replayed(BASE + "B:u1=1>9@12 A:<12@3", EPOCH2, EPOCH2, roles=ROLES)["A"]
        (entry,) = primary.log[3]
        assert (entry.server_id, entry.change.flags) == (1, ConflictFlag.REFLECTED)
        assert entry.change.operation is Operation.UPDATE_ROW

    def test_only_the_primary_reflects(self):
        """The secondary logs what it applies under the primary's id, and that goes nowhere."""
        secondary = replayed(BASE + "A:u1=1>9@3 B:<3@12", EPOCH2, EPOCH2, roles=ROLES)["B"]
        assert secondary.log[12] == []

    def test_an_update_comes_back_to_the_row_that_made_it(self):
        """The row was changed here last, so what comes back is discarded."""
        text = BASE + "B:u1=1>9@12 A:<12@3 B:<3@13"
        assert verdicts(text, "B") == [DISCARDED]
        found = resolved(text, EPOCH2, EPOCH2, roles=ROLES)
        assert counters(found, "B") == {"reflected_op_prepare_count": 1, "reflected_op_discard_count": 1}
        assert counters(found, "A") == {}
        assert rows(found, "A") == rows(found, "B") == [(1, 9, None)]

    def test_an_insert_comes_back_to_a_row_that_is_there(self):
        """It is discarded, whoever wrote the row."""
        assert verdicts(BASE + "B:i2=5@12 A:<12@3 B:<3@13", "B") == [DISCARDED]

    def test_a_delete_comes_back_to_no_row(self):
        """There is nothing to delete, and it is no conflict."""
        assert verdicts(BASE + "B:d1=1@12 A:<12@3 B:<3@13", "B") == [DISCARDED]

    def test_an_insert_whose_row_was_deleted_meanwhile(self):
        """A's delete removed B's new row; the reflected insert restores it, so both end with it."""
        text = DELETE_DELETE_INSERT + "B:<5@15"
        assert verdicts(text, "B") == [APPLIED, APPLIED]
        found = resolved(text, EPOCH2, EPOCH2, roles=ROLES)
        assert rows(found, "A") == rows(found, "B") == [(1, 7, None)]
        assert counters(found, "B") == {"reflected_op_prepare_count": 1}

    def test_an_update_of_a_row_that_the_applier_wrote(self):
        """It belongs to that row's history, and is applied."""
        text = BASE + (
            "A:d1=1@3 B:d1=1@12 B:i1=7@13 B:u1=7>8@14 A:<12?@4 A:<13@5 A:<14@6 "
            "B:<3@15 B:<5@16 B:<6@17"
        )  # fmt: skip
        assert verdicts(text, "B") == [APPLIED, APPLIED, APPLIED]
        found = resolved(text, EPOCH2, EPOCH2, roles=ROLES)
        assert rows(found, "A") == rows(found, "B") == [(1, 8, None)]

    def test_a_delete_of_a_row_that_the_applier_wrote(self):
        """The reflected insert makes the row, the reflected delete removes it again."""
        text = BASE + (
            "A:d1=1@3 B:d1=1@12 B:i1=7@13 B:d1=7@14 A:<12?@4 A:<13@5 A:<14@6 "
            "B:<3@15 B:<5@16 B:<6@17"
        )  # fmt: skip
        assert verdicts(text, "B") == [IGNORED, APPLIED, APPLIED]
        assert rows(resolved(text, EPOCH2, EPOCH2, roles=ROLES), "B") == []

    def test_two_changes_of_a_row_come_back_as_one(self):
        """One NDB transaction is one event per row."""
        found = resolved(BASE + "B:u1=1>2@12 B:u1=2>3@12 A:<12@3 B:<3@13", EPOCH2, EPOCH2, roles=ROLES)
        assert counters(found, "B")["reflected_op_prepare_count"] == 1


class TestSecondary:
    """The secondary follows the primary."""

    def test_an_insert_over_its_own_row(self):
        """It is written over, and nothing is counted there; the primary rejects and sends the row again."""
        found = resolved("A:i1=5@1 B:i1=7@11 B:<1@12 A:<11@2 B:<2@13", EPOCH2, EPOCH2, roles=ROLES)
        assert rows(found, "A") == rows(found, "B") == [(1, 5, None)]
        assert counters(found, "A") == {"fn_epoch2": 1}
        assert counters(found, "B") == {"refresh_op_count": 1}

    def test_an_update_of_its_own_changed_row(self):
        """The primary's update is written over the secondary's."""
        found = resolved(BASE + "A:u1=1>5@3 B:u1=1>9@12 B:<3@13", EPOCH2, EPOCH2, roles=ROLES)
        assert (rows(found, "B"), counters(found, "B")) == ([(1, 5, None)], {})

    def test_a_delete_of_a_missing_row(self):
        """It is ignored, and no exception is written."""
        found = resolved(BASE + "A:d1=1@3 B:d1=1@12 B:<3@13", EPOCH2, EPOCH2, "t$EX", roles=ROLES)
        assert counters(found, "B") == {}
        assert found.clusters["B"].exceptions == {"d.t$EX": []}


class TestRole:
    """`ndb_applier_conflict_role`."""

    @pytest.mark.parametrize("function", [EPOCH2, EPOCH2_TRANS])
    def test_none(self, function: str):
        """The applier stops at the first change of a table with the function; other tables are none of it."""
        text = "B:in1=1@11 A:<11@1 B:i1=1@12 A:<12@2 B:in1=2@13 A:<13@3"
        found = resolved(text, function, function, roles={"B": Role.SECONDARY})
        stop = found.clusters["A"].stop
        assert stop is not None
        assert (stop.error, stop.foreign_epoch, stop.table, stop.column) == (1296, 12, "d.t", None)
        assert "ndb_applier_conflict_role" in stop.message
        assert (rows(found, "A"), rows(found, "A", "d.n")) == ([], [(1, 1, None)])

    @pytest.mark.parametrize("function", [EPOCH, EPOCH_TRANS])
    def test_functions_without_roles(self, function: str):
        """The first generation does not ask for one."""
        assert resolved(BASE + "B:u1=1>2@12 A:<12@3", function).clusters["A"].stop is None

    @pytest.mark.parametrize("function", [EPOCH2, EPOCH2_TRANS])
    def test_pass(self, function: str):
        """The function is ignored: each side ends with what the other one did."""
        text = BASE + "A:u1=1>5@3 B:u1=1>9@12 A:<12@4 B:<3@13"
        found = resolved(text, function, function, roles={"A": Role.PASS, "B": Role.PASS})
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 9, None)], [(1, 5, None)])
        assert counters(found, "A") == counters(found, "B") == {}

    def test_a_pass_reflects_nothing(self):
        """What it applies does not come back."""
        cluster = replayed(BASE + "B:u1=1>9@12 A:<12@3", EPOCH2, EPOCH2, roles={"A": Role.PASS, "B": Role.SECONDARY})[
            "A"
        ]
        assert cluster.log[3] == []

    def test_swapped(self):
        """Whoever is the primary wins, whatever its server id."""
        text = BASE + "A:u1=1>5@3 B:u1=1>9@12 B:<3@13 A:<12@4 A:<13@5"
        found = resolved(text, EPOCH2, EPOCH2, roles={"A": Role.SECONDARY, "B": Role.PRIMARY})
        assert rows(found, "A") == rows(found, "B") == [(1, 9, None)]
        assert counters(found, "B") == {"fn_epoch2": 1}

    def test_a_primary_that_gets_what_it_should_have_sent(self):
        """With two primaries a reflected operation in conflict is discarded there, and counts as no conflict."""
        text = BASE + "B:u1=1>9@12 A:<12@3 B:u1=9>2@13 B:<3@14"
        found = resolved(text, EPOCH2, EPOCH2, roles={"A": Role.PRIMARY, "B": Role.PRIMARY})
        assert counters(found, "B") == {"reflected_op_prepare_count": 1, "reflected_op_discard_count": 1}


class TestDeleteDelete:
    """Both sides deleted the row."""

    @pytest.mark.parametrize("function", [EPOCH, EPOCH2])
    def test_functions_of_rows(self, function: str):
        """It counts in the function's counter and in its own, is written down, and nothing is sent again."""
        text = BASE + "A:d1=1@3 B:d1=1@12 A:<12@4 B:<3@13 B:<4@14"
        found = resolved(text, function, function if function == EPOCH2 else None, "t$EX", roles=ROLES)
        name = "fn_epoch2" if function == EPOCH2 else "fn_epoch"
        assert counters(found, "A") == {name: 1, "epoch_delete_delete_count": 1}
        assert found.clusters["A"].exceptions == {"d.t$EX": [(1, 2, 12, 1, 1)]}
        assert (found.clusters["A"].refreshes, counters(found, "B")) == ({}, {})

    def test_epoch_trans(self):
        """The transaction is not in conflict by it: its other change is applied."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:d1=1@3 B:d1=1,u2=1>9@12 A:<12@4"
        found = resolved(text, EPOCH_TRANS)
        assert counters(found, "A") == {"fn_epoch_trans": 1, "epoch_delete_delete_count": 1}
        assert rows(found, "A") == [(2, 9, None)]

    def test_epoch2_trans(self):
        """The transaction is in conflict by it: its other change is rejected, and both rows are sent again."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:d1=1@3 B:d1=1,u2=1>9@12 A:<12@4 B:<3@13 B:<4@14"
        found = resolved(text, EPOCH2_TRANS, EPOCH2_TRANS, roles=ROLES)
        assert counters(found, "A") == {
            "fn_epoch2_trans": 1,
            "trans_row_conflict_count": 1,
            "trans_row_reject_count": 2,
            "trans_reject_count": 1,
            "trans_detect_iter_count": 1,
            "trans_conflict_commit_count": 1,
            "epoch_delete_delete_count": 1,
        }
        assert rows(found, "A") == rows(found, "B") == [(2, 1, None)]
        assert counters(found, "B") == {"refresh_op_count": 2}

    def test_the_first_generation_diverges(self):
        """Nothing restores the row that A's delete removed on B."""
        found = resolved(DELETE_DELETE_INSERT + "B:<5@15", EPOCH)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 7, None)], [])
        assert found.differing_rows == {"d.t": 1}

    def test_an_insert_that_was_rejected_makes_the_next_delete_one(self):
        """A applied B's first delete, but not the insert after it; its refresh removes what B inserts last."""
        text = (
            "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u2=1>5@3 B:d1=1@12 B:i1=7,u2=1>9@12 B:d1=7@13 B:i1=8@13 "
            "A:<12@4 A:<13@5 B:<3@14 B:<4@15 B:<5@16"
        )
        found = resolved(text, EPOCH_TRANS)
        assert counters(found, "A")["epoch_delete_delete_count"] == 1
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 8, None), (2, 5, None)], [(2, 5, None)])
        found = resolved(text, EPOCH2_TRANS, EPOCH2_TRANS, roles=ROLES)
        assert rows(found, "A") == rows(found, "B") == [(2, 5, None)]

    def test_what_the_transaction_is_called(self):
        """An operation rejected with its transaction says so, whatever it met itself."""
        text = BASE + "A:d1=1@3 B:d1=1@12 A:<12@4"
        (outcome,) = (
            each for each in resolved(text, EPOCH2_TRANS, EPOCH2_TRANS, roles=ROLES).outcomes if each.source_epoch == 12
        )
        assert (outcome.verdict, outcome.cause) == (REJECTED, Cause.TRANS_IN_CONFLICT)
