"""Where the values of row images stand."""

import numpy as np
import pytest

from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.values import find_cells

# An INT, a text with one byte of length, and a blob with two; the sets are all of them, the last two, and none.
PREFIXES, WIDTHS = np.array([-1, 1, 2]), np.array([4, 1, 2])
SET_OFFSETS, SET_COLUMNS = np.array([0, 3, 5, 5]), np.array([0, 1, 2, 1, 2], np.int32)
NULL = int(NULL_CELL)


def cells(images: list[bytes], chosen: list[int]) -> tuple[list[list[int]], int]:
    """Return the cells of images column by column, and which one is cut off."""
    data = np.frombuffer(b"".join(images), np.uint8)
    offsets = np.cumsum([0, *map(len, images)]).astype(np.int32)
    found, fault = find_cells(data, offsets, np.array(chosen, np.int32), SET_OFFSETS, SET_COLUMNS, PREFIXES, WIDTHS)
    return found.tolist(), fault


def test_cells_of_values_nulls_and_absent_columns() -> None:
    """A cell is the place of a value's length, or of the value; NULL and absent columns have none."""
    whole = b"\0" + b"\1\0\0\0" + b"\2ab" + b"\3\0xyz"
    some = b"\1" + b"\0\0"  # the text is NULL, the blob empty
    found, fault = cells([whole, some, b"", b"\7", whole], [0, 1, 2, 0, 0])
    assert fault == -1
    assert found == [
        [1, NULL, NULL, NULL, 18],
        [5, NULL, NULL, NULL, 22],
        [8, 14, NULL, NULL, 25],
    ]


@pytest.mark.parametrize("length", range(13))
def test_the_first_truncated_image_is_reported(length: int) -> None:
    """Wherever it ends before its values do, it is named, and nothing behind it is read."""
    whole = b"\0" + b"\1\0\0\0" + b"\2ab" + b"\3\0xyz"
    assert len(whole) == 13
    assert cells([whole, whole[:length]], [0, 0])[1] == 1
