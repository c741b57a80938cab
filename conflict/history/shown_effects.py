"""
What a cluster's binlog shows: the effects of its applier on rows, and the columns of its own images.

Columns of images are a text: the operation, then the columns of the before and the after image, as bitmaps in
hexadecimal digits; ``-`` is for no image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from conflict.history.epochs import BinlogEpoch
from conflict.history.timeline import RowChange
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.events.table_map import bits
from ndb_formats.rules.row_image_rules import EventColumns


class Effect(IntEnum):
    """What one epoch apply did to one row."""

    CHANGED = 1
    DELETED = 2
    REFRESHED = 3
    REFRESHED_ABSENT = 4


NO_EFFECT = 0  # where a number represents an effect or for none


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
    """Return the effects on rows without a key whose copies came or went."""
    return {row: Effect.CHANGED if count > 0 else Effect.DELETED for row, count in net.items() if count}


def recorded_effects(epochs: Sequence[BinlogEpoch]) -> dict[tuple[int, int], dict[tuple[str, bytes], Effect]]:
    """
    Return the effects in a cluster's binlog: by own epoch and group, then by table and key.

    Of rows without a key, those whose copies became more or fewer: the events do not tell which of several equal
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


def text_of_bitmaps(operation: Operation, before: bytes, after: bytes) -> str:
    """Return the text of an event; no bytes are no image. The lowest bit of the first byte is the first column."""
    return f"{operation.name} {before.hex() or '-'} {after.hex() or '-'}"


def columns_of_text(text: str) -> EventColumns:
    """Return the operation and the columns of a text."""
    operation, before, after = text.split()
    first, second = (
        None if each == "-" else tuple(place for place, here in enumerate(_bits(each)) if here)
        for each in (before, after)
    )
    return EventColumns(Operation[operation], first, second)


def _bits(text: str) -> Iterable[bool]:
    return bits(bytes.fromhex(text), 4 * len(text))


def logged_images(epochs: Iterable[BinlogEpoch]) -> dict[str, list[str]]:
    """Return the texts of a cluster's own changes, by table."""
    found: dict[str, set[str]] = {}
    for epoch in epochs:
        for transaction in epoch.transactions:
            for change in transaction.changes:
                add_text(found, change)
    return sorted_texts(found)


def add_text(found: dict[str, set[str]], change: RowChange) -> None:
    """Add the text of a change to those of its table; reads have images of their own, and no text."""
    if not change.flags & ConflictFlag.READ:
        text = text_of_bitmaps(change.operation, *map(carried_by, (change.before, change.after)))
        found.setdefault(change.table, set()).add(text)


def sorted_texts(found: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return texts by table, in order."""
    return {table: sorted(texts) for table, texts in sorted(found.items())}


def carried_by(image: RowImage | None) -> bytes:
    """Return `bitmap_of` the columns that an image carries."""
    return bitmap_of(None if image is None else image.present)


def bitmap_of(places: Iterable[int] | None) -> bytes:
    """
    Return which columns an image carries: a bit per column, the lowest of the first byte for the first one.

    It has at least one byte, and no more than it needs, so that it stays the same when its table gets more columns. No
    image has no bytes.
    """
    bits = sum(1 << place for place in places or ())
    return b"" if places is None else bits.to_bytes(max((bits.bit_length() + 7) // 8, 1), "little")
