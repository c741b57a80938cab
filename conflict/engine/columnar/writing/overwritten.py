"""
The changes of a bucket that an applier overwrote with changes that had not seen them.

Computes docs/compare.md, "Lost updates", and docs/result.md, "Overwritten changes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.writing.outcomes import transaction_ids
from conflict.engine.columnar.writing.winners import origins_of
from conflict.engine.kernels.arrays import Bool, Int64, OperationKind
from conflict.engine.kernels.lost_changes import LAST_OPERATION, TimedDecisions, Written, overwriting, written_by
from conflict.engine.kernels.provenance_records import ImageArrays
from conflict.engine.ledger.layout import OVERWRITTEN, labelled, times_of
from conflict.engine.ledger.ledger import LedgerColumn, outcome_table
from conflict.history.grid.schemas import PLACE
from conflict.rules.decision import Verdict


@attrs.frozen(slots=False, eq=False)
class OverwrittenRows:
    """
    What appliers overwrote in a decided bucket.

    Attributes:
        result: The bucket.
        files: Per cluster, its binlog files by number.
    """

    result: FoldedBucket
    files: Mapping[str, Sequence[str]]

    @cached_property
    def decisions(self) -> tuple[Int64, Int64]:
        """Per cluster, which decision overwrote each of its changes; -1 for none. Shape (changes,)."""
        result, rows = self.result, self.result.bucket.rows
        found = tuple(np.full(len(each), -1, np.int64) for each in rows)
        asked = self._shared_rows()
        if not asked.any():
            return found[0], found[1]
        chosen = [np.flatnonzero(asked[each.key]) for each in rows]
        made = result.folded.decisions
        kept = np.flatnonzero(asked[made.key] & (made.source >= 0))
        side = 1 - result.applies.applier[made.apply[kept]].astype(np.int64)
        source = np.where(side == 0, *(np.searchsorted(own, made.source[kept]) for own in chosen))
        decisions = attrs.evolve(made.chosen(kept), source=source.astype(np.int32))
        applier, ends = result.applies.applier, np.zeros(len(result.applies), np.int32)
        active = np.flatnonzero(result.folded.own_end)
        before = (np.searchsorted(own, result.folded.own_end[active]) for own in chosen)
        ends[active] = np.where(applier[active] == 0, *before)
        timed = TimedDecisions(applier, ends, decisions)
        keys = [each.key[own] for each, own in zip(rows, chosen, strict=True)]
        by = overwriting(timed, keys, self._written(chosen), len(asked))
        for own, places, numbers in zip(found, chosen, by, strict=True):
            own[places] = np.where(numbers < 0, -1, kept[numbers] if len(kept) else -1)
        return found[0], found[1]

    def table(self, number: int) -> pa.Table | None:
        """Return the changes of a cluster that its applier overwrote, as `OVERWRITTEN`; None without any."""
        rows, made = np.flatnonzero(self.decisions[number] >= 0), self.result.folded.decisions
        rows = self.result.told_of(rows, made.apply[self.decisions[number][rows]])
        return self._table(number, rows) if len(rows) else None

    def _shared_rows(self) -> Bool:
        """Return which rows their own cluster changed, and its applier, too. Shape (keys,)."""
        bucket, made, applies = self.result.bucket, self.result.folded.decisions, self.result.applies
        applied = np.flatnonzero((made.verdict == Verdict.APPLIED) & (made.kind == OperationKind.CHANGE))
        found = np.zeros(len(bucket.key_table), np.bool_)
        keyed = np.array([bool(table.primary_key) for table in bucket.numbers.tables], np.bool_)
        for side, rows in enumerate(bucket.rows):
            own, others = np.zeros_like(found), np.zeros_like(found)
            own[rows.key[rows.operation <= LAST_OPERATION]] = True
            others[made.key[applied[applies.applier[made.apply[applied]] == side]]] = True
            found |= own & others
        return found & keyed[bucket.key_table]

    def _written(self, chosen: Sequence[Int64]) -> tuple[Written, Written]:
        bucket = self.result.bucket
        sets, images = bucket.column_sets
        rows = [each.chosen(own) for each, own in zip(bucket.rows, chosen, strict=True)]
        carried = [ImageArrays(each.before[own], each.after[own]) for each, own in zip(images, chosen, strict=True)]
        return written_by(rows, (sets, carried), (bucket.key_table, bucket.numbers.tables))

    def _table(self, number: int, rows: Int64) -> pa.Table:
        result = self.result
        bucket, applies, own = result.bucket, result.applies, result.bucket.rows[number]
        by = self.decisions[number][rows]
        made, apply = result.folded.decisions, result.folded.decisions.apply[by]
        return outcome_table(
            {
                "epoch": own.epoch[rows],
                "group": own.group[rows],
                "table": labelled(bucket.key_table[own.key[rows]], [each.full_name for each in bucket.numbers.tables]),
                **bucket.row_keys(own.key[rows]),
                "operation": own.operation[rows],
                **self._places(number, rows, ""),
                "time": times_of(self._committed(number, own.epoch[rows])),
                "transaction_id": transaction_ids(bucket.changes[number], rows),
                "applied_epoch": applies.epoch[apply],
                "winner_cluster": labelled(np.zeros(len(rows), np.int8), [result.clusters[1 - number].name]),
                "winner_epoch": applies.foreign_epoch[apply],
                "winner_operation": made.operation[by],
                **self._places(1 - number, made.source[by].astype(np.int64), "winner_"),
            },
            OVERWRITTEN,
        )

    def _places(self, side: int, rows: Int64, prefix: str) -> dict[str, LedgerColumn]:
        found = origins_of(self.result.bucket.changes[side], rows)
        files = self.files[self.result.clusters[side].name]
        return {
            f"{prefix}file": labelled(found["file"], files),
            **{prefix + name: pa.array(found[name], mask=found["file"] < 0) for name in PLACE if name != "file"},
        }

    def _committed(self, number: int, epochs: np.ndarray) -> Int64:
        """Return when own epochs of a cluster committed, as the other one received them; 0 if not known."""
        applies = self.result.applies
        found = applies.receiving(1 - number, epochs)
        return np.where(found < 0, 0, applies.committed[found]) if len(applies) else np.zeros(len(epochs), np.int64)
