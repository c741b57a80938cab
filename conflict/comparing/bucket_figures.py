"""
What a bucket comes to under one pair. Computes docs/compare.md, "Figures".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.comparing.transactions import Rejected, rejected_in
from conflict.engine.columnar.applier_stops import StoppingOperation
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.bucket_result import BucketResult, count_bucket
from conflict.engine.columnar.final_rows import count_unequal
from conflict.engine.columnar.image_values import ImageReader
from conflict.engine.kernels.logged_rows import logged_rows
from conflict.engine.kernels.lost_changes import LAST_OPERATION, Made, Written, lost_changes, written_by
from conflict.results.ledger import table_figures

__all__ = ["BucketFigures", "bucket_figures", "written_in"]


@attrs.frozen(eq=False)
class BucketFigures:
    """
    The figures of a bucket.

    Attributes:
        counters: Per cluster, its status counters.
        tables: Per cluster and table, operations by verdict and cause, and refreshed rows.
        rejected: Transactions with a rejected change.
        lost: Per cluster, its changes that were rejected, those that were overwritten, and those of either kind.
        lost_by_table: Per table, changes that were lost.
        made: Per cluster, its changes.
        differing: Per table, rows that end different.
        rows: Per table, the keys that some change names.
        reflected: Per cluster, the rows that its applier reflected.
        logged: Per cluster, the rows that its applier logged.
        rowless: Per cluster, its updates and deletes that found no row.
        stopping: Per cluster, the first operation that stops its applier.
    """

    counters: dict[str, dict[str, int]]
    tables: dict[str, dict[str, dict[str, int]]]
    rejected: Rejected
    lost: dict[str, tuple[int, int, int]]
    lost_by_table: dict[str, int]
    made: dict[str, int]
    differing: dict[str, int]
    rows: dict[str, int]
    reflected: dict[str, int]
    logged: dict[str, int]
    rowless: dict[str, int]
    stopping: dict[str, StoppingOperation]


def written_in(bucket: Bucket) -> tuple[Written, Written]:
    """Return, per cluster, what its changes in a bucket do to their rows."""
    return written_by(bucket.rows, bucket.column_sets, (bucket.key_table, bucket.numbers.tables))


def bucket_figures(
    result: BucketResult, stopping: dict[str, StoppingOperation], written: tuple[Written, Written]
) -> BucketFigures:
    """
    Return the figures of a decided bucket.

    Args:
        result: The bucket.
        stopping: Per cluster, the first operation that stops its applier.
        written: What `written_in` returned for it.
    """
    bucket, folded, logged = result.bucket, result.folded, result.folded.logged
    names = [cluster.name for cluster in result.clusters]
    tables, keys = [table.full_name for table in bucket.numbers.tables], len(bucket.key_table)
    counted = dict(zip(names, count_bucket(result), strict=True))
    made = Made(result.applies.applier, folded.own_end, folded.decisions)
    lost = lost_changes(made, [rows.key for rows in bucket.rows], written, keys)
    lost_keys = np.concatenate([rows.key[each.lost] for rows, each in zip(bucket.rows, lost, strict=True)])
    ended = BucketResult(bucket, result.clusters, result.applies, result.conflicts, folded.applied_alone())
    reader = ImageReader(bucket)
    reflected = logged.cluster[~logged.refresh]
    own = [int(np.count_nonzero(rows.operation <= LAST_OPERATION)) for rows in bucket.rows]
    return BucketFigures(
        counters={name: counters for name, (_, _, counters) in counted.items()},
        tables={name: table_figures(tables, *counts) for name, (*counts, _) in counted.items()},
        rejected=rejected_in(result),
        lost={
            name: (int(each.rejected.sum()), int(each.overwritten.sum()), int(each.lost.sum()))
            for name, each in zip(names, lost, strict=True)
        },
        lost_by_table=_counted(tables, bucket.key_table[lost_keys]),
        made=dict(zip(names, own, strict=True)),
        differing={name: count_unequal(ended, reader, number) for number, name in enumerate(tables)},
        rows=_counted(tables, bucket.key_table),
        reflected=_counted(names, reflected),
        logged=dict(zip(names, logged_rows(result.applies, keys, folded), strict=True)),
        rowless={name: int(folded.unexplained[number].sum()) for number, name in enumerate(names)},
        stopping=stopping,
    )


def _counted(names: Sequence[str], numbers: npt.NDArray[np.integer[Any]]) -> dict[str, int]:
    """Return how often the number of each name is among some numbers."""
    return dict(zip(names, np.bincount(numbers, minlength=len(names)).tolist(), strict=True))
