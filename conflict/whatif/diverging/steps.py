"""
The steps that two clusters can take, and what becomes of the clusters.

The reference engine carries out every step: `ReplayedCluster.commit` a transaction of users, `Applier` an epoch.

Lost updates: whether an epoch apply loses a change of a user, as `conflict.rules.lost_updates` defines it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

import attrs

from conflict.engine.ledger.resolution import Outcome, Stop
from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.engine.reference.row_store import Row
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply, RowChange, Transaction
from conflict.rules.counters import conflicts_counted
from conflict.rules.decision import Verdict
from conflict.rules.lost_updates import RowWrite, loses, overwrite, write
from conflict.whatif.diverging.scope import KEY_BYTES, VALUE_BYTES, Scope, Values
from conflict.whatif.diverging.state import (
    EPOCH,
    NAME,
    BothStates,
    ClusterState,
    CommittedEntry,
    LoggedEpoch,
    TransactionAuthor,
    data,
    replayed,
    source_of,
)
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import ndb_columns


def loses_update(before: BothStates, event: StepEvent) -> bool:
    """
    Whether an epoch apply lost an update.

    Of an epoch that is applied again, what is rejected had its effect the first time; what is applied can overwrite
    what users did since.
    """
    return any(_is_rejected(each, before, event.side) for each in event.outcomes) or any(
        _is_unseen(over, by, event.side, before) for by, over in event.overwritten
    )


def _is_rejected(outcome: Outcome, before: BothStates, side: int) -> bool:
    """Whether a change of a user was rejected, and lost, when it came for the first time."""
    again = outcome.source_epoch <= before.sides[side].reached
    lost = loses(outcome.verdict, outcome.operation, outcome.cause, outcome.own_cause)
    return outcome.ordinal >= 0 and lost and not again


def _is_unseen(over: int, by: int, side: int, state: BothStates) -> bool:
    """Whether a transaction of a cluster was overwritten by one that had not seen it."""
    made = state.made[over]
    return made.side == side and made.epoch > state.made[by].seen


_ALL = -1
LOAD = 0  # number of the transaction that loads the table


@attrs.frozen
class RowWish:
    """What a transaction does to a row: insert, delete, or update one data column."""

    row: int
    operation: Operation
    column: int = _ALL


@attrs.frozen
class Load:
    """Rows are inserted on the first cluster, applied on the second one, and known to have arrived."""

    rows: int


@attrs.frozen
class Commit:
    """Users of a cluster commit a transaction, in the open epoch if it `joins` it, else in a new one."""

    side: int
    wishes: tuple[RowWish, ...]
    joins: bool = False


@attrs.frozen
class Apply:
    """The applier of a cluster takes the next epoch; `joins` as for `Commit`."""

    side: int
    joins: bool = False


@attrs.frozen
class SetBack:
    """
    The applier of a cluster is stopped, set back to the start of the other cluster's binlog, and started.

    That takes longer than an epoch, so what was open is closed.
    """

    side: int


Step = Load | Commit | Apply | SetBack
Schedule = tuple[Step, ...]  # the load first


@attrs.frozen
class StepEvent:
    """
    Something that a cluster did in a step.

    Attributes:
        side: The cluster.
        item: The transaction or the epoch apply.
        outcomes: Of an epoch apply, what became of its operations.
        effects: Of an epoch apply, what it did to rows, by their keys.
        stop: Of an epoch apply, why the applier stopped; None if it did not.
        overwritten: Of an epoch apply, pairs of a transaction and one of this cluster that it overwrote, if in part.
    """

    side: int
    item: Transaction | EpochApply
    outcomes: tuple[Outcome, ...] = ()
    effects: Mapping[bytes, Effect] = attrs.field(factory=dict)
    stop: Stop | None = None
    overwritten: frozenset[tuple[int, int]] = frozenset()

    @property
    def changes(self) -> bool:
        """Whether it changed anything, so that its epoch is logged."""
        return isinstance(self.item, Transaction) or bool(self.effects)


def possible_steps(state: BothStates, scope: Scope) -> Iterator[Step]:
    """Yield every step that can come next."""
    for number, side in enumerate(state.sides):
        together = (False, True) if side.now.groups else (False,)
        if not side.stopped and state.waits(number, scope):
            yield from (Apply(number, joins) for joins in together)
        if not side.stopped and state.outages < scope.outages and state.sides[1 - number].taken:
            yield SetBack(number)
        if len(state.made) - 1 < scope.transactions:
            for wishes in _wishes(side, scope):
                for joins in together:
                    new = not (joins and side.now.own)
                    if scope.epochs is None or side.epochs + new <= scope.epochs:
                        yield Commit(number, wishes, joins)


def _wishes(side: ClusterState, scope: Scope) -> Iterator[tuple[RowWish, ...]]:
    """Yield what a transaction can do: something to one row or to several."""
    choices: list[list[RowWish | None]] = []
    for row, key in enumerate(scope.keys):
        if (NAME, key) in side.rows:
            updates = [RowWish(row, Operation.UPDATE_ROW, column) for column in range(scope.columns)]
            choices.append([None, *updates, RowWish(row, Operation.DELETE_ROW)])
        else:
            choices.append([None, RowWish(row, Operation.WRITE_ROW)])
    for chosen in product(*choices):
        wishes = tuple(each for each in chosen if each is not None)
        if wishes:
            yield wishes


def taken(state: BothStates, step: Step, scope: Scope) -> tuple[BothStates, list[StepEvent]]:
    """Return the state after a step, and what the clusters did."""
    if isinstance(step, Commit):
        return _commit(state, step, scope)
    if isinstance(step, Apply):
        return _apply(state, step, scope)
    if isinstance(step, SetBack):
        source = attrs.evolve(state.sides[1 - step.side], taken=0)
        state = state.with_side(step.side, _opened(state.sides[step.side], joins=False))
        return attrs.evolve(state.with_side(1 - step.side, source), outages=state.outages + 1), []
    return _load(state, step, scope)


def _load(state: BothStates, step: Load, scope: Scope) -> tuple[BothStates, list[StepEvent]]:
    """Load the table; the last of the steps tells the first cluster that its epoch arrived."""
    if not step.rows:
        return attrs.evolve(state, made=(TransactionAuthor(0, 0, 0),)), []
    wishes = tuple(RowWish(row, Operation.WRITE_ROW) for row in range(step.rows))
    events: list[StepEvent] = []
    for each in (Commit(0, wishes), Apply(1), Apply(0)):
        if isinstance(each, Commit) or state.waits(each.side, scope):
            state, found = taken(state, each, scope)
            events += found
    return state, events


def _commit(state: BothStates, step: Commit, scope: Scope) -> tuple[BothStates, list[StepEvent]]:
    side = _opened(state.sides[step.side], joins=step.joins)
    state = state.with_side(step.side, side)
    cluster, now, number = replayed(state, step.side, scope), side.now, len(state.made)
    changes = [_change(cluster, wish, number, step.side, scope) for wish in step.wishes]
    operations = {change.key: wish.operation for wish, (change, _) in zip(step.wishes, changes, strict=True)}
    inserts = {key for key, operation in operations.items() if operation is Operation.WRITE_ROW}
    transaction = Transaction(now.number, now.groups, tuple(change for change, _ in changes), number + 1)
    cluster.commit(transaction)
    after = attrs.evolve(
        side,
        rows=cluster.store.rows,
        now=attrs.evolve(_after(cluster, now, scope), content=True, own=True),
        epochs=side.epochs + (not now.own and number != LOAD),
        authors={
            **side.authors,
            **{change.key: write(side.authors.get(change.key, {}), number, written) for change, written in changes},
        },
        inserted={**side.inserted, **dict.fromkeys(inserts, now.number)} if inserts else side.inserted,
    )
    other = state.sides[1 - step.side]
    deletes = {key for key, operation in operations.items() if operation is Operation.DELETE_ROW}
    gone = (state.gone - inserts) | {key for key in deletes if other.inserted.get(key, 0) <= side.reached}
    made = (*state.made, TransactionAuthor(step.side, now.number, side.reached))
    return attrs.evolve(state.with_side(step.side, after), made=made, gone=gone), [StepEvent(step.side, transaction)]


def _opened(side: ClusterState, *, joins: bool) -> ClusterState:
    """Return a cluster that goes on in its open epoch, or in a new one if that is not empty."""
    return side if joins or not side.now.groups else _closed(side)


def _closed(side: ClusterState) -> ClusterState:
    """Return a cluster with a new epoch; the one that was open is logged if it changed anything."""
    log = (*side.log, side.now) if side.now.content else side.log
    return attrs.evolve(side, log=log, now=LoggedEpoch(side.now.number + EPOCH))


def _after(cluster: ReplayedCluster, now: LoggedEpoch, scope: Scope) -> LoggedEpoch:
    """Return the open epoch with what a cluster logged in it since."""
    logged = [each for each in cluster.log.get(now.number, []) if isinstance(each, LoggedChange)]
    new = (CommittedEntry.of(each, scope) for each in logged[len(now.entries) :])
    relayed = max(cluster.relayed.get(now.number, {}).values(), default=0)
    return attrs.evolve(now, entries=(*now.entries, *new), relayed=relayed, groups=now.groups + 1)


def _change(
    cluster: ReplayedCluster, wish: RowWish, number: int, side: int, scope: Scope
) -> tuple[RowChange, RowWrite]:
    """Return a row change with the images that the format gives it, and what it writes."""
    key = scope.keys[wish.row]
    row = cluster.store.get((NAME, key))
    after = {} if row is None else dict(row.payloads)
    written = set[int]()
    if wish.operation is Operation.WRITE_ROW:
        after = {0: (wish.row + 1).to_bytes(KEY_BYTES, "little")}
        written = set(range(scope.first_data_column, scope.first_data_column + scope.columns))
    elif wish.operation is Operation.UPDATE_ROW:
        written = {scope.first_data_column + wish.column}
    after.update(dict.fromkeys(written, data(number)))
    value = None if scope.resolve_column is None else _resolve_value(row, number, scope)
    if value is not None:
        after[1] = value.to_bytes(VALUE_BYTES, "little")
        written.add(1)
    columns = _logged_columns(scope, side, wish.operation, frozenset(written))
    before_image = None if row is None else _image(scope, row.payloads, columns.before)
    change = RowChange(NAME, key, columns.operation, before_image, _image(scope, after, columns.after), number)
    return change, RowWrite(columns.operation, frozenset(written), _columns(scope))


def _columns(scope: Scope) -> frozenset[int]:
    """Return the ordinals of all columns but the key."""
    return frozenset(range(1, scope.first_data_column + scope.columns))


@lru_cache(maxsize=100)
def _logged_columns(scope: Scope, side: int, operation: Operation, written: frozenset[int]) -> EventColumns:
    setup = scope.setups[side][NAME]
    columns = ndb_columns(setup.format, setup.table, operation, written)
    assert columns is not None  # formats that log nothing are refused
    return columns


def _resolve_value(row: Row | None, number: int, scope: Scope) -> int | None:
    """Return what a transaction sets the resolve column to; None if it leaves it."""
    if scope.values is Values.CLOCK:
        return number + 1
    if row is None:
        return 1
    if scope.values is Values.UNSET:
        return None
    return int.from_bytes(row.payloads.get(1) or b"", "little") + 1


def _image(scope: Scope, row: dict[int, bytes | None], columns: tuple[int, ...] | None) -> RowImage | None:
    if columns is None:
        return None
    present = tuple(column for column in columns if column in row)
    return RowImage(scope.layout, present, tuple(row[column] for column in present))


def _apply(state: BothStates, step: Apply, scope: Scope) -> tuple[BothStates, list[StepEvent]]:
    """
    Apply the next epoch of the other cluster that concerns the applier.

    Epochs before it that hold nothing but what came back, which does not matter to this cluster, are taken with it.
    """
    state = state.with_side(step.side, _opened(state.sides[step.side], joins=step.joins))
    events: list[StepEvent] = []
    while True:
        source = state.sides[1 - step.side]
        if source.taken == len(source.log):
            source = _closed(source)
            state = state.with_side(1 - step.side, source)
        epoch = source.log[source.taken]
        state, event = _apply_one(state, step.side, epoch, scope)
        events.append(event)
        if epoch.entries or scope.learns[step.side]:
            return state, events


def _apply_one(state: BothStates, number: int, epoch: LoggedEpoch, scope: Scope) -> tuple[BothStates, StepEvent]:
    applying, source = replayed(state, number, scope), source_of(1 - number, epoch, scope)
    side, other = state.sides[number], state.sides[1 - number]
    apply = EpochApply(side.now.number, side.now.groups, source.name, epoch.number)
    Applier(applying).apply_epoch(apply, source)
    result = applying.result
    effects = result.effects.get((apply.epoch, apply.group), {})
    now = _after(applying, side.now, scope) if result.stop is None else side.now
    authors, overwritten = _overwritten(side, applying.outcomes, epoch, scope)
    after = attrs.evolve(
        side,
        rows=applying.store.rows,
        now=attrs.evolve(now, content=now.content or bool(effects)),
        known=applying.max_replicated_epoch,
        stopped=result.stop is not None,
        reached=max(side.reached, epoch.number),
        authors=authors,
    )
    left = attrs.evolve(other, taken=other.taken + 1)
    if state.outages == scope.outages:  # nothing can be set back to what was taken
        left = attrs.evolve(left, log=left.log[left.taken :], taken=0)
    by_key = {key: effect for (_, key), effect in effects.items()}
    event = StepEvent(number, apply, tuple(applying.outcomes), by_key, result.stop, overwritten)
    done = attrs.evolve(
        state.with_side(number, after).with_side(1 - number, left),
        lost=state.lost or loses_update(state, event),
        counted=state.counted or conflicts_counted(result.counters) > 0,
    )
    return done, event


def _overwritten(
    side: ClusterState, outcomes: Sequence[Outcome], epoch: LoggedEpoch, scope: Scope
) -> tuple[Mapping[bytes, Mapping[int, int]], frozenset[tuple[int, int]]]:
    """Return who wrote which part of each row after an epoch was applied, and what overwrote what."""
    authors, found = dict(side.authors), set[tuple[int, int]]()
    changes = {entry.logged.ordinal: entry.logged.change for entry in epoch.entries}
    for outcome in outcomes:
        if outcome.verdict is not Verdict.APPLIED or outcome.transaction_id is None or outcome.ordinal < 0:
            continue
        after = changes[outcome.ordinal].after
        updated = frozenset(() if after is None else after.present) - {0}
        written = RowWrite(outcome.operation, updated, _columns(scope))
        kept, over = overwrite(authors.get(outcome.key, {}), outcome.transaction_id, written)
        authors[outcome.key] = kept
        found.update((outcome.transaction_id, each) for each in over)
    return authors, frozenset(found)
