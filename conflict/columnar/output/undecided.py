"""
Open decisions of a bucket: what pass TRACK may have decided instead.

Computes docs/result.md, "Open decisions"; `conflict.inference.open_decisions` has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import each_read_only
from conflict.columnar.kernels.passes import are_rejected
from conflict.results.ledger import OPEN_DECISIONS, candidates_of, kinds_of
from conflict.rules.counters import counts_differ
from conflict.rules.functions import FunctionSpec
from ndb_formats.events.rows_event import Operation

__all__ = ["open_decisions"]


def open_decisions(result: BucketResult, number: int, functions: Sequence[FunctionSpec | None]) -> pa.Table:
    """
    Return the decisions of an applier's pass TRACK on transactions in conflict, whose candidates count differently.

    Args:
        result: A decided bucket, with the candidates.
        number: Number of the applying cluster.
        functions: Its conflict function of each table.
    """
    candidates, tracked, conflicts = result.folded.candidates, result.folded.tracked, result.conflicts
    several = np.flatnonzero(candidates & (candidates - 1))  # more than one bit
    several = several[result.applies.applier[tracked.apply[several]] == number]
    mine = tracked.apply[several], tracked.group[several]
    rejected = np.zeros(len(several), np.bool_)
    are_rejected(*(*each_read_only(*mine, conflicts.offsets, conflicts.groups), rejected))
    chosen = several[rejected]
    key = tracked.key[chosen]
    columns = (
        result.applies.foreign_epoch[tracked.apply[chosen]],
        result.bucket.key_texts.take(pa.array(key)),
        result.bucket.key_table[key],
        *(column[chosen] for column in (tracked.operation, tracked.verdict, tracked.cause, candidates)),
    )
    found = pa.table(columns, schema=OPEN_DECISIONS)
    kinds, of_each = kinds_of(found, ("table", "operation", "candidates"))
    differing = np.array([_counts_differ(functions[table], *each) for table, *each in kinds], np.bool_)
    return found if differing.all() else found.filter(pa.array(differing[of_each]))


def _counts_differ(spec: FunctionSpec | None, operation: int, bits: int) -> bool:
    return spec is not None and counts_differ(spec, Operation(operation), candidates_of(bits))
