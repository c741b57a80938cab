"""
The figures of a bucket under one pair. Computes docs/compare.md, "Figures".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.columnar.applier_stops import StoppingOperation
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.bucket_round import with_own_causes
from conflict.engine.columnar.folded_bucket import FoldedBucket, count_bucket
from conflict.engine.columnar.image_values import ImageReader
from conflict.engine.columnar.writing.final_rows import count_unequal
from conflict.engine.kernels.arrays import (
    Bool,
)
from conflict.engine.kernels.logged_rows import logged_rows
from conflict.engine.kernels.lost_changes import (
    LAST_OPERATION,
    LostChanges,
    TimedDecisions,
    Written,
    lost_changes,
    written_by,
)
from conflict.engine.ledger.ledger import table_figures
from conflict.whatif.comparing.known_part import KnownPart
from conflict.whatif.comparing.rejected_transactions import Rejected, rejected_in


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
        compared: Per cluster, those of them that could be compared.
        differing: Per table, rows that end different.
        rows: Per table, the keys that some change names.
        known_rows: Per table, those of them that are known at the end.
        reflected: Per cluster, the rows that its applier reflected.
        logged: Per cluster, the rows that its applier logged.
        rowless: Per cluster, its updates and deletes that found no row.
        stopping: Per cluster, the first operation that stops its applier.
        counting: Per cluster, which of its changes count under every pair; None if all do.
        alone: How many changes could be compared under this pair alone; None if all could.
    """

    counters: dict[str, dict[str, int]]
    tables: dict[str, dict[str, dict[str, int]]]
    rejected: Rejected
    lost: dict[str, tuple[int, int, int]]
    lost_by_table: dict[str, int]
    made: dict[str, int]
    compared: dict[str, int]
    differing: dict[str, int]
    rows: dict[str, int]
    known_rows: dict[str, int]
    reflected: dict[str, int]
    logged: dict[str, int]
    rowless: dict[str, int]
    stopping: dict[str, StoppingOperation]
    counting: tuple[Bool, Bool] | None = None
    alone: int | None = None


def written_in(bucket: Bucket) -> tuple[Written, Written]:
    """Return, per cluster, what its changes in a bucket do to their rows."""
    return written_by(bucket.rows, bucket.column_sets, (bucket.key_table, bucket.numbers.tables))


def bucket_figures(
    result: FoldedBucket,
    stopping: dict[str, StoppingOperation],
    written: tuple[Written, Written],
    known: KnownPart | None = None,
) -> BucketFigures:
    """
    Return the figures of a decided bucket.

    Args:
        result: The bucket.
        stopping: Per cluster, the first operation that stops its applier.
        written: What `written_in` returned for it.
        known: What counts of it, where the logs start in the middle; None for all.
    """
    bucket, rows = result.bucket, None if known is None else known.rows
    names = [cluster.name for cluster in result.clusters]
    tables, keys = [table.full_name for table in bucket.numbers.tables], len(bucket.key_table)
    ended = FoldedBucket(
        bucket, result.clusters, result.applies, result.conflicts, result.folded.applied_alone(), known=rows
    )
    lost = _lost(result, written) if known is None else known.lost
    rowless = result.folded.unexplained if known is None else known.rowless
    of_rows = result.folded
    if known is not None:
        result, of_rows = known.part_of(result)
    logged = result.folded.logged
    counted = dict(zip(names, count_bucket(result), strict=True))
    lost_keys = np.concatenate([rows.key[each.lost] for rows, each in zip(bucket.rows, lost, strict=True)])
    reader = ImageReader(bucket)
    reflected = logged.cluster[~logged.refresh]
    users = [rows.operation <= LAST_OPERATION for rows in bucket.rows]
    compared = users if known is None else [each & own for each, own in zip(users, known.own, strict=True)]
    return BucketFigures(
        counters={name: each.counters for name, each in counted.items()},
        tables={name: table_figures(tables, each.operations, each.refreshes) for name, each in counted.items()},
        rejected=rejected_in(result),
        lost={
            name: (int(each.rejected.sum()), int(each.overwritten.sum()), int(each.lost.sum()))
            for name, each in zip(names, lost, strict=True)
        },
        lost_by_table=_counted(tables, bucket.key_table[lost_keys]),
        made={name: int(each.sum()) for name, each in zip(names, users, strict=True)},
        compared={name: int(each.sum()) for name, each in zip(names, compared, strict=True)},
        differing={name: count_unequal(ended, reader, number) for number, name in enumerate(tables)},
        rows=_counted(tables, bucket.key_table),
        known_rows=_counted(tables, bucket.key_table if rows is None else bucket.key_table[rows]),
        reflected=_counted(names, reflected),
        logged=dict(zip(names, logged_rows(result.applies, keys, of_rows), strict=True)),
        rowless={name: int(rowless[number].sum()) for number, name in enumerate(names)},
        stopping=stopping,
    )


def _lost(result: FoldedBucket, written: tuple[Written, Written]) -> list[LostChanges]:
    """Return, per cluster, which of its changes were lost."""
    bucket, applies = result.bucket, result.applies
    decisions = with_own_causes(result.folded, result.clusters, applies, bucket.key_table)
    made = TimedDecisions(applies.applier, result.folded.own_end, decisions)
    return lost_changes(made, [rows.key for rows in bucket.rows], written, len(bucket.key_table))


def _counted(names: Sequence[str], numbers: npt.NDArray[np.integer[Any]]) -> dict[str, int]:
    """Return how often the number of each name is among some numbers."""
    return dict(zip(names, np.bincount(numbers, minlength=len(names)).tolist(), strict=True))
