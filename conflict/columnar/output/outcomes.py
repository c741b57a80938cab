"""
The outcomes of a bucket's operations. Computes docs/run-file.md, "Outcomes".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Int32, Int64, OperationKind
from conflict.grid.columns import GridColumns
from conflict.results.layout import OUTCOMES, labelled
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["chosen_decisions", "outcome_table"]

_ORIGIN = ("ordinal", "file", "position", "row")
_NO_ORIGIN = -1


def chosen_decisions(result: BucketResult, *, every: bool) -> list[Int64]:
    """Return, per applier, the numbers of its decisions: `every` one, or all but changes that were simply applied."""
    decisions = result.folded.decisions
    chosen = np.flatnonzero((decisions.verdict != Verdict.APPLIED) | (decisions.source < 0) | every)
    applier = result.applies.applier[decisions.apply[chosen]]
    return [chosen[applier == number] for number in range(len(result.clusters))]


def outcome_table(result: BucketResult, applier: int, chosen: Int64, source: str, files: Sequence[str]) -> pa.Table:
    """
    Return the outcomes of operations.

    Args:
        result: A decided bucket.
        applier: Number of the applying cluster.
        chosen: Numbers of the decisions on the operations. Shape (operations,).
        source: Name of the other cluster.
        files: Binlog files of the other cluster by number.

    Returns:
        `OUTCOMES`, with dictionaries in place of strings.
    """
    bucket, applies, decisions = result.bucket, result.applies, result.folded.decisions
    apply, row, key = (column[chosen] for column in (decisions.apply, decisions.source, decisions.key))
    cause = decisions.cause[chosen]
    compared, count = cause == Cause.ROW_IN_CONFLICT, len(chosen)
    origin = _origins(bucket.changes[1 - applier], row)
    unknown = origin["file"] == _NO_ORIGIN
    values = decisions.compared[chosen]
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
        "incoming": pa.array(values["incoming"].copy(), mask=~compared),
        "stored": pa.array(values["stored"].copy(), mask=~dated),
        "file": labelled(origin["file"], files),
        "position": pa.array(origin["position"], mask=unknown),
        "row": pa.array(origin["row"], mask=unknown),
    }
    fields = [pa.field(name, arrays[name].type, nullable=arrays[name].null_count > 0) for name in OUTCOMES.names]
    return pa.table([arrays[name] for name in OUTCOMES.names], schema=pa.schema(fields))


def _origins(changes: GridColumns, row: Int32) -> dict[str, np.ndarray]:
    """
    Return the ordinals of operations, and where they are in the binlogs. Shape (operations,).

    An operation that the source's applier logged has ordinal and file `_NO_ORIGIN`.
    """
    changes.read(_ORIGIN)
    own = row >= 0
    found = {name: changes.of_rows(name, np.where(own, row, 0)) for name in _ORIGIN}
    for name in ("ordinal", "file"):
        found[name][~own] = _NO_ORIGIN
    return found
