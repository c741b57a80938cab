"""
One bucket's part of the result: what the kernels decided, as a ledger.

Open decisions are what pass TRACK may have decided instead: docs/result.md, "Open decisions"
(`conflict.engine.inference.replay` has the rule). Rows of a table that a change of its definition copied are
counted as in docs/definitions.md, "Counters".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from conflict.config.database_names import DatabaseNames
from conflict.engine.columnar.contested import Differing, DifferingRows, compare_effects
from conflict.engine.columnar.folded_bucket import CountedCluster, FoldedBucket, count_bucket
from conflict.engine.columnar.image_values import ImageReader
from conflict.engine.columnar.setups import steps_before
from conflict.engine.columnar.writing.exceptions import exceptions_of, tracked_rows
from conflict.engine.columnar.writing.exceptions_numbering import TrackedRows
from conflict.engine.columnar.writing.final_rows import count_differing, final_table
from conflict.engine.columnar.writing.outcomes import outcomes_of
from conflict.engine.columnar.writing.overwritten import OverwrittenRows
from conflict.engine.kernels.arrays import Int64
from conflict.engine.kernels.passes import are_rejected
from conflict.engine.ledger.layout import ResultOptions
from conflict.engine.ledger.ledger import (
    CONTRADICTED,
    OPEN_DECISIONS,
    ClusterLedger,
    FinalTable,
    LedgerPart,
    candidates_of,
    has_a_line,
    kinds_of,
    write_part,
)
from conflict.engine.ledger.resolution import NotKnown
from conflict.engine.ledger.summary import BucketSummary
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import RowStep
from conflict.rules.counters import counts_differ
from conflict.rules.decision import Verdict
from conflict.rules.functions import FunctionSpec
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.events.rows_event import Operation

DELETES = (int(Operation.DELETE_ROW), int(RowStep.EMPTIED))


def _count_copied(result: FoldedBucket, number: int) -> int:
    """Return how many rows of the bucket the applier of a cluster copied for statements of the other one."""
    cluster, total = result.clusters[number], 0
    for table, places in cluster.copied.items():
        for place in places:
            total += _count(result, number, table, place)
    return total


def _count(result: FoldedBucket, number: int, table: int, place: int) -> int:
    """Return how many rows of a table exist before one of its changes, given by its number among them."""
    bucket, decisions = result.bucket, result.folded.decisions
    rows, keys = bucket.rows[number], len(bucket.key_table)
    epoch, group = result.clusters[number].steps[table][place]
    before = (rows.epoch < np.uint64(epoch)) | ((rows.epoch == np.uint64(epoch)) & (rows.group < group))
    own = np.flatnonzero(before & (rows.operation != RowStep.CHANGED))
    last_own = np.full(keys, -1, np.int64)
    last_own[rows.key[own]] = own  # the last one of a key stays
    applied = decisions.verdict == Verdict.APPLIED
    applied &= (result.applies.applier == number)[decisions.apply]
    applied &= (steps_before(result.clusters[number].steps[table], result.applies) <= place)[decisions.apply]
    made = np.flatnonzero(applied)
    last_made = np.full(keys, -1, np.int64)
    last_made[decisions.key[made]] = made
    there = np.zeros(keys, np.bool_)
    has_own, has_made = last_own >= 0, last_made >= 0
    there[has_own] = ~np.isin(rows.operation[last_own[has_own]], DELETES)
    own_end = np.zeros(keys, np.int64)
    own_end[has_made] = result.folded.own_end[decisions.apply[last_made[has_made]]]
    later = has_made & (last_own < own_end)
    there[later] = ~np.isin(decisions.operation[last_made[later]], DELETES)
    return int((there & (bucket.key_table == table)).sum())


def _open_decisions(result: FoldedBucket, number: int, functions: Sequence[FunctionSpec | None]) -> pa.Table:
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
    several = result.told_of(several, tracked.apply[several])
    mine = tracked.apply[several], tracked.group[several]
    rejected = np.zeros(len(several), np.bool_)
    are_rejected(*(*each_read_only(*mine, conflicts.offsets, conflicts.groups), rejected))
    chosen = several[rejected]
    key = tracked.key[chosen]
    columns = (
        result.applies.foreign_epoch[tracked.apply[chosen]],
        *result.bucket.row_keys(key).values(),
        result.bucket.key_table[key],
        *(column[chosen] for column in (tracked.operation, tracked.verdict, tracked.cause, candidates)),
    )
    found = pa.table(columns, schema=OPEN_DECISIONS)
    kinds, of_each = kinds_of(found, ("table", "operation", "candidates"))
    differing = np.array([_counts_differ(functions[table], *each) for table, *each in kinds], np.bool_)
    return found if differing.all() else found.filter(pa.array(differing[of_each]))


def _counts_differ(spec: FunctionSpec | None, operation: int, bits: int) -> bool:
    return spec is not None and counts_differ(spec, Operation(operation), candidates_of(bits))


def write_bucket(
    result: FoldedBucket,
    files: Mapping[str, Sequence[str]],
    out: Folder,
    options: ResultOptions,
    databases: DatabaseNames,
) -> tuple[BucketSummary, TrackedRows]:
    """
    Write a bucket's parts of the result.

    Args:
        result: A decided bucket, with the candidates of open decisions.
        files: Per cluster, its binlog files by number.
        out: Folder of the result.
        options: What the result holds.
        databases: The names that clusters use for databases which appliers rename.

    Returns:
        What the bucket adds to the figures, and the exceptions rows that pass TRACK made in it.
    """
    fill = _Filling(result, files, options, ImageReader(result.bucket))
    tables = [table.full_name for table in result.bucket.numbers.tables]
    clusters = map(fill.cluster, range(len(result.clusters)))
    part = LedgerPart(result.bucket.number, tables, clusters, fill.final(), databases, options.epoch_range)
    return write_part(part, out), tracked_rows(result)


@attrs.frozen(slots=False)
class _Filling:
    """Makes columns of a decided bucket; attributes are arguments of `write_bucket`, and the reader of its images."""

    result: FoldedBucket
    files: Mapping[str, Sequence[str]]
    options: ResultOptions
    reader: ImageReader

    @cached_property
    def differing(self) -> Differing:
        """How the effects of both appliers compare with their binlogs."""
        return compare_effects(self.result, with_applies=False)

    @cached_property
    def overwritten(self) -> OverwrittenRows:
        """What appliers overwrote."""
        return OverwrittenRows(self.result, self.files)

    @cached_property
    def counted(self) -> Sequence[CountedCluster]:
        """What `count_bucket` returns."""
        return count_bucket(self.result)

    @cached_property
    def lines(self) -> Int64:
        """The numbers of the decisions that have a line."""
        decisions = self.result.folded.decisions
        lines = has_a_line(decisions.verdict, decisions.source < 0, every=self.options.all_outcomes)
        return self.result.told_of(lines, decisions.apply[lines])

    def cluster(self, number: int) -> ClusterLedger:
        """Return what the applier of a cluster did."""
        result, cluster = self.result, self.result.clusters[number]
        functions = [None if setup.function is None else setup.function.spec for setup in cluster.setups]
        counted = self.counted[number]
        rows, not_known = _count_rows(result, number)
        chosen = self.lines[result.applies.applier[result.folded.decisions.apply[self.lines]] == number]
        return ClusterLedger(
            name=cluster.name,
            functions=functions,
            counts=counted.operations,
            refreshes=counted.refreshes,
            counters=counted.counters,
            stretches=counted.stretches,
            outcomes=outcomes_of(result, number, chosen, self.files) if len(chosen) else None,
            overwritten=self.overwritten.table(number),
            undecided=_open_decisions(result, number, functions),
            compared=self.differing.compared[number],
            contradicted=_contradicted(result, self.differing.rows[number]),
            rows=rows,
            not_known=not_known,
            unexplained=int(result.folded.unexplained[number].sum()),
            copied=_count_copied(result, number) if cluster.copied else None,
            exceptions=exceptions_of(result, self.reader, number, chosen),
        )

    def final(self) -> Iterator[FinalTable]:
        """Yield the final rows of each table; without rows, those that differ are counted where no value is needed."""
        for table, definition in enumerate(self.result.bucket.numbers.tables):
            if self.options.final_rows:
                yield final_table(self.result, self.reader, table)
            else:
                yield FinalTable(definition.full_name, {}, count_differing(self.result, table))


def _contradicted(result: FoldedBucket, rows: DifferingRows) -> pa.Table:
    """Return differing rows as `CONTRADICTED`."""
    mark = np.zeros(len(rows), np.int8)
    keys = result.bucket.row_keys(rows.key).values()
    columns = (rows.epoch, rows.group, *keys, result.bucket.key_table[rows.key], rows.derived, rows.shown, mark)
    return pa.table(columns, schema=CONTRADICTED)


def _count_rows(result: FoldedBucket, number: int) -> tuple[dict[str, int], dict[str, NotKnown]]:
    """Return how many final rows of each table a cluster has, and what is not known of its rows."""
    rows, not_known = {}, {}
    for table, definition in enumerate(result.bucket.numbers.tables):
        here, exists = result.bucket.key_table == table, result.folded.exists[number]
        if result.lacks_values:
            columns = result.columns_not_known[number]
            if columns[here].any():
                in_part = int((columns[here] > 0).sum())
                not_known[definition.full_name] = NotKnown(0, in_part, int(columns[here].sum()))
            exists = exists & (columns == 0)
        # The cluster does not have a table that was refused.
        refused = result.clusters[number].setups[table].refusal is not None
        rows[definition.full_name] = 0 if refused else int((exists & here).sum())
    return rows, not_known
