"""Changes that were lost: rejected, or overwritten by a change that had not seen them."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.columnar.bucket_round import with_own_causes
from conflict.engine.inference.replay import resolve
from conflict.engine.kernels.lost_changes import TimedDecisions, lost_changes, written_by
from conflict.history.model import Cluster, History
from conflict.history.timeline import EpochApply, Transaction
from conflict.rules.decision import Cause, Verdict
from conflict.rules.lost_updates import RowWrite, overwrite, write
from conflict.rules.replication_table import Role
from ndb_formats.events.rows_event import Operation
from tests.conflict.engine.columnar.one_bucket import bucket_by_kernels
from tests.conflict.engine.columnar.test_early_rows import with_moments
from tests.conflict.histories import Setups, history, setups
from tests.conflict.worlds import random_steps, world
from tests.examples import examples

EPOCH2 = {"A": Role.PRIMARY, "B": Role.SECONDARY}
# A's update in epoch 2 had not seen B's update; then A has.
SEEN = "A:i1=5/5@1 B:<1@11 A:u1=5>6@2 B:<2@12 B:u1=6>7@13 A:<13@3"


def lost(made: History, tables: Setups) -> dict[str, tuple[list[int], list[int]]]:
    """Return, per cluster, the numbers of its changes that were rejected, and of those that were overwritten."""
    result = bucket_by_kernels(made, tables, resolve(made, tables))
    bucket = result.bucket
    written = written_by(bucket.rows, bucket.column_sets, (bucket.key_table, bucket.numbers.tables))
    decisions = with_own_causes(result.folded, result.clusters, result.applies, bucket.key_table)
    made_of = TimedDecisions(result.applies.applier, result.folded.own_end, decisions)
    found = lost_changes(made_of, [rows.key for rows in bucket.rows], written, len(bucket.key_table))
    return {
        name: ([*map(int, each.rejected.nonzero()[0])], [*map(int, each.overwritten.nonzero()[0])])
        for name, each in zip("AB", found, strict=True)
    }


@pytest.mark.parametrize(
    ("text", "function", "expected"),
    [
        # Nothing meets.
        ("A:i1=5@1 B:<1@11 B:u1=5>9@12 A:<12@2", None, {"A": ([], []), "B": ([], [])}),
        # Both update at once, and no function: each overwrites the other.
        ("A:i1=5@1 B:<1@11 A:u1=5>6@2 B:u1=5>9@12 A:<12@3 B:<2@13", None, {"A": ([], [1]), "B": ([], [0])}),
        # The greater value wins: that of A is overwritten there and rejected here.
        ("A:i1=5@1 B:<1@11 A:u1=5>6@2 B:u1=5>9@12 A:<12@3 B:<2@13", "NDB$MAX(x)", {"A": ([1], [1]), "B": ([], [])}),
        # Of two own updates before it, the later one hides the earlier.
        ("A:i1=5@1 B:<1@11 A:u1=5>6@2 A:u1=6>7@2 B:u1=5>9@12 A:<12@3", None, {"A": ([], [2]), "B": ([], [])}),
        # Other columns are written: nothing is lost. A row that another inserted is not overwritten either.
        ("A:i1=5/5@1 B:<1@11 A:u1=>6@2 B:u1=/9@12 A:<12@3 B:<2@13", None, {"A": ([], []), "B": ([], [])}),
        # Each hides one column: both of A's are overwritten.
        ("A:i1=5/5@1 B:<1@11 A:u1=>6@2 A:u1=/7@2 B:u1=5>9/9@12 A:<12@3", None, {"A": ([], [1, 2]), "B": ([], [])}),
        # A delete takes the update away, and an epoch that did not arrive takes nothing.
        ("A:i1=5@1 B:<1@11 A:u1=5>6@2 B:d1=5@12 A:<12@3", None, {"A": ([], [1]), "B": ([], [])}),
        ("A:i1=5@1 B:<1@11 A:u1=5>6@2 B:d1=5@12 B:<2@13", None, {"A": ([], []), "B": ([], [])}),
        # Both delete, and both insert: a delete is not lost by a delete. Then the row is made again.
        ("A:i1=5@1 B:<1@11 A:d1=5@2 B:d1=5@12 A:<12@3 B:<2@13", None, {"A": ([], []), "B": ([], [])}),
        ("A:i1=5@1 B:<1@11 A:d1=5@2 B:d1=5@12 B:i1=7@13 A:<12@3 A:<13@4", None, {"A": ([], [1]), "B": ([], [])}),
        # The insert hides behind the update, and the row stays; a delete takes both away.
        ("A:i1=5/5@1 A:u1=5>6@2 B:i1=7/7@11 A:<11@3", None, {"A": ([], [0, 1]), "B": ([], [])}),
        ("A:i1=5/5@1 A:u1=5/5>6/6@2 B:i1=7/7@11 A:<11@3", None, {"A": ([], [1]), "B": ([], [])}),
        ("A:i1=5/5@1 A:u1=5/5>6/6@2 B:i1=7/7,d1@11 A:<11@3", None, {"A": ([], [0, 1]), "B": ([], [])}),
        # A change after the foreign one was applied has seen it.
        ("A:i1=5@1 B:<1@11 B:u1=5>9@12 A:<12@2 A:u1=9>6@3 B:<3@13", None, {"A": ([], []), "B": ([], [])}),
        # B skipped epoch 1 and took epoch 2: its delete had seen the update of A, and not the insert before it.
        ("A:i1=5/5@1 A:u1=5>6@2 B:i1=8/8@11 B:<2@12 B:d1=6/8@13 A:<13@3", None, {"A": ([], [0]), "B": ([], [0])}),
        # B is set back, and applies A's epoch 2 again: what it overwrites is A's epoch 4, which had seen B's update.
        (f"{SEEN} A:u1=7/5>8/8@4 B:<4@14 B:<2@15", None, {"A": ([], []), "B": ([], [])}),
        # The same, but epoch 4 set the other column; or B has changed the row again, and nobody has seen that.
        (f"{SEEN} A:u1=/5>/8@4 B:<4@14 B:<2@15", None, {"A": ([], []), "B": ([], [0])}),
        (f"{SEEN} A:u1=7/5>8/8@4 B:<4@14 B:u1=8>9@15 B:<2@16", None, {"A": ([], []), "B": ([], [1])}),
        # Both delete, and one delete is rejected for it: nothing is lost.
        ("A:i1=5@1 B:<1@11 A:d1=5@2 B:d1=5@12 A:<12@3", "NDB$EPOCH()", {"A": ([], []), "B": ([], [])}),
        # A write that lacks a column is an update, logged as a write: it changes its own columns alone.
        ("A:i1=5/5@1 B:<1@11 A:u1=/6@2 B:i1=9@12 A:<12@3", None, {"A": ([], []), "B": ([], [])}),
        ("A:i1=5/5@1 B:<1@11 A:d1=5@2 B:i1=9@12 A:<12@3", None, {"A": ([], [1]), "B": ([], [])}),
        # By epoch, the change of B that has not seen that of A is rejected, and that of A stays.
        ("A:i1=5@1 B:<1@11 A:u1=5>6@2 B:u1=5>9@12 A:<12@3", "NDB$EPOCH()", {"A": ([], []), "B": ([0], [])}),
    ],
)
def test_what_is_lost(text: str, function: str | None, expected: dict[str, tuple[list[int], list[int]]]) -> None:
    """Worked by hand."""
    by_epoch = function == "NDB$EPOCH()"
    assert lost(history(text), setups(function, None if by_epoch else function)) == expected


@attrs.frozen
class _Change:
    """A change: its place in its cluster's timeline, its epoch and number there, its row, and what it does to it."""

    place: int
    epoch: int
    ordinal: int
    row: object
    operation: Operation
    columns: frozenset[int]

    @property
    def wrote(self) -> set[object]:
        """What it wrote: columns, and whether the row is there."""
        if self.operation is Operation.DELETE_ROW:
            return {"gone"}
        return set(self.columns) | ({"there"} if self.operation is Operation.WRITE_ROW else set())

    @property
    def overwrites(self) -> set[object]:
        """What of an earlier change it takes away."""
        more = {Operation.WRITE_ROW: {"gone"}, Operation.DELETE_ROW: {"there"}}.get(self.operation, set())
        return {1, 2, *more} if more else set(self.columns)

    @property
    def hides(self) -> set[object]:
        """What of an earlier change of its own cluster no later change can take away."""
        return set(self.columns) if self.operation is Operation.UPDATE_ROW else {1, 2, "there", "gone"}


def _timeline(cluster: Cluster) -> tuple[list[_Change], dict[int, int]]:
    """Return a cluster's changes, and the places at which it applied epochs of the other one."""
    changes: list[_Change] = []
    applied: dict[int, int] = {}
    for place, item in enumerate(cluster.timeline):
        if isinstance(item, EpochApply) and item.applied:
            applied.setdefault(item.foreign_epoch, place)
        elif isinstance(item, Transaction):
            first = sum(each.epoch == item.epoch for each in changes)
            for ordinal, change in enumerate(item.changes, first):
                deleted = change.after is None or change.operation is Operation.DELETE_ROW
                columns = {1, 2} if deleted else {1, 2} & set(change.after.present if change.after else ())
                changes.append(
                    _Change(
                        place, item.epoch, ordinal, (change.table, change.key), change.operation, frozenset(columns)
                    )
                )
    return changes, applied


def _overwritten_by(other: _Change, at: int, mine: list[_Change], received: dict[int, int]) -> set[int]:
    """Return which changes a change overwrites that is applied at a place, and had seen what its cluster received."""
    left, found = other.overwrites, set()
    for number, own in reversed([*enumerate(mine)]):
        if own.row == other.row and own.place < at:
            if received.get(own.epoch, other.place) < other.place:
                break
            if left & own.wrote:
                found.add(number)
            left -= own.hides
    return found


def brute_force(made: History, tables: Setups) -> dict[str, tuple[list[int], list[int]]]:
    """Return the same by comparing every change with every change."""
    outcomes = [each for each in resolve(made, tables).outcomes if each.ordinal >= 0]
    verdicts = {(each.source, each.source_epoch, each.ordinal): each.verdict for each in outcomes}
    gone = {
        (each.source, each.source_epoch, each.ordinal)
        for each in outcomes
        if each.operation is Operation.DELETE_ROW and Cause.ROW_DOES_NOT_EXIST in (each.cause, each.own_cause)
    }
    sides = {cluster.name: _timeline(cluster) for cluster in made.clusters}
    found = {}
    for name, other in (("A", "B"), ("B", "A")):
        (mine, applied), (theirs, received) = sides[name], sides[other]
        overwritten: set[int] = set()
        for change in theirs:
            if verdicts.get((other, change.epoch, change.ordinal)) is Verdict.APPLIED:
                overwritten |= _overwritten_by(change, applied[change.epoch], mine, received)
        rejected = [
            number
            for number, change in enumerate(mine)
            if verdicts.get((name, change.epoch, change.ordinal)) is Verdict.REJECTED
            and (name, change.epoch, change.ordinal) not in gone
        ]
        found[name] = (rejected, sorted(overwritten))
    return found


def by_rules(made: History, tables: Setups) -> dict[str, list[int]]:
    """Return what was overwritten, by the rules for one row at a time."""
    applied_changes = {
        (each.source, each.source_epoch, each.ordinal)
        for each in resolve(made, tables).outcomes
        if each.ordinal >= 0 and each.verdict is Verdict.APPLIED
    }
    sides = {cluster.name: _timeline(cluster) for cluster in made.clusters}
    found = {}
    for name, other in (("A", "B"), ("B", "A")):
        (mine, applied), (theirs, received) = sides[name], sides[other]
        steps = [(own.place, own.ordinal, own, number) for number, own in enumerate(mine)]
        steps += [
            (applied[change.epoch], change.ordinal, change, -1)
            for change in theirs
            if (other, change.epoch, change.ordinal) in applied_changes
        ]
        authors: dict[object, dict[int, int]] = {}
        overwritten: set[int] = set()
        for _, _, change, number in sorted(steps, key=lambda step: step[:2]):
            written, before = RowWrite(change.operation, change.columns, frozenset({1, 2})), authors.get(change.row, {})
            if number >= 0:
                authors[change.row] = write(before, number, written)
                continue
            authors[change.row], over = overwrite(before, -1, written)
            overwritten |= {
                each for each in over - {-1} if received.get(mine[each].epoch, change.place) >= change.place
            }
        found[name] = sorted(overwritten)
    return found


FUNCTIONS = [None, "NDB$OLD(x)", "NDB$MAX(x)", "NDB$MAX_DEL_WIN_INS(x)", "NDB$EPOCH()", "NDB$EPOCH2_TRANS()"]


@examples(15, long=60)
@given(st.sampled_from(FUNCTIONS), st.integers(0, 2**32), st.integers(5, 80))
def test_what_is_lost_follows_from_its_definition(function: str | None, seed: int, count: int) -> None:
    """As by comparing every change with every change, and by the rules for one row."""
    roles = EPOCH2 if function and "EPOCH2" in function else {}
    both = function != "NDB$EPOCH()"
    made = world(function, only_first=not both, roles=roles)
    made.run(random_steps(seed, count, "tn"))
    for cluster in (0, 1):
        made.close(cluster)
    known, tables = with_moments(made, roles), setups(function, function if both else None)
    found = lost(known, tables)
    assert found == brute_force(known, tables)
    assert {name: overwritten for name, (_, overwritten) in found.items()} == by_rules(known, tables)


@examples(15, long=60)
@given(st.integers(0, 2**32), st.integers(20, 80))
def test_the_primary_loses_no_update(seed: int, count: int) -> None:
    """Under NDB$EPOCH2_TRANS, with primary keys, both roles and no change of definitions."""
    made = world("NDB$EPOCH2_TRANS()", roles=EPOCH2)
    made.run(random_steps(seed, count))
    for cluster in (0, 1):
        made.close(cluster)
    known, tables = with_moments(made, EPOCH2), setups("NDB$EPOCH2_TRANS()", "NDB$EPOCH2_TRANS()")
    rejected, overwritten = lost(known, tables)["A"]
    operations = [
        change.operation
        for item in known.clusters[0].timeline
        if isinstance(item, Transaction)
        for change in item.changes
    ]
    assert [number for number in rejected + overwritten if operations[number] is Operation.UPDATE_ROW] == []
