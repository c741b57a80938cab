"""The identity of a row: its key, which an update may write in another way, and may not change."""

import pytest

from conflict.history.row_identities import key_of_change
from ndb_formats.constants import ColumnCode
from ndb_formats.errors import WrongKeyError
from ndb_formats.events.row_image import RowImage, layout_of_types
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.row_keys import key_of
from ndb_formats.types.column_types import WireType

(TABLE,) = parse_schema(
    "CREATE TABLE t (v INT, a INT NOT NULL, b VARCHAR(9) COLLATE utf8mb4_0900_ai_ci NOT NULL, PRIMARY KEY (b, a))",
    database="d",
).tables
LAYOUT = layout_of_types(
    TABLE, (WireType(ColumnCode.LONG), WireType(ColumnCode.LONG), WireType(ColumnCode.VARCHAR, 36))
)
ONE, TWO = (number.to_bytes(4, "little") for number in (1, 2))


def image(**values: bytes | None) -> RowImage:
    """Return an image of these columns, by their bytes."""
    present = tuple(place for place, column in enumerate(TABLE.columns) if column.name in values)
    return RowImage(LAYOUT, present, tuple(values[TABLE.columns[place].name] for place in present))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (image(a=ONE, b=b"x"), None),
        (None, image(v=None, a=ONE, b=b"x")),
        (image(a=ONE, b=b"x"), image(v=TWO)),
        (image(a=ONE, b=b"x"), image(v=TWO, b=b"X")),
        (image(v=ONE, a=ONE, b=b"x"), image(v=TWO, a=ONE, b="\u1e8b".encode())),  # x with a dot, an equal text
    ],
    ids=["delete", "insert", "minimal images", "another letter case", "full images"],
)
def test_the_key(before: RowImage | None, after: RowImage | None) -> None:
    """It is that of the first image, in the order of the key; a text may be written in another way."""
    assert key_of_change(TABLE, before, after) == key_of([TABLE.columns[2], TABLE.columns[1]], [b"x", ONE])


@pytest.mark.parametrize(
    ("before", "after", "column"),
    [
        (image(a=ONE, b=b"x"), image(v=ONE, b=b"y"), "b"),
        (image(v=ONE, a=ONE, b=b"x"), image(v=ONE, a=TWO, b=b"x"), "a"),
        (image(a=ONE), None, "b"),
        (None, image(v=ONE, b=b"x"), "a"),
    ],
    ids=["another text", "another number", "no text", "no number"],
)
def test_another_key(before: RowImage | None, after: RowImage | None, column: str) -> None:
    """The column is named that is not as it is in a key."""
    with pytest.raises(WrongKeyError, match=r"PRIMARY KEY \(b, a\) is not the key that the table had") as caught:
        key_of_change(TABLE, before, after)
    assert (caught.value.table, caught.value.column) == ("d.t", column)
