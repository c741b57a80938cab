"""
Decisions that no binlog shows.

They are decisions on rows that the applying cluster changed while its applier worked on an epoch, and on rows that are
older than the log (see `conflict.engine.inference.not_known`).

Pass TRACK can have run at any time between the applier's last commit and this one. The binlog shows which transactions
the applier rejected. It does not show which of their operations were in conflict themselves, and counted, where the
cluster changed the row in that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import attrs

from conflict.engine.inference.hypotheses import possible, try_state
from conflict.engine.inference.observed import ObservedCluster
from conflict.engine.inference.rows import NOT_KNOWN
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.epoch_pass import REJECTED_WITH_TRANSACTION, DecidedOperation, EpochPass
from conflict.engine.reference.row_store import Row, RowKey
from conflict.results.model import Outcome, Undecided
from conflict.rules.counters import counts_differ
from conflict.rules.decision import Cause, Decision, Verdict

__all__ = ["left_open", "open_decisions", "unclear_decisions"]

# By the identity of an entry, the decisions that are possible.
Candidates = Mapping[int, frozenset[Decision]]


def open_decisions(
    cluster: ObservedCluster,
    tracked: EpochPass,
    candidates_of: Candidates,
    rejected: frozenset[int],
    changes: Sequence[LoggedChange],
) -> list[Undecided]:
    """
    Return the operations of rejected transactions that may or may not have been in conflict themselves.

    Args:
        cluster: The applying cluster.
        tracked: The pass that found the conflicts, rolled back.
        candidates_of: What the operations on rows that are not known may be decided as, by the identity of entries.
        rejected: Transactions in conflict.
        changes: The operations of the foreign epoch.
    """
    found = []
    # What an applier logged has no number of its own, so operations are distinguished as objects. The pass decides on
    # all in their order, and may have fitted them to its own table.
    decided = {id(entry): each.decision for entry, each in zip(changes, tracked.decided, strict=False)}
    earlier = _earlier_states(cluster, tracked, changes)
    not_known = {entry.row for entry in changes if id(entry) in candidates_of}
    for key in dict.fromkeys(entry.row for entry in changes):
        states = earlier.get(key, [])
        if not states and key not in not_known:
            continue
        entries = [entry for entry in changes if entry.row == key]
        if not any(entry.group in rejected for entry in entries):
            continue
        # Of a row that is not known, `settle` tries the states; the one between its changes counts as missing.
        known = [None if state is NOT_KNOWN else state for state in states]
        tried = possible(known, partial(try_state, cluster, tracked.source, tracked.apply, entries))
        for number, entry in enumerate(entries):
            now = decided.get(id(entry))
            candidates = {each.decisions[number] for each in tried if number < len(each.decisions)}
            candidates |= {now} if now else set()
            candidates |= candidates_of.get(id(entry), frozenset())
            if REJECTED_WITH_TRANSACTION in candidates:
                continue  # see `unclear_decisions`
            function = cluster.setups[entry.change.table].function
            if function is None or entry.group not in rejected:
                continue
            if counts_differ(function.spec, entry.change.operation, candidates):
                found.append(_undecided(tracked, entry, now, candidates))
    return found


def unclear_decisions(final: EpochPass, candidates_of: Candidates) -> list[Undecided]:
    """Return the operations whose outcome depends on what is not known."""
    return [
        _undecided(final, each.entry, each.decision, set(candidates_of[id(each.entry)]))
        for each in final.decided
        if _is_open(each, candidates_of)
    ]


def left_open(final: EpochPass, candidates_of: Candidates, outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """Yield the outcomes of a pass without the decisions that depend on what is not known."""
    for each, outcome in zip(final.decided, outcomes, strict=True):
        if not _is_open(each, candidates_of):
            yield outcome
        else:
            cannot_tell, none = Verdict.CANNOT_TELL, Cause.NONE
            yield attrs.evolve(
                outcome, verdict=cannot_tell, cause=none, own_cause=none, incoming=None, stored=None, winner=None
            )


def _is_open(decided: DecidedOperation, candidates_of: Candidates) -> bool:
    """Whether the decision on an operation depends on what is not known; not if its transaction was rejected anyway."""
    candidates = candidates_of.get(id(decided.entry), frozenset())
    rejected = decided.decision.cause is Cause.TRANS_IN_CONFLICT
    return len(candidates) > 1 and (not rejected or REJECTED_WITH_TRANSACTION in candidates)


def _earlier_states(
    cluster: ObservedCluster, tracked: EpochPass, changes: Sequence[LoggedChange]
) -> dict[RowKey, list[Row | None]]:
    """Return the states of rows that the cluster changed since the epoch arrived, the present state last."""
    found = dict[RowKey, list[Row | None]]()
    begun = max(tracked.apply.arrived, cluster.last_applied)
    for key in dict.fromkeys(entry.row for entry in changes):
        states = [state for position, state in cluster.earlier.get(key, ()) if position > begun]
        if states:
            found[key] = [*states, cluster.store.get(key)]
    return found


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
