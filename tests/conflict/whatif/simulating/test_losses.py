"""What a simulation says was lost is what the one definition of a lost update makes of its decisions, one by one."""

from __future__ import annotations

from collections import defaultdict

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.rules.decision import Cause, Verdict
from conflict.rules.lost_updates import RowWrite, loses, overwrite, write
from conflict.whatif.simulating.configuration import Model
from conflict.whatif.simulating.figures import final_decisions, lost_in
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT
from conflict.whatif.simulating.run import Simulated, simulate
from ndb_formats.events.rows_event import Operation
from tests.conflict.whatif.simulating.models import random_model, random_network
from tests.examples import examples

Epoch = tuple[int, int]  # number of the cluster, and of the epoch


@attrs.define
class Ledger:
    """
    Who wrote what, told from the decisions of a run.

    Attributes:
        run: The run.
        authors: Of each row on each cluster, who wrote which part of it last.
        origins: Of each relayed change, the changes of users that it comes from.
        carries: Of each epoch, those that it carries on.
        came: On each cluster, after how many of its epoch applies an epoch came.
        applies: How many epochs each cluster has applied.
        applied: How many its cluster had applied when each change was made; without those since which it applied none.
        done: The next change of each cluster.
        refused: What appliers rejected.
        rejected: What is lost by that.
        own_causes: What pass TRACK found, by epoch apply and source.
        overwritten: What was overwritten unseen.
    """

    run: Simulated
    authors: dict[tuple[int, int], dict[int, int]] = attrs.field(factory=lambda: defaultdict(dict))
    origins: dict[int, list[int]] = attrs.field(factory=dict)
    carries: dict[Epoch, list[Epoch]] = attrs.field(factory=lambda: defaultdict(list))
    came: dict[int, dict[Epoch, int]] = attrs.field(factory=lambda: defaultdict(dict))
    applies: dict[int, int] = attrs.field(factory=lambda: defaultdict(int))
    applied: dict[int, int] = attrs.field(factory=dict)
    done: list[int] = attrs.field(init=False)
    refused: set[int] = attrs.field(factory=set)
    rejected: set[int] = attrs.field(factory=set)
    own_causes: dict[tuple[int, int], Cause] = attrs.field(factory=dict)
    overwritten: set[int] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.done = self.run.world.changes.begin[:-1].tolist()
        tracked = self.run.world.tracked.first(int(self.run.world.run[0]["seen"]))
        places = zip(tracked.apply.tolist(), tracked.source.tolist(), strict=True)
        self.own_causes = dict(zip(places, map(Cause, tracked.cause.tolist()), strict=True))

    def tell(self) -> None:
        """Go through all epoch applies."""
        world, decisions = self.run.world, final_decisions(self.run)
        by_apply: dict[int, list[int]] = defaultdict(list)
        for place, number in enumerate(decisions.apply.tolist()):
            by_apply[number].append(place)
        for number, apply in enumerate(world.schedule.applies[: int(world.run[0]["applies"])]):
            here, there = int(apply["applier"]), int(apply["source"])
            self.make_own(here, int(world.changes.begin[here] + world.own_end[number]))
            made: dict[int, list[int]] = defaultdict(list)
            for place in by_apply[number]:
                self.decide(place, here, there, made)
            rows = world.changes.rows
            while (place := self.done[here]) < world.site[here]["stop"] and rows["relayed"][place] and apply["traced"]:
                if (rows["epoch"][place], rows["group"][place]) != (apply["epoch"], apply["group"]):
                    break
                self.origins[place] = made[int(rows["key"][place])]
                self.done[here] += 1
            self.applies[here] += 1
            foreign = (there, int(apply["foreign_epoch"]))
            self.arrive(here, foreign, self.applies[here])
            if apply["traced"]:
                self.carries[here, int(apply["epoch"])].append(foreign)

    def make_own(self, here: int, end: int) -> None:
        """Make the changes of a cluster's users up to one."""
        for place in range(self.done[here], end):
            key = int(self.run.world.changes.rows["key"][place])
            self.authors[here, key] = write(self.authors[here, key], place, self.written(place, "written"))
            self.applied[place] = self.applies[here]
        self.done[here] = end

    def decide(self, decision: int, here: int, there: int, made: dict[int, list[int]]) -> None:
        """Note what became of the changes that an operation comes from, and of those that they overwrite."""
        decisions, world = final_decisions(self.run), self.run.world
        if decisions.source[decision] < 0:
            return
        change, key = int(world.changes.begin[there] + decisions.source[decision]), int(decisions.key[decision])
        verdict, cause = Verdict(int(decisions.verdict[decision])), Cause(int(decisions.cause[decision]))
        own = Cause.NONE
        if cause is Cause.TRANS_IN_CONFLICT and world.tables[here, world.key_table[key]]["delete_delete"]:
            own = self.own_causes[int(decisions.apply[decision]), int(decisions.source[decision])]
        for origin in self.origins.get(change, [change]):
            if verdict is Verdict.REJECTED:
                self.refused.add(origin)
            if loses(verdict, Operation(int(decisions.operation[decision])), cause, own):
                self.rejected.add(origin)
            if verdict is Verdict.APPLIED:
                made[key].append(origin)
                brought = self.written(origin, "carried")
                self.authors[here, key], over = overwrite(self.authors[here, key], origin, brought)
                self.overwritten |= {each for each in over if not self.knew(origin, each)}

    def knew(self, later: int, earlier: int) -> bool:
        """Whether the cluster of a change had made or applied another one when it committed."""
        side, other = self.side(later), self.side(earlier)
        epoch = (other, int(self.run.world.changes.rows["epoch"][earlier]))
        came = self.came[side].get(epoch)
        return side == other or (came is not None and came <= self.applied.get(later, self.applies[side]))

    def arrive(self, here: int, epoch: Epoch, count: int) -> None:
        """Note that an epoch came to a cluster, and with it what it carries."""
        if self.came[here].setdefault(epoch, count) == count:
            for each in self.carries[epoch]:
                self.arrive(here, each, count)

    def side(self, change: int) -> int:
        """Return the cluster of a change."""
        return sum(change >= begin for begin in self.run.world.changes.begin[1:-1].tolist())

    def written(self, change: int, name: str) -> RowWrite:
        """Return what a change writes: the columns that it sets, or those of its after image."""
        row, bits = self.run.world.changes.rows[change], int(getattr(self.run.world.made, name)[change])
        table = self.run.model.tables[self.run.world.key_table[row["key"]]]
        columns = {column + 1 for column in range(table.columns) if bits >> column & 1}
        columns |= {table.columns + 1} if bits & int(RESOLVE_BIT) else set()
        return RowWrite(Operation(int(row["operation"])), frozenset(columns), table.data_columns)


def assert_lost_as_told(model: Model, seed: int) -> None:
    run = simulate(model, seed)
    ledger = Ledger(run)
    ledger.tell()
    for side, lost in enumerate(lost_in(run)):
        mine = run.own_changes(side).tolist()
        for name in ("refused", "rejected", "overwritten"):
            assert [each in getattr(ledger, name) for each in mine] == getattr(lost, name).tolist()


@given(seed=st.integers(0, 2**32 - 1))
@examples(5, long=8)
def test_lost_changes_are_those_of_the_one_definition(seed: int) -> None:
    """Of pairs, rings and chains."""
    assert_lost_as_told(random_model(seed, 1_500_000), seed)
    assert_lost_as_told(random_network(seed), seed)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_many_lost_changes_are_those_of_the_one_definition(seed: int) -> None:
    """The same more often."""
    assert_lost_as_told(random_model(seed), seed)
    assert_lost_as_told(random_network(seed), seed)
