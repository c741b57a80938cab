"""
Foreign keys when an applier commits: what stops it, and what ON DELETE and ON UPDATE do.

The check sees what the whole transaction leaves, so parent and child can come in any order. A row that refers to no
parent stops the applier (error 1452), and so does a parent that goes while a row refers to it (1451). An action finds
only rows that the source did not have: what the source's own actions did is in its log, as ordinary changes.

Source: `docs/functions.md`, "Foreign keys".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from conflict.engine.reference.epoch_pass import ApplierStopped, ChangedRow, EpochPass
from conflict.engine.reference.keys import KeySide, Value
from conflict.engine.reference.row_store import Row, RowKey, copies_of, touched_keys
from conflict.history.timeline import NO_FLAGS, RowChange
from conflict.rules.foreign_keys import KeyLink
from conflict.rules.stops import ServerStop
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import ReferenceAction


def keep_references(final: EpochPass) -> None:
    """
    Check the foreign keys of the rows that a pass changed, and carry out their actions.

    Args:
        final: The pass that is to be committed; actions add to its changed rows.

    Raises:
        ApplierStopped: A row would refer to a parent that is not there. The caller rolls back.
    """
    keys, store = final.cluster.foreign_keys, final.cluster.store
    if not keys.links:
        return
    before = keys.update(dict.fromkeys(row for each in final.decided for row in touched_keys(each.entry.change)), store)
    for row, had in before.items():
        _check_parents(final, row, had)
    waiting = deque(before.items())
    while waiting:
        row, had = waiting.popleft()
        for value in _ordered(had - keys.values_of(row, store.get(row)), KeySide.PARENT):
            for child in keys.children(value, store):
                changed = keys.update(_act(final, keys.links[value.link], row, child), store)
                for each, its in changed.items():
                    _check_parents(final, each, its)
                waiting.extend(changed.items())


def _check_parents(final: EpochPass, row: RowKey, had: frozenset[Value]) -> None:
    """Stop at a reference that was written and that no parent has; `had` are the values of the row before."""
    keys, store = final.cluster.foreign_keys, final.cluster.store
    changed = final.changed.get(row)
    for value in _ordered(keys.values_of(row, store.get(row)), KeySide.CHILD):
        link = keys.links[value.link]
        written = value not in had or (changed is not None and not changed.written.isdisjoint(link.columns))
        if written and keys.lacks_parent(value, store):
            raise _stopped(final, row, ServerStop.PARENT_MISSING, link)


def _ordered(values: Iterable[Value], side: KeySide) -> list[Value]:
    return sorted((value for value in values if value.side is side), key=lambda value: value.link)


def _act(final: EpochPass, link: KeyLink, parent: RowKey, child: RowKey) -> list[RowKey]:
    """Do what is declared with a row whose parent went, and return the rows that this changed."""
    now, row = final.cluster.store.get(parent), final.cluster.store.get(child)
    assert row is not None
    action = link.key.on_delete if now is None else link.key.on_update
    if action.refuses:
        raise _stopped(final, parent, ServerStop.PARENT_NEEDED, link)
    if not final.cluster.setups[child[0]].table.primary_key:
        return _remove_copies(final, child) if now is None and action is ReferenceAction.CASCADE else []
    if action is ReferenceAction.CASCADE and now is None:
        _put(final, child, row, None, link)
        return [child]
    given = now.payloads if now and action is ReferenceAction.CASCADE else {}
    values = [given.get(ordinal) for ordinal in link.references]
    payloads = {**row.payloads, **dict(zip(link.columns, values, strict=True))}
    after = row.changed_here(final.apply.epoch, payloads=payloads)
    table = final.cluster.setups[child[0]].table
    moved = child[0], key_of(table.key_columns, [payloads.get(ordinal) for ordinal in table.key_ordinals])
    if moved == child:
        _put(final, child, row, after, link)
        return [child]
    _put(final, child, row, None, link)
    _put(final, moved, final.cluster.store.get(moved), after, link)
    return [child, moved]


def _remove_copies(final: EpochPass, child: RowKey) -> list[RowKey]:
    """Remove all equal rows of a table without a primary key."""
    final.copies.net[child] -= copies_of(final.cluster.store, child)
    final.cluster.store.put(child, None)
    return [child]


def _put(final: EpochPass, key: RowKey, row: Row | None, after: Row | None, link: KeyLink) -> None:
    """Make a change of the data nodes' own, which is logged as one of their cluster."""
    cluster = final.cluster
    operation = Operation.DELETE_ROW if after is None else Operation.UPDATE_ROW if row else Operation.WRITE_ROW
    change = RowChange(*key, operation, _image(cluster.layouts[key[0]], row), _image(cluster.layouts[key[0]], after))
    changed = final.changed.setdefault(key, ChangedRow(row, change, cluster.server_id))
    changed.change, changed.server_id, changed.flags, changed.image = change, cluster.server_id, NO_FLAGS, None
    if after is not None:
        changed.written.update(link.columns if row else after.payloads)
    cluster.store.put(key, after)


def _image(layout: RowLayout, row: Row | None) -> RowImage | None:
    if row is None:
        return None
    present = tuple(sorted(row.payloads))
    return RowImage(layout, present, tuple(row.payloads[ordinal] for ordinal in present))


def _stopped(final: EpochPass, row: RowKey, kind: ServerStop, link: KeyLink) -> ApplierStopped:
    """Return the signal to stop at the last operation that changed a row."""
    if row in final.changed:
        return final.stopped(kind, final.changed[row].change, link=link)
    applied = (each.entry.change for each in reversed(final.decided) if each.decision.verdict.writes_row)
    change = next(change for change in applied if row in touched_keys(change))
    return final.stopped(kind, change, link=link)
