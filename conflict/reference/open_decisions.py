"""
Decisions that no binlog tells: what the pass that found conflicts saw of a row that its own cluster changed meanwhile.

The pass can have run at any time between the applier's last commit and this one. Which transactions were
left out shows in the binlog; which of their operations were in conflict themselves, and are counted, does not, where
the row was changed in that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conflict.reference.epoch_log import LoggedChange
from conflict.reference.epoch_pass import EpochPass, Judged, Stopped
from conflict.reference.row_store import Row, RowKey, RowStore
from conflict.results.model import Undecided
from conflict.results.undecided import counts_differ
from conflict.rules.decision import Decision

__all__ = ["open_decisions"]


def open_decisions(
    looked: EpochPass,
    rejected: frozenset[int],
    changes: Sequence[LoggedChange],
    earlier: Mapping[RowKey, Sequence[Row | None]],
    again: EpochPass,
) -> list[Undecided]:
    """
    Return the operations of rejected transactions that may or may not have been in conflict themselves.

    Args:
        looked: The pass that found the conflicts.
        rejected: Transactions in conflict.
        changes: The operations of the foreign epoch.
        earlier: Rows that the cluster changed since its applier's last commit, each as it was before every change.
        again: A pass to try with; nothing is kept of it.
    """
    found = []
    # What an applier logged has no number of its own, so operations are told apart as objects.
    decided = {id(judged.entry): judged for judged in looked.judged}
    for key, states in earlier.items():
        entries = [entry for entry in changes if _key(entry) == key]
        if not any(entry.group in rejected for entry in entries):
            continue
        tried = [_try(entries, key, state, again) for state in states]
        for place, entry in enumerate(entries):
            now = decided.get(id(entry))
            candidates = {each[place] for each in tried if place < len(each)} | ({now.decision} if now else set())
            function = looked.setups[entry.change.table].function
            if (
                entry.group in rejected
                and function
                and counts_differ(function.spec, entry.change.operation, candidates)
            ):
                found.append(_undecided(looked, entry, now, candidates))
    return found


def _key(entry: LoggedChange) -> RowKey:
    return entry.change.table, entry.change.key


def _try(entries: Sequence[LoggedChange], key: RowKey, state: Row | None, again: EpochPass) -> list[Decision]:
    """Return what would be decided on the operations on one row if it were in a state."""
    store: RowStore = again.store
    store.put(key, state)
    start = len(again.judged)
    try:
        for entry in entries:
            again.handle(entry)
    except Stopped:
        pass  # the pass itself stopped too, or the operation was not reached in it
    finally:
        store.roll_back()
    return [judged.decision for judged in again.judged[start:]]


def _undecided(looked: EpochPass, entry: LoggedChange, now: Judged | None, candidates: set[Decision]) -> Undecided:
    change = entry.change
    return Undecided(
        applier=looked.cluster,
        source_epoch=looked.apply.foreign_epoch,
        table=change.table,
        key=change.key,
        operation=change.operation,
        decided=now.decision if now else None,
        candidates=tuple(sorted(candidates, key=lambda each: (each.verdict, each.cause, each.stored or 0))),
        origin=change.origin,
    )
