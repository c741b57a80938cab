"""
Rows that are older than the log, until the log shows their state.

A decision on such a row can depend on its state. So the engine tries every state that the row may have, and keeps those
whose effect on the row is the one in the applier's binlog. If they all lead to the same decision, that is the decision.
Else they give its candidates, as with the decisions of `conflict.engine.inference.replay`; the first one is
counted.

The operations of an epoch that the other cluster committed before its log starts are not known. Their effects are read
from the applier's binlog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from conflict.engine.inference.hypotheses import Tried, possible, try_state
from conflict.engine.inference.observed import ObservedCluster, OtherConflictsError
from conflict.engine.inference.rows import EXISTS, NOT_KNOWN, in_part, is_dated, is_partial
from conflict.engine.inference.taken_effects import (
    REFRESHES,
    brings_unknown,
    doubt_operation,
    judged_transactions,
    judges_transactions,
    leave_unclear,
    replace_effect,
    take_effects,
    unclear_rows,
)
from conflict.engine.reference.applier import effects_of
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.decide import DISCARDED, compared_value
from conflict.engine.reference.epoch_pass import REJECTED_WITH_TRANSACTION, EpochPass
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply
from conflict.rules.counters import TRANSACTION_ROW_CONFLICTS, moved_counters
from conflict.rules.decision import (
    APPLIED,
    IGNORED,
    Cause,
    Decision,
    Verdict,
    extreme_values,
    in_node_order,
    next_value,
    stored_precision,
)
from conflict.rules.deployed import Deployed
from conflict.rules.functions import ConflictFunction, is_comparing, reads_before
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import ABSENT

IN_CONFLICT = Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT)


@attrs.define
class Settled:
    """
    The rows of an epoch apply that are not known, each in the first of its possible states.

    Attributes:
        rows: By row, what was known of it, and the trials that remain possible.
        open: By the identity of an entry, the decisions that follow from these.
        doubtful: Rows that a transaction touched for which it is not known whether it was rejected.
        judged_earlier: Rows that the binlog contradicts, but that may have been judged in a state that is not known.
    """

    rows: dict[RowKey, tuple[Row | None, Sequence[Tried]]] = attrs.field(factory=dict)
    open: dict[int, frozenset[Decision]] = attrs.field(factory=dict)
    doubtful: set[RowKey] = attrs.field(factory=set)
    judged_earlier: set[RowKey] = attrs.field(factory=set)

    def forget(self, cluster: ObservedCluster, apply: EpochApply, final: EpochPass | None = None) -> None:
        """
        Put what is known in place of the states that were assumed, and of what follows from these alone.

        Args:
            cluster: The applying cluster.
            apply: The epoch apply.
            final: The pass that was committed; None if the applier stopped.
        """
        for key, (before, tried) in self.rows.items():
            if final is not None and (key in final.changed or key in final.refreshes):
                self._keep_certain(cluster, apply, key, in_place=key not in final.changed)
            elif all(each.state is None for each in tried):
                cluster.store.put(key, None)
            elif before is NOT_KNOWN and all(each.state is not None for each in tried):
                cluster.store.put(key, EXISTS)
            else:
                cluster.store.put(key, before)
        for key in self.doubtful:
            row = cluster.store.get(key)
            if row is not None and row is not NOT_KNOWN:
                cluster.store.put(key, in_part(row, {}))
            leave_unclear(cluster, apply, key)
        cluster.store.commit()

    def _keep_certain(self, cluster: ObservedCluster, apply: EpochApply, key: RowKey, *, in_place: bool) -> None:
        """Keep what all trials agree on of a row that the epoch wrote; `in_place`: its values are those before."""
        _, tried = self.rows[key]
        if len(tried) > 1:
            cluster.result.images.get((apply.epoch, apply.group), {}).pop(key, None)
        row, afters = cluster.store.get(key), [each.after for each in tried]
        if len({each.effect for each in tried}) > 1:
            # It may exist after that, or not.
            exists = {each is not None for each in afters}
            cluster.store.put(key, EXISTS if exists == {True} else NOT_KNOWN)
            leave_unclear(cluster, apply, key)
            replace_effect(cluster, apply, key)
        elif row is not None and not in_place:
            payloads = {
                ordinal: payload
                for ordinal, payload in row.payloads.items()
                if all(each is not None and each.payloads.get(ordinal, ABSENT) == payload for each in afters)
            }
            if len(payloads) < len(row.payloads) or any(map(is_partial, afters)):
                cluster.store.put(key, in_part(row, payloads))
        if len({each.state is None for each in tried}) > 1:
            doubt_operation(cluster, apply, key)


def is_before_start(apply: EpochApply, source: ObservedCluster) -> bool:
    """Whether the source made an epoch before its log starts."""
    return source.cluster.start is not None and apply.foreign_epoch < source.cluster.start.epoch


def settle(cluster: ObservedCluster, source: ObservedCluster, apply: EpochApply) -> Settled:
    """Find what the rows of an epoch may be that are not known, and put the first possible state in their place."""
    settled = Settled()
    if cluster.cluster.start is None:
        return settled
    unclear = unclear_rows(cluster, source, apply)
    entries = _entries_by_row(cluster, source, apply)
    befores = {key: NOT_KNOWN if key in unclear else cluster.store.get(key) for key in entries}
    states_of = {
        key: _possible_states(cluster, befores[key], mine, apply.epoch if key in unclear else 0)
        for key, mine in entries.items()
    }
    not_known = {key for key, states in states_of.items() if len(states) > 1}
    passed, doubtful = judged_transactions(cluster, apply, entries, not_known)
    for key, mine in entries.items():
        in_doubt = any(entry.group in doubtful for entry in mine)
        before, states = befores[key], states_of[key]
        if len(states) < 2 and not in_doubt:
            continue
        if before is NOT_KNOWN:
            cluster.met.add(key)
        tried = possible(states, partial(try_state, cluster, source.cluster, apply, mine))
        if None in states and any(_may_lack_columns(cluster, entry) for entry in mine):
            # A write whose columns are not all known may lack one that a new row must be given.
            tried.append(Tried(None, (IGNORED,) * len(mine), None, None))
        kept: Sequence[Tried] = tried if key in unclear else _agreeing(cluster, apply, mine, tried)
        kept = _passing(cluster, mine, kept, passed or frozenset())
        settled.rows[key] = before, kept
        for number, entry in enumerate(mine):
            found = {each.decisions[number] for each in kept if number < len(each.decisions)}
            if key in unclear and number:
                # An operation that is not known may have come right before it.
                alone = (try_state(cluster, source.cluster, apply, [entry], state) for state in states)
                found.update(each.decisions[0] for each in alone if each.decisions)
            if brings_unknown(cluster, entry):
                found.add(DISCARDED if entry.change.flags & ConflictFlag.REFLECTED else IN_CONFLICT)
            if entry.group in doubtful:
                found.add(REJECTED_WITH_TRANSACTION)
            settled.open[id(entry)] = frozenset(attrs.evolve(each, incoming=None, stored=None) for each in found)
        if in_doubt:
            settled.doubtful.add(key)
    for key, (_, kept) in settled.rows.items():
        cluster.store.put(key, kept[0].state)
    cluster.store.commit()
    return settled


def _may_lack_columns(cluster: ObservedCluster, entry: LoggedChange) -> bool:
    """Whether an operation may lack a column that a new row must be given, because not all it writes is known."""
    columns = cluster.setups[entry.change.table].table.columns
    return any(columns[ordinal].must_be_given for ordinal in entry.change.unknown)


def _entries_by_row(
    cluster: ObservedCluster, source: ObservedCluster, apply: EpochApply
) -> dict[RowKey, list[LoggedChange]]:
    """Return the operations of an epoch that have an effect, by row."""
    found: dict[RowKey, list[LoggedChange]] = {}
    for entry in cluster.arriving(source, apply.foreign_epoch):
        after = entry.change.after
        if entry.change.operation is not Operation.UPDATE_ROW or (after and after.present):
            found.setdefault(entry.row, []).append(entry)
    return found


def _possible_states(
    cluster: ObservedCluster, row: Row | None, entries: Sequence[LoggedChange], touched: int = 0
) -> list[Row | None]:
    """
    Return the states that a row may have and that decisions can depend on; those in which it exists come first.

    An insert mostly finds no row, so that comes first where nothing is sent back of a row that was there.

    Args:
        cluster: The applying cluster.
        row: What is known of the row.
        entries: The operations on it.
        touched: Own epoch in which operations that are not known may have changed it; 0 if there are none.
    """
    setup, start = cluster.setups.get(entries[0].change.table), cluster.cluster.start
    if row is None or setup is None or setup.refusal is not None or start is None:
        return [row]
    deployed = setup.deployed(cluster.role)
    function = deployed.active
    known, states = EXISTS if row is NOT_KNOWN else row, list[Row | None]()
    newest = max(start.epoch - 1, touched, cluster.last_unclear.get(entries[0].row, 0))
    if not is_dated(row) and _epoch_matters(cluster, deployed, newest):
        states.append(attrs.evolve(known, local=True, epoch=newest))
    values: Sequence[int] = []
    if is_partial(row) and function is not None and function.spec.needs:
        assert function.column is not None
        ordinal = setup.table.ordinal(function.column)
        if ordinal not in row.payloads:
            column = setup.table.columns[ordinal]
            brought = {_brought(entry, function, setup.table) for entry in entries}
            following = {each for value in brought if (each := next_value(value, column)) is not None}
            # These, and one between each two of them, represent all values that there are.
            values = sorted({*extreme_values(column), *brought, *following}, key=in_node_order)
    states += [attrs.evolve(in_part(known, known.payloads), assumed=value) for value in values] or [known]
    if row is not NOT_KNOWN:
        return states
    inserted = entries[0].change.operation is Operation.WRITE_ROW and not setup.format.as_write
    inserted &= not judges_transactions(cluster) and not (function is not None and function.spec.refreshes)
    return [None, *states] if inserted else [*states, None]


def _epoch_matters(cluster: ObservedCluster, deployed: Deployed, newest: int) -> bool:
    """Whether it can matter that a row was last changed here, in an own epoch up to `newest`."""
    judge = deployed.judge
    unseen = judge is not None and cluster.max_replicated_epoch < stored_precision(newest, judge.gci_bits)
    return deployed.as_secondary or (deployed.refreshes and unseen)


def _brought(entry: LoggedChange, function: ConflictFunction, table: Table) -> int:
    """Return the value that an operation compares with that of the row; 0 if it compares none."""
    operation = entry.change.operation
    cell = function.spec.cell(operation)
    if not is_comparing(cell):
        return 0
    image = entry.change.before if reads_before(cell, operation) else entry.change.after
    return compared_value(image, function, table) or 0


def _agreeing(
    cluster: ObservedCluster, apply: EpochApply, entries: Sequence[LoggedChange], tried: Sequence[Tried]
) -> Sequence[Tried]:
    """Return the trials that agree with what the binlog shows; all, if it shows nothing or none agrees."""
    if not cluster.shown or cluster.may_be_lost(apply, entries[0].row):
        return tried
    table, key = entries[0].row
    shown = cluster.shown_by(apply).get((table, key))
    kept = [each for each in tried if _agrees(cluster, each, shown)]
    checked = cluster.setups[table].table.unique_keys or table in cluster.foreign_keys.tables
    if not apply.traced and checked:
        # It may have stopped the applier: it is not known which older rows have which unique value, or refer to which.
        return [*kept, *(each for each in tried if each not in kept)]
    return kept or tried


def _passing(
    cluster: ObservedCluster, entries: Sequence[LoggedChange], tried: Sequence[Tried], passed: frozenset[int]
) -> Sequence[Tried]:
    """Return the trials that put no transaction in conflict that was not rejected; all, if there is none."""
    setup = cluster.setups[entries[0].change.table]
    if setup.function is None or not passed:
        return tried
    spec = setup.function.spec
    kept = [
        each
        for each in tried
        if not any(
            entry.group in passed and moved_counters(spec, entry.change.operation, decision)[TRANSACTION_ROW_CONFLICTS]
            for entry, decision in zip(entries, each.decisions, strict=False)
        )
    ]
    return kept or tried


def _agrees(cluster: ObservedCluster, tried: Tried, shown: Effect | None) -> bool:
    """Whether a trial has the effect that the binlog shows."""
    # A row of a transaction in conflict is refreshed, whatever its own operations would have done.
    if shown in REFRESHES and judges_transactions(cluster):
        return (tried.state is None) == (shown is Effect.REFRESHED_ABSENT)
    return tried.effect == shown


def doubt_contradicted(
    cluster: ObservedCluster, final: EpochPass, settled: Settled, source: ObservedCluster
) -> dict[RowKey, Effect | None]:
    """
    Leave decisions open that the binlog contradicts, where the log starts in the middle.

    Args:
        cluster: The applying cluster.
        final: The pass to commit.
        settled: Its rows that are not known; what its operations may be decided as is added, and those judged earlier.
        source: The cluster whose epoch it is.

    Returns:
        The rows with another effect in the binlog, and that effect.

    Raises:
        OtherConflictsError: There are any, and the transactions in conflict are given.
    """
    apply = final.apply
    if cluster.cluster.start is None or not cluster.shown or not apply.traced:
        return {}
    derived, shown = effects_of(final), cluster.shown_by(apply)
    arrived = {each.entry.row for each in final.decided} - unclear_rows(cluster, source, apply)
    if cluster.cluster.start.whole:
        arrived &= cluster.cluster.unlogged_rows | source.cluster.unlogged_rows
    wrong = {key: shown.get(key) for key in arrived if derived.get(key) != shown.get(key)}
    if wrong and cluster.given is not None:
        raise OtherConflictsError
    settled.judged_earlier = {key for key in wrong if _changed_from_unknown(cluster, apply, key)}
    groups = {each.entry.group for each in final.decided if each.entry.row in wrong}
    for each in final.decided:
        if each.entry.row in wrong or (judges_transactions(cluster) and each.entry.group in groups):
            decision = attrs.evolve(each.decision, incoming=None, stored=None)
            others = {APPLIED, REJECTED_WITH_TRANSACTION if judges_transactions(cluster) else IN_CONFLICT}
            settled.open[id(each.entry)] = frozenset({decision} | others)
    return wrong


def _changed_from_unknown(cluster: ObservedCluster, apply: EpochApply, key: RowKey) -> bool:
    """Whether a row that is known now was changed, since its epoch arrived, from a state that is not all known."""
    states = (state for position, state in cluster.earlier.get(key, ()) if position > apply.arrived)
    return any(state is not None and (not is_dated(state) or is_partial(state)) for state in states)


def take_contradicted(
    cluster: ObservedCluster, apply: EpochApply, wrong: Mapping[RowKey, Effect | None], settled: Settled
) -> None:
    """
    Go on with what the binlog shows of rows on which the decisions contradict it.

    It is no contradiction to report where these decisions depend on an assumed state, or the row may have been judged
    in a state that is not known.
    """
    if not wrong:
        return
    effects = dict(cluster.result.effects.get((apply.epoch, apply.group), {}))
    for key, shown in wrong.items():
        cluster.store.put(key, NOT_KNOWN)
        leave_unclear(cluster, apply, key)
        assumed = key in settled.rows or key in settled.judged_earlier
        if assumed or (settled.rows and judges_transactions(cluster)):
            effects.pop(key, None)
            effects |= {} if shown is None else {key: shown}
    take_effects(cluster, apply, {key: effect for key, effect in wrong.items() if effect is not None})
    cluster.result.effects[apply.epoch, apply.group] = effects
