"""When rows were judged: what explains the effects in binlogs, and what they leave open."""

from collections.abc import Mapping

import attrs
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.inference.moments import Moments, _apart, find_moments
from conflict.engine.inference.placement import place_untraced, restricted, touched_rows
from conflict.engine.ledger.contradictions import contradicted_rows
from conflict.engine.ledger.open_places import OpenEpoch, OpenRow
from conflict.engine.ledger.resolution_ledger import ReferenceLedger
from conflict.engine.ledger.summary import with_open_rows, with_open_schedule
from conflict.history.scheduling.placing import Inference
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply
from conflict.rules.replication_table import Role
from conflict.runs.reference_run import resolve_settled
from tests.conflict.engine.inference.test_placement import FUNCTIONS, truth_of
from tests.conflict.figures import figures
from tests.conflict.histories import Setups, history, key, setups
from tests.conflict.worlds import Step, World, steps, world
from tests.examples import examples

ROW, SECOND = ("d.t", key(1)), ("d.t", key(2))
TRANS, EPOCH, MAX = "NDB$EPOCH_TRANS()", "NDB$EPOCH()", "NDB$MAX(x)"
CHANGED, DELETED = Effect.CHANGED, Effect.DELETED
REFRESHED, ABSENT = Effect.REFRESHED, Effect.REFRESHED_ABSENT
Shown = Mapping[tuple[int, int], Mapping[tuple[str, bytes], Effect]]
BOTH_ON_B = {(11, 0): {ROW: CHANGED, SECOND: CHANGED}}


def found(text: str, on_a: Shown, on_b: Shown, a: str | None = None) -> Moments:
    """Find the moments in a History, given the effects in both binlogs."""
    made = history(text)
    return find_moments(made, setups(a), {"A": on_a, "B": on_b})


def judged(moments: Moments) -> dict[tuple[str, int], dict[bytes, tuple[int, int]]]:
    """Return by cluster and own epoch which rows were judged earlier, and after which position."""
    return {(name, place[0]): {each.key: each.after for each in rows} for (name, place), rows in moments.found.items()}


class TestExplained:
    """The binlog shows another effect than the order of its groups gives."""

    def test_a_row_that_was_missing_meanwhile(self):
        """A wrote row 1 again just before B's delete was committed. The delete found nothing, as nothing shows."""
        text = "A:in1=5@1 B:<1@11 A:dn1=5@2 B:dn1=5@12 A:in1=6@3 A:in2=1@3 B:in9=1@12 A:<12@4"
        row, ninth = ("d.n", key(1)), ("d.n", key(9))
        moments = found(text, {(4, 0): {ninth: CHANGED}}, {(11, 0): {row: CHANGED}})
        # It can have been judged before any of its three changes, or after all of them.
        assert judged(moments) == {("A", 4): {key(1): (3, -1)}}
        assert moments.inferences == [Inference("A", 12, judged_earlier=1, candidates=4, rows=1)]

    def test_a_row_that_a_function_rejects(self):
        """Row 1 was refreshed as absent: it was in conflict, and was deleted before the refresh."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:d1=1@12 A:d1=5@4 A:<12@4"
        moments = found(text, {(4, 1): {ROW: ABSENT}}, BOTH_ON_B, EPOCH)
        assert judged(moments) == {("A", 4): {key(1): (4, -1)}}

    def test_a_transaction(self):
        """Both rows show as refreshed, so the transaction was rejected, so row 1 was still there in pass TRACK."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:d1=1,u2=1>9@12 A:d1=5@4 A:<12@5"
        moments = found(text, {(5, 0): {ROW: ABSENT, SECOND: REFRESHED}}, BOTH_ON_B, TRANS)
        assert judged(moments) == {("A", 5): {key(1): (4, -1)}}
        assert moments.inferences == [Inference("A", 12, judged_earlier=1, candidates=3, rows=2)]

    def test_two_rows_at_different_moments(self):
        """Row 1 was judged when it was there again, in epoch 4; row 2 before that, while both were missing."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:d1=1,d2=1@3 B:d1=1,d2=1@12 A:i1=5,i2=7@4 A:d1=5@5 A:<12@6"
        moments = found(text, {(6, 0): {ROW: ABSENT}}, BOTH_ON_B, EPOCH)
        assert judged(moments) == {("A", 6): {key(1): (5, -1), key(2): (4, -1)}}

    def test_the_first_of_many_changes(self):
        """57 changes of the row, of which the first tells: no number of moments is too many."""
        changes = " ".join(f"A:un1={number}>{number + 1}@{number}" for number in range(4, 60))
        text = f"A:in1=1@1 B:<1@11 A:dn1=1@2 B:dn1=1,in9=1@12 A:in1=4@3 {changes} A:<12@60"
        row, ninth = ("d.n", key(1)), ("d.n", key(9))
        moments = found(text, {(60, 0): {ninth: CHANGED}}, {(11, 0): {row: CHANGED}})
        assert judged(moments) == {("A", 60): {key(1): (3, -1)}}

    def test_what_follows_needs_no_explanation(self):
        """B deletes row 1, because A refreshed it as absent: only the cause of both is explained."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:d1=1@12 B:i1=8@13 A:d1=5@4 A:<12@4 B:<4@14"
        on_b = {**BOTH_ON_B, (14, 0): {ROW: DELETED}}
        assert list(judged(found(text, {(4, 1): {ROW: ABSENT}}, on_b, EPOCH))) == [("A", 4)]

    def test_workers_that_overlap(self):
        """Row 1 was missing only before the epoch in front was committed; another worker was at this one by then."""
        text = "A:in1=5@1 B:<1@11 A:dn1=5@2 B:in8=1@12 B:dn1=5,in9=1@13 A:in1=6@3 A:<12@4 A:<13@5"
        row, eighth, ninth = ("d.n", key(1)), ("d.n", key(8)), ("d.n", key(9))
        moments = found(text, {(4, 0): {eighth: CHANGED}, (5, 0): {ninth: CHANGED}}, {(11, 0): {row: CHANGED}})
        assert judged(moments) == {("A", 5): {key(1): (3, -1)}}


class TestNotExplained:
    """Nothing is concluded."""

    TEXT = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:d1=1,u2=1>9@12 A:d1=5@4 A:<12@5"

    def test_nothing_to_explain(self):
        """The order of the binlog gives what it shows."""
        assert found(self.TEXT, {(5, 0): {SECOND: CHANGED}}, BOTH_ON_B, TRANS).inferences == []

    def test_no_moment_explains_it(self):
        """Row 2 was not deleted by any operation."""
        moments = found(self.TEXT, {(5, 0): {SECOND: DELETED}}, BOTH_ON_B, TRANS)
        assert (moments.found, moments.inferences, moments.unexplained) == ({}, [], 1)

    def test_a_locked_row(self):
        """B's update would have been applied before A's, and its lock held A's change back: it cannot explain."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 B:u1=1>9@12 A:u1=1>5@3 A:<12@4"
        moments = found(text, {(4, 0): {ROW: CHANGED}}, BOTH_ON_B, EPOCH)
        assert (moments.found, moments.inferences) == ({}, [])

    def test_a_binlog_without_effects(self):
        """`log_replica_updates` was off: there is nothing to explain."""
        assert found(self.TEXT, {}, {}, TRANS) == Moments()


class TestOpen:
    """Several moments have the effect that the binlog shows."""

    def test_why_a_row_was_rejected(self):
        """B's update lost to A's greater value, or found no row after A's delete."""
        text = "A:i1=5@1 B:<1@11 A:u1=5>9@2 B:u1=5>7@12 B:in9=1@12 A:d1=9@3 A:<12@4"
        moments = found(text, {(4, 0): {("d.n", key(9)): CHANGED}}, {(11, 0): {ROW: CHANGED}}, MAX)
        ((row,),) = (epoch.rows for epoch in moments.open_epochs)
        causes = [[each.decision.cause.name for each in answer.operations] for answer in row.answers]
        assert (row.key, causes, row.chosen) == (key(1), [["ROW_DOES_NOT_EXIST"], ["ROW_IN_CONFLICT"]], 0)

    def test_counters_go_with_the_moment(self):
        """Both deleted row 1, or it was in conflict; it was refreshed in either case, because of the update before."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:u1=1>7@12 B:d1=7@12 A:d1=5@4 A:<12@5"
        moments = found(text, {(5, 0): {ROW: ABSENT}}, BOTH_ON_B, EPOCH)
        ((row,),) = (epoch.rows for epoch in moments.open_epochs)
        first, second = (dict(answer.counters) for answer in row.answers)
        assert first == {"Ndb_conflict_epoch_delete_delete_count": 1, "Ndb_conflict_fn_epoch": 2}
        assert second == {"Ndb_conflict_fn_epoch": 2}

    def test_a_row_that_only_one_moment_explains(self):
        """Nothing is open about it."""
        text = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:d1=1@12 A:d1=5@4 A:<12@4"
        assert found(text, {(4, 1): {ROW: ABSENT}}, BOTH_ON_B, EPOCH).open_epochs == []


def is_possible(epochs: list[OpenEpoch], applier: str, epoch: int, decided: dict[tuple[str, bytes], object]) -> bool:
    """Whether the decisions on the open rows of an epoch are among their answers."""
    rows = [row for each in epochs if (each.applier, each.foreign_epoch) == (applier, epoch) for row in each.rows]
    return all(decided[row.table, row.key] in _answers(row) for row in rows)


def _answers(row: OpenRow) -> list[object]:
    return [[(each.decision.verdict, each.decision.cause) for each in answer.operations] for answer in row.answers]


def check(made: World, tables: Setups, roles: dict[str, Role]) -> None:
    """Compare what is found of a world's binlogs, which do not hold the moments, with what happened."""
    known, _ = truth_of(made, roles)
    recorded = {
        cluster.name: {place: each for place, each in cluster.result.effects.items() if place[0] in made.closed[at]}
        for at, cluster in enumerate(made.replayed)
    }
    placed = place_untraced(restricted(known, touched_rows(known, tables, recorded)), tables, recorded)
    placed_history, resolution, moments = resolve_settled(placed.history(known), tables, recorded)
    compared = {
        name: contradicted_rows((result.effects, {}), (recorded[name], {}))
        for name, result in resolution.clusters.items()
    }
    summary = with_open_schedule(
        figures(ReferenceLedger(placed_history, tables, resolution, compared)), placed.schedule
    )
    summary = with_open_rows(summary, moments.open_epochs)
    assert summary.contradicted == 0
    traced = {
        (cluster.name, item.foreign_epoch)
        for cluster in placed_history.clusters
        for item in cluster.timeline
        if isinstance(item, EpochApply) and item.traced
    }
    for cluster in made.replayed:
        result, truth = resolution.clusters[cluster.name], cluster.result
        assert {row: (each.epoch, each.local) for row, each in cluster.store.rows.items()} == result.versions
        for applier, epoch in traced:
            if applier == cluster.name:
                decided: dict[tuple[str, bytes], object] = {}
                for each in cluster.outcomes:
                    if each.source_epoch == epoch:
                        decided.setdefault((each.table, each.key), []).append((each.verdict, each.cause))
                assert is_possible(moments.open_epochs, applier, epoch, decided)
        for counter, value in truth.counters.items():
            least, most = summary.counter_ranges[cluster.name].get(counter, (result.counters[counter],) * 2)
            assert least <= value <= most, (cluster.name, counter)


EARLY = st.lists(st.integers(0, 3), min_size=1, max_size=4)


@examples(30, long=120)
@given(st.sampled_from(FUNCTIONS), steps("tn"), EARLY)
def test_moments_of_functions_by_column(function: str, done: list[Step], early: list[int]):
    """Rows are right, no effect is left unexplained, and what happened is among the candidates."""
    made = world(function)
    made.early = early
    made.run(done)
    for cluster in (0, 1):
        made.close(cluster)
    check(made, setups(function, function), {})


@examples(30, long=120)
@given(st.sampled_from([EPOCH, TRANS, "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"]), steps("tn"), EARLY)
def test_moments_of_functions_by_epoch(function: str, done: list[Step], early: list[int]):
    """The same, where rows are refreshed and transactions rejected."""
    roles = {"A": Role.PRIMARY, "B": Role.SECONDARY} if "EPOCH2" in function else {}
    made = world(function, only_first="EPOCH2" not in function, roles=roles)
    made.early = early
    made.run(done)
    for cluster in (0, 1):
        made.close(cluster)
    check(made, setups(function, function if "EPOCH2" in function else None), roles)


@attrs.frozen
class _Touch:
    """An operation: the row that it touches, and its transaction."""

    row: tuple[str, bytes]
    group: int


def test_rows_that_no_transaction_links_with_a_row_that_is_not_known() -> None:
    """Transaction 2 touches row 3, which is not known, and row 2, as does 1 with row 1; 3 and 4 touch others."""
    rows = [("d.t", key(number)) for number in range(6)]
    touches = [(1, 1), (1, 2), (2, 2), (2, 3), (3, 4), (4, 4), (4, 5)]
    entries = [_Touch(rows[row], transaction) for transaction, row in touches]
    known = frozenset(rows) - {rows[3]}
    assert _apart(entries, known) - {rows[0]} == {rows[4], rows[5]}
    assert _apart(entries[4:], known) == known
