"""
Compiled: the bytes of the images of a made History.
"""

from __future__ import annotations

import numpy as np

from benchmarks.makers.history_members import Array, mixed, njit

__all__ = ["image_bytes"]


@njit
def put(data: Array, place: int, number: int, size: int) -> int:
    """Write a number of so many bytes, lowest first."""
    for _ in range(size):
        data[place] = number & np.uint64(0xFF)
        number >>= np.uint64(8)
        place += 1
    return place


NOTE = 20
KEY, CUSTOMER, STATUS, UPDATED, TEXT = 1, 2, 4, 8, 16


@njit
def image_bytes(ids: Array, values: Array, sets: Array) -> tuple[Array, Array]:
    """
    Return images: null bits, then values of the columns.

    Args:
        ids: Primary keys. Shape (images,), uint64.
        values: Resolve columns, which decide all other columns. Shape (images,), uint64.
        sets: Columns of each image, one bit each; 0 for no image. Shape (images,), uint8.

    Returns:
        Offsets of the images, and their bytes.
    """
    offsets, data = np.zeros(len(ids) + 1, np.int32), np.empty(len(ids) * (23 + NOTE), np.uint8)
    place = 0
    for row in range(len(ids)):
        columns = sets[row]
        if columns:
            place = put_image(data, place, ids[row], values[row], columns)
        offsets[row + 1] = place
    return offsets, data[:place]


@njit
def put_image(data: Array, place: int, key: int, value: int, columns: int) -> int:
    """Write one image."""
    chance = mixed(value ^ (key << np.uint64(20)))
    nulls, bit, start = 0, 1, place
    place += 1
    for column in (KEY, CUSTOMER, STATUS, UPDATED, TEXT):
        if not columns & column:
            continue
        if column == KEY:
            place = put(data, place, key, 8)
        elif column == CUSTOMER:
            place = put(data, place, mixed(key) % np.uint64(1_000_000), 4)
        elif column == STATUS:
            place = put(data, place, chance & np.uint64(7), 1)
        elif column == UPDATED:
            place = put(data, place, value, 8)
        elif chance & np.uint64(0xF0) == 0:
            nulls |= bit
        else:
            length = (chance >> np.uint64(8)) % np.uint64(NOTE + 1)
            place = put(data, place, length, 1)
            for letter in range(length):
                data[place] = 97 + ((chance >> np.uint64(3 * (letter % 16) + 8)) & np.uint64(15))
                place += 1
        bit <<= 1
    data[start] = nulls
    return place
