"""
A bucket's rows of exceptions tables, which get their numbers later.

See `conflict.columnar.output.exceptions_numbering` for the numbers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.cluster_setup import steps_before
from conflict.columnar.image_values import ImageReader
from conflict.columnar.kernels.arrays import Int64
from conflict.columnar.operation_order import operation_orders
from conflict.columnar.output.exceptions_numbering import TrackedRows
from conflict.columnar.output.exceptions_rows import exceptions_rows
from conflict.columnar.output.outcomes import outcome_columns
from conflict.results.ledger import Column, outcome_places, staged_exceptions
from conflict.rules.decision import Cause, Verdict

__all__ = ["exceptions_of", "tracked_rows"]

REJECTED = int(Verdict.REJECTED)


def exceptions_of(result: BucketResult, reader: ImageReader, applier: int, chosen: Int64) -> dict[str, pa.Table]:
    """
    Return, by exceptions table, the rows that an applier made, with the columns of `STAGED`.

    Args:
        result: A decided bucket.
        reader: Of its images.
        applier: Number of the applying cluster.
        chosen: Numbers of its decisions that may have rejected an operation. Shape (operations,).

    Raises:
        FormatError: A value cannot be decoded.
    """
    decisions, cluster = result.folded.decisions, result.clusters[applier]
    rejected = chosen[decisions.verdict[chosen] == REJECTED]
    tables = result.bucket.key_table[decisions.key[rejected]]
    found: dict[str, list[pa.Table]] = {}
    for table in range(len(cluster.setups)):
        mine = rejected[tables == table]
        if not len(mine):
            continue
        version = steps_before(cluster.steps.get(table, ()), result.applies)[decisions.apply[mine]]
        for number, setup in enumerate(cluster.over_time(table)):
            these = mine[version == number]
            if setup.exceptions is not None and len(these):
                rows = exceptions_rows(result, reader, setup.exceptions, applier, table, these)
                staged = staged_exceptions(rows, *_order(result, applier, these))
                found.setdefault(setup.exceptions.table.full_name, []).append(staged)
    return {name: pa.concat_tables(parts) for name, parts in found.items()}


def _order(result: BucketResult, applier: int, chosen: Int64) -> tuple[Column, ...]:
    """Return the columns of `STAGED`, given the numbers of the decisions that rows stand for."""
    decisions, folded = result.folded.decisions, result.folded
    return (
        decisions.apply[chosen].astype(np.int64),
        decisions.cause[chosen] != Cause.TRANS_IN_CONFLICT,
        operation_orders(chosen, decisions, folded.logged, result.applies, result.bucket.rows),
        outcome_places(outcome_columns(result, applier, chosen)),
    )


def tracked_rows(result: BucketResult) -> TrackedRows:
    """Return how many exceptions rows pass TRACK made, by cluster and table, and by epoch apply."""
    decisions = result.folded.tracked
    rejected = np.flatnonzero(decisions.verdict == REJECTED)
    appliers, tables = (
        result.applies.applier[decisions.apply[rejected]],
        result.bucket.key_table[decisions.key[rejected]],
    )
    found = {}
    for number, cluster in enumerate(result.clusters):
        for table, setup in enumerate(cluster.setups):
            if setup.exceptions is not None:
                here = rejected[(appliers == number) & (tables == table)]
                if cluster.steps.get(table):
                    version = steps_before(cluster.steps[table], result.applies)[decisions.apply[here]]
                    used = [each.exceptions is not None for each in cluster.over_time(table)]
                    here = here[np.array(used, np.bool_)[version]]
                found[cluster.name, setup.exceptions.table.full_name] = np.unique(
                    decisions.apply[here], return_counts=True
                )
    return found
