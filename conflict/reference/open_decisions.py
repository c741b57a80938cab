"""
Decisions that no binlog shows.

They are decisions on rows that the applying cluster changed while its applier worked on an epoch, and on rows that are
older than the log (see `conflict.reference.not_known`).

Pass TRACK can have run at any time between the applier's last commit and this one. The binlog shows which transactions
the applier rejected. It does not show which of their operations were in conflict themselves, and counted, where the
cluster changed the row in that time.
"""

from __future__ import annotations

from collections.abc import Sequence

from conflict.reference.epoch_log import LoggedChange
from conflict.reference.epoch_pass import REJECTED_WITH_TRANSACTION, ApplierStopped, DecidedOperation, EpochPass
from conflict.reference.row_store import NOT_KNOWN, Row, RowKey
from conflict.results.model import Undecided
from conflict.results.undecided import counts_differ
from conflict.rules.decision import Cause, Decision

__all__ = ["decisions_not_told", "is_open", "open_decisions"]


def open_decisions(tracked: EpochPass, rejected: frozenset[int], changes: Sequence[LoggedChange]) -> list[Undecided]:
    """
    Return the operations of rejected transactions that may or may not have been in conflict themselves.

    Args:
        tracked: The pass that found the conflicts, rolled back.
        rejected: Transactions in conflict.
        changes: The operations of the foreign epoch.
    """
    found = []
    # What an applier logged has no number of its own, so operations are told apart as objects. The pass decides on all
    # in their order, and may have fitted them to its own table.
    decided = {id(entry): each.decision for entry, each in zip(changes, tracked.decided, strict=False)}
    earlier = _earlier_states(tracked, changes)
    not_known = {entry.row for entry in changes if id(entry) in tracked.open}
    for key in dict.fromkeys(entry.row for entry in changes):
        states = earlier.get(key, [])
        if not states and key not in not_known:
            continue
        entries = [entry for entry in changes if entry.row == key]
        if not any(entry.group in rejected for entry in entries):
            continue
        tried = [_try(entries, key, state, tracked) for state in states]
        for number, entry in enumerate(entries):
            now = decided.get(id(entry))
            candidates = {each[number] for each in tried if number < len(each)} | ({now} if now else set())
            candidates |= tracked.open.get(id(entry), frozenset())
            if REJECTED_WITH_TRANSACTION in candidates:
                continue  # see `decisions_not_told`
            function = tracked.cluster.setups[entry.change.table].function
            if function is None or entry.group not in rejected:
                continue
            if counts_differ(function.spec, entry.change.operation, candidates):
                found.append(_undecided(tracked, entry, now, candidates))
    return found


def decisions_not_told(final: EpochPass) -> list[Undecided]:
    """Return the operations whose outcome depends on what is not known."""
    return [
        _undecided(final, each.entry, each.decision, set(final.open[id(each.entry)]))
        for each in final.decided
        if is_open(final, each)
    ]


def is_open(final: EpochPass, decided: DecidedOperation) -> bool:
    """Whether the decision on an operation depends on what is not known; not if its transaction was rejected anyway."""
    candidates = final.open.get(id(decided.entry), frozenset())
    rejected = decided.decision.cause is Cause.TRANS_IN_CONFLICT
    return len(candidates) > 1 and (not rejected or REJECTED_WITH_TRANSACTION in candidates)


def _earlier_states(tracked: EpochPass, changes: Sequence[LoggedChange]) -> dict[RowKey, list[Row | None]]:
    """Return the states of rows that the cluster changed since the epoch arrived, the present state last."""
    cluster, found = tracked.cluster, dict[RowKey, list[Row | None]]()
    begun = max(tracked.apply.arrived, cluster.last_applied)
    for key in dict.fromkeys(entry.row for entry in changes):
        states = [state for position, state in cluster.earlier.get(key, ()) if position > begun]
        if states:
            found[key] = [*states, cluster.store.get(key)]
    return found


def _try(entries: Sequence[LoggedChange], key: RowKey, state: Row | None, tracked: EpochPass) -> list[Decision]:
    """Return the decisions on the operations on one row that the row in a given state would lead to."""
    trial = EpochPass(tracked.cluster, tracked.source, tracked.apply)
    # Of a row that is not known, `Settled` tries the states; the one between its changes counts as missing.
    tracked.cluster.store.put(key, None if state is NOT_KNOWN else state)
    try:
        for entry in entries:
            trial.handle(entry)
    except ApplierStopped:
        pass  # pass TRACK stopped there too, or did not reach the operation
    finally:
        tracked.cluster.store.roll_back()
    return [each.decision for each in trial.decided]


def _undecided(tracked: EpochPass, entry: LoggedChange, now: Decision | None, candidates: set[Decision]) -> Undecided:
    change = entry.change
    return Undecided(
        applier=tracked.cluster.name,
        source_epoch=tracked.apply.foreign_epoch,
        table=change.table,
        key=change.key,
        operation=change.operation,
        decided=now,
        candidates=tuple(sorted(candidates, key=lambda each: (each.verdict, each.cause, each.stored or 0))),
        origin=change.origin,
    )
