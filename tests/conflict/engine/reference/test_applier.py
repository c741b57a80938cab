"""One applier: what a foreign epoch does to rows, log and counters."""

import pytest

from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import ExceptionRow
from conflict.engine.reference.row_store import Row
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import ConflictFlag, Operation
from tests.conflict.histories import image, key
from tests.conflict.histories import replayed as run

ROW = ("d.t", key(1))


def payloads(x: int | None, v: int | None = None, *, with_v: bool = False) -> dict[int, bytes | None]:
    """Return the bytes of row 1."""
    columns: dict[int, int | None] = {0: 1, 1: x}
    if with_v or v is not None:
        columns[2] = v
    written = image("t", columns)
    return dict(zip(written.present, written.payloads, strict=True))


class TestRows:
    """Author and epoch of rows."""

    def test_own_change(self):
        """A row that the cluster changed itself is local, and has the epoch of the change."""
        assert run("A:i1=5@3 A:u1=6@4")["A"].store.get(ROW) == Row(payloads(6), local=True, epoch=4)

    def test_applied_change(self):
        """A row that the applier wrote is not local, and has the own epoch of the epoch apply."""
        assert run("A:i1=5@3 B:<3@11")["B"].store.get(ROW) == Row(payloads(5), local=False, epoch=11)

    def test_applied_over_a_local_row(self):
        """The last writer is the author."""
        clusters = run("A:i1=5@3 B:i1=6@11 B:<3@12")
        assert clusters["B"].store.get(ROW) == Row(payloads(5), local=False, epoch=12)

    def test_rejected_change(self):
        """A rejected operation leaves the row, its author and its epoch."""
        clusters = run("A:i1=5@3 B:i1=6@11 B:<3@12", b="NDB$MAX(x)")
        assert clusters["B"].store.get(ROW) == Row(payloads(6), local=True, epoch=11)

    def test_refreshed_row(self):
        """A refresh makes the row a local one of the current epoch."""
        clusters = run("A:i1=5@3 B:<3@11 B:u1=6@12 A:<12@4", a="NDB$EPOCH()")
        assert clusters["A"].store.get(ROW) == Row(payloads(5), local=True, epoch=4)

    def test_columns_that_were_not_written_keep_their_values(self):
        """An image without a column leaves it as it was; NULL is written."""
        clusters = run("A:i1=5/7@3 B:<3@11 A:u1=6@4 B:<4@12")
        assert clusters["B"].store.get(ROW) == Row(payloads(6, 7), local=False, epoch=12)
        clusters = run("A:i1=5/7@3 B:<3@11 A:u1=/N@4 B:<4@12")
        assert clusters["B"].store.get(ROW) == Row(payloads(5, with_v=True), local=False, epoch=12)

    def test_an_own_update_of_a_missing_row_makes_the_row(self):
        """The cluster's own change counts, as unexplained."""
        cluster = run("A:u1=5>6@3")["A"]
        assert cluster.store.get(ROW) == Row(payloads(6), local=True, epoch=3)
        assert cluster.result.unexplained == 1

    def test_an_own_read(self):
        """A read under an exclusive lock is logged as an update: it leaves the values, but the row is a newer one."""
        cluster = run("A:i1=5@3 A:r1=5>5@4")["A"]
        assert (cluster.store.get(ROW), cluster.result.unexplained) == (Row(payloads(5), local=True, epoch=4), 0)


class TestLog:
    """What a cluster logs for the next applier."""

    def test_own_changes(self):
        """Own changes are logged in their epoch; those that were applied are not logged again."""
        clusters = run("A:i1=5@3 B:i2=1@11 B:<3@12")
        assert [entry.change.key for entry in clusters["B"].log[11]] == [key(2)]
        assert clusters["B"].log[12] == []

    def test_refresh_of_a_row(self):
        """A row in conflict is sent as a write of all its columns."""
        clusters = run("A:i1=5/7@3 B:u1=6@12 A:<12@4", a="NDB$EPOCH()")
        (entry,) = clusters["A"].log[4]
        assert (entry.change.operation, entry.change.flags) == (Operation.WRITE_ROW, ConflictFlag.REFRESH)
        assert entry.change.before is None
        assert entry.change.after == image("t", {0: 1, 1: 5, 2: 7})
        assert (entry.group, entry.ordinal) == (0, -1)

    def test_refresh_of_a_row_that_is_not_there(self):
        """It is sent as a delete that holds the key."""
        clusters = run("B:u1=5>6@12 A:<12@4", a="NDB$EPOCH()")
        (entry,) = clusters["A"].log[4]
        assert (entry.change.operation, entry.change.flags) == (Operation.DELETE_ROW, ConflictFlag.REFRESH)
        assert (entry.change.before, entry.change.after) == (image("t", {0: 1}), None)
        assert clusters["A"].store.get(ROW) is None

    def test_refreshes_show_the_row_at_the_end_of_the_epoch(self):
        """Refreshes are made after all operations: a later one of the same epoch that was applied is in it."""
        clusters = run("B:u1=3@12 B:i1=8@12 A:<12@4", a="NDB$EPOCH()")
        assert [outcome.verdict for outcome in clusters["A"].outcomes] == [Verdict.REJECTED, Verdict.APPLIED]
        (entry,) = clusters["A"].log[4]
        assert entry.change.after == image("t", {0: 1, 1: 8, 2: None})
        assert clusters["A"].store.get(ROW) == Row(payloads(8), local=True, epoch=4)

    def test_rows_of_a_replicated_exceptions_table(self):
        """Rows of a table named in lower case follow in the epoch in which they were written."""
        clusters = run("A:i1=5@3 B:i1=6@11 B:<3@12", b="NDB$MAX(x)", exceptions="t$ex")
        (entry,) = clusters["B"].log[12]
        assert isinstance(entry, ExceptionRow)
        assert (entry.server_id, entry.table, entry.row) == (2, "d.t$ex", (2, 1, 3, 1, 1))
        assert entry.outcome == clusters["B"].outcomes[0].place

    def test_rows_of_a_plain_exceptions_table(self):
        """Rows of a table named in capitals are not logged."""
        clusters = run("A:i1=5@3 B:i1=6@11 B:<3@12", b="NDB$MAX(x)", exceptions="t$EX")
        assert clusters["B"].log[12] == []
        assert clusters["B"].result.exceptions == {"d.t$EX": [(2, 1, 3, 1, 1)]}


class TestMaxReplicatedEpoch:
    """The highest own epoch known to have come back."""

    def test_relayed(self):
        """An applied epoch is logged, and comes back with the own epoch that holds it."""
        clusters = run("A:i1=5@3 B:<3@11")
        assert (clusters["B"].relayed, clusters["A"].max_replicated_epoch) == ({11: {"A": 3}}, 0)
        clusters = run("A:i1=5@3 B:<3@11 A:<11@4")
        assert clusters["A"].max_replicated_epoch == 3

    def test_without_a_trace(self):
        """An applied epoch that was not logged does not come back."""
        clusters = run("A:i1=5@3 B:<3?@11 B:i2=1@11 A:<11@4")
        assert (clusters["B"].relayed, clusters["A"].max_replicated_epoch) == ({}, 0)

    def test_it_does_not_fall(self):
        """An epoch that relays nothing leaves it."""
        clusters = run("A:i1=5@3 B:<3@11 A:<11@4 B:i2=1@12 A:<12@5")
        assert clusters["A"].max_replicated_epoch == 3

    def test_a_stopped_applier_learns_nothing(self):
        """The epoch at hand does not count."""
        clusters = run("A:i1=5@3 B:<3@11 B:u1=/7@11 A:<11@4", a="NDB$MAX(x)")
        assert clusters["A"].result.stop is not None
        assert clusters["A"].max_replicated_epoch == 0


class TestOutcomes:
    """What became of each operation."""

    def test_where_operations_stand(self):
        """Group and number in the source's epoch; numbers start again in the next."""
        clusters = run("A:i1=1@3 A:i2=1,i3=1@3 A:i4=1@4 B:<3@11 B:<4@12")
        places = [(each.source_epoch, each.group, each.ordinal, each.key) for each in clusters["B"].outcomes]
        assert places == [(3, 0, 0, key(1)), (3, 1, 1, key(2)), (3, 1, 2, key(3)), (4, 0, 0, key(4))]

    def test_refreshes_have_no_number(self):
        """A refresh belongs to the group of the epoch apply that caused it."""
        clusters = run("A:i1=1@3 B:i1=2@11 A:i2=1@4 A:<11@4 B:<3@12 B:<4@13", a="NDB$EPOCH()")
        refresh = clusters["B"].outcomes[-1]
        assert (refresh.refresh, refresh.group, refresh.ordinal, refresh.origin) == (True, 1, -1, None)
        assert (refresh.operation, refresh.verdict) == (Operation.WRITE_ROW, Verdict.APPLIED)
        assert [each.refresh for each in clusters["B"].outcomes] == [False, False, True]

    def test_what_was_compared(self):
        """A conflict of values names both."""
        (outcome,) = run("A:i1=5@3 B:u1=4@11 A:<11@4", a="NDB$MAX(x)")["A"].outcomes
        assert (outcome.applier, outcome.source, outcome.table) == ("A", "B", "d.t")
        assert (outcome.verdict, outcome.cause) == (Verdict.REJECTED, Cause.ROW_IN_CONFLICT)
        assert (outcome.incoming, outcome.stored) == (4, 5)

    @pytest.mark.parametrize(
        ("stored", "incoming", "verdict"),
        [("N", "1", Verdict.APPLIED), ("N", "0", Verdict.REJECTED), ("0", "N", Verdict.REJECTED)],
    )
    def test_null_counts_as_zero(self, stored: str, incoming: str, verdict: Verdict):
        """A NULL in the resolve column compares as 0."""
        (outcome,) = run(f"A:i1={stored}@3 B:u1={incoming}@11 A:<11@4", a="NDB$MAX(x)")["A"].outcomes
        assert outcome.verdict is verdict

    def test_stored_column_that_was_never_given(self):
        """A row without a value compares as 0."""
        (outcome,) = run("A:i1@3 B:u1=0@11 A:<11@4", a="NDB$MAX(x)")["A"].outcomes
        assert (outcome.verdict, outcome.stored) == (Verdict.REJECTED, 0)

    @pytest.mark.parametrize(
        ("incoming", "verdict"),
        [(1, Verdict.APPLIED), (2**63 - 1, Verdict.APPLIED), (2**63, Verdict.REJECTED), (2**64 - 1, Verdict.APPLIED)],
    )
    def test_signed(self, incoming: int, verdict: Verdict):
        """Data nodes compare signed numbers, as recorded: 1 and 2^64 - 1 win over 2^63."""
        (outcome,) = run(f"A:i1={2**63}@3 B:u1={incoming}@11 A:<11@4", a="NDB$MAX(x)")["A"].outcomes
        assert outcome.verdict is verdict


class TestEffects:
    """What one epoch apply did to a row, as its binlog would show it."""

    @pytest.mark.parametrize(
        ("changes", "effects"),
        [
            ("A:i1=1@5", {ROW: Effect.CHANGED}),
            ("A:i1=1@5 A:u1=2@5", {ROW: Effect.CHANGED}),
            ("A:i1=1@5 A:d1=1@5", {}),
            ("A:d1=1@5", {}),
            ("A:u1=1@5", {}),
        ],
    )
    def test_of_a_new_row(self, changes: str, effects: dict[object, Effect]):
        """Insert and update are one event, insert and delete none, and what found nothing has no effect."""
        assert run(f"{changes} B:<5@11")["B"].result.effects == {(11, 0): effects}

    @pytest.mark.parametrize(
        ("changes", "effects"),
        [
            ("A:u1=2@5", {ROW: Effect.CHANGED}),
            ("A:d1=1@5", {ROW: Effect.DELETED}),
            ("A:u1=2@5 A:d1=2@5", {ROW: Effect.DELETED}),
            ("A:d1=1@5 A:i1=3@5", {ROW: Effect.CHANGED}),
            ("A:r1=1>1@5", {ROW: Effect.CHANGED}),
        ],
    )
    def test_of_a_row_that_is_there(self, changes: str, effects: dict[object, Effect]):
        """Delete and insert are one change; a read is an update that writes what is there."""
        clusters = run(f"A:i1=1@1 B:<1@10 {changes} B:<5@11")
        assert clusters["B"].result.effects[11, 0] == effects

    def test_a_refresh_wins(self):
        """A row that was also changed in the epoch shows as refreshed."""
        clusters = run("B:u1=3@12 B:i1=8@12 A:<12@4", a="NDB$EPOCH()")
        assert clusters["A"].result.effects == {(4, 0): {ROW: Effect.REFRESHED}}

    def test_a_refresh_of_nothing(self):
        """A row that does not exist shows as a delete."""
        assert run("B:u1=3@12 A:<12@4", a="NDB$EPOCH()")["A"].result.effects == {(4, 0): {ROW: Effect.REFRESHED_ABSENT}}

    def test_by_group(self):
        """Two epoch applies in one own epoch are separate."""
        clusters = run("A:i1=1@1 A:u1=2@2 B:i2=1@11 B:<1@11 B:<2@11")
        assert clusters["B"].result.effects == {(11, 1): {ROW: Effect.CHANGED}, (11, 2): {ROW: Effect.CHANGED}}


def test_an_epoch_without_changes_counts_as_applied():
    """An epoch without operations does nothing but count as applied."""
    clusters = run("A:i1=1@1")
    Applier(clusters["B"]).apply_epoch(EpochApply(11, 0, "A", 99), clusters["A"])
    assert (clusters["B"].relayed, clusters["B"].outcomes, clusters["B"].result.effects) == (
        {11: {"A": 99}},
        [],
        {(11, 0): {}},
    )
