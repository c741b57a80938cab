"""
The numbers of a History that index arrays, and their ranges: checked once, in columns, when a column is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from conflict.errors import HistoryError
from conflict.grid.folder import Folder
from conflict.grid.manifest import Manifest
from conflict.grid.schemas import RowStep, keys_part
from conflict.history.effects import Effect
from ndb_formats.events.rows_event import Operation

__all__ = ["FIXED", "Ranges", "ranges_of_bucket", "refuse_out_of_range"]

# By column, the lowest and the highest number.
Ranges = Mapping[str, tuple[int, int]]
_OPERATIONS = [*Operation, *RowStep]
FIXED: Ranges = {
    "operation": (min(_OPERATIONS), max(_OPERATIONS)),
    "effect": (min(Effect), max(Effect)),
    "key": (0, 2**31 - 1),
    "table": (0, 2**15 - 1),
    "file": (-1, 2**15 - 1),
}


def ranges_of_bucket(history: Folder, manifest: Manifest, bucket: int, cluster: str) -> Ranges:
    """Return the ranges of the rows of a cluster in a bucket."""
    keys = sum(history.rows(keys_part(bucket, batch)) for batch in range(manifest.batches))
    return {
        **FIXED,
        "key": (0, keys - 1),
        "table": (0, len(manifest.tables) - 1),
        "file": (-1, len(manifest.files[cluster]) - 1),
    }


def refuse_out_of_range(history: Folder, paths: Sequence[str], table: pa.Table, ranges: Ranges) -> None:
    """
    Make sure that no number of a table can lead outside the arrays that it indexes.

    Args:
        history: Folder of the History.
        paths: The files that the table was read from.
        table: The rows.
        ranges: By column.

    Raises:
        HistoryError: One can.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            wrong = _bad_dictionary(column)
        elif name in ranges and len(column):
            least, greatest = (value.as_py() for value in pc.min_max(column).values())
            low, high = ranges[name]
            outside = [number for number in (least, greatest) if not low <= number <= high]
            wrong = f"holds {outside[0]}, which is not from {low} to {high}" if outside else None
        else:
            wrong = None
        if wrong:
            message = (
                f"{history.uri}: column {name} of {paths[0]} and the files beside it {wrong}. "
                "Ingest the binlogs again into another folder"
            )
            raise HistoryError(message)


def _bad_dictionary(column: pa.ChunkedArray) -> str | None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return "refers to values that it does not have"
    return None
