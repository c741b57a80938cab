"""NDB$EPOCH_TRANS and NDB$EPOCH2_TRANS: which transactions are rejected, in which passes, and what that counts."""

import pytest

from conflict.engine.ledger.resolution import Resolution
from conflict.engine.reference.decide import DependencyTracker
from conflict.engine.reference.replay import resolve
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.rules.table_setup import set_up
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.histories import MORE_TABLES, TABLES, counters, history, resolved, rows

TRANS, EPOCH = "NDB$EPOCH_TRANS()", "NDB$EPOCH()"
# Rows 1 to 4 with x = 1 on both sides, A knows that its epoch 1 has arrived, and then changes row 1.
BASE = "A:i1=1,i2=1,i3=1,i4=1,in1=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 "
# The first transaction meets that change, the second follows it on row 2, the third that one on row 3.
CHAIN = BASE + "B:u1=1>9,u2=1>9@12 B:u2=9>8,u3=1>8@12 B:u3=8>7@12 B:u4=1>6@12 A:<12@4 "
REJECTED = Verdict.REJECTED


def rejected(found: Resolution, name: str = "A") -> list[int]:
    """Return which groups of the source's epochs were rejected whole."""
    return sorted(
        {each.group for each in found.outcomes if each.applier == name and each.cause is Cause.TRANS_IN_CONFLICT}
    )


def numbers(found: Resolution) -> list[object]:
    """Return NDB$count of the exceptions rows of cluster A."""
    return [row[3] for row in found.clusters["A"].exceptions["d.t$EX"]]


class TestDependencies:
    """Which transaction depends on which."""

    def test_chain(self):
        """Transactions that touch its rows later are in conflict too, and those that depend on them."""
        assert rejected(resolved(CHAIN, TRANS)) == [0, 1, 2]

    def test_rows_afterwards(self):
        """What is rejected is sent again: the secondary ends as the primary, the fourth transaction on both."""
        found = resolved(CHAIN + "B:<3@13 B:<4@14", TRANS)
        expected = [(1, 5, None), (2, 1, None), (3, 1, None), (4, 6, None)]
        assert rows(found, "A") == rows(found, "B") == expected
        assert (found.clusters["A"].refreshes, counters(found, "B")) == ({"d.t": 3}, {"refresh_op_count": 3})

    def test_an_earlier_transaction_stays(self):
        """What came before the conflict is applied, and the row that both touched is sent again with it."""
        found = resolved(BASE + "B:u2=1>9@12 B:u2=9>8,u1=1>8@12 A:<12@4 B:<3@13 B:<4@14", TRANS)
        assert rejected(found) == [1]
        assert rows(found, "A") == rows(found, "B") == [(1, 5, None), (2, 9, None), (3, 1, None), (4, 1, None)]

    def test_through_a_table_without_function(self):
        """Rows of every table count, and are rejected and sent again like the others."""
        found = resolved(BASE + "B:u1=1>9,un1=1>9@12 B:un1=9>8@12 A:<12@4 B:<3@13 B:<4@14", TRANS)
        assert rejected(found) == [0, 1]
        assert rows(found, "A", "d.n") == rows(found, "B", "d.n") == [(1, 1, None)]
        assert found.clusters["A"].refreshes == {"d.t": 1, "d.n": 1}

    def test_not_by_the_key_alone(self):
        """Row 1 of another table is another row."""
        assert rejected(resolved(BASE + "B:u1=1>9@12 B:un1=1>8@12 A:<12@4", TRANS)) == [0]

    def test_not_across_epochs(self):
        """The next epoch's transaction on row 2 conflicts by the refresh, not by dependency; that on row 4 does not."""
        found = resolved(BASE + "B:u1=1>9,u2=1>9@12 B:u2=9>8@13 B:u4=1>8@13 A:<12@4 A:<13@5", TRANS)
        causes = [(each.source_epoch, each.group, each.verdict) for each in found.outcomes if each.applier == "A"]
        assert causes == [(12, 0, REJECTED), (12, 0, REJECTED), (13, 0, REJECTED), (13, 1, Verdict.APPLIED)]
        assert counters(found, "A")["trans_row_conflict_count"] == 2

    def test_a_conflict_on_a_plain_table_is_none(self):
        """Presence anomalies of a table without function put nothing in conflict."""
        found = resolved(BASE + "B:in1=7,dn9,u2=1>2@12 A:<12@4", TRANS)
        assert (rejected(found), counters(found, "A")) == ([], {})
        assert rows(found, "A", "d.n") == [(1, 7, None)]

    def test_tracker(self):
        """Dependencies are followed forwards only, and through any number of transactions."""
        tracker = DependencyTracker()
        for transaction, touched in enumerate([b"112", b"23", b"3", b"4", b"1"]):
            for row in touched:
                tracker.touch(("t", bytes([row])), transaction)
        assert tracker.in_conflict() == frozenset()
        tracker.conflicting = {1}
        assert tracker.in_conflict() == {1, 2}
        tracker.conflicting = {0, 3}
        assert tracker.in_conflict() == {0, 1, 2, 3, 4}


class TestCounters:
    """What the passes count."""

    def test_of_a_chain(self):
        """One row in conflict, five operations of three transactions rejected, one move from TRACK to APPLY."""
        assert counters(resolved(CHAIN, TRANS), "A") == {
            "fn_epoch_trans": 1,
            "trans_row_conflict_count": 1,
            "trans_row_reject_count": 5,
            "trans_reject_count": 3,
            "trans_detect_iter_count": 1,
            "trans_conflict_commit_count": 1,
        }

    def test_without_conflict(self):
        """Nothing is counted, and nothing rolled back."""
        assert counters(resolved(BASE + "B:u2=1>9,u3=1>9@12 A:<12@4", TRANS), "A") == {}

    def test_two_transactions_in_conflict(self):
        """Each row in conflict counts, and each transaction once however many of its rows are."""
        found = resolved(BASE + "A:u2=1>5@3 B:u1=1>9,u2=1>9@12 B:i3=1@12 A:<12@4", TRANS)
        assert counters(found, "A") == {
            "fn_epoch_trans": 3,
            "trans_row_conflict_count": 3,
            "trans_row_reject_count": 3,
            "trans_reject_count": 2,
            "trans_detect_iter_count": 1,
            "trans_conflict_commit_count": 1,
        }

    def test_delete_delete_is_counted_by_both_passes(self):
        """Under EPOCH_TRANS it does not reject its transaction, so TRACK counts it, and APPLY once more."""
        found = resolved(BASE + "A:d4=1@3 B:u1=1>9@12 B:d4=1@12 A:<12@4", TRANS)
        assert counters(found, "A") == {
            "fn_epoch_trans": 3,
            "trans_row_conflict_count": 1,
            "trans_row_reject_count": 1,
            "trans_reject_count": 1,
            "trans_detect_iter_count": 1,
            "trans_conflict_commit_count": 1,
            "epoch_delete_delete_count": 2,
        }

    def test_conflicts_of_a_function_of_rows_are_counted_by_both_passes(self):
        """The same goes for a table with NDB$EPOCH, whose conflicts reject the row alone."""
        schema = parse_schema(TABLES + MORE_TABLES, database="d")
        functions = [ReplicationRow("d", "t", 1, 7, TRANS), ReplicationRow("d", "q", 1, 7, EPOCH)]
        setups = {"A": set_up(schema, functions, 1), "B": set_up(schema, [], 2)}
        text = "A:i1=1,iq1=1@1 B:<1@11 A:<11@2 A:u1=1>5,uq1=1>5@3 B:u1=1>9@12 B:uq1=1>9,in2=1@12 A:<12@4"
        found = resolve(history(text), setups)
        moved = counters(found, "A")
        assert (moved["fn_epoch"], moved["fn_epoch_trans"], moved["trans_reject_count"]) == (2, 1, 1)
        assert rows(found, "A", "d.n") == [(2, 1, None)]
        # Without the conflict on table t there is one pass, and one count.
        found = resolve(history(text.replace("B:u1=1>9@12", "B:in3=1@12")), setups)
        assert counters(found, "A") == {"fn_epoch": 1}


class TestNumbers:
    """NDB$count has gaps: passes that are rolled back use up numbers."""

    def test_first_conflict(self):
        """One number in NORMAL, one in TRACK, then one per rejected row."""
        found = resolved(CHAIN, TRANS, exceptions="t$EX")
        assert found.clusters["A"].exceptions["d.t$EX"] == [
            (1, 2, 12, 3, 1),
            (1, 2, 12, 4, 2),
            (1, 2, 12, 5, 2),
            (1, 2, 12, 6, 3),
            (1, 2, 12, 7, 3),
        ]

    def test_the_applier_stays_in_track(self):
        """After a conflict the next epoch starts there: one number less."""
        found = resolved(CHAIN + "B:u1=9>10@13 A:<13@5", TRANS, exceptions="t$EX")
        assert numbers(found)[5:] == [9]
        assert counters(found, "A")["trans_detect_iter_count"] == 2

    def test_an_epoch_without_conflict_goes_back_to_normal(self):
        """The epoch after that uses one more again."""
        found = resolved(CHAIN + "B:u4=6>7@13 A:<13@5 B:u1=9>10@14 A:<14@6", TRANS, exceptions="t$EX")
        assert numbers(found)[5:] == [10]

    def test_a_start_goes_back_to_normal(self):
        """An applier that was started again has forgotten the conflict."""
        found = resolved(CHAIN + "B:u1=9>10@13 A:<!13@5", TRANS, exceptions="t$EX")
        assert numbers(found)[5:] == [10]

    def test_delete_delete(self):
        """Without a transaction in conflict there is one pass, and the numbers have no gap."""
        found = resolved(BASE + "A:d2=1,d3=1@3 B:d2=1@12 B:d3=1@12 A:<12@4", TRANS, exceptions="t$EX")
        assert numbers(found) == [1, 2]

    def test_rejected_transactions_come_before_rows(self):
        """The APPLY pass numbers rows of rejected transactions as it meets them, and rows in conflict after them."""
        found = resolved(BASE + "A:d4=1@3 B:d4=1@12 B:u1=1>9@12 A:<12@4", TRANS, exceptions="t$EX")
        # NORMAL and TRACK use two each.
        assert found.clusters["A"].exceptions["d.t$EX"] == [(1, 2, 12, 5, 1), (1, 2, 12, 6, 4)]


class TestJudged:
    """An epoch with a row that was judged some own changes before it was committed."""

    TEXT = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:d1=1,u2=1>9@12 A:d1=5@4 "

    def test_in_one_moment(self):
        """Both sides deleted the row: no conflict of a transaction."""
        found = resolved(self.TEXT + "A:<12@5", TRANS)
        assert (rejected(found), rows(found, "A")) == ([], [(2, 9, None)])

    def test_before_the_last_own_change(self):
        """The row was there, and changed, when the applier looked: the transaction is rejected."""
        found = resolved(self.TEXT + "A:<12^1:3.0@5", TRANS)
        assert (rejected(found), rows(found, "A")) == ([0], [(2, 1, None)])
        assert counters(found, "A") == {
            "fn_epoch_trans": 1,
            "trans_row_conflict_count": 1,
            "trans_row_reject_count": 2,
            "trans_reject_count": 1,
            "trans_detect_iter_count": 1,
            "trans_conflict_commit_count": 1,
        }

    def test_before_every_own_change(self):
        """An operation that is applied meets the row as it is then."""
        text = "A:i1=1@1 B:<1@11 A:<11@2 B:u1=1>9@12 A:u1=1>5@3 A:<12^1:2.0@5"
        found = resolved(text, TRANS)
        assert (rejected(found), rows(found, "A")) == ([0], [(1, 5, None)])
        assert counters(found, "A")["fn_epoch_trans"] == 1


class TestRefused:
    """What the functions cannot go on with."""

    def test_without_transaction_ids(self):
        """The applier stops; a function of rows does not ask for them."""
        stop = resolved(BASE + "B:u2=1>2@12 A:<12@4", TRANS, with_ids=False).clusters["A"].stop
        assert stop is not None
        assert (stop.error, stop.foreign_epoch, stop.table) == (1296, 12, "d.t")
        assert "ndb_log_transaction_id" in stop.message
        assert resolved(BASE + "B:u2=1>2@12 A:<12@4", EPOCH, with_ids=False).clusters["A"].stop is None

    def test_ids_are_not_asked_of_a_plain_table(self):
        """Nor of a secondary that only follows."""
        assert resolved(BASE + "B:un1=1>2@12 A:<12@4", TRANS, with_ids=False).clusters["A"].stop is None

    def test_a_secondary_needs_ids_too(self):
        """EPOCH2_TRANS asks for them on both sides."""
        roles = {"A": Role.PRIMARY, "B": Role.SECONDARY}
        found = resolved("A:i1=1@1 B:<1@11", *["NDB$EPOCH2_TRANS()"] * 2, roles=roles, with_ids=False)
        assert found.clusters["B"].stop is not None

    @pytest.mark.parametrize("change", ["uz1=1>9", "iz2=1", "dz1=1"])
    def test_a_table_with_text_in_a_rejected_transaction(self, change: str):
        """A blob cannot be sent again: the applier stops, and nothing of the epoch is counted or kept."""
        text = "A:i1=1,i2=1,iz1=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 " + f"B:u2=1>9@12 B:u1=1>9,{change}@12 A:<12@4"
        found = resolved(text, TRANS, exceptions="t$EX")
        stop = found.clusters["A"].stop
        assert stop is not None
        assert (stop.error, stop.foreign_epoch, stop.table) == (1296, 12, "d.z")
        assert counters(found, "A") == {}
        assert found.clusters["A"].exceptions == {"d.t$EX": []}
        assert rows(found, "A") == [(1, 5, None), (2, 1, None)]

    def test_an_epoch_that_stops_the_applier_leaves_nothing_of_its_pass_track(self):
        """It is undone whole, here for a unique value: no number of an exceptions table hangs on it."""
        text = CHAIN + "A:iq1=1/5@5 B:u1=9>10@13 B:iq2=1/{}@13 A:<13@6"
        found = resolved(text.format(6), TRANS, exceptions="t$EX").clusters["A"]
        assert (found.stop, found.further_rows) == (None, {2: {"d.t$EX": 1}})
        assert (found.tracked_rows, list(found.conflicting)) == ({("d.t$EX", 1): 1, ("d.t$EX", 2): 1}, [1, 2])
        found = resolved(text.format(5), TRANS, exceptions="t$EX").clusters["A"]
        assert found.stop is not None
        assert (found.stop.error, found.further_rows) == (1022, {})
        assert (found.tracked_rows, list(found.conflicting)) == ({("d.t$EX", 1): 1}, [1])

    def test_a_table_with_text_in_another_transaction(self):
        """It is applied as any other."""
        found = resolved("A:i1=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:u1=1>9@12 B:iz2=1@12 A:<12@4", TRANS)
        assert found.clusters["A"].stop is None
        assert rows(found, "A", "d.z") == [(2, 1, None, None)]
