"""
Rows that are older than the log, before something tells what they are.

A decision on such a row can depend on what it is. So every state is tried that the row may have, and the states remain
whose effect on the row is the one that the applier's binlog shows. If they lead to one decision, it is decided. Else
these are its candidates, as with the decisions of `conflict.reference.open_decisions`; the first one is counted.

An epoch that the other cluster made before its log starts holds operations that are not known. What it did is taken
from the applier's binlog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from conflict.history.effects import Effect
from conflict.history.model import EpochApply
from conflict.reference.cluster import ReplayedCluster
from conflict.reference.decide import compared_value
from conflict.reference.epoch_log import LoggedChange
from conflict.reference.epoch_pass import ApplierStopped, EpochPass
from conflict.reference.row_store import NOT_KNOWN, Row, RowKey
from conflict.rules.decision import Decision, stored_precision
from conflict.rules.functions import COMPARING, Cell, ConflictFunction
from conflict.rules.roles import Role
from ndb_formats.events.rows_event import Operation

__all__ = ["Settled", "is_before_start", "settle", "take_shown", "take_untold"]

HIGHEST = 2**64 - 1
REFRESHES = {Effect.REFRESHED, Effect.REFRESHED_ABSENT}


@attrs.frozen
class _Tried:
    """A state that a row may have, the decisions on its operations that follow, and their effect on it."""

    state: Row | None
    decisions: list[Decision]
    effect: Effect | None


@attrs.define
class Settled:
    """
    The rows of an epoch apply that are not known, each in the first of its possible states.

    Attributes:
        rows: By row, what was known of it, and the states that remain possible.
        open: By the identity of an entry, the decisions that follow from these states.
    """

    rows: dict[RowKey, tuple[Row | None, list[Row | None]]] = attrs.field(factory=dict)
    open: dict[int, frozenset[Decision]] = attrs.field(factory=dict)

    def forget(self, cluster: ReplayedCluster, written: Iterable[RowKey] = ()) -> None:
        """Put what is known in place of the states that were assumed, except in rows that were written since."""
        for key in self.rows.keys() - set(written):
            before, states = self.rows[key]
            there = {state is not None for state in states}
            if there == {False}:
                cluster.store.put(key, None)
            else:
                older = Row({}, local=False, epoch=0, partial=True, dated=False)
                cluster.store.put(key, older if before is NOT_KNOWN and there == {True} else before)
        cluster.store.commit()


def is_before_start(apply: EpochApply, source: ReplayedCluster) -> bool:
    """Whether the source made an epoch before its log starts."""
    return source.cluster.start is not None and apply.foreign_epoch < source.cluster.start.epoch


def settle(cluster: ReplayedCluster, source: ReplayedCluster, apply: EpochApply) -> Settled:
    """Find what the rows of an epoch may be that are not known, and put the first possible state in their place."""
    settled = Settled()
    if cluster.cluster.start is None:
        return settled
    untold = source.untold.get(apply.foreign_epoch, set())
    entries: dict[RowKey, list[LoggedChange]] = {}
    for entry in cluster.arriving(source, apply.foreign_epoch):
        after = entry.change.after
        if entry.change.operation is not Operation.UPDATE_ROW or (after and after.present):
            entries.setdefault(entry.row, []).append(entry)
    for key, mine in entries.items():
        before = NOT_KNOWN if key in untold else cluster.store.get(key)
        states = _possible_states(cluster, before, mine)
        if len(states) < 2:
            continue
        if before is NOT_KNOWN:
            cluster.met.add(key)
        tried = [_try(cluster, source, apply, mine, state) for state in states]
        kept = tried if key in untold else _agreeing(cluster, apply, key, tried)
        settled.rows[key] = before, [each.state for each in kept]
        for number, entry in enumerate(mine):
            found = {each.decisions[number] for each in kept if number < len(each.decisions)}
            settled.open[id(entry)] = frozenset(attrs.evolve(each, incoming=None, stored=None) for each in found)
    for key, (_, states) in settled.rows.items():
        cluster.store.put(key, states[0])
    cluster.store.commit()
    return settled


def _possible_states(
    cluster: ReplayedCluster, row: Row | None, entries: Sequence[LoggedChange]
) -> list[Row | None]:
    """Return the states that a row may have and that decisions can depend on; those in which it exists come first."""
    setup, start = cluster.setups.get(entries[0].change.table), cluster.cluster.start
    if row is None or setup is None or setup.refusal is not None or start is None:
        return [row]
    function = None if setup.function and setup.function.spec.uses_role and cluster.role is Role.PASS else setup.function
    states: list[Row | None] = []
    if not row.dated and function is not None and _epoch_matters(cluster, function, start.epoch - 1):
        states.append(attrs.evolve(row, local=True, epoch=start.epoch - 1))
    values: list[int | None] = [None]
    if row.partial and function is not None and function.spec.needs:
        assert function.column is not None
        if setup.table.ordinal(function.column) not in row.payloads:
            values = [0, HIGHEST, *(_brought(entry, function) for entry in entries)]
    states += [attrs.evolve(row, assumed=value) for value in values]
    return [*states, None] if row is NOT_KNOWN else states


def _epoch_matters(cluster: ReplayedCluster, function: ConflictFunction, oldest: int) -> bool:
    """Whether it can matter that a row was last changed here before the log starts."""
    if function.spec.uses_role and cluster.role is Role.SECONDARY:
        return True
    return function.spec.refreshes and cluster.max_replicated_epoch < stored_precision(oldest, function.gci_bits)


def _brought(entry: LoggedChange, function: ConflictFunction) -> int:
    """Return the value that an operation compares with that of the row; 0 if it compares none."""
    operation = entry.change.operation
    cell = function.spec.cell(operation)
    if cell not in COMPARING:
        return 0
    before = cell is Cell.EQUAL or operation is Operation.DELETE_ROW
    return compared_value(entry.change.before if before else entry.change.after, function) or 0


def _try(
    cluster: ReplayedCluster,
    source: ReplayedCluster,
    apply: EpochApply,
    entries: Sequence[LoggedChange],
    state: Row | None,
) -> _Tried:
    """Return what the operations on one row come to if it has a given state, and undo them."""
    trial, key = EpochPass(cluster, source.cluster, apply), entries[0].row
    cluster.store.put(key, state)
    try:
        for entry in entries:
            trial.handle(entry)
    except ApplierStopped:
        pass  # the pass stops there too
    effect = trial.effects().get(key)
    cluster.store.roll_back()
    return _Tried(state, [each.decision for each in trial.decided], effect)


def _agreeing(
    cluster: ReplayedCluster, apply: EpochApply, key: RowKey, tried: Sequence[_Tried]
) -> Sequence[_Tried]:
    """Return the trials whose effect on the row the binlog shows; all, if it shows no effects or none agrees."""
    if not cluster.shown:
        return tried
    shown = cluster.shown.get((apply.epoch, apply.group), {}).get(key) if apply.traced else None
    transactions = any(setup.function and setup.function.spec.transactional for setup in cluster.setups.values())
    # A row of a transaction in conflict is refreshed, whatever its own operations would have come to.
    kept = [
        each
        for each in tried
        if each.effect == shown
        or (transactions and shown in REFRESHES and (each.state is None) == (shown is Effect.REFRESHED_ABSENT))
    ]
    return kept or tried


def take_shown(cluster: ReplayedCluster, apply: EpochApply) -> None:
    """Take what an epoch did whose operations are not known from the applier's own binlog."""
    _take(cluster, apply, cluster.shown.get((apply.epoch, apply.group), {}) if apply.traced else {})


def take_untold(cluster: ReplayedCluster, source: ReplayedCluster, apply: EpochApply) -> None:
    """Take what an epoch did to rows of which not all its operations are known from the applier's own binlog."""
    untold = source.untold.get(apply.foreign_epoch, set())
    if not untold:
        return
    shown = cluster.shown.get((apply.epoch, apply.group), {}) if apply.traced else {}
    arrived = {entry.row for entry in cluster.arriving(source, apply.foreign_epoch)}
    for key in untold & arrived - shown.keys():
        cluster.store.put(key, NOT_KNOWN)
    _take(cluster, apply, {key: effect for key, effect in shown.items() if key in untold})


def _take(cluster: ReplayedCluster, apply: EpochApply, effects: Mapping[RowKey, Effect]) -> None:
    for key, effect in effects.items():
        row = None
        if effect in {Effect.CHANGED, Effect.REFRESHED}:
            row = Row({}, local=effect is Effect.REFRESHED, epoch=apply.epoch, partial=True)
        cluster.store.put(key, row)
        setup = cluster.setups.get(key[0])
        function = None if setup is None else setup.function
        reflects = function is not None and function.spec.reflects and cluster.role is Role.PRIMARY
        if effect in REFRESHES or reflects:
            cluster.untold.setdefault(apply.epoch, set()).add(key)
    cluster.store.commit()
    if effects:
        cluster.result.effects.setdefault((apply.epoch, apply.group), {}).update(effects)
