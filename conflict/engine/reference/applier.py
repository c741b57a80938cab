"""
The applier of a cluster: how many passes it makes over a foreign epoch, what data nodes check, and the commit.

An applier applies a foreign epoch as one NDB transaction. A function that judges transactions makes it go over the
epoch more than once:

    NORMAL   decides row by row; a transaction in conflict rolls the pass back, and TRACK follows
    TRACK    the same, and tracks dependencies; a transaction in conflict rolls the pass back, and APPLY follows
    APPLY    rejects the transactions in conflict and those that depend on them, and refreshes their rows

The applier stays in TRACK until an epoch had no transaction in conflict. At the commit, data nodes check unique keys
first, then foreign keys; then changed and refreshed rows are logged, and what the pass counted and wrote is kept.

Source: MySQL manual, "NDB$EPOCH_TRANS", and the state diagram in the server's `ndb_applier.cc`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from conflict.engine.ledger.resolution import ExceptionsPlace, LastWrite, Outcome
from conflict.engine.reference.cluster import (
    FROM_AN_APPLIER,
    ExceptionRow,
    LoggedChange,
    ReplayedCluster,
    merged_change,
    refresh_change,
)
from conflict.engine.reference.epoch_pass import ApplierStopped, DecidedOperation, EpochPass
from conflict.engine.reference.referential_actions import keep_references
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.model import Cluster
from conflict.history.shown_effects import Effect, effect_on_row
from conflict.history.timeline import EpochApply, RowChange
from conflict.rules.counters import TRANSACTION_ROW_CONFLICTS, moved_counters, transaction_counters
from conflict.rules.decision import Cause
from conflict.rules.stops import ServerStop
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation


def check_commit(final: EpochPass) -> None:
    """
    Check the rows that a pass changed; what the actions of foreign keys do is added to them.

    Raises:
        ApplierStopped: The pass cannot be committed. The caller rolls back.
    """
    cluster = final.cluster
    duplicate = cluster.unique_keys.update(final.changed, cluster.store)
    if duplicate is not None:
        raise final.stopped(ServerStop.DUPLICATE_VALUE, final.changed[duplicate].change)
    keep_references(final)


# The causes of an operation that loses against the operation that last wrote the row.
_LOST = (Cause.ROW_IN_CONFLICT, Cause.ROW_ALREADY_EXISTS)


def commit_pass(final: EpochPass, source: ReplayedCluster) -> None:
    """
    Commit a pass: refresh the rows in conflict, and keep everything else that the pass did.

    Args:
        final: The pass; its rows are changed and not yet committed.
        source: The cluster whose epoch it is. Rows of its replicated exceptions tables arrive with the epoch.
    """
    cluster, apply, result = final.cluster, final.apply, final.cluster.result
    # Two epoch applies without a trace can have one position; the effect of the later one on a row counts.
    result.effects.setdefault((apply.epoch, apply.group), {}).update(effects_of(final))
    result.images.setdefault((apply.epoch, apply.group), {}).update(_given_images(final))
    for counter, value in final.counters.items():
        result.counters[counter] += value
    if any(final.counters.values()):
        result.counted[len(result.applies)] = Counter(final.counters)
    tracked: Sequence[DecidedOperation | None] = final.track.decided if final.track else [None] * len(final.decided)
    cluster.outcomes += [_outcome(*each, final) for each in zip(final.decided, tracked, strict=True)]
    commit_rows(final, source)


def commit_rows(final: EpochPass, source: ReplayedCluster) -> None:
    """Commit a pass, and keep of it the rows and what the next applier gets; arguments as for `commit_pass`."""
    cluster, apply, result = final.cluster, final.apply, final.cluster.result
    log = cluster.log.setdefault(apply.epoch, [])
    log += _with_transaction_id(final, [*_changed_rows(final), *_refreshes(final)])
    for (exceptions, row), each in zip(final.exceptions, final.excepted, strict=True):
        name = exceptions.table.full_name
        outcome = _outcome(each, None, final).place
        result.exceptions.setdefault(name, []).append(row)
        result.excepted.setdefault(name, []).append(outcome)
        cause = each.decision.cause is not Cause.TRANS_IN_CONFLICT
        place = ExceptionsPlace(len(result.applies), cause, tuple(each.entry.steps))
        result.rejected.setdefault(name, []).append((place, row))
        if exceptions.replicated:
            log.append(ExceptionRow(cluster.server_id, name, row, outcome))
    for entry in source.log.get(apply.foreign_epoch, []):
        taken = isinstance(entry, ExceptionRow) and cluster.takes(entry.server_id, source, apply.foreign_epoch)
        if isinstance(entry, ExceptionRow) and taken and not cluster.cluster.drops(entry.table, source.name):
            result.exceptions.setdefault(entry.table, []).append(entry.row)
            result.excepted.setdefault(entry.table, []).append(entry.outcome)
            if cluster.sends_on:
                log.append(entry)
    cluster.store.commit()
    cluster.applied(apply, source)


def _with_transaction_id(final: EpochPass, logged: list[LoggedChange]) -> list[LoggedChange]:
    """Return what a pass logs, with the id of its NDB transaction if that is known, as it is of compressed epochs."""
    known = final.cluster.cluster.payloads.transactions.get((final.apply.epoch, final.apply.group))
    if known is None:
        return logged
    return [attrs.evolve(each, change=attrs.evolve(each.change, transaction_id=known)) for each in logged]


def _changed_rows(final: EpochPass) -> Iterator[LoggedChange]:
    """Yield one event per row that the pass changed and does not refresh: reflected, or sent on as it came."""
    cluster, apply = final.cluster, len(final.cluster.result.applies)
    for key, changed in final.changed.items():
        foreign = changed.server_id != cluster.server_id
        if key in final.refreshes or (foreign and not cluster.sends_on):
            continue
        event = merged_change(
            cluster.setups[key[0]],
            cluster.layouts[key[0]],
            changed.change,
            changed.before,
            cluster.store.get(key),
            frozenset(changed.written),
            changed.flags,
        )
        if event is not None:
            place, setup = (final.apply.group, -1), final.cluster.setups[event.table]
            committed = _written_at(cluster.store.get(key))
            yield LoggedChange(event, *place, changed.server_id, setup, changed.first, committed, apply)
    for change, server_id in _changed_copies(final):
        yield LoggedChange(change, final.apply.group, -1, server_id, cluster.setups[change.table], apply=apply)


def _changed_copies(final: EpochPass) -> Iterator[tuple[RowChange, int]]:
    """Yield the changes of rows without a key that the pass sends on, each with the server id that it bears."""
    for change in final.copies.reflected:
        sent = attrs.evolve(change, flags=ConflictFlag.REFLECTED, transaction_id=FROM_AN_APPLIER)
        yield sent, final.cluster.server_id
    for change, server_id in final.copies.made if final.cluster.sends_on else ():
        yield attrs.evolve(change, transaction_id=FROM_AN_APPLIER), server_id


def _refreshes(final: EpochPass) -> Iterator[LoggedChange]:
    """Refresh the rows in conflict, which become local rows of this epoch, and yield the events."""
    cluster, result = final.cluster, final.cluster.result
    write = cluster.name, final.apply.epoch, Operation.WRITE_ROW
    causes = {id(each.entry.change): each.entry for each in final.decided} if final.refreshes else {}
    for key, change in final.refreshes.items():
        row = cluster.store.get(key)
        event = refresh_change(cluster.setups[key[0]], cluster.layouts[key[0]], change, row)
        cause = causes.get(id(change))
        committed = _written_at(row)  # a refresh carries the row as it stands, however late it is sent
        setup = cluster.setups[key[0]]
        place = final.apply.group, -1
        yield LoggedChange(event, *place, cluster.server_id, setup, cause, committed, len(result.applies))
        if row is not None:
            by = LastWrite(*write, refresh=True, site=cluster.server_id, committed=committed)
            cluster.store.put(key, row.changed_here(final.apply.epoch, by=by))
        result.refreshes[key[0]] = result.refreshes.get(key[0], 0) + 1


def _written_at(row: Row | None) -> int | None:
    """Return when the last write of a row committed; None if that is not known, or there is no row."""
    return None if row is None or row.by is None else row.by.committed


def effects_of(final: EpochPass) -> dict[RowKey, Effect]:
    """Return what the NDB transaction did to each row: nothing if it came and went; a refresh replaces the rest."""
    store, effects = final.cluster.store, final.copies.effects()
    for key in [*final.changed, *(final.refreshes.keys() - final.changed.keys())]:
        changed = final.changed.get(key)
        effect = effect_on_row(
            refreshed=key in final.refreshes,
            wrote=changed is not None,
            existed=changed is not None and changed.before is not None,
            exists=store.get(key) is not None,
        )
        if effect is not None:
            effects[key] = effect
    return effects


def _given_images(final: EpochPass) -> dict[RowKey, RowImage]:
    """Return the after image of the last change of each row, as far as the source's log has it."""
    return {key: changed.image for key, changed in final.changed.items() if changed.image is not None}


def _outcome(decided: DecidedOperation, tracked: DecidedOperation | None, final: EpochPass) -> Outcome:
    """Return the outcome of an operation; `tracked` is what pass TRACK decided on it, if it came before."""
    entry, decision, change = decided.entry, decided.decision, decided.entry.change
    own = _own_decision(decided, tracked, final)
    # What an applier logged belongs to a transaction whose id the log does not give.
    transaction_id = change.transaction_id if entry.ordinal >= 0 else None
    return Outcome(
        applier=final.cluster.name,
        source=final.source.name,
        source_epoch=final.apply.foreign_epoch,
        epoch=final.apply.epoch,
        group=entry.group,
        ordinal=entry.ordinal,
        table=change.table,
        key=change.key,
        operation=change.operation,
        refresh=bool(change.flags & ConflictFlag.REFRESH),
        verdict=decision.verdict,
        cause=decision.cause,
        incoming=own.decision.incoming,
        stored=own.decision.stored,
        origin=change.origin,
        committed=final.apply.committed,
        transaction_id=transaction_id,
        own_cause=own.decision.cause if own is tracked else Cause.NONE,
        winner=own.met.by if own.decision.cause in _LOST and own.met is not None else None,
        merged=decided.merged,
    )


def _own_decision(decided: DecidedOperation, tracked: DecidedOperation | None, final: EpochPass) -> DecidedOperation:
    """Return what pass TRACK decided of an operation that put its transaction in conflict; else the decision."""
    if tracked is None or decided.decision.cause is not Cause.TRANS_IN_CONFLICT:
        return decided
    function = final.cluster.setups[decided.entry.change.table].function
    if function is None:
        return decided
    moved = moved_counters(function.spec, decided.entry.change.operation, tracked.decision)
    return tracked if moved[TRANSACTION_ROW_CONFLICTS] else decided


@attrs.define
class Applier:
    """
    The applier of one cluster. Once it stopped it does nothing more.

    Attributes:
        cluster: The cluster.
    """

    cluster: ReplayedCluster
    _tracking: bool = False

    def apply_epoch(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Apply one epoch of another cluster and commit it; an epoch that stops the applier is undone."""
        if self.cluster.result.stop is not None:
            return
        self.cluster.act_as(apply.role)
        if apply.restarted:
            self._tracking = False
        try:
            final = self._final_pass(apply, source)
            check_commit(final)
        except ApplierStopped as stopped:
            undone = self.cluster.store.roll_back()
            self.cluster.foreign_keys.update(undone, self.cluster.store)
            self.cluster.result.stop, self.cluster.result.stop_place = stopped.stop, stopped.place
            return
        if final.track is not None:
            self.note_track(final.track)
        self.commit(final, source)

    def commit(self, final: EpochPass, source: ReplayedCluster) -> None:
        """Commit a pass."""
        commit_pass(final, source)

    def _final_pass(self, apply: EpochApply, source: ReplayedCluster) -> EpochPass:
        """Make passes until one can be committed, and return it."""
        tracked = self._find_conflicts(apply, source)
        rejected = self.rejected(tracked)
        if not rejected:
            return tracked
        self.cluster.store.roll_back()
        return self.apply_without(rejected, tracked, source)

    def _find_conflicts(self, apply: EpochApply, source: ReplayedCluster) -> EpochPass:
        """Make pass NORMAL, pass TRACK or both; without a transaction in conflict the last one can be committed."""
        if not self._tracking:
            normal = self._pass(apply, source)
            if not normal.tracker.conflicting:
                return normal
            self.cluster.store.roll_back()
        tracked = self._pass(apply, source)
        self._tracking = bool(tracked.tracker.conflicting)
        return tracked

    def rejected(self, tracked: EpochPass) -> frozenset[int]:
        """Return the transactions that a pass found in conflict, and those that depend on them."""
        return tracked.tracker.in_conflict()

    def apply_without(self, rejected: frozenset[int], tracked: EpochPass, source: ReplayedCluster) -> EpochPass:
        """Make pass APPLY, with the counters of the pass that found the conflicts added."""
        final = self._pass(tracked.apply, source, rejected)
        final.track = tracked
        final.counters.update(tracked.counters)
        final.counters.update(transaction_counters(1, len(rejected)))
        self._tracking = True
        return final

    def note_track(self, track: EpochPass) -> None:
        """Note what pass TRACK found in an epoch that is committed; one that stops the applier leaves nothing."""
        result, number = self.cluster.result, len(self.cluster.result.applies)
        rows = Counter(exceptions.table.full_name for exceptions, _ in track.exceptions)
        if track.tracker.conflicting:
            result.conflicting[number] = frozenset(track.tracker.conflicting)
        result.tracked_rows.update({(table, number): count for table, count in rows.items()})

    def _pass(self, apply: EpochApply, source: ReplayedCluster, rejected: frozenset[int] = frozenset()) -> EpochPass:
        current = self.new_pass(apply, source.cluster, rejected)
        current.run(self.cluster.arriving(source, apply.foreign_epoch))
        return current

    def new_pass(self, apply: EpochApply, source: Cluster, rejected: frozenset[int]) -> EpochPass:
        """Return a pass that has not begun."""
        return EpochPass(self.cluster, source, apply, rejected)
