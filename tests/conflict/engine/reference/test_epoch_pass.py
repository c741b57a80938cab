"""What an applier does with unusual operations."""

import pytest

from conflict.engine.reference.decide import decide_by_function
from conflict.rules.decision import IGNORED, Cause, Verdict
from conflict.rules.functions import Cell, ConflictFunction, FunctionSpec
from conflict.rules.replication_table import Role
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.histories import MORE_TABLES, change, counters, resolved, rows

EPOCH, TRANS, EPOCH2, MAX, MAX_INS = "NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$MAX(x)", "NDB$MAX_INS(x)"
ROLES = {"A": Role.PRIMARY, "B": Role.SECONDARY}
BASE = "A:i1=1@1 B:<1@11 A:<11@2 "


class TestEmptyAfterImage:
    """A read under type 8 is an update whose after image is empty."""

    @pytest.mark.parametrize("function", [EPOCH, TRANS, MAX, None])
    def test_no_effect(self, function: str | None):
        """It is skipped before anything is judged, though the row was changed here."""
        found = resolved(BASE + "A:u1=1>5@3 B:r1=>-@12 A:<12@4", function)
        (outcome,) = (each for each in found.outcomes if each.source_epoch == 12)
        assert outcome.verdict is Verdict.IGNORED
        assert (counters(found, "A"), found.clusters["A"].stop) == ({}, None)
        assert rows(found, "A") == [(1, 5, None)]

    def test_no_dependency(self):
        """A transaction that only read the row depends on no other."""
        found = resolved(BASE + "A:i2=1@2 A:u1=1>5@3 B:u1=1>9@12 B:r1=>-,i3=1@12 A:<12@4", TRANS)
        assert (3, 1, None) in rows(found, "A")
        assert counters(found, "A")["trans_reject_count"] == 1


class TestReads:
    """A read under type 7 is an update that writes what the reader saw."""

    def test_in_conflict(self):
        """It is judged like an update, and the row is sent again."""
        found = resolved(BASE + "A:u1=1>5@3 B:r1=1>1@12 A:<12@4", TRANS)
        assert rows(found, "A") == [(1, 5, None)]
        assert counters(found, "A")["trans_reject_count"] == 1
        assert found.clusters["A"].refreshes == {"d.t": 1}

    def test_makes_its_transaction_depend(self):
        """A transaction that read what a rejected one wrote is rejected too."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:u1=1>9@12 B:r1=9>9,u2=1>9@12 A:<12@4"
        found = resolved(text, TRANS)
        assert counters(found, "A")["trans_reject_count"] == 2
        assert rows(found, "A") == [(1, 5, None), (2, 1, None)]


class TestIncompleteRows:
    """Writes that lack a column which a new row must have: updates that type 2 logs as writes."""

    def test_over_a_row(self):
        """What is there is written over, the rest stays."""
        found = resolved("A:im1=5/7@1 B:<1@11 A:im1=6@2 B:<2@12")
        assert rows(found, "B", "d.m") == [(1, 6, 7)]

    def test_without_function(self):
        """It inserts no row, and that is no conflict."""
        found = resolved("A:im1=5@1 B:<1@11")
        assert [each.verdict for each in found.outcomes] == [Verdict.IGNORED]
        assert (rows(found, "B", "d.m"), found.clusters["B"].stop) == ([], None)

    def test_a_column_that_may_be_missing(self):
        """A row of table t is made of a key alone."""
        found = resolved("A:i1@1 B:<1@11")
        assert rows(found, "B") == [(1, None, None)]

    def test_on_the_secondary(self):
        """The secondary follows in the same way."""
        found = resolved("A:im1=5@1 B:<1@11", EPOCH2, EPOCH2, roles=ROLES)
        assert rows(found, "B", "d.m") == []

    def test_a_conditional_write(self):
        """The data node's refusal counts as a row that exists already."""
        found = resolved("A:im1=5@1 B:<1@11", b=MAX_INS)
        (outcome,) = found.outcomes
        assert (outcome.verdict, outcome.cause) == (Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS)
        assert counters(found, "B") == {"fn_max_ins": 1}

    def test_a_write_under_the_cell_apply_is_ignored_as_without_a_function(self):
        """A row of cells may have ``apply`` for writes: nothing is judged, so nothing is a conflict."""
        policy = FunctionSpec("MINE", "Ndb_conflict_fn_mine", Cell.APPLY, Cell.GREATER, Cell.EQUAL)
        (table,) = (each for each in parse_schema(MORE_TABLES, database="d").tables if each.name == "m")
        write = change("im1=5")
        assert decide_by_function(None, write, ConflictFunction(policy, "x"), table, 0) == IGNORED

    def test_a_complete_conditional_write(self):
        """A row that has all it needs is inserted."""
        assert rows(resolved("A:im1=5/7@1 B:<1@11", b=MAX_INS), "B", "d.m") == [(1, 5, 7)]


class TestSkipMissing:
    """Runs that leave out operations which lack the value to compare."""

    TEXT = BASE + "A:u1=/9@3 A:u1=7@3 A:d1@4 B:<3@12 B:<4@13"

    def test_left_out(self):
        """The operation is skipped, counts nowhere, and the rest of the epoch is applied."""
        found = resolved(self.TEXT, b=MAX, skip_missing=True)
        verdicts = [each.verdict for each in found.outcomes if each.source_epoch > 1]
        assert verdicts == [Verdict.SKIPPED, Verdict.APPLIED, Verdict.SKIPPED]
        assert (rows(found, "B"), counters(found, "B")) == ([(1, 7, None)], {})
        assert found.clusters["B"].stop is None

    def test_an_insert_that_lacks_the_value_is_skipped_though_it_could_not_become_a_row(self):
        """The missing value is noticed first, as in the kernels: nothing counts as a conflict."""
        found = resolved("A:im1@1 B:<1@11", b=MAX_INS, skip_missing=True)
        assert [each.verdict for each in found.outcomes] == [Verdict.SKIPPED]
        assert counters(found, "B") == {}

    def test_not_left_out(self):
        """Otherwise the applier stops there."""
        found = resolved(self.TEXT, b=MAX)
        assert found.clusters["B"].stop is not None
        assert rows(found, "B") == [(1, 1, None)]

    def test_other_stops_remain(self):
        """A value that is missing can be left out; a missing role cannot."""
        found = resolved(BASE + "B:u1=1>2@12 A:<12@3", EPOCH2, EPOCH2, roles={"B": Role.SECONDARY}, skip_missing=True)
        assert found.clusters["A"].stop is not None


class TestUpdatesAsWrites:
    """Types 2 and 3 deliver updates as writes."""

    @pytest.mark.parametrize("function", ["NDB$OLD(x)", MAX, "NDB$MAX_DELETE_WIN(x)"])
    def test_functions_that_insert(self, function: str):
        """The update of a row that exists is judged as an insert, and is a conflict even where its value is greater."""
        found = resolved(BASE + "A:i1=9@3 B:<3@12", b=function)
        assert found.outcomes[-1].cause is Cause.ROW_ALREADY_EXISTS
        assert rows(found, "B") == [(1, 1, None)]

    @pytest.mark.parametrize("function", [MAX_INS, "NDB$MAX_DEL_WIN_INS(x)"])
    def test_functions_that_write(self, function: str):
        """The conditional write judges the value."""
        found = resolved(BASE + "A:i1=9@3 A:i1=4@4 B:<3@12 B:<4@13", b=function)
        assert [each.cause for each in found.outcomes[1:]] == [Cause.NONE, Cause.ROW_IN_CONFLICT]
        assert rows(found, "B") == [(1, 9, None)]

    @pytest.mark.parametrize("function", [MAX_INS, "NDB$MAX_DEL_WIN_INS(x)"])
    def test_a_write_without_the_column(self, function: str):
        """Type 2 logs the column only where the statement set it."""
        assert resolved(BASE + "A:i1=/9@3 B:<3@12", b=function).clusters["B"].stop is not None


def test_epochs_applied_again_under_max_change_nothing():
    """A replica that was set back applies epochs again: under MAX each operation loses."""
    found = resolved("A:i1=1@1 A:u1=1>2@2 B:<1@11 B:<2@12 B:<1@13 B:<2@14", b=MAX)
    assert (rows(found, "B"), counters(found, "B")) == ([(1, 2, None)], {"fn_max": 2})


def test_the_max_replicated_epoch_does_not_fall_when_epochs_are_applied_again():
    """The highest epoch that came back stays known."""
    text = "A:i1=1@1 B:<1@11 A:u1=1>2@2 B:<2@12 A:<11@3 A:<12@3 A:<11@4 B:u1=2>3@13 A:<13@5"
    assert counters(resolved(text, EPOCH), "A") == {}


@pytest.mark.parametrize("function", [EPOCH, TRANS])
def test_one_refresh_per_row_in_an_epoch(function: str):
    """Two transactions in conflict on one row send it once."""
    found = resolved(BASE + "A:u1=1>5@3 B:u1=1>9@12 B:u1=9>8@12 A:<12@4 B:<4@13", function)
    assert found.clusters["A"].refreshes == {"d.t": 1}
    assert counters(found, "B") == {"refresh_op_count": 1}
