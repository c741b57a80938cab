"""
Row changes of binlog files in a few figures, as text and for notebooks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import attrs
import numpy as np
import pyarrow.compute as pc

from conflict.results.glance import html_table, text_lines
from conflict.shown_text import one_line
from ndb_formats.columnar.batches import RowBatch
from ndb_formats.events.rows_event import Operation

__all__ = ["BinlogSummary", "TableChanges", "summary_of_batches"]

_HEADINGS = ("table", "changes", "writes", "updates", "deletes")


@attrs.frozen
class TableChanges:
    """
    The changes of one table.

    Attributes:
        name: ``database.table``.
        changes: How many.
        writes: How many of them are writes.
        updates: How many are updates.
        deletes: How many are deletes.
    """

    name: str
    changes: int
    writes: int
    updates: int
    deletes: int


@attrs.frozen(repr=False)
class BinlogSummary:
    """
    Row changes in a few figures.

    Attributes:
        files: The files.
        tables: The tables that have changes, by name.
        first_time: Time of the first event with changes; None without changes.
        last_time: Time of the last one.
        epochs: How many NDB epochs have changes.
        first_epoch: The first of them; None if there is none.
        last_epoch: The last of them.
    """

    files: tuple[Path, ...]
    tables: tuple[TableChanges, ...]
    first_time: datetime | None
    last_time: datetime | None
    epochs: int
    first_epoch: int | None
    last_epoch: int | None

    @property
    def changes(self) -> int:
        """Row changes of all tables."""
        return sum(table.changes for table in self.tables)

    def __repr__(self) -> str:
        return "\n".join((*self._sentences(), *text_lines(_HEADINGS, self._rows(), 1)))

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in self._sentences())
        return sentences + html_table(_HEADINGS, self._rows())

    def _rows(self) -> list[tuple[object, ...]]:
        return [attrs.astuple(table) for table in self.tables]

    def _sentences(self) -> Iterator[str]:
        where = one_line(str(self.files[0])) if len(self.files) == 1 else f"{len(self.files):,} files"
        tables = f"{len(self.tables):,} table{'' if len(self.tables) == 1 else 's'}"
        changes = f"{self.changes:,} row change{'' if self.changes == 1 else 's'}"
        yield f"{where}: {changes} of {tables}."
        if self.first_time is not None and self.last_time is not None:
            yield f"From {self.first_time:%Y-%m-%d %H:%M:%S} to {self.last_time:%Y-%m-%d %H:%M:%S} UTC."
        if self.epochs:
            plural = "" if self.epochs == 1 else "s"
            yield f"{self.epochs:,} NDB epoch{plural} with changes, {self.first_epoch} to {self.last_epoch}."


def summary_of_batches(files: Sequence[Path], batches: Iterable[RowBatch]) -> BinlogSummary:
    """
    Return changes in a few figures.

    Args:
        files: The files that they are from.
        batches: The changes; values of columns are not looked at.
    """
    counts: Counter[tuple[str, Operation]] = Counter()
    times: list[int] = []
    epochs: set[int] = set()
    for batch in batches:
        counts[batch.full_name, batch.operation] += len(batch)
        ends = pc.min_max(batch.records.column("timestamp")).as_py()
        times = [min([*times[:1], ends["min"]]), max([*times[1:], ends["max"]])]
        epochs.update(np.unique(batch.records.column("epoch").drop_null().to_numpy(zero_copy_only=False)).tolist())
    tables = tuple(
        TableChanges(name, sum(kinds), *kinds)
        for name in sorted({name for name, _ in counts})
        for kinds in [[counts[name, operation] for operation in Operation]]
    )
    first, last = (datetime.fromtimestamp(time, UTC) for time in times) if times else (None, None)
    return BinlogSummary(
        tuple(files), tables, first, last, len(epochs), min(epochs, default=None), max(epochs, default=None)
    )
