"""
A bucket's rows of exceptions tables, which get their numbers later.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.image_values import ImageReader
from conflict.columnar.kernels.arrays import Decisions, Int8, Int16, Int64
from conflict.columnar.operation_order import places_of
from conflict.columnar.output.exceptions_numbering import EPOCH_APPLY, OWN_CAUSE, PLACE, TrackedRows
from conflict.columnar.output.exceptions_rows import exceptions_rows
from conflict.grid.folder import Folder
from conflict.results.layout import staged_exceptions_path
from conflict.rules.decision import Cause, Verdict

__all__ = ["tracked_rows", "write_exceptions"]

REJECTED = int(Verdict.REJECTED)


def write_exceptions(result: BucketResult, out: Folder) -> None:
    """Write the rows of exceptions tables, not numbered yet, each with what its place in the order depends on."""
    decisions = result.folded.decisions
    rejected = np.flatnonzero(decisions.verdict == REJECTED)
    appliers, tables = _appliers_and_tables(result, decisions, rejected)
    reader = ImageReader(result.bucket)
    for applier, cluster in enumerate(result.clusters):
        for table, setup in enumerate(cluster.setups):
            chosen = rejected[(appliers == applier) & (tables == table)]
            if setup.exceptions is None or len(chosen) == 0:
                continue
            rows = exceptions_rows(result, reader, setup.exceptions, applier, table, chosen)
            order = {
                EPOCH_APPLY: pa.array(decisions.apply[chosen].astype(np.int64)),
                OWN_CAUSE: pa.array(decisions.cause[chosen] != Cause.TRANS_IN_CONFLICT),
                PLACE: places_of(chosen, decisions, result.folded.logged, result.applies, result.bucket.rows),
            }
            for field, column in order.items():
                rows = rows.append_column(field, column)
            name = setup.exceptions.table.full_name
            out.write_table(staged_exceptions_path(cluster.name, name, result.bucket.number), rows)


def tracked_rows(result: BucketResult) -> TrackedRows:
    """Return how many exceptions rows pass TRACK made, per site and table, and take."""
    decisions = result.folded.tracked
    rejected = np.flatnonzero(decisions.verdict == REJECTED)
    appliers, tables = _appliers_and_tables(result, decisions, rejected)
    found = {}
    for number, cluster in enumerate(result.clusters):
        for table, setup in enumerate(cluster.setups):
            if setup.exceptions is not None:
                here = rejected[(appliers == number) & (tables == table)]
                place = (cluster.name, setup.exceptions.table.full_name)
                found[place] = np.unique(decisions.apply[here], return_counts=True)
    return found


def _appliers_and_tables(result: BucketResult, decisions: Decisions, chosen: Int64) -> tuple[Int8, Int16]:
    """Return who made some decisions, and the tables that they are about."""
    return result.applies.applier[decisions.apply[chosen]], result.bucket.key_table[decisions.key[chosen]]
