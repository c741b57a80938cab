"""Laws of conflict resolution, for clusters that make possible changes and then apply everything."""

from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conflict.engine.ledger.resolution import Outcome
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.row_store import Row
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import Role
from ndb_formats.events.rows_event import Operation
from tests.conflict.worlds import Step, World, steps, world

WRITE, UPDATE, DELETE = Operation.WRITE_ROW, Operation.UPDATE_ROW, Operation.DELETE_ROW
BY_VALUE = ["NDB$OLD(x)", "NDB$MAX(x)", "NDB$MAX_DELETE_WIN(x)", "NDB$MAX_INS(x)", "NDB$MAX_DEL_WIN_INS(x)"]
ROLES = {"A": Role.PRIMARY, "B": Role.SECONDARY}
AT_START, START_VALUE = (1, 2, 3), 10
CLUSTERS = st.sampled_from([2, 3, 4])


def greatest(made: World, number: int) -> int | None:
    """Return the greatest value that anybody gave a row; None if nobody did."""
    values = [each.value for each in made.made if each.key == number and each.value is not None]
    return max([*values, *([START_VALUE] if number in AT_START else [])], default=None)


def deleted(made: World, number: int) -> bool:
    """Whether anybody deleted a row."""
    return any(each.key == number and each.operation is DELETE for each in made.made)


class TestMax:
    """
    The greatest value survives everywhere.

    That holds where each cluster's own updates raise the value that it has: a cluster may do what it likes to its own
    rows, and a value that falls is refused by all others.
    """

    @pytest.mark.parametrize("function", BY_VALUE[1:])
    @given(script=steps(), clusters=CLUSTERS, empty=st.booleans())
    def test_updates(self, function: str, script: list[Step], clusters: int, empty: bool):
        """Of updates alone, all functions of the family keep the greatest value, in rings of any size."""
        made = world(function, clusters=clusters, empty_epochs=empty)
        made.allowed = lambda cluster, number, operation: operation is UPDATE
        made.run(script)
        made.find_fixed_point()
        for cluster in range(clusters):
            assert [made.x(cluster, number) for number in AT_START] == [greatest(made, number) for number in AT_START]

    @pytest.mark.parametrize("function", ["NDB$MAX_DELETE_WIN(x)", "NDB$MAX_DEL_WIN_INS(x)"])
    @given(script=steps(), clusters=CLUSTERS)
    def test_deletes_win(self, function: str, script: list[Step], clusters: int):
        """A row that any cluster deleted, and none inserted again, is gone everywhere; others keep the greatest."""
        made = world(function, clusters=clusters)
        made.allowed = lambda cluster, number, operation: operation is not WRITE
        made.run(script)
        made.find_fixed_point()
        for number in AT_START:
            expected = None if deleted(made, number) else greatest(made, number)
            assert {made.x(cluster, number) for cluster in range(clusters)} == {expected}

    @pytest.mark.parametrize("function", ["NDB$MAX_INS(x)", "NDB$MAX_DEL_WIN_INS(x)"])
    @given(script=steps(), clusters=CLUSTERS)
    def test_inserts(self, function: str, script: list[Step], clusters: int):
        """Inserts of one row in several clusters leave the greatest value everywhere, as long as no cluster deletes."""
        made = world(function, clusters=clusters)
        made.allowed = lambda cluster, number, operation: operation is not DELETE
        made.run(script)
        made.find_fixed_point()
        for number in range(1, 7):
            assert {made.x(cluster, number) for cluster in range(clusters)} == {greatest(made, number)}

    @given(script=steps(), clusters=CLUSTERS)
    def test_inserts_and_deletes_of_different_rows(self, script: list[Step], clusters: int):
        """MAX_DEL_WIN_INS keeps both promises, as long as no row is both inserted and deleted."""
        made = world("NDB$MAX_DEL_WIN_INS(x)", clusters=clusters)
        made.allowed = lambda cluster, number, operation: operation is not (WRITE if number in AT_START else DELETE)
        made.run(script)
        made.find_fixed_point()
        for number in range(1, 7):
            expected = None if deleted(made, number) else greatest(made, number)
            assert {made.x(cluster, number) for cluster in range(clusters)} == {expected}

    @pytest.mark.parametrize("function", BY_VALUE[1:])
    @given(script=steps(), clusters=CLUSTERS)
    def test_values_of_a_clock(self, function: str, script: list[Step], clusters: int):
        """Where no two values are equal, whole rows are the same everywhere, not the compared column alone."""
        made = world(function, clusters=clusters)
        made.rising = True
        made.allowed = lambda cluster, number, operation: operation is UPDATE
        made.run(script)
        made.find_fixed_point()
        assert all(made.contents(cluster) == made.contents(0) for cluster in range(clusters))


class TestOld:
    """NDB$OLD."""

    @given(script=steps(), clusters=CLUSTERS)
    def test_an_applied_change_saw_the_stored_value(self, script: list[Step], clusters: int):
        """Whatever else happens: an update or delete is applied just if its before value is the one that is stored."""
        made = world("NDB$OLD(x)", clusters=clusters)
        made.on_apply = _check_old
        made.run(script)
        made.find_fixed_point()


def _check_old(made: World, cluster: int, entries: list[LoggedChange], rows: dict[int, Row | None]) -> None:
    """Check the operations of one epoch apply against the stored values."""
    stored = {number: None if row is None else row.payloads[1] for number, row in rows.items()}
    changes = [entry.change for entry in _foreign(made, cluster, entries)]
    for change, (number, outcome) in zip(changes, _applied(made, cluster, entries), strict=True):
        before = change.before and change.before.payloads[1]
        assert (outcome.verdict is Verdict.APPLIED) == (before == stored[number])
        if outcome.verdict is Verdict.APPLIED:
            stored[number] = None if change.after is None else change.after.payloads[1]


def _foreign(made: World, cluster: int, entries: list[LoggedChange]) -> list[LoggedChange]:
    """Return what other clusters logged."""
    return [entry for entry in entries if entry.server_id != made.replayed[cluster].cluster.server_id]


def _applied(made: World, cluster: int, entries: list[LoggedChange]) -> Iterator[tuple[int, Outcome]]:
    """Yield the row number and the outcome of each operation of the last epoch apply."""
    foreign, outcomes = _foreign(made, cluster, entries), made.replayed[cluster].outcomes
    for entry, outcome in zip(foreign, outcomes[len(outcomes) - len(foreign) :], strict=True):
        shown = entry.change.before or entry.change.after
        assert shown is not None
        yield int.from_bytes(shown.payloads[0] or b"", "little"), outcome


# Row 1 puts the secondary's first transaction in conflict, and with it the insert of row 4 and its delete; the row that
# is inserted after that meets the refresh.
DELETED_WITH_ITS_TRANSACTION: list[Step] = [
    ("commit", 0, [(1, False, 1, "t")]),
    ("commit", 1, [(1, False, 1, "t"), (4, False, 1, "t")]),
    ("commit", 1, [(4, True, 1, "t")]),
    ("close", 1, ()),
    ("commit", 1, [(4, False, 1, "t")]),
]


class TestEpoch:
    """NDB$EPOCH and NDB$EPOCH_TRANS: the first cluster is the primary."""

    @pytest.mark.parametrize("function", ["NDB$EPOCH()", "NDB$EPOCH(0)", "NDB$EPOCH_TRANS()"])
    @given(script=steps(), empty=st.booleans())
    def test_what_is_accepted_had_seen_the_row(self, function: str, script: list[Step], empty: bool):
        """
        The primary's changes are never lost: an update or delete that it accepts was made after its own had arrived.

        Deletes are no such changes, for a row that is gone holds no epoch: an insert of the secondary makes the row
        anew, and what the secondary does to it then is accepted too.
        """
        made = world(function, only_first=True, empty_epochs=empty)
        made.run(script)
        made.find_fixed_point()
        primary = made.replayed[0]
        for outcome in primary.outcomes:
            if outcome.verdict is not Verdict.APPLIED or outcome.operation is WRITE:
                continue
            (change,) = (
                each
                for each in made.made
                if each.cluster == 1
                and each.place == (outcome.source_epoch, outcome.group)
                and outcome.key[-4:] == each.key.to_bytes(4, "little")
            )
            applied = made.places[0, 1, outcome.source_epoch]
            own = [each for each in made.made if each.cluster == 0 and each.key == change.key and each.place < applied]
            if own and own[-1].operation is not DELETE:
                assert own[-1].place[0] <= change.seen

    @pytest.mark.parametrize("function", ["NDB$EPOCH()", "NDB$EPOCH(0)", "NDB$EPOCH_TRANS()"])
    @given(script=steps(), empty=st.booleans())
    @example(script=DELETED_WITH_ITS_TRANSACTION, empty=False)
    def test_the_secondary_follows(self, function: str, script: list[Step], empty: bool):
        """
        Both end with the same row, but for two cases; both are ways to lose an insert that was accepted.

        Where the secondary's delete found no row, whether it was rejected for that (delete-delete) or with its
        transaction, what the secondary inserts after it meets a delete, or a refresh without row, that is under way to
        it. The same goes for a row that the primary deleted while the secondary inserted it.
        """
        made, missed = world(function, only_first=True, empty_epochs=empty), set()
        made.on_apply = partial(_note_missed, missed)
        made.run(script)
        made.find_fixed_point()
        risky = {each.key for each in made.made if (each.cluster, each.operation) == (0, DELETE)} & {
            each.key for each in made.made if (each.cluster, each.operation) == (1, WRITE)
        }
        first, second = made.contents(0), made.contents(1)
        for number in set(range(1, 7)) - risky - missed:
            assert first.get(number) == second.get(number)


def _note_missed(
    missed: set[int], made: World, cluster: int, entries: list[LoggedChange], rows: dict[int, Row | None]
) -> None:
    """Note the rows of deletes that the primary rejected when it did not have the row."""
    there = {number: row is not None for number, row in rows.items()}
    for number, outcome in _applied(made, cluster, entries):
        if cluster == 0 and outcome.operation is DELETE and outcome.verdict is Verdict.REJECTED and not there[number]:
            missed.add(number)
        if outcome.verdict is Verdict.APPLIED:
            there[number] = outcome.operation is not DELETE


class TestEpoch2:
    """NDB$EPOCH2 and NDB$EPOCH2_TRANS: with roles."""

    @pytest.mark.parametrize("function", ["NDB$EPOCH2()", "NDB$EPOCH2_TRANS()", "NDB$EPOCH2(0)"])
    @given(script=steps(), empty=st.booleans())
    def test_both_end_equal(self, function: str, script: list[Step], empty: bool):
        """Whatever happened, also delete-delete, both clusters end with the same rows."""
        made = world(function, roles=ROLES, empty_epochs=empty)
        made.run(script)
        made.find_fixed_point()
        assert made.contents(0) == made.contents(1)


class TestTransactions:
    """The *_TRANS functions."""

    @given(script=steps("tn"))
    def test_epoch_trans(self, script: list[Step]):
        """A transaction is rejected whole or applied, but for deletes of rows that are missing."""
        made = world("NDB$EPOCH_TRANS()", only_first=True)
        made.run(script)
        made.find_fixed_point()
        for transaction in made.outcomes(0):
            causes = {each.cause for each in transaction}
            if Cause.TRANS_IN_CONFLICT in causes:
                assert causes == {Cause.TRANS_IN_CONFLICT}
            else:
                rejected = [each for each in transaction if each.verdict is Verdict.REJECTED]
                assert {(each.operation, each.cause) for each in rejected} <= {(DELETE, Cause.ROW_DOES_NOT_EXIST)}

    @given(script=steps("tn"))
    def test_epoch2_trans(self, script: list[Step]):
        """A transaction is rejected whole, or no operation of it is."""
        made = world("NDB$EPOCH2_TRANS()", roles=ROLES)
        made.run(script)
        made.find_fixed_point()
        for transaction in made.outcomes(0):
            rejected = [each for each in transaction if each.verdict is Verdict.REJECTED]
            assert len(rejected) in (0, len(transaction))

    @pytest.mark.parametrize("function", ["NDB$EPOCH_TRANS()", "NDB$EPOCH2_TRANS()"])
    @given(script=steps("tn"))
    def test_what_follows_a_rejected_one(self, function: str, script: list[Step]):
        """No transaction is applied that touches a row which a rejected one of its epoch touched before."""
        made = world(function, only_first=function == "NDB$EPOCH_TRANS()", roles=ROLES)
        made.run(script)
        made.find_fixed_point()
        touched: dict[int, set[tuple[str, bytes]]] = {}
        for outcome in made.replayed[0].outcomes:
            spoiled, row = touched.setdefault(outcome.source_epoch, set()), (outcome.table, outcome.key)
            if outcome.cause is Cause.TRANS_IN_CONFLICT:
                spoiled.add(row)
            else:
                assert row not in spoiled


class TestRings:
    """Three and four clusters, each of which relays what it applies."""

    @pytest.mark.parametrize("function", [*BY_VALUE, None])
    @given(script=steps(), clusters=st.sampled_from([3, 4]))
    def test_without_conflicts(self, function: str | None, script: list[Step], clusters: int):
        """Where every row is changed by one cluster only, and values rise, all end equal and nothing is rejected."""
        made = world(function, clusters=clusters)
        made.rising = True
        made.allowed = lambda cluster, number, operation: number % clusters == cluster
        made.run(script)
        made.find_fixed_point()
        assert all(made.contents(cluster) == made.contents(0) for cluster in range(clusters))
        assert {outcome.verdict for replayed in made.replayed for outcome in replayed.outcomes} <= {Verdict.APPLIED}

    @pytest.mark.parametrize("function", ["NDB$MAX(x)", None])
    @given(script=steps(), clusters=st.sampled_from([3, 4]))
    def test_a_change_does_not_come_back(self, function: str | None, script: list[Step], clusters: int):
        """A row that only its own cluster changes is never written by that cluster's applier."""
        made = world(function, clusters=clusters)
        made.rising = True
        made.allowed = lambda cluster, number, operation: number % clusters == cluster
        made.run(script)
        made.find_fixed_point()
        for cluster, replayed in enumerate(made.replayed):
            own = {each.key for each in made.made if each.cluster == cluster}
            assert not {outcome.key[-4] for outcome in replayed.outcomes} & own

    @given(script=steps(), clusters=st.sampled_from([3, 4]))
    def test_each_change_is_applied_once(self, script: list[Step], clusters: int):
        """Every other cluster applies a change of a row once, or less often where an epoch held several."""
        made = world(None, clusters=clusters)
        made.allowed = lambda cluster, number, operation: number % clusters == cluster and operation is UPDATE
        made.run(script)
        made.find_fixed_point()
        for number in AT_START:
            changes = sum(each.key == number for each in made.made)
            for cluster, replayed in enumerate(made.replayed):
                applied = sum(outcome.key[-4] == number for outcome in replayed.outcomes)
                assert applied <= changes
                assert (applied > 0) == (changes > 0 and number % clusters != cluster)
