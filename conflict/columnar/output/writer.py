"""
One bucket's part of the result: what the kernels decided, as a ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.image_values import ImageReader
from conflict.columnar.kernels.arrays import Int64
from conflict.columnar.output.copied_rows import count_copied
from conflict.columnar.output.counts import count_bucket
from conflict.columnar.output.effects import Differing, DifferingRows, compare_effects
from conflict.columnar.output.exceptions import exceptions_of, tracked_rows
from conflict.columnar.output.exceptions_numbering import TrackedRows
from conflict.columnar.output.final_rows import count_differing, final_table
from conflict.columnar.output.outcomes import outcomes_of
from conflict.columnar.output.undecided import open_decisions
from conflict.grid.folder import Folder
from conflict.results.ledger import CONTRADICTED, ClusterLedger, FinalTable, LedgerPart, has_a_line, write_part
from conflict.results.model import NotKnown
from conflict.results.options import ResultOptions
from conflict.results.summary import BucketSummary

__all__ = ["write_bucket"]


def write_bucket(
    result: BucketResult,
    files: Mapping[str, Sequence[str]],
    out: Folder,
    options: ResultOptions,
) -> tuple[BucketSummary, TrackedRows]:
    """
    Write a bucket's parts of the result.

    Args:
        result: A decided bucket, with the candidates of open decisions.
        files: Per cluster, its binlog files by number.
        out: Folder of the result.
        options: What the result holds.

    Returns:
        What the bucket adds to the figures, and the exceptions rows that pass TRACK made in it.
    """
    fill = _Filling(result, files, options, ImageReader(result.bucket))
    tables = [table.full_name for table in result.bucket.numbers.tables]
    part = LedgerPart(result.bucket.number, tables, map(fill.cluster, range(len(result.clusters))), fill.final())
    return write_part(part, out), tracked_rows(result)


@attrs.frozen(slots=False)
class _Filling:
    """Makes columns of a decided bucket; attributes are arguments of `write_bucket`, and the reader of its images."""

    result: BucketResult
    files: Mapping[str, Sequence[str]]
    options: ResultOptions
    reader: ImageReader

    @cached_property
    def differing(self) -> Differing:
        """How the effects of both appliers compare with their binlogs."""
        return compare_effects(self.result, with_applies=False)

    @cached_property
    def counted(self) -> Sequence[tuple[Int64, Int64, dict[str, int]]]:
        """What `count_bucket` returns."""
        return count_bucket(self.result)

    @cached_property
    def lines(self) -> Int64:
        """The numbers of the decisions that have a line."""
        decisions = self.result.folded.decisions
        return has_a_line(decisions.verdict, decisions.source < 0, every=self.options.all_outcomes)

    def cluster(self, number: int) -> ClusterLedger:
        """Return what the applier of a cluster did."""
        result, cluster = self.result, self.result.clusters[number]
        functions = [None if setup.function is None else setup.function.spec for setup in cluster.setups]
        counts, refreshes, counters = self.counted[number]
        rows, not_known = _count_rows(result, number)
        chosen = self.lines[result.applies.applier[result.folded.decisions.apply[self.lines]] == number]
        return ClusterLedger(
            name=cluster.name,
            functions=functions,
            counts=counts,
            refreshes=refreshes,
            counters=counters,
            outcomes=outcomes_of(result, number, chosen, self.files) if len(chosen) else None,
            undecided=open_decisions(result, number, functions),
            compared=self.differing.compared[number],
            contradicted=_contradicted(result, self.differing.rows[number]),
            rows=rows,
            not_known=not_known,
            unexplained=int(result.folded.unexplained[number].sum()),
            copied=count_copied(result, number) if cluster.copied else None,
            exceptions=exceptions_of(result, self.reader, number, chosen),
        )

    def final(self) -> Iterator[FinalTable]:
        """Yield the final rows of each table; without rows, those that differ are counted where no value is needed."""
        for table, definition in enumerate(self.result.bucket.numbers.tables):
            if self.options.final_rows:
                yield final_table(self.result, self.reader, table)
            else:
                yield FinalTable(definition.full_name, {}, count_differing(self.result, table))


def _contradicted(result: BucketResult, rows: DifferingRows) -> pa.Table:
    """Return differing rows as `CONTRADICTED`."""
    keys = result.bucket.key_texts.take(pa.array(rows.key))
    mark = np.zeros(len(rows), np.int8)
    columns = (rows.epoch, rows.group, keys, result.bucket.key_table[rows.key], rows.derived, rows.shown, mark)
    return pa.table(columns, schema=CONTRADICTED)


def _count_rows(result: BucketResult, number: int) -> tuple[dict[str, int], dict[str, NotKnown]]:
    """Return how many final rows of each table a cluster has, and what is not known of its rows."""
    rows, not_known = {}, {}
    for table, definition in enumerate(result.bucket.numbers.tables):
        here, exists = result.bucket.key_table == table, result.folded.exists[number]
        if result.older is not None:
            columns = result.columns_not_known[number]
            if columns[here].any():
                in_part = int((columns[here] > 0).sum())
                not_known[definition.full_name] = NotKnown(0, in_part, int(columns[here].sum()))
            exists = exists & (columns == 0)
        # The cluster does not have a table that was refused.
        refused = result.clusters[number].setups[table].refusal is not None
        rows[definition.full_name] = 0 if refused else int((exists & here).sum())
    return rows, not_known
