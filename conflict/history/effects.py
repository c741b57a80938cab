"""
The effects of an applier on rows, as its cluster's binlog shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum

from conflict.history.epochs import BinlogEpoch
from conflict.history.model import RowChange
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation

__all__ = [
    "NO_EFFECT",
    "Effect",
    "copy_effects",
    "effect_of",
    "effect_on_row",
    "net_copies",
    "recorded_effects",
    "recorded_images",
]


class Effect(IntEnum):
    """What one epoch apply did to one row."""

    CHANGED = 1
    DELETED = 2
    REFRESHED = 3
    REFRESHED_ABSENT = 4


NO_EFFECT = 0  # where a number stands for an effect or for none


def effect_on_row(*, refreshed: bool, wrote: bool, existed: bool, exists: bool) -> Effect | None:
    """
    Return what an epoch apply did to a row, None if nothing: a row can come and go, and a refresh replaces the rest.

    Args:
        refreshed: Whether the applier refreshed it.
        wrote: Whether it applied an operation on it.
        existed: Whether the row was there before.
        exists: Whether it is there now.
    """
    if refreshed:
        return Effect.REFRESHED if exists else Effect.REFRESHED_ABSENT
    if not wrote or not (exists or existed):
        return None
    return Effect.CHANGED if exists else Effect.DELETED


def effect_of(change: RowChange) -> Effect:
    """Return the effect that a logged consequence shows."""
    deleted = change.operation is Operation.DELETE_ROW
    if change.flags & ConflictFlag.REFRESH:
        return Effect.REFRESHED_ABSENT if deleted else Effect.REFRESHED
    return Effect.DELETED if deleted else Effect.CHANGED


def net_copies(change: RowChange) -> dict[tuple[str, bytes], int]:
    """Return how many copies of each row come with a change of a row without a key; negative if they go."""
    before, after = change.identities[0], change.identities[-1]
    if change.operation is Operation.UPDATE_ROW:
        return {} if before == after else {(change.table, before): -1, (change.table, after): 1}
    return {(change.table, before): 1 if change.operation is Operation.WRITE_ROW else -1}


def copy_effects(net: Mapping[tuple[str, bytes], int]) -> dict[tuple[str, bytes], Effect]:
    """Return the effects on rows without a key of which copies came or went."""
    return {row: Effect.CHANGED if count > 0 else Effect.DELETED for row, count in net.items() if count}


def recorded_effects(epochs: Sequence[BinlogEpoch]) -> dict[tuple[int, int], dict[tuple[str, bytes], Effect]]:
    """
    Return the effects in a cluster's binlog: by own epoch and group, then by table and key.

    Of rows without a key, those of which there are more or fewer copies: the events do not tell which of several equal
    rows they changed.
    """
    found: dict[tuple[int, int], dict[tuple[str, bytes], Effect]] = {}
    copies: dict[tuple[int, int], Counter[tuple[str, bytes]]] = {}
    for epoch in epochs:
        for group, change in epoch.consequences:
            place = epoch.number, group
            effects = found.setdefault(place, {})
            if change.keyless and not change.flags & ConflictFlag.REFRESH:
                copies.setdefault(place, Counter()).update(net_copies(change))
            else:
                effects[change.table, change.key] = effect_of(change)
    for place, net in copies.items():
        found[place].update(copy_effects(net))
    return found


def recorded_images(epochs: Sequence[BinlogEpoch]) -> dict[tuple[int, int], dict[tuple[str, bytes], RowImage]]:
    """Return the after images in the consequences of a cluster's binlog, as `recorded_effects` returns effects."""
    found: dict[tuple[int, int], dict[tuple[str, bytes], RowImage]] = {}
    for epoch in epochs:
        for group, change in epoch.consequences:
            if change.after is not None:
                found.setdefault((epoch.number, group), {})[change.table, change.key] = change.after
    return found
