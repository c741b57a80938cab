"""
Which columns the images of a cluster's own changes carry, as text.

A text has the operation, then the columns of the before and the after image, as bitmaps in hexadecimal digits; ``-``
stands for no image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conflict.history.epochs import BinlogEpoch
from conflict.history.model import RowChange
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.events.table_map import bits
from ndb_formats.rules.event_columns import EventColumns

__all__ = ["add_text", "columns_of_text", "logged_images", "sorted_texts", "text_of_bitmaps"]


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
        text = text_of_bitmaps(change.operation, _bitmap(change.before), _bitmap(change.after))
        found.setdefault(change.table, set()).add(text)


def sorted_texts(found: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return texts by table, in order."""
    return {table: sorted(texts) for table, texts in sorted(found.items())}


def _bitmap(image: RowImage | None) -> bytes:
    if image is None:
        return b""
    return sum(1 << place for place in image.present).to_bytes((len(image.layout.codecs) + 7) // 8, "little")
