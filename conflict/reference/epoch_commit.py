"""
What the commit of an epoch apply does: it logs changed and refreshed rows, and keeps what the pass counted and wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.history.effects import Effect, effect_on_row
from conflict.history.model import RowChange
from conflict.reference.cluster import ReplayedCluster
from conflict.reference.epoch_log import FROM_AN_APPLIER, ExceptionRow, LoggedChange, merged_change, refresh_change
from conflict.reference.epoch_pass import DecidedOperation, EpochPass
from conflict.reference.row_store import RowKey
from conflict.results.model import ExceptionsPlace, LastWrite, Outcome
from conflict.rules.counters import TRANSACTION_ROW_CONFLICTS, moved_counters
from conflict.rules.decision import Cause
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation

__all__ = ["commit_pass", "effects_of"]

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
    log = cluster.log.setdefault(apply.epoch, [])
    log += _changed_rows(final)
    log += _refreshes(final)
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
        if isinstance(entry, ExceptionRow) and cluster.cluster.takes(entry.server_id, source.name):
            result.exceptions.setdefault(entry.table, []).append(entry.row)
            result.excepted.setdefault(entry.table, []).append(entry.outcome)
            if cluster.relays:
                log.append(entry)
    for counter, value in final.counters.items():
        result.counters[counter] += value
    tracked: Sequence[DecidedOperation | None] = final.track.decided if final.track else [None] * len(final.decided)
    cluster.outcomes += [_outcome(*each, final) for each in zip(final.decided, tracked, strict=True)]
    cluster.store.commit()
    cluster.applied(apply, source)


def _changed_rows(final: EpochPass) -> Iterator[LoggedChange]:
    """Yield one event per row that the pass changed and does not refresh: reflected, or relayed to a third cluster."""
    cluster = final.cluster
    for key, changed in final.changed.items():
        foreign = changed.server_id != cluster.server_id
        if key in final.refreshes or (foreign and not cluster.relays):
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
            yield LoggedChange(event, final.apply.group, -1, changed.server_id, final.cluster.setups[event.table])
    for change, server_id in _changed_copies(final):
        yield LoggedChange(change, final.apply.group, -1, server_id, cluster.setups[change.table])


def _changed_copies(final: EpochPass) -> Iterator[tuple[RowChange, int]]:
    """Yield the changes of rows without a key that the pass sends on, each with the server id that it bears."""
    for change in final.copies.reflected:
        sent = attrs.evolve(change, flags=ConflictFlag.REFLECTED, transaction_id=FROM_AN_APPLIER)
        yield sent, final.cluster.server_id
    for change, server_id in final.copies.made if final.cluster.relays else ():
        yield attrs.evolve(change, transaction_id=FROM_AN_APPLIER), server_id


def _refreshes(final: EpochPass) -> Iterator[LoggedChange]:
    """Refresh the rows in conflict, which become local rows of this epoch, and yield the events."""
    cluster, refreshes = final.cluster, final.cluster.result.refreshes
    by = LastWrite(cluster.name, final.apply.epoch, Operation.WRITE_ROW, refresh=True)
    causes = {id(each.entry.change): each.entry for each in final.decided} if final.refreshes else {}
    for key, change in final.refreshes.items():
        row = cluster.store.get(key)
        event = refresh_change(cluster.setups[key[0]], cluster.layouts[key[0]], change, row)
        cause = causes.get(id(change))
        yield LoggedChange(event, final.apply.group, -1, cluster.server_id, cluster.setups[key[0]], cause)
        if row is not None:
            cluster.store.put(key, row.changed_here(final.apply.epoch, by=by))
        refreshes[key[0]] = refreshes.get(key[0], 0) + 1


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
    # What an applier logged belongs to a transaction of which the log does not give the id.
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
