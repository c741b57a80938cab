"""
Keys that the changes of a bucket spell in several ways, such as 'abc' and 'ABC'.

How an applier takes an update of such a row, and which spelling the row has afterwards, depends on the bytes of the key
(`conflict.engine.reference.spelling`). The kernels know a key by its number, so these rows are left to the reference
engine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from conflict.engine.columnar.bucket import NO_IMAGE, Bucket
from conflict.engine.columnar.image_values import ImageReader
from conflict.engine.kernels.arrays import Int64
from ndb_formats.schema.row_keys import is_text
from ndb_formats.schema.tables import Table


def can_be_respelled(table: Table) -> bool:
    """Whether keys of a table can be equal with other bytes."""
    return bool(_text_columns(table))


def _text_columns(table: Table) -> list[int]:
    return [ordinal for ordinal in table.key_ordinals if is_text(table.columns[ordinal])]


def respelled_keys(bucket: Bucket) -> Int64:
    """
    Return the keys that the images of own changes spell in more than one way, as numbers in the bucket, ascending.

    Raises:
        FormatError: An image is cut off.
    """
    found = [np.zeros(0, np.int64)]
    for number in np.unique(bucket.key_table).tolist():
        ordinals = _text_columns(bucket.numbers.tables[number])
        if ordinals and bucket.layouts[number] is not None:
            found += _of_table(bucket, number, ordinals)
    return np.unique(np.concatenate(found))


def _of_table(bucket: Bucket, table: int, ordinals: list[int]) -> Iterator[Int64]:
    """Yield the keys of a table that differ in one of some columns."""
    numbers, keys = _images_of(bucket, table)
    texts: list[list[pa.Array]] = [[] for _ in ordinals]
    places = list[Int64]()
    for batch, values in ImageReader(bucket).in_batches(table, len(numbers), lambda rows: numbers[rows]):
        places.append(keys[batch])
        for ordinal, column in zip(ordinals, texts, strict=True):
            column.append(values.payloads(ordinal, numbers[batch]).all_rows())
    if not places:
        return
    keys = np.concatenate(places)
    for column in texts:
        encoded = pa.chunked_array(column).combine_chunks().dictionary_encode()
        held = encoded.is_valid().to_numpy(zero_copy_only=False)
        spelling, key = encoded.indices.fill_null(0).to_numpy()[held], keys[held]
        last = np.zeros(len(bucket.key_table), np.int32)
        last[key] = spelling
        yield key[spelling != last[key]].astype(np.int64)


def _images_of(bucket: Bucket, table: int) -> tuple[Int64, Int64]:
    """Return the numbers of all images of a table's own changes, ascending, and the key of each."""
    keys = np.concatenate([np.repeat(side.array("key"), 2) for side in bucket.changes])
    _, carried = bucket.logged_sets
    sets = np.concatenate([np.stack([side.before, side.after], axis=1).ravel() for side in carried])
    numbers = np.flatnonzero((bucket.key_table[keys] == table) & (sets != NO_IMAGE))
    return numbers, keys[numbers].astype(np.int64)
