"""
The identity of a row of a table without a primary key: its values, as far as an applier compares them.

Source: `docs/functions.md`, "Tables without a primary key".
"""

from __future__ import annotations

from collections.abc import Mapping

from ndb_formats.events.row_image import RowImage
from ndb_formats.schema.tables import Table

__all__ = ["identities_without_key", "identity_without_key", "payloads_of"]


def identity_without_key(table: Table, payloads: Mapping[int, bytes | None]) -> bytes:
    """
    Return the identity of a row: all its values but blobs, which are not compared.

    Args:
        table: Its table at that moment.
        payloads: Bytes of the columns that are known, by their position; None is NULL. Virtual ones do not count.
    """
    parts = []
    for ordinal, payload in sorted(payloads.items()):
        column = table.columns[ordinal]
        if not column.is_blob and column.generated != "virtual":
            size = b"" if payload is None else len(payload).to_bytes(4, "little")
            parts += [ordinal.to_bytes(2, "little"), bytes([payload is not None]), size, payload or b""]
    return b"".join(parts)


def identities_without_key(table: Table, before: RowImage | None, after: RowImage | None) -> tuple[bytes, bytes | None]:
    """Return the identity of the row that a change is about, and that of the row after an update; else None."""
    images = [identity_without_key(table, payloads_of(image)) for image in (before, after) if image is not None]
    return images[0], images[1] if len(images) > 1 else None


def payloads_of(image: RowImage | None) -> dict[int, bytes | None]:
    """Return the bytes of the columns of an image by their position; of no image, nothing."""
    return {} if image is None else dict(zip(image.present, image.payloads, strict=True))
