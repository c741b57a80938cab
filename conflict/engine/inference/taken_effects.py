"""
What the applier's own binlog shows of rows whose operations, or states, are not known.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from conflict.engine.inference.doubtful_transactions import REFRESHES
from conflict.engine.inference.observed import ObservedCluster, compares_unknown
from conflict.engine.inference.rows import NOT_KNOWN, OlderRow
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.row_store import RowKey
from conflict.history.model import EpochApply
from conflict.history.shown_effects import Effect
from conflict.rules.roles import Role

__all__ = [
    "brings_unknown",
    "doubt_operation",
    "leave_unclear",
    "replace_effect",
    "take_effects",
    "take_shown",
    "take_unclear",
    "unclear_rows",
]


def take_shown(cluster: ObservedCluster, apply: EpochApply) -> None:
    """Take what an epoch did whose operations are not known from the applier's own binlog."""
    take_effects(cluster, apply, cluster.shown_by(apply))


def take_unclear(cluster: ObservedCluster, source: ObservedCluster, apply: EpochApply) -> None:
    """Take what an epoch did to rows whose operations are not all known from the applier's own binlog."""
    unclear = set() if cluster.cluster.start is None else unclear_rows(cluster, source, apply)
    if not unclear:
        return
    shown = cluster.shown_by(apply)
    arrived = {entry.row for entry in cluster.arriving(source, apply.foreign_epoch)}
    for key in unclear & arrived:
        replace_effect(cluster, apply, key)
        if key not in shown:
            cluster.store.put(key, NOT_KNOWN)
    take_effects(cluster, apply, {key: effect for key, effect in shown.items() if key in unclear})


def take_effects(cluster: ObservedCluster, apply: EpochApply, effects: Mapping[RowKey, Effect]) -> None:
    """Make effects that the binlog shows, whatever the operations were."""
    for key, effect in effects.items():
        row = None
        if effect in {Effect.CHANGED, Effect.REFRESHED}:
            row = OlderRow({}, local=effect is Effect.REFRESHED, epoch=apply.epoch)
        cluster.store.put(key, row)
        setup = cluster.setups.get(key[0])
        function = None if setup is None else setup.function
        reflects = function is not None and function.spec.uses_role and cluster.role is Role.PRIMARY
        if effect in REFRESHES or reflects:
            cluster.leave_unclear(apply.epoch, key)
    cluster.store.commit()
    if effects:
        cluster.result.effects.setdefault((apply.epoch, apply.group), {}).update(effects)


def leave_unclear(cluster: ObservedCluster, apply: EpochApply, key: RowKey) -> None:
    """Note that it is not known what an epoch sent on of a row; nothing is, where the binlog does not show it so."""
    cluster.leave_unclear(apply.epoch, key)
    place = apply.epoch, apply.group
    derived = cluster.result.effects.get(place, {}).get(key)
    shown = cluster.shown_by(apply).get(key)
    if cluster.shown and derived is not shown:
        log = cluster.log.get(apply.epoch, [])
        log[:] = [each for each in log if not (isinstance(each, LoggedChange) and each.is_sent_on_by(apply, key))]


def doubt_operation(cluster: ObservedCluster, apply: EpochApply, key: RowKey) -> None:
    """Note that what an epoch sent on of a row may be a write or an update: it is not known whether the row existed."""
    log = cluster.log.get(apply.epoch, [])
    log[:] = [
        attrs.evolve(each, change=attrs.evolve(each.change, doubtful=True))
        if isinstance(each, LoggedChange) and each.is_sent_on_by(apply, key)
        else each
        for each in log
    ]


def replace_effect(cluster: ObservedCluster, apply: EpochApply, key: RowKey) -> None:
    """Let the effect on a row be the one that the binlog shows: what was derived comes from an assumed state."""
    place = apply.epoch, apply.group
    effects = cluster.result.effects.setdefault(place, {})
    effects.pop(key, None)
    cluster.result.images.get(place, {}).pop(key, None)
    shown = cluster.shown_by(apply).get(key)
    if shown is not None:
        effects[key] = shown


def unclear_rows(cluster: ObservedCluster, source: ObservedCluster, apply: EpochApply) -> set[RowKey]:
    """Return the rows of an epoch whose operations are not all known, or a value that is compared is not."""
    brought = {entry.row for entry in cluster.arriving(source, apply.foreign_epoch) if brings_unknown(cluster, entry)}
    return source.unclear.get(apply.foreign_epoch, set()) | brought


def brings_unknown(cluster: ObservedCluster, entry: LoggedChange) -> bool:
    """Whether the function of a table compares a value that an operation brings, but that is not known."""
    setup = cluster.setups.get(entry.change.table)
    return (
        setup is not None and setup.function is not None and compares_unknown(entry.change, setup.function, setup.table)
    )
