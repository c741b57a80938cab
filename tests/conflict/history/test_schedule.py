"""When each cluster applied which epoch of the other."""

from typing import Any

import attrs
import pytest

from conflict.errors import HistoryError
from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.scheduling import schedule
from conflict.history.scheduling.schedule import Hint
from conflict.history.scheduling.start import consistent_cut
from conflict.history.scheduling.summaries import Summary, summarize
from conflict.history.timeline import (
    END,
    LAST_GROUP,
    EpochApply,
    Position,
    Transaction,
    Window,
    statement_positions,
    timeline_of,
)
from tests.conflict.histories import change


def own(number: int, *groups: int, applied: tuple[tuple[int, int], ...] = ()) -> Summary:
    """Return an own epoch: groups of transactions, and (group, foreign epoch) of what server 2 sent."""
    return Summary(number, groups, tuple(AppliedEpoch(group, 2, epoch) for group, epoch in applied))


def sent(number: int, *back: int) -> Summary:
    """Return an epoch of server 2, and the epochs of server 1 whose news it carries."""
    return Summary(number, (0,), tuple(AppliedEpoch(place, 1, epoch) for place, epoch in enumerate(back, start=1)))


def place_applies(applier: list[Summary], source: list[Summary], **how: Any) -> tuple[list[EpochApply], int]:
    """Return the epoch applies as objects, and how many places were assumed."""
    applies, assumed = schedule.place_applies(applier, source, **how)
    return list(applies.applies()), assumed


def placed(
    applier: list[Summary], source: list[Summary], hints: dict[int, Hint] | None = None, *, cut: bool = False
) -> tuple[list[tuple[int, int, int, bool]], int]:
    """Return (foreign epoch, own epoch, group, traced) of each epoch apply, and how many places were assumed."""
    known = [] if hints is None else [hints]
    applies, assumed = place_applies(applier, source, source_name="B", source_id=2, applier_id=1, hints=known, cut=cut)
    assert all(apply.source == "B" for apply in applies)
    applied = [apply for apply in applies if apply.applied]
    return [(apply.foreign_epoch, apply.epoch, apply.group, apply.traced) for apply in applied], assumed


class TestTraced:
    """Epochs that the binlog shows."""

    def test_nothing(self):
        """Without epochs there is nothing to apply."""
        assert placed([], []) == ([], 0)

    def test_where_the_binlog_shows_it(self):
        """It is in the epoch and group of its row of ndb_apply_status."""
        applier = [own(5, 0, applied=((1, 100), (2, 101))), own(6, applied=((0, 103),))]
        source = [sent(100), sent(101), sent(103)]
        assert placed(applier, source) == ([(100, 5, 1, True), (101, 5, 2, True), (103, 6, 0, True)], 0)

    def test_epochs_of_other_servers(self):
        """Only rows of the source count."""
        applier = [Summary(5, (), (AppliedEpoch(0, 3, 100), AppliedEpoch(1, 2, 100)))]
        assert placed(applier, [sent(100)]) == ([(100, 5, 1, True)], 0)

    def test_an_epoch_that_the_source_does_not_show(self):
        """What was applied was there, also where the source's binlogs begin later or end earlier."""
        assert placed([own(5, applied=((0, 99),))], []) == ([(99, 5, 0, True)], 0)

    def test_epochs_beyond_63_bits(self):
        """Epochs are unsigned 64-bit numbers."""
        applier = [own(2**64 - 1, applied=((0, 2**63), (1, 2**64 - 1)))]
        applies = [(2**63, 2**64 - 1, 0, True), (2**64 - 1, 2**64 - 1, 1, True)]
        assert placed(applier, [sent(2**63), sent(2**64 - 1)]) == (applies, 0)


class TestUntraced:
    """Epochs without a trace."""

    def test_as_early_as_possible(self):
        """Nothing bounds it: it comes before everything, in the epoch that is logged first."""
        assert placed([own(5, 0), own(6, 0)], [sent(100)]) == ([(100, 5, -1, False)], 1)

    def test_without_own_transactions_nothing_is_assumed(self):
        """Where nothing of its own lies in between, the place cannot matter."""
        assert placed([own(5, applied=((0, 101),))], [sent(100), sent(101)]) == (
            [(100, 5, -1, False), (101, 5, 0, True)],
            0,
        )

    def test_a_transaction_before_the_next_trace(self):
        """The transaction in group 0 may have come before or after: that is an assumption."""
        assert placed([own(5, 0, applied=((1, 101),))], [sent(100), sent(101)]) == (
            [(100, 5, -1, False), (101, 5, 1, True)],
            1,
        )

    def test_after_the_previous_trace(self):
        """Epochs are applied in order, so it belongs to the epoch that is logged next."""
        assert placed([own(5, 0, applied=((1, 100),)), own(7, 0)], [sent(100), sent(101)]) == (
            [(100, 5, 1, True), (101, 7, -1, False)],
            1,
        )

    def test_in_the_middle_of_an_epoch(self):
        """After a trace that is not the last group, it is still in that epoch."""
        applier = [own(5, 0, 2, applied=((1, 100),))]
        assert placed(applier, [sent(100), sent(101)]) == ([(100, 5, 1, True), (101, 5, 1, False)], 1)

    def test_after_the_last_own_epoch(self):
        """With no epoch logged after it, it belongs to one that would come next."""
        assert placed([own(5, applied=((0, 100),))], [sent(100), sent(101)]) == (
            [(100, 5, 0, True), (101, 6, -1, False)],
            0,
        )

    def test_causal_bound(self):
        """An epoch that carries news of epoch 5 was applied after epoch 5; so was every later one."""
        applier = [own(5, 0), own(6, 0), own(7, 0)]
        assert placed(applier, [sent(100), sent(101, 5), sent(102)]) == (
            [(100, 5, -1, False), (101, 6, -1, False), (102, 6, -1, False)],
            3,
        )

    def test_causal_bound_between_logged_epochs(self):
        """News of an epoch that was not logged count as news of the last one logged before it."""
        assert placed([own(5, 0), own(9, 0)], [sent(100, 7)]) == ([(100, 9, -1, False)], 1)

    def test_causal_bound_at_the_end(self):
        """After the last transaction nothing is left to assume."""
        assert placed([own(5, 0), own(6, 0)], [sent(100, 6)]) == ([(100, 7, -1, False)], 0)

    def test_every_epoch_counts_for_itself(self):
        """Each untraced epoch with a transaction in its bounds is one assumption."""
        applies, assumed = placed([own(5, 0)], [sent(100), sent(101), sent(102)])
        assert (len(applies), assumed) == (3, 3)


class TestHints:
    """What is known from elsewhere."""

    def test_earliest(self):
        """It was applied after group 0 of epoch 5, so it belongs to epoch 6."""
        hints = {100: Hint(earliest=(5, 0))}
        assert placed([own(5, 0), own(6, 0)], [sent(100)], hints) == ([(100, 6, -1, False)], 1)

    def test_earliest_inside_an_epoch(self):
        """It follows that group."""
        hints = {100: Hint(earliest=(5, 0))}
        assert placed([own(5, 0, 1)], [sent(100)], hints) == ([(100, 5, 0, False)], 1)

    def test_a_known_place_is_no_assumption(self):
        """Between the two bounds there is no transaction."""
        hints = {100: Hint(earliest=(5, 0), latest=(5, 0))}
        assert placed([own(5, 0), own(6, 0)], [sent(100)], hints) == ([(100, 6, -1, False)], 0)

    def test_latest_alone(self):
        """Before the first transaction after the start: there is one place only."""
        assert placed([own(5, 0)], [sent(100)], {100: Hint(latest=(0, -1))}) == ([(100, 5, -1, False)], 0)

    def test_latest_with_room(self):
        """One transaction lies between the bounds."""
        hints = {100: Hint(latest=(5, 0))}
        assert placed([own(5, 0), own(6, 0)], [sent(100)], hints) == ([(100, 5, -1, False)], 1)

    def test_after_a_whole_epoch(self):
        """A group greater than all others is the end of the epoch."""
        hints = {100: Hint(earliest=(5, LAST_GROUP), latest=(5, LAST_GROUP))}
        assert placed([own(5, 0, 1), own(6, 0)], [sent(100)], hints) == ([(100, 6, -1, False)], 0)

    def test_not_applied(self):
        """It is not in the schedule."""
        assert placed([own(5, 0)], [sent(100), sent(101)], {101: Hint(applied=False)}) == ([(100, 5, -1, False)], 1)

    def test_a_trace_outranks_a_hint(self):
        """Of place and of whether it was applied at all."""
        hints = {100: Hint(earliest=(9, 0), applied=False)}
        assert placed([own(5, applied=((0, 100),))], [sent(100)], hints) == ([(100, 5, 0, True)], 0)

    def test_a_hint_cannot_pass_the_next_trace(self):
        """Order comes first: epoch 100 is applied before epoch 101."""
        hints = {100: Hint(earliest=(9, 0))}
        assert placed([own(5, 0), own(6, applied=((0, 101),))], [sent(100), sent(101)], hints) == (
            [(100, 6, -1, False), (101, 6, 0, True)],
            0,
        )


class TestRewound:
    """Replicas that were rewound and applied epochs again."""

    def test_what_the_trace_shows(self):
        """An epoch that is not later than the one before shows it; from there on epochs are applied again."""
        applier = [own(5, applied=((0, 101),)), own(6, applied=((0, 100),))]
        assert placed(applier, [sent(100), sent(101)]) == (
            [(100, 5, -1, False), (101, 5, 0, True), (100, 6, 0, True), (101, 7, -1, False)],
            0,
        )

    def test_twice(self):
        """Each rewind starts a new period."""
        applier = [own(number, applied=((0, 100),)) for number in (5, 6, 7)]
        assert placed(applier, [sent(100)]) == ([(100, 5, 0, True), (100, 6, 0, True), (100, 7, 0, True)], 0)

    def test_without_a_trace(self):
        """Hints alone tell that epochs were applied again: they come after the known position."""
        applier = [own(5, applied=((0, 100), (1, 101))), own(6, 0)]
        again = Hint(earliest=(6, 0), latest=(6, 0), run=1)
        untraced = EpochApply(7, -1, "B", 101, traced=False, arrived=(6, 0), window=Window(), period=1)
        found = place_applies(
            applier,
            [sent(100), sent(101)],
            source_name="B",
            source_id=2,
            applier_id=1,
            hints=[{}, {100: again, 101: again}],
        )
        assert found == (
            [
                EpochApply(5, 0, "B", 100),
                EpochApply(5, 1, "B", 101),
                attrs.evolve(untraced, foreign_epoch=100, restarted=True),
                untraced,
            ],
            0,
        )

    def test_what_was_made_later(self):
        """An epoch that carries news of epoch 6, where epoch 100 was applied again, was not applied before that."""
        applier = [own(5, applied=((0, 100),)), own(6, applied=((0, 100),))]
        source = [sent(100), sent(101, 6)]
        applies, _ = place_applies(applier, source, source_name="B", source_id=2, applier_id=1, hints=[{}, {}])
        assert [(apply.foreign_epoch, apply.epoch, apply.traced) for apply in applies] == [
            (100, 5, True),
            (100, 6, True),
            (101, 7, False),
        ]

    def test_not_applied_before(self):
        """A trace of an epoch that was not applied before the rewind, by its hint, belongs after it."""
        applier = [own(5, applied=((0, 100),))]
        hints = [{100: Hint(applied=False)}, {100: Hint(run=1)}]
        applies, _ = place_applies(applier, [sent(100)], source_name="B", source_id=2, applier_id=1, hints=hints)
        assert [(apply.foreign_epoch, apply.epoch) for apply in applies] == [(100, 5)]

    def test_not_applied_in_two_periods(self):
        """Periods whose hints rule a trace out are passed over, also after one that it cannot belong to."""
        applier = [own(5, applied=((0, 100), (1, 101))), own(6, applied=((0, 101),))]
        hints = [{}, {101: Hint(applied=False)}, {}]
        source = [sent(100), sent(101)]
        applies, _ = place_applies(applier, source, source_name="B", source_id=2, applier_id=1, hints=hints)
        traced = [(apply.period, apply.foreign_epoch) for apply in applies if apply.traced]
        assert traced == [(0, 100), (0, 101), (2, 101)]


class TestRuns:
    """Starts of an applier."""

    def applies(self, *runs: int) -> list[bool]:
        """Return which of epochs 100, 101, ... were the first to be applied after a restart."""
        epochs = range(100, 100 + len(runs))
        applier = [own(5, applied=tuple(enumerate(epochs)))]
        hints = [{epoch: Hint(run=run) for epoch, run in zip(epochs, runs, strict=True)}]
        source = [sent(epoch) for epoch in epochs]
        applies, _ = place_applies(applier, source, source_name="B", source_id=2, applier_id=1, hints=hints)
        return [apply.restarted for apply in applies]

    def test_one_run(self):
        """The first epoch apply of all is no restart: there was nothing to forget."""
        assert self.applies(0, 0, 0) == [False, False, False]

    def test_a_new_run(self):
        """The first epoch apply of each later run is one."""
        assert self.applies(0, 0, 1, 1, 3) == [False, False, True, False, True]

    def test_arrival(self):
        """It did not begin before the last own epoch of which it carries news, nor before its hint."""
        applier = [own(5, 0), own(6, 0, applied=((1, 100), (2, 101)))]
        hints = [{101: Hint(earliest=(6, 0))}]
        source = [sent(100, 5), sent(101)]
        applies, _ = place_applies(applier, source, source_name="B", source_id=2, applier_id=1, hints=hints)
        assert [apply.arrived for apply in applies] == [(5, 0), (6, 0)]


class TestBarriers:
    """Changes of definitions that an applier took from the other cluster."""

    def untraced(self, follows: int) -> EpochApply:
        """Return how epoch 101 was applied, if the applier logs such a change after its epoch 6."""
        applier = [own(5, 0, applied=((1, 100),)), own(6, 0), own(7, 0)]
        barriers = [schedule.Barrier(follows, (6, LAST_GROUP))]
        names = {"source_name": "B", "source_id": 2, "applier_id": 1}
        applies, _ = place_applies(applier, [sent(100), sent(101)], barriers=barriers, **names)
        return applies[1]

    def test_an_epoch_after_it(self):
        """It was applied after the change, if at all."""
        after = EpochApply(7, -1, "B", 101, traced=False, arrived=(6, LAST_GROUP), window=Window(certain=False))
        assert self.untraced(100) == after

    @pytest.mark.parametrize("follows", [101, END[0]])
    def test_an_epoch_before_it(self, follows: int):
        """It was surely applied, and before the change, also of one that the other binlog ends before."""
        before = EpochApply(6, -1, "B", 101, traced=False, window=Window((6, LAST_GROUP)))
        assert self.untraced(follows) == before


class TestCut:
    """Binlogs that end before the other side's do."""

    def test_what_may_have_left_a_trace_later(self):
        """After the last trace of a binlog that was cut short, no untraced epoch is placed."""
        applier = [own(5, 0, applied=((1, 101),)), own(6, 0)]
        source = [sent(100), sent(101), sent(102), sent(103)]
        assert placed(applier, source, cut=True) == ([(100, 5, -1, False), (101, 5, 1, True)], 1)
        assert [apply[0] for apply in placed(applier, source)[0]] == [100, 101, 102, 103]

    def cut(self, a: list[Summary], b: list[Summary]) -> tuple[list[int], list[int]]:
        """Return the epochs that are kept of both clusters."""
        kept = consistent_cut({"A": a, "B": b}, {"A": 1, "B": 2})
        return [summary.number for summary in kept["A"]], [summary.number for summary in kept["B"]]

    def test_nothing_missing(self):
        """Binlogs that hold all epochs that the other one shows are kept whole."""
        assert self.cut([own(5, 0), own(6, applied=((0, 100),))], [sent(100, 5), sent(101)]) == ([5, 6], [100, 101])

    def test_an_epoch_that_is_not_there(self):
        """An epoch that applied a missing one is left out, with all later ones."""
        a = [own(5, 0), own(6, applied=((0, 100),)), own(7, applied=((0, 101),)), own(8, 0)]
        assert self.cut(a, [sent(100)]) == ([5, 6], [100])

    def test_what_builds_on_what_was_left_out(self):
        """Epochs of both clusters are left out until nothing is missing."""
        a = [own(5, 0), own(6, applied=((0, 100),)), own(7, applied=((0, 102),)), own(8, 0)]
        assert self.cut(a, [sent(100, 5), sent(101, 8)]) == ([5, 6], [100])
        assert self.cut(a, [sent(100, 7), sent(101)]) == ([5], [])

    def test_one_binlog_is_empty(self):
        """Without the other binlog, only epochs before the first applied one are kept."""
        assert self.cut([own(5, 0), own(6, applied=((0, 100),))], []) == ([5], [])

    def test_an_epoch_from_before_the_beginning(self):
        """A binlog may show epochs from before the other one begins."""
        assert self.cut([own(5, applied=((0, 99),))], [sent(100)]) == ([5], [100])

    def test_other_servers(self):
        """Epochs of other servers do not matter."""
        a = [Summary(5, (), (AppliedEpoch(0, 3, 999),))]
        assert self.cut(a, [sent(100)]) == ([5], [100])

    def test_a_gap(self):
        """An epoch that is missing between two others means that a file was left out."""
        with pytest.raises(HistoryError) as caught:
            self.cut([own(5, applied=((0, 101),))], [sent(100), sent(102)])
        assert str(caught.value).startswith(
            "cluster A applied epoch 101 of cluster B, whose binlogs hold epochs before"
        )

    def test_the_summaries_stay_as_they_were(self):
        """Cutting makes new lists."""
        a = [own(5, applied=((0, 100),))]
        assert self.cut(a, []) == ([], [])
        assert len(a) == 1


def test_summarize():
    """A summary keeps the groups of transactions, what was applied, and the number of own changes."""
    applied = (AppliedEpoch(1, 2, 100),)
    first = Transaction(5, 0, (change("i1"), change("i2")))
    epoch = BinlogEpoch(5, (first, Transaction(5, 2, (change("i3"),))), applied, ((1, change("i4")),))
    assert summarize(epoch) == Summary(5, (0, 2), applied, 3)


def test_timeline():
    """By epoch and group; an untraced epoch apply follows its group, in its own order."""
    first, second, third = Transaction(5, 0, ()), Transaction(5, 2, ()), Transaction(6, 0, ())
    traced = EpochApply(5, 1, "B", 100)
    untraced = [EpochApply(5, 1, "B", epoch, traced=False) for epoch in (101, 102)]
    early = EpochApply(5, -1, "B", 99, traced=False)
    late = EpochApply(6, -1, "B", 103, traced=False)
    applies = [early, traced, *untraced, late]
    assert timeline_of([first, second, third], applies) == (early, first, traced, *untraced, second, late, third)


def test_positions_of_statements():
    """After the epoch before them, with room for an epoch apply between two, also where no number is left for them."""
    assert statement_positions([0, 10, 10, 20], [10, 15, 15, None]) == [(1, 0), (11, 0), (11, 2), (21, 0)]
    assert statement_positions([10, 10], [11, 11]) == [(11, -3), (11, -1)]


@pytest.mark.parametrize(
    ("position", "stands"),
    [
        ((10, 0), (10, 0)),  # between two groups of epoch 10
        ((10, 1), (11, -1)),  # after epoch 10, before the first statement
        ((11, 0), (11, 1)),  # between the statements
        ((11, 2), (15, -1)),  # after them, before epoch 15
        ((15, 0), (16, -1)),  # after epoch 15, before the last statement
        ((16, 0), (17, -1)),  # after that
    ],
)
def test_an_untraced_epoch_stands_on_its_side_of_a_statement(position: Position, stands: Position):
    """Epochs 10, with groups 0 and 1, and 15, with group 0; two statements between them, and one at the end."""
    statements = statement_positions([10, 10, 15], [15, 15, None])
    assert schedule.logged_at(position, [(10, 1), (15, 0)], statements) == stands
