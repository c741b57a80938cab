"""
The identity of the row that a change in a binlog is about, and of groups whose events have no transaction ids.

NDB finds rows by their primary key. So each of its images has the key, and a statement that changes the key is logged
as a delete and an insert. A change for which this does not hold shows that the key is another one. A row of a table
without a primary key is its values, as far as an applier compares them (docs/functions.md, "Tables without a primary
key").

Without transaction ids (`ndb_log_transaction_id=OFF`), the order of events divides the log: the events of an NDB
transaction stand together. Of an epoch apply, the row changes and the reflected rows come first, then the
`ndb_apply_status` row of the foreign epoch, then the refreshes; own changes stand between epoch applies. Own
transactions that follow each other stay one group. `conflict/history/ingestion/kernels/epochs.py` has the same rules
over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import attrs

from conflict.errors import NotBuiltError
from ndb_formats.errors import WrongKeyError
from ndb_formats.events.row_image import RowImage
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import Absent


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


def key_of_change(table: Table, before: RowImage | None, after: RowImage | None) -> bytes:
    """
    Return the identity of a row, by the primary key of its table.

    Raises:
        NotBuiltError: The table has no primary key.
        WrongKeyError: An image lacks the key, or the images are of rows with different keys.
    """
    if not table.primary_key:
        message = f"table {table.full_name} has no primary key"
        raise NotBuiltError(message)
    image = before if before is not None else after
    assert image is not None
    payloads = []
    for name, ordinal in zip(table.primary_key, table.key_ordinals, strict=True):
        payload = image.raw(ordinal)
        if isinstance(payload, Absent):
            raise _wrong_key(table, name, "the image does not hold it, and every image of NDB holds the primary key")
        payloads.append(payload)
    if before is not None and after is not None:
        _refuse_other_key(table, payloads, after)
    return key_of(table.key_columns, payloads)


def _refuse_other_key(table: Table, payloads: list[bytes | None], after: RowImage) -> None:
    """
    Make sure that the after image of an update has the key of the before image, as far as it has one.

    Raises:
        WrongKeyError: It has another one. Texts that compare as equal are no other key.
    """
    for name, ordinal, column, old in zip(
        table.primary_key, table.key_ordinals, table.key_columns, payloads, strict=True
    ):
        new = after.raw(ordinal)
        if isinstance(new, Absent) or new == old or key_of([column], [new]) == key_of([column], [old]):
            continue
        what = "the update changes it, and NDB logs a change of the primary key as a delete and an insert"
        raise _wrong_key(table, name, what)


def _wrong_key(table: Table, column: str, what: str) -> WrongKeyError:
    message = (
        f"{what}: PRIMARY KEY ({', '.join(table.primary_key)}) is not the key that the table had; "
        "give the definition that was in force when the binlog was written"
    )
    return WrongKeyError(message, table=table.full_name, column=column)


class GroupPart(IntEnum):
    """What part of a group an event is."""

    OWN = 1
    ARRIVING = 2
    STATUS = 3
    REFRESH = 4


@attrs.define
class GroupsWithoutIds:
    """Numbers the groups of one epoch by the order of its events."""

    _number: int = 0
    _last: GroupPart | None = None

    def group_of(self, part: GroupPart) -> tuple[str, int]:
        """Return the identity of the group of the event that comes next."""
        last = self._last
        if part is GroupPart.REFRESH:
            goes_on = last in (GroupPart.ARRIVING, GroupPart.STATUS)
            self._last = last if goes_on else GroupPart.ARRIVING
        else:
            goes_on = last is part is not GroupPart.STATUS or (part is GroupPart.STATUS and last is GroupPart.ARRIVING)
            self._last = part
        self._number += not goes_on
        return "without id", self._number
