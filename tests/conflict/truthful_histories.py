"""Histories of which every change is possible: before images hold the rows as they were, and no change finds no row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import ReplayedCluster
from conflict.engine.reference.row_store import Row
from conflict.history.model import History
from conflict.history.scheduling.placing import interleave
from conflict.history.timeline import EpochApply, RowChange, Transaction
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation

__all__ = ["truthful"]

KEY = 0  # position of the only key column of each table


def truthful(history: History, setups: Mapping[str, dict[str, TableSetup]]) -> History:
    """
    Return a History with changes that fit the rows as they stand, and epoch applies that fit their traces.

    An insert of a row that exists becomes an update; updates and deletes of a missing row are left out. So are untraced
    epoch applies that change something, and those from the one on that stops the applier.
    """
    made = _fitting_history(history, setups)
    return made if made == history else truthful(made, setups)


def _fitting_history(history: History, setups: Mapping[str, dict[str, TableSetup]]) -> History:
    clusters = {each.name: ReplayedCluster(each, setups[each.name], history.layouts) for each in history.clusters}
    appliers = {name: Applier(cluster) for name, cluster in clusters.items()}
    timelines: dict[str, list[Transaction | EpochApply]] = {name: [] for name in clusters}
    for cluster, item in interleave(history):
        here = clusters[cluster.name]
        if isinstance(item, Transaction):
            fitting = attrs.evolve(item, changes=tuple(_fitting_changes(item, here)))
            here.commit(fitting)
            timelines[cluster.name].append(fitting)
            continue
        if here.result.stop is not None:
            continue
        here.result.effects.pop((item.epoch, item.group), None)
        appliers[cluster.name].apply_epoch(item, clusters[item.source])
        if here.result.stop is None and (item.traced or not here.result.effects.get((item.epoch, item.group))):
            timelines[cluster.name].append(item)
    made = tuple(attrs.evolve(each, timeline=tuple(timelines[each.name])) for each in history.clusters)
    return attrs.evolve(history, clusters=made)


def _fitting_changes(transaction: Transaction, cluster: ReplayedCluster) -> Iterator[RowChange]:
    for change in transaction.changes:
        row = cluster.store.get((change.table, change.key))
        fitting = _fitting(change, row)
        if fitting is not None:
            yield fitting
            cluster.store.write(fitting, local=True, epoch=transaction.epoch)
    cluster.store.roll_back()


def _fitting(change: RowChange, row: Row | None) -> RowChange | None:
    if row is None:
        return change if change.operation is Operation.WRITE_ROW else None
    if change.operation is not Operation.WRITE_ROW:
        assert change.before is not None
        return attrs.evolve(change, before=_image(change.before, row))
    assert change.after is not None
    return attrs.evolve(change, operation=Operation.UPDATE_ROW, before=_image(change.after, row))


def _image(image: RowImage, row: Row) -> RowImage:
    """Return an image with the values of a row; of columns that were never written, the key's alone."""
    here = dict(zip(image.present, image.payloads, strict=True))
    values = {
        ordinal: row.payloads.get(ordinal, payload)
        for ordinal, payload in here.items()
        if ordinal in row.payloads or ordinal == KEY
    }
    return RowImage(image.layout, tuple(values), tuple(values.values()))
