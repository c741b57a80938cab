"""
What is in a segment, whichever reader read it.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.errors import FormatError
from ndb_formats.types.column_types import WireType

__all__ = ["SegmentContent"]


@attrs.frozen(eq=False)
class SegmentContent:
    """
    A segment that was read.

    Attributes:
        epochs: Its epochs as `conflict.grid.epoch_files.EPOCHS`.
        images: Which columns the images of own changes carry, by table (see `conflict.history.logged_images`).
        marks: Marks of the rows that the applier changed, by table (see `conflict.history.marks`).
        types: Wire types of the columns of each table that it mentions.
        settled: Where the last event ends after which no transaction was open; 0 for none.
        error: Why it could not be read to its end; None if it could.
        left_out: Row operations of the epoch that the error cut off.
        parts: Bucket, staged changes, images and staged consequences of each bucket that has rows; made one by one.
        keyless: The rows of tables without a primary key, as `conflict.grid.schemas.KEYLESS`.
        begins: Where the transaction of each epoch begins in the file; None if it was read row by row. Shape (epochs,).
    """

    epochs: pa.Table
    images: dict[str, list[str]]
    marks: dict[str, list[str]]
    types: dict[str, tuple[WireType, ...]]
    settled: int
    error: FormatError | None
    left_out: int
    parts: Iterable[tuple[int, pa.Table, pa.Table, pa.Table]]
    keyless: pa.Table
    begins: npt.NDArray[np.int64] | None = None
