"""
The effects of an applier on rows, as its cluster's binlog shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from conflict.history.epochs import BinlogEpoch
from conflict.history.model import RowChange
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation

__all__ = ["Effect", "effect_of", "recorded_effects", "recorded_images"]


class Effect(IntEnum):
    """What one epoch apply did to one row."""

    CHANGED = 1
    DELETED = 2
    REFRESHED = 3
    REFRESHED_ABSENT = 4


def effect_of(change: RowChange) -> Effect:
    """Return the effect that a logged consequence shows."""
    deleted = change.operation is Operation.DELETE_ROW
    if change.flags & ConflictFlag.REFRESH:
        return Effect.REFRESHED_ABSENT if deleted else Effect.REFRESHED
    return Effect.DELETED if deleted else Effect.CHANGED


def recorded_effects(epochs: Sequence[BinlogEpoch]) -> dict[tuple[int, int], dict[tuple[str, bytes], Effect]]:
    """Return the effects in a cluster's binlog: by own epoch and group, then by table and key."""
    found: dict[tuple[int, int], dict[tuple[str, bytes], Effect]] = {}
    for epoch in epochs:
        for group, change in epoch.consequences:
            found.setdefault((epoch.number, group), {})[change.table, change.key] = effect_of(change)
    return found


def recorded_images(epochs: Sequence[BinlogEpoch]) -> dict[tuple[int, int], dict[tuple[str, bytes], RowImage]]:
    """Return the after images in the consequences of a cluster's binlog, as `recorded_effects` returns effects."""
    found: dict[tuple[int, int], dict[tuple[str, bytes], RowImage]] = {}
    for epoch in epochs:
        for group, change in epoch.consequences:
            if change.after is not None:
                found.setdefault((epoch.number, group), {})[change.table, change.key] = change.after
    return found
