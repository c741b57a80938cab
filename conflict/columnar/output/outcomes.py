"""
The outcomes of a bucket's operations. Computes docs/result.md, "Outcomes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Int32, Int64, OperationKind
from conflict.columnar.output.origins import NO_ORIGIN, origins
from conflict.columnar.output.winners import winner_columns
from conflict.columnar.rounds.bucket_round import row_conflicts
from conflict.grid.columns import GridColumns
from conflict.results.layout import OUTCOMES, labelled, times_of
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["chosen_decisions", "outcome_table"]


def chosen_decisions(result: BucketResult, *, every: bool) -> list[Int64]:
    """Return, per applier, the numbers of its decisions: `every` one, or all but changes that were simply applied."""
    decisions = result.folded.decisions
    chosen = np.flatnonzero((decisions.verdict != Verdict.APPLIED) | (decisions.source < 0) | every)
    applier = result.applies.applier[decisions.apply[chosen]]
    return [chosen[applier == number] for number in range(len(result.clusters))]


def outcome_table(result: BucketResult, applier: int, chosen: Int64, files: Mapping[str, Sequence[str]]) -> pa.Table:
    """
    Return the outcomes of operations.

    Args:
        result: A decided bucket.
        applier: Number of the applying cluster.
        chosen: Numbers of the decisions on the operations. Shape (operations,).
        files: Per cluster, its binlog files by number.

    Returns:
        `OUTCOMES`, with dictionaries in place of strings.
    """
    bucket, applies, decisions = result.bucket, result.applies, result.folded.decisions
    apply, row, key = (column[chosen] for column in (decisions.apply, decisions.source, decisions.key))
    cause, own_cause = decisions.cause[chosen], np.zeros(len(chosen), np.int8)
    values, count = decisions.compared[chosen], len(chosen)
    with_transaction, tracked = own_conflicts(result, chosen)
    own_cause[with_transaction] = result.folded.tracked.cause[tracked]
    values[with_transaction] = result.folded.tracked.compared[tracked]
    compared = np.where(own_cause > 0, own_cause, cause) == Cause.ROW_IN_CONFLICT
    source, origin = result.clusters[1 - applier].name, origins(bucket.changes[1 - applier], row)
    unknown = origin["file"] == NO_ORIGIN
    heard = compared
    if result.older is not None:  # that no epoch had come back is not known, and no 0
        functions = [setup.function for setup in result.clusters[applier].setups]
        by_epoch = np.array([function is not None and function.spec.refreshes for function in functions], np.bool_)
        heard = compared & ((values["incoming"] > 0) | ~by_epoch[bucket.key_table[key]])
    dated = compared if result.older is None else compared & (result.older.first.local_at[key, applier] != apply)
    arrays = {
        "source": labelled(np.zeros(count, np.int8), [source]),
        "source_epoch": pa.array(applies.foreign_epoch[apply]),
        "group": pa.array(decisions.group[chosen]),
        "ordinal": pa.array(origin["ordinal"]),
        "epoch": pa.array(applies.epoch[apply]),
        "table": labelled(bucket.key_table[key], [table.full_name for table in bucket.numbers.tables]),
        "key": bucket.key_texts.take(pa.array(key)),
        "operation": labelled(decisions.operation[chosen] - 1, [each.name for each in Operation]),
        "refresh": pa.array(decisions.kind[chosen] == OperationKind.REFRESH),
        "verdict": labelled(decisions.verdict[chosen], [each.name for each in Verdict]),
        "cause": labelled(cause - 1, [each.name for each in Cause if each]),
        "incoming": pa.array(values["incoming"].copy(), mask=~heard),
        "stored": pa.array(values["stored"].copy(), mask=~dated),
        "file": labelled(origin["file"], files[source]),
        "position": pa.array(origin["position"], mask=unknown),
        "payload_position": pa.array(origin["payload_position"], mask=unknown),
        "row": pa.array(origin["row"], mask=unknown),
        "time": times_of(applies.committed[apply]),
        "transaction_id": _transaction_ids(bucket.changes[1 - applier], row),
        "own_cause": labelled(own_cause - 1, [each.name for each in Cause if each]),
        **winner_columns(result, applier, chosen, (with_transaction, tracked), files),
    }
    fields = [pa.field(name, arrays[name].type, nullable=arrays[name].null_count > 0) for name in OUTCOMES.names]
    return pa.table([arrays[name] for name in OUTCOMES.names], schema=pa.schema(fields))


def own_conflicts(result: BucketResult, chosen: Int64) -> tuple[Int64, Int64]:
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


def _transaction_ids(changes: GridColumns, row: Int32) -> pa.Array:
    """Return the ids of transactions; NULL for operations that the source's applier logged. Shape (operations,)."""
    numbers = pa.array(row, mask=row < 0)
    return changes.column("transaction_id").take(numbers).combine_chunks()
