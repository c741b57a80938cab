"""
The identity of the row that a change in a binlog is about, and whether the change fits the key.

NDB finds rows by their primary key. So each of its images has the key, and a statement that changes the key is logged
as a delete and an insert. A change for which this does not hold shows that the key is another one.
"""

from __future__ import annotations

from conflict.errors import NotBuiltError
from ndb_formats.errors import WrongKeyError
from ndb_formats.events.row_image import RowImage
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import Absent

__all__ = ["key_of_change"]


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
