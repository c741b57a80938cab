"""
Appliers that decide by rules of a user's own: in the loop of a simulation, the reference engine decides each epoch.

No kernel calls such a rule, so Python runs the loop, and `RuleAppliers.decide` stands in the place of
`conflict.whatif.simulating.kernels.appliers.decide_epoch`. It fills in the same arrays, so that users find the rows
that the rule left, and figures are made as of every simulation. Some thousand row changes take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from conflict.engine.kernels.apply_order import activated
from conflict.engine.kernels.arrays import Int64, OperationKind
from conflict.engine.kernels.passes import FULL
from conflict.engine.kernels.records import DecisionBuffers, Records
from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import ReplayedCluster
from conflict.engine.reference.epoch_pass import DecidedOperation, EpochPass
from conflict.engine.reference.row_store import Row
from conflict.history.model import Cluster
from conflict.history.timeline import EpochApply, RowChange, Transaction
from conflict.rules.decision import Cause
from conflict.whatif.simulating.configuration import CLOCK_START, Model
from conflict.whatif.simulating.kernels.appliers import STOPPED, apply_epoch
from conflict.whatif.simulating.kernels.loop import run_until
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT, World
from conflict.whatif.simulating.row_changes import SimulatedChanges
from ndb_formats.columnar.kernel_mode import Mode
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation

Decided = tuple[int, bool, bool]  # as `decide_epoch` returns it


@attrs.define
class _Applier(Applier):
    """An applier that keeps the last pass that it committed; None if it stopped."""

    final: EpochPass | None = None

    def commit(self, final: EpochPass, source: ReplayedCluster) -> None:
        super().commit(final, source)
        self.final = final


@attrs.frozen(eq=False)
class RuleAppliers:
    """
    The appliers of a simulation.

    Attributes:
        changes: What users change.
        start: When users began, in simulated time.
        appliers: By cluster.
        done: By cluster, its first change that its applier's rows do not hold yet.
    """

    changes: SimulatedChanges
    start: int
    appliers: Sequence[_Applier]
    done: list[int]

    @classmethod
    def of(cls, model: Model, world: World, key_offsets: Int64, start: int) -> RuleAppliers:
        """Return those of a simulation before it begins; arguments as of `Simulated`."""
        changes = SimulatedChanges.of(model, world, key_offsets)
        appliers = tuple(
            _Applier(
                ReplayedCluster(
                    Cluster(site.name, site.server_id, (), site.role), dict(model.setups[site.name]), changes.layouts
                )
            )
            for site in model.sites
        )
        return cls(changes, start, appliers, world.changes.begin[:-1].tolist())

    def loop(self, until: int, world: World) -> int:
        """Do as `run_until`."""
        applying = apply_epoch.with_parts(decide_epoch=self.decide)
        end: int = run_until.with_parts(apply_epoch=applying)(until, world)
        return end

    def decide(self, number: int, world: World) -> Decided:
        """
        Do as `decide_epoch`.

        Raises:
            ConfigurationError: A rule failed, or its answer is none.
        """
        apply = world.schedule.applies[number]
        here, there = int(apply["applier"]), int(apply["source"])
        for side in (here, there):
            self._catch_up(side, world)
        applier, source = self.appliers[here], self.appliers[there].cluster
        applier.final, applier.cluster.max_replicated_epoch = None, int(apply["max_replicated"])
        closed = int(world.epochs[there, world.site[here]["next_foreign"]]["closed"])
        place, foreign = (int(apply["epoch"]), int(apply["group"])), int(apply["foreign_epoch"])
        applier.apply_epoch(EpochApply(*place, source.name, foreign, committed=self._clock(there, closed)), source)
        if applier.final is None:
            return STOPPED, False, False
        return _Written(number, here, there, world).write(applier.final)

    def _catch_up(self, side: int, world: World) -> None:
        """Make what users of a cluster changed since."""
        cluster, setting = self.appliers[side].cluster, world.settings[side]
        for transaction in attrs.evolve(self.changes, world=world).transactions(side, self.done[side]):
            since = int(world.made.at[self.done[side]]) - setting["phase"]
            ends = setting["phase"] + (since // setting["epoch"] + 1) * setting["epoch"]
            self.done[side] += len(transaction.changes)
            cluster.commit(_whole(transaction, cluster, self._clock(side, ends)))

    def _clock(self, side: int, at: int) -> int:
        """Return what the clock of a cluster shows at a time, in microseconds since 1970, as its binlogs have it."""
        return CLOCK_START - self.start + self.changes.model.sites[side].skew + at


def _whole(transaction: Transaction, cluster: ReplayedCluster, committed: int) -> Transaction:
    """Return a transaction with its time, and with the values that its rows had before."""
    changes = tuple(_with_old_values(each, cluster.store.get((each.table, each.key))) for each in transaction.changes)
    return attrs.evolve(transaction, changes=changes, committed=committed)


def _with_old_values(change: RowChange, row: Row | None) -> RowChange:
    if change.before is None or row is None:
        return change
    payloads = tuple(row.payloads.get(place) for place in change.before.present)
    return attrs.evolve(change, before=attrs.evolve(change.before, payloads=payloads))


@attrs.frozen(eq=False)
class _Written:
    """
    Writes what an applier did with an epoch to the arrays of a simulation.

    Attributes:
        number: Of the epoch apply.
        here: The applier's cluster.
        there: Its source.
        world: The arrays.
    """

    number: int
    here: int
    there: int
    world: World

    def write(self, final: EpochPass) -> Decided:
        """Write a pass that was committed."""
        world, run = self.world, self.world.run[0]
        began, made = int(run["made"]), int(run["made"]) + len(final.decided)
        if made > len(world.decisions.apply) or not self._write_conflicts(final):
            return FULL, False, False
        self._write_decisions(world.decisions, began, final.decided)
        content = False
        for place, each in enumerate(final.decided, start=began):
            if each.decision.verdict.writes_row:
                self._note_write(int(world.decisions.key[place]), each)
        for place, each in enumerate(final.decided, start=began):
            if each.decision.verdict.writes_row:
                key = int(world.decisions.key[place])
                row = final.cluster.store.get(each.entry.row)
                self._write_row(key, row, final.apply.epoch)
                content |= row is not None or bool(world.rows.before[key])
        return made, content, True

    def _write_conflicts(self, final: EpochPass) -> bool:
        """Write the transactions in conflict, and how they were found; return whether there was room."""
        world, run = self.world, self.world.run[0]
        (offsets, groups), start, began = world.conflicts, int(run["groups"]), int(run["seen"])
        tracked = [] if final.track is None else final.track.decided
        stop, seen = start + len(final.rejected), began + len(tracked)
        if stop > len(groups) or seen > len(world.tracked.apply):
            return False
        offsets[self.number], offsets[self.number + 1] = start, stop
        for place, group in enumerate(sorted(final.rejected), start=start):
            groups[place] = group
        self._write_decisions(world.tracked, began, tracked)
        run["groups"], run["seen"] = stop, seen
        return True

    def _write_decisions(self, buffers: DecisionBuffers, began: int, decided: Sequence[DecidedOperation]) -> None:
        """Write decisions, from a place on."""
        for place, (each, (source, key)) in enumerate(zip(decided, self._sources(decided), strict=True), start=began):
            buffers.apply[place], buffers.source[place], buffers.key[place] = self.number, source, key
            buffers.group[place], buffers.operation[place] = each.entry.group, each.entry.change.operation
            buffers.kind[place], buffers.existed[place] = _kind(each), each.met is not None
            decision = each.decision
            buffers.verdict[place], buffers.cause[place] = decision.verdict, decision.cause
            if decision.cause is Cause.ROW_IN_CONFLICT:
                both = buffers.compared[place]
                both["incoming"], both["stored"] = decision.incoming or 0, decision.stored or 0

    def _sources(self, decided: Sequence[DecidedOperation]) -> Iterator[tuple[int, int]]:
        """Yield the number of each operation, as `Decisions` has it, and its row."""
        world, arrival = self.world, activated.form(Mode.INTERPRETED)(self.number, self.world.work)
        log, queued = world.work.log, int(arrival["queue_start"])
        for each in decided:
            if each.entry.ordinal < 0:
                entry = int(log.queue[self.there, queued])
                queued += 1
                yield -1 - entry, int(log.entries[entry]["key"])
            else:
                place = int(arrival["first"]) + each.entry.ordinal
                yield place - int(world.changes.begin[self.there]), int(world.changes.rows[place]["key"])

    def _note_write(self, key: int, each: DecidedOperation) -> None:
        """Note that an operation changed a row."""
        rows, note = self.world.rows, self.world.work.state.notes[key, self.here]
        if rows.passed[key] != self.number + 1:
            rows.passed[key], rows.before[key], rows.carried[key] = self.number + 1, each.met is not None, 0
            note["given"] = False
        written = _columns(each.merged or each.entry.change.after, self._table(key))
        rows.carried[key] |= written
        rows.version[key, self.here] += 1
        note["given"] |= bool(written & int(RESOLVE_BIT))

    def _write_row(self, key: int, row: Row | None, epoch: int) -> None:
        """Give a row the values that it has now."""
        world, table = self.world, self._table(key)
        mine, columns = world.work.state.rows[key, self.here], int(table["columns"])
        mine["exists"], mine["local"], mine["epoch"] = row is not None, False, epoch
        payloads = {} if row is None else row.payloads
        for column in range(columns):
            world.rows.columns[key, self.here, column] = int.from_bytes(payloads.get(column + 1) or b"", "little")
        value = payloads.get(columns + 1)
        unwritten = world.rules.tables[self.here, world.key_table[key]]["unwritten"]
        mine["value"] = unwritten if value is None else int.from_bytes(value, "little")

    def _table(self, key: int) -> Records:
        record: Any = self.world.tables[self.here, self.world.key_table[key]]
        return record  # type: ignore[no-any-return]


def _kind(each: DecidedOperation) -> OperationKind:
    change = each.entry.change
    if change.flags & ConflictFlag.REFRESH:
        return OperationKind.REFRESH
    if each.entry.ordinal < 0:
        return OperationKind.REFLECTED
    empty = change.operation is Operation.UPDATE_ROW and not (change.after and change.after.present)
    return OperationKind.EMPTY if empty else OperationKind.CHANGE


def _columns(image: RowImage | None, table: Records) -> int:
    """Return the columns that an operation writes as a set of bits; a delete, all."""
    data = int(table["columns"])
    present = range(1, data + 2) if image is None else image.present
    return sum(1 << place - 1 if place <= data else int(RESOLVE_BIT) for place in present if place)


def loop_of(model: Model, world: World, key_offsets: Int64, start: int) -> Callable[[int, World], int]:
    """Return the loop of a simulation that begins: compiled, or with rules of one's own in it."""
    if model.own_rules:
        return RuleAppliers.of(model, world, key_offsets, start).loop
    found: Callable[[int, World], int] = run_until
    return found
