"""Logs that start in the middle, worked out by hand. Cluster A's epochs count from 1, B's from 11."""

from collections.abc import Mapping

import attrs
import pytest

from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.resolution import NotKnown, Resolution
from conflict.history.model import Start
from conflict.history.shown_effects import Effect
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import Role
from tests.conflict.histories import NO_ROLES, Setups, history, key, setups

MAX, EPOCH = "NDB$MAX(x)", "NDB$EPOCH()"
Shown = Mapping[str, Mapping[tuple[int, int], Mapping[int, Effect]]]
NOTHING: Shown = {}
# Cluster B's binlog shows that its applier's changes are logged.
ROLES = {"A": Role.PRIMARY, "B": Role.SECONDARY}
LOGGED: Shown = {"B": {(99, 0): {9: Effect.CHANGED}}}


def run(
    text: str,
    tables: Setups,
    shown: Shown = NOTHING,
    *,
    first: tuple[int, int] = (5, 15),
    roles: Mapping[str, Role] = NO_ROLES,
) -> Resolution:
    """Resolve a History whose tables were not empty before; its epochs are those from 5 and 15 on."""
    made = history(text, roles)
    starts = zip(made.clusters, first, strict=True)
    clusters = tuple(attrs.evolve(cluster, start=Start(epoch)) for cluster, epoch in starts)
    effects = {
        name: {place: {("d.t", key(row)): effect for row, effect in rows.items()} for place, rows in found.items()}
        for name, found in shown.items()
    }
    return resolve(attrs.evolve(made, clusters=clusters), tables, shown=effects)


def outcomes(resolution: Resolution, name: str) -> list[tuple[Verdict, Cause]]:
    """Return verdict and cause of what one applier received."""
    return [(each.verdict, each.cause) for each in resolution.outcomes if each.applier == name]


def test_an_update_of_a_row_that_is_not_known_is_left_open() -> None:
    """Nothing tells whether B has the row, nor what it holds there."""
    result = run("A:u1=5>9@5 B:<5@15", setups(MAX, MAX))
    assert outcomes(result, "B") == [(Verdict.CANNOT_TELL, Cause.NONE)]
    (undecided,) = result.clusters["B"].undecided
    causes = {(each.verdict, each.cause) for each in undecided.candidates}
    assert causes == {
        (Verdict.APPLIED, Cause.NONE),
        (Verdict.REJECTED, Cause.ROW_IN_CONFLICT),
        (Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST),
    }
    assert result.clusters["B"].not_known == {"d.t": NotKnown(rows=1)}


@pytest.mark.parametrize(
    ("brought", "wins", "loses"),
    [(0, True, True), (2**63, False, True), (2**63 - 1, True, True), (2**64 - 1, True, True)],
)
def test_a_row_that_is_not_known_can_have_any_value(brought: int, wins: bool, loses: bool) -> None:
    """In the order of data nodes: 2^63 is the least of all, so it wins against none, and 0 wins against that one."""
    result = run(f"A:u1=5>{brought}@5 B:<5@15", setups(MAX, MAX))
    (undecided,) = result.clusters["B"].undecided
    found = {(each.verdict, each.cause) for each in undecided.candidates}
    assert ((Verdict.APPLIED, Cause.NONE) in found, (Verdict.REJECTED, Cause.ROW_IN_CONFLICT) in found) == (wins, loses)


def test_a_change_in_the_binlog_tells_that_the_update_was_applied() -> None:
    """So the row was there, and holds the value of the update since; its column v is not known."""
    result = run("A:u1=5>9@5 B:<5@15 A:u1=9>7@6 B:<6@16", setups(MAX, MAX), {"B": {(15, 0): {1: Effect.CHANGED}}})
    assert outcomes(result, "B") == [(Verdict.APPLIED, Cause.NONE), (Verdict.REJECTED, Cause.ROW_IN_CONFLICT)]
    assert result.outcomes[-1].stored == 9
    assert result.clusters["B"].rows["d.t"] == []
    assert result.clusters["B"].not_known == {"d.t": NotKnown(rows_in_part=1, columns=1)}


def test_no_change_in_the_binlog_tells_that_the_update_was_rejected() -> None:
    """It does not tell whether the row was missing; it counts as a conflict in any case."""
    result = run("A:u1=5>9@5 B:<5@15", setups(MAX, MAX), LOGGED)
    assert outcomes(result, "B") == [(Verdict.CANNOT_TELL, Cause.NONE)]
    (undecided,) = result.clusters["B"].undecided
    assert {each.cause for each in undecided.candidates} == {Cause.ROW_IN_CONFLICT, Cause.ROW_DOES_NOT_EXIST}
    assert result.clusters["B"].counters["Ndb_conflict_fn_max"] == 1


def test_an_insert_that_cannot_be_told_counts_as_no_conflict() -> None:
    """B's binlog shows one change of A's insert and update: either it had no row, or it rejected the insert alone."""
    result = run("A:i1=5@5 A:u1=5>9@5 B:<5@15", setups(MAX, MAX), {"B": {(15, 0): {1: Effect.CHANGED}}})
    assert outcomes(result, "B")[0] == (Verdict.CANNOT_TELL, Cause.NONE)
    (undecided,) = result.clusters["B"].undecided
    assert {each.cause for each in undecided.candidates} == {Cause.NONE, Cause.ROW_ALREADY_EXISTS}
    assert result.clusters["B"].counters["Ndb_conflict_fn_max"] == 0


def test_a_before_image_tells_the_row() -> None:
    """B updates its row itself: x was 8 and is 9, v stays 3."""
    result = run("B:u1=8/3>9/3@15 A:u1=5>7@5 B:<5@16", setups(MAX, MAX))
    assert outcomes(result, "B") == [(Verdict.REJECTED, Cause.ROW_IN_CONFLICT)]
    assert result.clusters["B"].rows["d.t"] == [(1, 9, 3)]
    assert result.clusters["B"].unexplained == 0


def test_a_delete_tells_that_the_row_is_absent() -> None:
    """And a later update of it finds no row."""
    result = run("B:d1=8@15 A:u1=5>7@5 B:<5@16", setups(MAX, MAX))
    assert outcomes(result, "B") == [(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)]


def test_an_older_row_is_in_conflict_until_an_epoch_of_the_log_came_back() -> None:
    """A changed row 1 before or not, as long as A's epoch 5 did not come back; row 2 is judged after it did."""
    result = run("A:i7=1@5 B:<5@15 B:u1=5>6@15 B:u2=5>6@16 A:<15@6 A:<16@7", setups(EPOCH))
    first, second = ({each.cause for each in undecided.candidates} for undecided in result.clusters["A"].undecided)
    assert first == {Cause.NONE, Cause.ROW_IN_CONFLICT, Cause.ROW_DOES_NOT_EXIST}
    assert second == {Cause.NONE, Cause.ROW_DOES_NOT_EXIST}


def test_a_refresh_tells_that_the_row_was_in_conflict() -> None:
    """A's binlog shows the refresh of row 1, with its columns as they were."""
    result = run("B:u1=5>6@15 A:<15@5", setups(EPOCH), {"A": {(5, 0): {1: Effect.REFRESHED}}})
    assert outcomes(result, "A") == [(Verdict.REJECTED, Cause.ROW_IN_CONFLICT)]
    assert result.clusters["A"].counters["Ndb_conflict_fn_epoch"] == 1
    assert result.outcomes[0].stored is None


def test_a_row_may_have_been_judged_before_it_was_deleted_in_a_state_that_is_not_known() -> None:
    """A deletes row 1 in front of B's delete of it, and refreshes it all the same: it was there when it was judged."""
    shown = {"A": {(5, 1): {1: Effect.REFRESHED_ABSENT}}}
    result = run("B:d1=5@15 A:d1=5@5 A:<15@5", setups(EPOCH), shown)
    assert outcomes(result, "A") == [(Verdict.CANNOT_TELL, Cause.NONE)]
    (undecided,) = result.clusters["A"].undecided
    assert Cause.ROW_IN_CONFLICT in {each.cause for each in undecided.candidates}
    assert result.clusters["A"].effects[5, 1] == {("d.t", key(1)): Effect.REFRESHED_ABSENT}


def test_a_row_that_was_deleted_many_epochs_ago_was_not_judged_before_that() -> None:
    """A applied five epochs since it deleted row 1; the refresh of it in the binlog stays a contradiction."""
    inserts = [f"B:i{row}=1@{row}" for row in range(15, 20)]
    applies = [f"A:<{epoch}@{epoch - 9}" for epoch in range(15, 20)]
    result = run(
        " ".join(["A:d1=5@5", *inserts, *applies, "B:d1=5@20", "A:<20@11"]),
        setups(EPOCH),
        {"A": {(11, 0): {1: Effect.REFRESHED_ABSENT}}},
    )
    assert result.outcomes[-1].verdict is Verdict.CANNOT_TELL
    assert ("d.t", key(1)) not in result.clusters["A"].effects.get((11, 0), {})


def test_an_epoch_from_before_the_log_is_taken_from_the_binlog_of_the_applier() -> None:
    """A's epoch 4 is not there; B's binlog shows that it changed row 1 and deleted row 2."""
    shown = {"B": {(15, 0): {1: Effect.CHANGED, 2: Effect.DELETED}}}
    result = run("B:<4@15 A:u1=5>6,u2=5>6@5 B:<5@16", setups(MAX, MAX), {"B": {**shown["B"], (16, 0): {}}})
    assert outcomes(result, "B") == [
        (Verdict.REJECTED, Cause.ROW_IN_CONFLICT),
        (Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST),
    ]
    assert [apply.foreign_epoch for apply in result.clusters["B"].applies] == [4, 5]


def test_rows_that_differ_are_only_those_that_are_known() -> None:
    """Row 1 is known on both clusters, row 2 on A alone."""
    result = run("A:u1=1/1>2/1,u2=1/1>2/1@5 B:u1=1/1>3/1@15", setups(MAX, MAX))
    assert result.differing_rows == {"d.t": 1}


def test_an_operation_that_is_not_known_may_come_between_two_that_are() -> None:
    """A's epoch 5 deletes row 1, makes it anew for B's epoch 14, which is not there, and updates it."""
    shown = {"A": {(5, 1): {1: Effect.REFRESHED}}, "B": {(15, 0): {1: Effect.CHANGED}}}
    result = run("A:d1=5@5 A:<14@5 A:u1=6>7@5 B:<5@15", setups(EPOCH), shown)
    assert outcomes(result, "B") == [(Verdict.CANNOT_TELL, Cause.NONE)] * 2


def test_a_value_that_is_not_known_stops_no_applier() -> None:
    """A refreshes row 1, of which x is not known, and B compares that x."""
    shown = {"A": {(5, 0): {1: Effect.REFRESHED}}, "B": {(16, 0): {1: Effect.CHANGED}}}
    result = run("B:u1=5>6@15 A:<15@5 B:<5@16", setups(EPOCH, "NDB$MAX_INS(x)"), shown)
    assert result.clusters["B"].stop is None
    assert outcomes(result, "B") == [(Verdict.CANNOT_TELL, Cause.NONE)]


@pytest.mark.parametrize(("change", "effect"), [("d1=5", Effect.DELETED), ("u1=5>6", Effect.CHANGED)])
def test_a_before_value_that_is_not_known_stops_no_applier(change: str, effect: Effect) -> None:
    """A reflects a change of row 1, of which x was not known there, and B compares the x that the row had."""
    shown = {"A": {(5, 0): {1: effect}}}
    result = run(f"B:{change}@15 A:<15@5 B:<5@16", setups("NDB$EPOCH2()", "NDB$OLD(x)"), shown, roles=ROLES)
    assert result.clusters["B"].stop is None
    assert outcomes(result, "B") == [(Verdict.CANNOT_TELL, Cause.NONE)]
    (undecided,) = result.clusters["B"].undecided
    assert {each.verdict for each in undecided.candidates} == {Verdict.APPLIED, Verdict.DISCARDED}


def test_an_update_that_may_have_been_an_insert_stops_no_applier() -> None:
    """
    A reflects an insert of row 1 after a delete of B's, which found the row or not: as an insert, or as an update.

    Under binlog type 9 the update would lack x, which B compares.
    """
    shown = {"A": {(5, 0): {1: Effect.CHANGED}}}
    tables = setups("NDB$EPOCH2()", "NDB$OLD(x)", binlog_type=9)
    result = run("B:d1=5,i1=6/7@15 A:<15@5 B:<5@16", tables, shown, roles=ROLES)
    assert outcomes(result, "A")[0] == (Verdict.CANNOT_TELL, Cause.NONE)
    assert result.clusters["B"].stop is None
    assert outcomes(result, "B") == [(Verdict.CANNOT_TELL, Cause.NONE)]
