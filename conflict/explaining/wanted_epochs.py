"""
The epochs of a binlog in which wanted changes stand, found in columns.

A log of millions of row changes is walked over by compiled code, as for an ingest (see `conflict.history.ingestion`);
only the transactions with wanted changes are then read row by row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.history.grid.key_numbering import tables_and_texts
from conflict.history.ingestion.segment_arrays import UnreadableError, tables_in_force
from conflict.history.ingestion.segment_columns import read_columns
from conflict.history.ingestion.segments import Segment, SegmentContent
from conflict.history.tables import TableNumbers
from ndb_formats.schema.tables import Schema

__all__ = ["WantedEpochs", "wanted_epochs"]

Bool = npt.NDArray[np.bool_]
_WHOLE = 1  # bucket


@attrs.frozen(eq=False)
class WantedEpochs:
    """
    What a segment holds of the wanted changes.

    Attributes:
        epochs: All epochs of the segment as `conflict.history.grid.epoch_files.EPOCHS`.
        ranges: First position and end of the transactions with wanted changes, in order.
        error: Why the segment could not be read to its end; None if it could.
    """

    epochs: pa.Table
    ranges: tuple[tuple[int, int], ...]
    error: str | None


def wanted_epochs(
    segment: Segment,
    server_id: int,
    tables: Schema,
    rows: Mapping[str, Collection[str]],
    transactions: Collection[int],
) -> WantedEpochs | None:
    """
    Find the epochs of a segment with wanted changes; None if only the scalar reader can read the segment.

    Args:
        segment: The segment.
        server_id: The cluster's own.
        tables: The tables to read.
        rows: Keys of the wanted rows as text, by table.
        transactions: Ids of the wanted transactions.
    """
    numbers = TableNumbers(tables.tables, {})
    try:
        content = read_columns(segment, server_id, tables_in_force(tables, None), numbers, _WHOLE, 0)
        found = _epochs_with(content, numbers, rows, transactions)
    except UnreadableError:
        return None
    assert content.begins is not None
    chosen = np.isin(content.epochs["number"].to_numpy(), found)
    bounds = pairwise([*content.begins.tolist(), segment.stop])
    ranges = tuple(bound for bound, wanted in zip(bounds, chosen.tolist(), strict=True) if wanted)
    return WantedEpochs(content.epochs, ranges, None if content.error is None else str(content.error))


def _epochs_with(
    content: SegmentContent, numbers: TableNumbers, rows: Mapping[str, Collection[str]], transactions: Collection[int]
) -> npt.NDArray[np.uint64]:
    """Return the epochs with wanted changes, of the cluster's own or of its applier."""
    found = [np.zeros(0, np.uint64)]
    for _, changes, _, consequences in content.parts:
        for part in (changes, consequences):
            wanted = _of_rows(part["identity"].combine_chunks(), content, numbers, rows)
            if transactions and "transaction_id" in part.column_names:
                ids = pa.array(sorted(transactions), pa.uint64())
                wanted |= pc.is_in(part["transaction_id"], value_set=ids).to_numpy()
            found.append(part["epoch"].to_numpy()[wanted])
    return np.unique(np.concatenate(found))


def _of_rows(
    identities: pa.BinaryArray, content: SegmentContent, numbers: TableNumbers, rows: Mapping[str, Collection[str]]
) -> Bool:
    """Return which changes are of wanted rows. Shape (changes,)."""
    if not rows:
        return np.zeros(len(identities), np.bool_)
    tables, texts = tables_and_texts(identities, numbers, content.types)
    wanted = np.zeros(len(identities), np.bool_)
    for name, keys in rows.items():
        same = pc.is_in(texts, value_set=pa.array(sorted(keys), pa.string())).to_numpy(zero_copy_only=False)
        wanted |= same & (tables == numbers.number(name))
    return wanted
