"""Whole Histories, worked out by hand. Cluster A's epochs count from 1, B's from 11."""

import pytest

from conflict.engine.ledger.resolution import Resolution, Stop
from conflict.engine.reference.replay import resolve
from conflict.errors import HistoryError
from conflict.history.scheduling.placing import interleave
from conflict.history.timeline import EpochApply, Transaction
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.stops import ServerStop
from conflict.rules.table_setup import set_up
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.histories import TABLES, counters, epoch, history, image, key, resolved, rows, setups

MAX, EPOCH = "NDB$MAX(x)", "NDB$EPOCH()"
# Row 1 with x = 1 on both sides, and cluster A knows that its epoch 1 has arrived.
BASE = "A:i1=1@1 B:<1@11 A:<11@2 "
APPLIED, REJECTED, IGNORED = Verdict.APPLIED, Verdict.REJECTED, Verdict.IGNORED
MISSING, EXISTS, CONFLICT = Cause.ROW_DOES_NOT_EXIST, Cause.ROW_ALREADY_EXISTS, Cause.ROW_IN_CONFLICT


def verdicts(resolution: Resolution, name: str) -> list[tuple[int, Verdict, Cause]]:
    """Return (source epoch, verdict, cause) of every operation that one cluster received."""
    return [(each.source_epoch, each.verdict, each.cause) for each in resolution.outcomes if each.applier == name]


class TestLanguage:
    """The language of these tests."""

    def test_words(self):
        """Each word is a transaction or an epoch apply of one cluster, in its own order."""
        made = history("A:i1=5@1 B:<1@11 A:<11@2 A:d1@2 B:<2?@12")
        first, second = made.clusters
        assert (first.name, first.server_id, second.name, second.server_id) == ("A", 1, "B", 2)
        insert, apply, delete = first.timeline
        assert isinstance(insert, Transaction)
        assert isinstance(delete, Transaction)
        assert (insert.epoch, insert.group, delete.epoch, delete.group) == (1, 0, 2, 1)
        assert apply == EpochApply(2, 0, "B", 11)
        assert second.timeline == (EpochApply(11, 0, "A", 1), EpochApply(12, -1, "A", 2, traced=False))

    def test_changes(self):
        """Images hold the key and what is said."""
        (transaction,) = history("A:i1=5/6,u1=5>9,u1=9,u1=/N,d1,d1=9,r1=3,in2=7@1").clusters[0].timeline
        assert isinstance(transaction, Transaction)
        assert [(each.before, each.after) for each in transaction.changes] == [
            (None, image("t", {0: 1, 1: 5, 2: 6})),
            (image("t", {0: 1, 1: 5}), image("t", {0: 1, 1: 9})),
            (image("t", {0: 1}), image("t", {0: 1, 1: 9})),
            (image("t", {0: 1}), image("t", {0: 1, 2: None})),
            (image("t", {0: 1}), None),
            (image("t", {0: 1, 1: 9}), None),
            (image("t", {0: 1}), image("t", {0: 1, 1: 3})),
            (None, image("n", {0: 2, 1: 7})),
        ]
        assert [each.operation.name[0] for each in transaction.changes] == list("WUUUDDUW")
        assert [each.flags for each in transaction.changes] == [0, 0, 0, 0, 0, 0, ConflictFlag.READ, 0]
        assert {each.table for each in transaction.changes} == {"d.t", "d.n"}
        assert [each.key for each in transaction.changes] == [key(1)] * 7 + [key(2)]

    def test_images(self):
        """An image holds the bytes of a row event: 4 for the key, 8 for x, 4 for v."""
        made = image("t", {1: 258, 0: 1, 2: None})
        assert made.present == (0, 1, 2)
        assert made.payloads == (b"\1\0\0\0", b"\2\1\0\0\0\0\0\0", None)

    @pytest.mark.parametrize(
        ("text", "number"), [("7", 7), ("2.5", 0x2_0000_0005), (str(2**64 - 1), 0xFFFF_FFFF_FFFF_FFFF)]
    )
    def test_epochs(self, text: str, number: int):
        """An epoch is a number, or its two words."""
        assert epoch(text) == number

    @pytest.mark.parametrize("text", ["E:i1@1", "A:i1", "A:x1@1", "A:i@1", "i1@1"])
    def test_nonsense(self, text: str):
        """A word that means nothing is refused."""
        with pytest.raises(AssertionError):
            history(text)


class TestOrder:
    """Both timelines as one."""

    def order(self, text: str) -> str:
        """Return whose item comes when."""
        return "".join(cluster.name for cluster, _ in interleave(history(text)))

    def test_own_order_and_causes(self):
        """An epoch can be applied once everything in it has happened."""
        items = [
            (cluster.name, item.epoch) for cluster, item in interleave(history("A:<11@1 A:i1=1@2 B:i1=1@11 B:i1=1@11"))
        ]
        assert items == [("B", 11), ("B", 11), ("A", 1), ("A", 2)]

    def test_an_epoch_apply_waits_for_the_whole_foreign_epoch(self):
        """An epoch apply inside the foreign epoch comes first too."""
        assert self.order("A:i1=1@1 B:<1@11 B:i1=1@11 A:<11@2") == "ABBA"

    def test_circular(self):
        """Where no order exists the epoch at fault is named."""
        with pytest.raises(HistoryError) as caught:
            self.order("A:<11@1 A:i1=1@2 B:<2@11")
        assert str(caught.value).startswith(
            "the schedule is circular: cluster A applies epoch 11 before the other cluster"
        )

    def test_progress(self):
        """Every item of both timelines is reported."""
        done: list[int] = []
        resolve(history(BASE), setups(), done.append)
        assert done == [1, 2, 3]


class TestMax:
    """NDB$MAX on both sides."""

    def test_insert_insert(self):
        """Each side keeps its own row, whatever the values: they diverge."""
        found = resolved("A:i1=5@1 B:i1=7@11 A:<11@2 B:<1@12", MAX, MAX)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 5, None)], [(1, 7, None)])
        assert verdicts(found, "A") == [(11, REJECTED, EXISTS)]
        assert verdicts(found, "B") == [(1, REJECTED, EXISTS)]
        assert (counters(found, "A"), counters(found, "B")) == ({"fn_max": 1}, {"fn_max": 1})
        assert found.differing_rows == {"d.t": 1}

    def test_update_update(self):
        """The greater value wins on both sides."""
        found = resolved(BASE + "A:u1=5@3 B:u1=4@12 A:<12@4 B:<3@13", MAX, MAX)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 5, None)], [(1, 5, None)])
        assert verdicts(found, "A") == [(12, REJECTED, CONFLICT)]
        assert verdicts(found, "B") == [(1, APPLIED, Cause.NONE), (3, APPLIED, Cause.NONE)]
        assert (counters(found, "A"), counters(found, "B")) == ({"fn_max": 1}, {})
        assert found.differing_rows == {}

    def test_equal_values(self):
        """Both lose, so that what else differs stays different."""
        found = resolved(BASE + "A:u1=5/1@3 B:u1=5/2@12 A:<12@4 B:<3@13", MAX, MAX)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 5, 1)], [(1, 5, 2)])
        assert (counters(found, "A"), counters(found, "B")) == ({"fn_max": 1}, {"fn_max": 1})

    def test_update_of_a_deleted_row(self):
        """The delete had not seen the update, and the update finds no row: they diverge."""
        found = resolved(BASE + "A:d1=1@3 B:u1=4@12 A:<12@4 B:<3@13", MAX, MAX)
        assert (rows(found, "A"), rows(found, "B")) == ([], [(1, 4, None)])
        assert verdicts(found, "A") == [(12, REJECTED, MISSING)]
        (_, delete) = (each for each in found.outcomes if each.applier == "B")
        assert (delete.cause, delete.incoming, delete.stored) == (CONFLICT, 1, 4)
        assert found.differing_rows == {"d.t": 1}

    def test_delete_delete(self):
        """Both are conflicts, but not of the kind that EPOCH counts."""
        found = resolved(BASE + "A:d1=1@3 B:d1=1@12 A:<12@4 B:<3@13", MAX, MAX)
        assert (rows(found, "A"), rows(found, "B")) == ([], [])
        assert verdicts(found, "A") == [(12, REJECTED, MISSING)]
        assert (counters(found, "A"), counters(found, "B")) == ({"fn_max": 1}, {"fn_max": 1})

    def test_delete_that_saw_the_row(self):
        """A delete of the value that is stored is applied."""
        found = resolved(BASE + "A:d1=1@3 B:<3@12", MAX, MAX)
        assert rows(found, "B") == []
        assert counters(found, "B") == {}

    def test_operations_of_an_epoch_see_each_other(self):
        """Each is judged by the row as the one before it left it."""
        found = resolved(BASE + "A:u1=3@3 A:u1=2@3 A:u1=4@3 B:<3@12", b=MAX)
        assert verdicts(found, "B")[1:] == [(3, APPLIED, Cause.NONE), (3, REJECTED, CONFLICT), (3, APPLIED, Cause.NONE)]
        assert rows(found, "B") == [(1, 4, None)]

    def test_reads_are_judged_like_updates(self):
        """A read whose value does not win is a conflict, and changes nothing."""
        found = resolved(BASE + "A:u1=5@3 B:r1=1@12 A:<12@4", a=MAX)
        assert verdicts(found, "A") == [(12, REJECTED, CONFLICT)]
        assert rows(found, "A") == [(1, 5, None)]


class TestEpoch:
    """NDB$EPOCH on cluster A, the primary."""

    def test_no_conflict(self):
        """A row whose epoch came back may be changed by the other side."""
        found = resolved(BASE + "B:u1=9@12 A:<12@3", EPOCH)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 9, None)], [(1, 9, None)])
        assert (counters(found, "A"), found.clusters["A"].refreshes) == ({}, {})

    def test_update_update(self):
        """The primary wins; its row is sent again, and the other side ends with it."""
        found = resolved(BASE + "A:u1=5@3 B:u1=9@12 A:<12@4 B:<3@13 B:<4@14", EPOCH)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 5, None)], [(1, 5, None)])
        (outcome,) = (each for each in found.outcomes if each.applier == "A")
        assert (outcome.cause, outcome.incoming, outcome.stored) == (CONFLICT, 1, 3)
        assert (counters(found, "A"), counters(found, "B")) == ({"fn_epoch": 1}, {"refresh_op_count": 1})
        assert found.clusters["A"].refreshes == {"d.t": 1}

    def test_the_secondary_alone_would_diverge(self):
        """Without the refresh the rows differ: B keeps its change until it applies epoch 4."""
        found = resolved(BASE + "A:u1=5@3 B:<3@12 B:u1=9@13 A:<13@4", EPOCH)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 5, None)], [(1, 9, None)])
        assert found.differing_rows == {"d.t": 1}

    def test_insert_insert(self):
        """The primary's row replaces the other one."""
        found = resolved("A:i1=5@1 B:i1=7/3@11 A:<11@2 B:<1@12 B:<2@13", EPOCH)
        assert verdicts(found, "A") == [(11, REJECTED, EXISTS)]
        assert rows(found, "A") == [(1, 5, None)]
        assert counters(found, "B") == {"refresh_op_count": 1}

    def test_update_of_a_deleted_row(self):
        """The row is deleted once more, by a refresh that finds nothing to delete."""
        found = resolved(BASE + "A:d1@3 B:u1=9@12 A:<12@4 B:<3@13 B:<4@14", EPOCH)
        assert verdicts(found, "A") == [(12, REJECTED, MISSING)]
        assert verdicts(found, "B") == [(1, APPLIED, Cause.NONE), (3, APPLIED, Cause.NONE), (4, IGNORED, Cause.NONE)]
        assert (rows(found, "A"), rows(found, "B")) == ([], [])
        assert (counters(found, "A"), counters(found, "B")) == ({"fn_epoch": 1}, {"refresh_op_count": 1})
        refresh = found.outcomes[-1]
        assert (refresh.refresh, refresh.operation) == (True, Operation.DELETE_ROW)

    def test_delete_of_an_updated_row(self):
        """The row comes back by the refresh."""
        found = resolved(BASE + "A:u1=5/6@3 B:d1@12 A:<12@4 B:<3@13 B:<4@14", EPOCH)
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 5, 6)], [(1, 5, 6)])
        assert verdicts(found, "B")[1:] == [(3, IGNORED, Cause.NONE), (4, APPLIED, Cause.NONE)]

    def test_delete_delete(self):
        """It counts twice, and nothing is sent again."""
        found = resolved(BASE + "A:d1@3 B:d1@12 A:<12@4 B:<3@13 B:<4@14", EPOCH)
        assert verdicts(found, "A") == [(12, REJECTED, MISSING)]
        assert counters(found, "A") == {"fn_epoch": 1, "epoch_delete_delete_count": 1}
        assert (found.clusters["A"].refreshes, counters(found, "B")) == ({}, {})

    @pytest.mark.parametrize("second", ["B:u1=9@12 B:u1=8@12", "B:u1=9,u1=8@12", "B:u1=9,d1@12"])
    def test_one_refresh_per_row_and_epoch(self, second: str):
        """A further operation on the row counts, and causes no second refresh."""
        found = resolved(BASE + f"A:u1=5@3 {second} A:<12@4 B:<3@13 B:<4@14", EPOCH)
        assert counters(found, "A") == {"fn_epoch": 2}
        assert (found.clusters["A"].refreshes, counters(found, "B")) == ({"d.t": 1}, {"refresh_op_count": 1})

    def test_one_refresh_per_row(self):
        """Each row in conflict is sent again."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=5,u2=5@3 B:u1=9,u2=9@12 A:<12@4 B:<3@13 B:<4@14"
        found = resolved(text, EPOCH)
        assert (counters(found, "A"), found.clusters["A"].refreshes) == ({"fn_epoch": 2}, {"d.t": 2})
        assert rows(found, "B") == [(1, 5, None), (2, 5, None)]

    def test_a_refreshed_row_conflicts_until_it_came_back(self):
        """Each refresh is a change in a new epoch, so it takes until that one has come back."""
        text = (
            "A:u1=5@3 B:u1=4@12 A:<12@4 "  # M is 1, the row's epoch 3: refreshed in 4
            "B:u1=6@13 A:<13@5 "  # M is 1, the row's epoch 4: refreshed in 5
            "B:<3@14 B:<4@15 A:<14@6 A:<15@7 B:u1=7@16 A:<16@8 "  # M is 4, the row's epoch 5: refreshed in 8
            "B:<5@17 B:<8@18 A:<17@9 A:<18@10 B:u1=8@19 A:<19@20"  # M is 8
        )
        found = resolved(BASE + text, EPOCH)
        compared = [
            (each.source_epoch, each.verdict, each.incoming, each.stored)
            for each in found.outcomes
            if each.applier == "A"
        ]
        assert compared == [
            (12, REJECTED, 1, 3),
            (13, REJECTED, 1, 4),
            (16, REJECTED, 4, 5),
            (19, APPLIED, None, None),
        ]
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 8, None)], [(1, 8, None)])

    def test_a_row_that_the_applier_wrote(self):
        """Only local changes are defended, however new the row is."""
        found = resolved(BASE + "B:u1=4@12 A:<12@3 B:u1=5@13 A:<13@4", EPOCH)
        assert counters(found, "A") == {}
        assert rows(found, "A") == [(1, 5, None)]

    @pytest.mark.parametrize(("mark", "conflicts"), [("", 1), ("?", 2)])
    def test_m_moves_when_the_epoch_commits(self, mark: str, conflicts: int):
        """The change of row 1 comes with the news of epoch 1, and is judged without it; that of row 2 is not."""
        found = resolved(f"A:i1=1,i2=1@1 B:<1{mark}@12 B:u1=2@12 A:<12@2 B:u2=2@13 A:<13@3", EPOCH)
        assert counters(found, "A") == {"fn_epoch": conflicts}

    @pytest.mark.parametrize(("bits", "conflicts"), [(0, 1), (2, 1), (3, 0), (6, 0), (31, 0)])
    def test_precision(self, bits: int, conflicts: int):
        """Epoch 1.5 is back, but with fewer than three bits it reads as later than it is."""
        found = resolved("A:i1=1@1.5 B:<1.5@11 A:<11@1.9 B:u1=2@12 A:<12@1.20", f"NDB$EPOCH({bits})")
        assert found.clusters["A"].counters["Ndb_conflict_fn_epoch"] == conflicts

    @pytest.mark.parametrize(("first", "conflicts"), [(2**63 - 3, 1), (2**64 - 10, 1)])
    def test_high_epochs(self, first: int, conflicts: int):
        """Epochs beyond 63 bits compare as unsigned numbers."""
        text = f"A:i1=1@{first} B:<{first}@11 A:<11@{first + 1} A:u1=5@{first + 4} B:u1=9@12 A:<12@{first + 5}"
        found = resolved(text, "NDB$EPOCH(31)")
        assert counters(found, "A") == {"fn_epoch": conflicts}

    def test_a_read_in_conflict(self):
        """A read of a row that was changed is rejected, and the row is sent again."""
        found = resolved(BASE + "A:u1=5@3 B:r1=1@12 A:<12@4 B:<3@13 B:<4@14", EPOCH)
        assert verdicts(found, "A") == [(12, REJECTED, CONFLICT)]
        assert (counters(found, "A"), counters(found, "B")) == ({"fn_epoch": 1}, {"refresh_op_count": 1})
        assert rows(found, "A") == [(1, 5, None)]

    def test_a_read_without_conflict(self):
        """It changes nothing on either side: the row keeps its value and remains a local one."""
        found = resolved(BASE + "B:r1=77@12 A:<12@3 A:u1=2@4 B:u1=3@13 A:<13@5", EPOCH)
        assert verdicts(found, "A") == [(12, APPLIED, Cause.NONE), (13, REJECTED, CONFLICT)]
        assert (rows(found, "A"), rows(found, "B")) == ([(1, 2, None)], [(1, 3, None)])


class TestWithoutFunction:
    """Tables without a conflict function."""

    def test_insert_insert(self):
        """Each side ends with the other's row."""
        found = resolved("A:in1=5@1 B:in1=7@11 A:<11@2 B:<1@12", MAX, MAX)
        assert (rows(found, "A", "d.n"), rows(found, "B", "d.n")) == ([(1, 7, None)], [(1, 5, None)])
        assert (counters(found, "A"), found.differing_rows) == ({}, {"d.n": 1})

    def test_an_insert_over_a_row(self):
        """What the insert does not hold stays."""
        found = resolved("A:in1=5@1 B:in1=7/3@11 B:<1@12")
        assert rows(found, "B", "d.n") == [(1, 5, 3)]

    @pytest.mark.parametrize("change", ["un1=5", "dn1"])
    def test_a_row_that_is_missing(self, change: str):
        """An update or delete that finds nothing is ignored."""
        found = resolved(f"A:{change}@1 B:<1@11")
        assert verdicts(found, "B") == [(1, IGNORED, Cause.NONE)]
        assert (rows(found, "B", "d.n"), found.clusters["B"].stop) == ([], None)

    def test_applied_twice(self):
        """An epoch that is applied again changes nothing."""
        found = resolved("A:in1=5,un1=6@1 B:<1@11 B:<1@12")
        assert (rows(found, "A", "d.n"), rows(found, "B", "d.n")) == ([(1, 6, None)], [(1, 6, None)])


class TestStops:
    """Appliers that cannot go on."""

    def test_missing_resolve_column(self):
        """The epoch at hand is undone whole, earlier ones stay, and the other side goes on."""
        text = "A:u1=6@3 B:<3@12 A:i2=9@4 A:u1=7@4 A:u1=/9@4 B:<4@13 A:u1=8@5 B:<5@14 B:i3=3@15 A:<15@6"
        found = resolved(BASE + text, b=MAX)
        assert found.clusters["B"].stop == Stop(
            ServerStop.MISSING_INFORMATION,
            4,
            "d.t",
            "x",
            Operation.UPDATE_ROW,
            None,
            "an update lacks x in its after image, where NDB$MAX looks for it; log the table with another binlog_type",
        )
        assert rows(found, "B") == [(1, 6, None), (3, 3, None)]
        assert verdicts(found, "B") == [(1, APPLIED, Cause.NONE), (3, APPLIED, Cause.NONE)]
        assert found.clusters["A"].stop is None
        assert rows(found, "A") == [(1, 8, 9), (2, 9, None), (3, 3, None)]

    def test_a_delete_without_the_column(self):
        """NDB$MAX needs the before value of deletes."""
        found = resolved(BASE + "A:d1@3 B:<3@12", b=MAX)
        stop = found.clusters["B"].stop
        assert stop is not None
        assert (stop.error, stop.foreign_epoch, stop.column, stop.operation) == (1296, 3, "x", Operation.DELETE_ROW)
        assert "a delete lacks x in its before image" in stop.message
        assert rows(found, "B") == [(1, 1, None)]

    def test_a_missing_row_does_not_excuse_it(self):
        """The event is checked before the row is looked at."""
        found = resolved("B:d1@11 A:<11@1", a=MAX)
        assert found.clusters["A"].stop is not None

    def test_what_the_undone_epoch_counted(self):
        """Neither counters nor exceptions of the epoch at hand stay; those of earlier ones do."""
        text = "A:u1=0@3 B:<3@12 A:u1=1,u1=/9@4 B:<4@13"
        found = resolved(BASE + text, b=MAX, exceptions="t$EX")
        assert counters(found, "B") == {"fn_max": 1}
        assert found.clusters["B"].exceptions == {"d.t$EX": [(2, 1, 3, 1, 1)]}

    def test_epoch_needs_no_column(self):
        """EPOCH judges images that hold nothing but the key."""
        found = resolved(BASE + "B:u1@12 A:<12@3 B:d1@13 A:<13@4", EPOCH)
        assert (found.clusters["A"].stop, rows(found, "A")) == (None, [])

    def test_refused_table(self):
        """A table whose CREATE TABLE failed is not there when its changes arrive."""
        found = resolved("A:in1=1@1 B:<1@11 A:i1=1@2 B:<2@12 A:in1=2@3 B:<3@13", b="NDB$MAX(nosuch)")
        assert found.clusters["B"].stop == Stop(
            ServerStop.NO_SUCH_TABLE,
            2,
            "d.t",
            None,
            Operation.WRITE_ROW,
            None,
            "table d.t does not exist on B; its CREATE TABLE was refused there, or it was dropped",
        )
        assert "d.t" not in found.clusters["B"].rows
        assert rows(found, "B", "d.n") == [(1, 1, None)]
        assert rows(found, "A") == [(1, 1, None)]


class TestExceptions:
    """Exceptions tables."""

    def test_rows(self):
        """Server, source server, source epoch, count, key; the count runs on from epoch to epoch."""
        text = "A:u1=0@3 A:i1=9@3 B:<3@12 A:d1=7@4 B:<4@13"
        found = resolved(BASE + text, b=MAX, exceptions="t$EX")
        assert found.clusters["B"].exceptions == {"d.t$EX": [(2, 1, 3, 1, 1), (2, 1, 3, 2, 1), (2, 1, 4, 3, 1)]}

    def test_empty(self):
        """A table without conflicts is there, and empty; a side without function has none."""
        found = resolved(BASE, b=MAX, exceptions="t$EX")
        assert (found.clusters["A"].exceptions, found.clusters["B"].exceptions) == ({}, {"d.t$EX": []})

    def test_delete_delete_is_written_down(self):
        """It gets a row, though nothing is sent again."""
        found = resolved(BASE + "A:d1@3 B:d1@12 A:<12@4", EPOCH, exceptions="t$EX")
        assert found.clusters["A"].exceptions == {"d.t$EX": [(1, 2, 12, 1, 1)]}

    def test_a_read_is_reported_as_a_read(self):
        """A read whose transaction is in conflict travels as an update, but NDB$OP_TYPE says READ_ROW."""
        extended = """
            CREATE TABLE `t$EX` (
                NDB$server_id INT UNSIGNED, NDB$source_server_id INT UNSIGNED, NDB$source_epoch BIGINT UNSIGNED,
                NDB$count INT UNSIGNED, k INT NOT NULL, NDB$OP_TYPE ENUM(
                    'WRITE_ROW', 'UPDATE_ROW', 'DELETE_ROW', 'REFRESH_ROW', 'READ_ROW'
                ) NOT NULL,
                PRIMARY KEY (NDB$server_id, NDB$source_server_id, NDB$source_epoch, NDB$count)
            );
        """
        schema = parse_schema(TABLES + extended, database="d")
        primary = set_up(schema, [ReplicationRow("d", "t", 1, 7, "NDB$EPOCH_TRANS()")], 1)
        made = history("A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=5@3 B:r1=1>1,u2=1>9@12 A:<12@4")
        found = resolve(made, {"A": primary, "B": setups()["B"]})
        assert found.clusters["A"].exceptions == {
            "d.t$EX": [(1, 2, 12, 3, 1, "READ_ROW"), (1, 2, 12, 4, 2, "UPDATE_ROW")]
        }

    def test_a_table_in_lower_case_is_replicated(self):
        """Its rows travel with the epoch in which they were written."""
        text = "A:i1=1@1 B:i1=2@11 B:<1@12 A:<11@2 A:<12@3"
        found = resolved(text, b=MAX, exceptions="t$ex")
        row = (2, 1, 1, 1, 1)
        assert found.clusters["B"].exceptions == {"d.t$ex": [row]}
        assert found.clusters["A"].exceptions == {"d.t$ex": [row]}

    def test_a_table_in_capitals_is_not(self):
        """Its rows stay where they were written."""
        text = "A:i1=1@1 B:i1=2@11 B:<1@12 A:<11@2 A:<12@3"
        found = resolved(text, b=MAX, exceptions="t$EX")
        assert (found.clusters["A"].exceptions, len(found.clusters["B"].exceptions["d.t$EX"])) == ({}, 1)
