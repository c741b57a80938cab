"""
The outcomes of a bucket's operations, with the operations that won. Computes docs/result.md, "Outcomes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from conflict.engine.columnar.bucket_round import row_conflicts
from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.writing.winners import NO_ORIGIN, origins_of, winner_columns
from conflict.engine.kernels.arrays import Int32, Int64, OperationKind
from conflict.engine.ledger.layout import labelled, times_of
from conflict.engine.ledger.ledger import LedgerColumn, outcome_table
from conflict.history.grid.columns import GridColumns
from conflict.history.grid.schemas import PLACE
from conflict.rules.decision import Cause


def outcomes_of(result: FoldedBucket, applier: int, chosen: Int64, files: Mapping[str, Sequence[str]]) -> pa.Table:
    """
    Return the outcomes of operations, as `OUTCOMES`.

    Args:
        result: A decided bucket.
        applier: Number of the applying cluster.
        chosen: Numbers of the decisions on the operations. Shape (operations,).
        files: Per cluster, its binlog files by number.
    """
    bucket, applies, decisions = result.bucket, result.applies, result.folded.decisions
    apply, row, key = (column[chosen] for column in (decisions.apply, decisions.source, decisions.key))
    cause, own_cause = decisions.cause[chosen], np.zeros(len(chosen), np.int8)
    values = decisions.compared[chosen]
    with_transaction, tracked = own_conflicts(result, chosen)
    own_cause[with_transaction] = result.folded.tracked.cause[tracked]
    values[with_transaction] = result.folded.tracked.compared[tracked]
    brought = dated = np.where(own_cause > 0, own_cause, cause) == Cause.ROW_IN_CONFLICT
    if result.older is not None:  # that no epoch had come back is not known, and no 0
        functions = [setup.function for setup in result.clusters[applier].setups]
        by_epoch = np.array([function is not None and function.spec.refreshes for function in functions], np.bool_)
        brought = brought & ((values["incoming"] > 0) | ~by_epoch[bucket.key_table[key]])
        dated = dated & (result.older.first.local_at[key, applier] != apply)
    source, origin = result.clusters[1 - applier].name, origins_of(bucket.changes[1 - applier], row)
    unknown = origin["file"] == NO_ORIGIN
    return outcome_table(
        {
            **outcome_columns(result, applier, chosen),
            "source": labelled(np.zeros(len(chosen), np.int8), [source]),
            "operation": decisions.operation[chosen],
            "refresh": decisions.kind[chosen] == OperationKind.REFRESH,
            "verdict": decisions.verdict[chosen],
            "cause": cause,
            "own_cause": own_cause,
            "incoming": pa.array(values["incoming"].copy(), mask=~brought),
            "stored": pa.array(values["stored"].copy(), mask=~dated),
            "file": labelled(origin["file"], files[source]),
            **{name: pa.array(origin[name], mask=unknown) for name in PLACE if name != "file"},
            "time": times_of(applies.committed[apply]),
            "transaction_id": transaction_ids(bucket.changes[1 - applier], row),
            **winner_columns(result, applier, chosen, (with_transaction, tracked), files),
        }
    )


def outcome_columns(result: FoldedBucket, applier: int, chosen: Int64) -> dict[str, LedgerColumn]:
    """Return what tells the outcomes of some decisions of one applier from others, the columns of `OUTCOME_PLACE`."""
    bucket, applies, decisions = result.bucket, result.applies, result.folded.decisions
    apply, source, key = (column[chosen] for column in (decisions.apply, decisions.source, decisions.key))
    ordinals, own = np.full(len(chosen), -1, np.int32), source >= 0
    ordinals[own] = bucket.rows[1 - applier].ordinal[source[own]]
    return {
        "applier": labelled(np.zeros(len(chosen), np.int8), [result.clusters[applier].name]),
        "source_epoch": applies.foreign_epoch[apply],
        "epoch": applies.epoch[apply],
        "group": decisions.group[chosen],
        "ordinal": ordinals,
        "table": labelled(bucket.key_table[key], [table.full_name for table in bucket.numbers.tables]),
        **bucket.row_keys(key),
    }


def own_conflicts(result: FoldedBucket, chosen: Int64) -> tuple[Int64, Int64]:
    """
    Return which operations put the transactions in conflict with which they were rejected.

    Returns:
        Their places in `chosen`, and the numbers of the decisions of pass TRACK on them. Shape (conflicts,).
    """
    decisions, tracked = result.folded.decisions, result.folded.tracked
    if not len(tracked):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Pass TRACK decided on all operations of these epochs too, in the same order.
    twice = np.flatnonzero(np.isin(decisions.apply, result.conflicts.applies))
    conflicts = row_conflicts(tracked, result.clusters, result.applies, result.bucket.key_table)
    place = np.searchsorted(chosen, twice[conflicts])
    found = (place < len(chosen)) & (chosen[np.minimum(place, len(chosen) - 1)] == twice[conflicts])
    found &= decisions.cause[twice[conflicts]] == Cause.TRANS_IN_CONFLICT
    return place[found], conflicts[found]


def transaction_ids(changes: GridColumns, row: Int32 | Int64) -> pa.Array:
    """Return the ids of transactions; NULL for operations that the source's applier logged. Shape (operations,)."""
    numbers = pa.array(row, mask=row < 0)
    return changes.column("transaction_id").take(numbers).combine_chunks()
