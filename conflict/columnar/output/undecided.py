"""
Open decisions of a bucket: counts them, and writes what pass TRACK may have decided instead.

Computes docs/result.md, "Open decisions"; `conflict.inference.open_decisions` has the rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Int64, each_read_only
from conflict.columnar.kernels.open_decisions import outcome_bit
from conflict.columnar.kernels.passes import are_rejected
from conflict.grid.folder import Folder
from conflict.results.layout import UNDECIDED, undecided_path
from conflict.results.undecided import counts_differ
from conflict.rules.counters import moved_counters
from conflict.rules.decision import Cause, Decision, Verdict, decision_text
from ndb_formats.events.rows_event import Operation

__all__ = ["Slack", "write_undecided"]

_OUTCOMES = {
    int(outcome_bit.function(int(verdict), int(cause))): Decision(verdict, cause)
    for verdict in Verdict
    for cause in (Cause if verdict is Verdict.REJECTED else (Cause.NONE,))
}


@attrs.define
class Slack:
    """
    How far the open decisions of one applier can move its counters.

    Attributes:
        undecided: Number of open decisions.
        less: By how much each counter may be lower.
        more: By how much each counter may be higher.
    """

    undecided: int = 0
    less: Counter[str] = attrs.field(factory=Counter)
    more: Counter[str] = attrs.field(factory=Counter)


@attrs.frozen
class _Kind:
    """
    Open decisions that differ in their row alone.

    Attributes:
        table: Full name of the table.
        operation: The operation.
        decided: What pass TRACK decided.
        candidates: What it may have decided.
        less: By how much one such decision may lower each counter.
        more: By how much it may raise each counter.
    """

    table: str
    operation: Operation
    decided: Decision
    candidates: tuple[Decision, ...]
    less: Counter[str]
    more: Counter[str]


def write_undecided(result: BucketResult, out: Folder) -> dict[str, Slack]:
    """Write the open decisions of a bucket, and return per cluster how far they can move its counters."""
    slacks = {}
    for number, cluster in enumerate(result.clusters):
        slacks[cluster.name] = slack = Slack()
        chosen = _open_decisions(result, number)
        tracked = result.folded.tracked
        columns = (tracked.operation, tracked.verdict, tracked.cause, result.folded.candidates)
        found = [result.bucket.key_table[tracked.key[chosen]], *(column[chosen] for column in columns)]
        kinds, kind = np.unique(np.stack(found, axis=1), axis=0, return_inverse=True)
        described = [_kind(result, number, *each) for each in kinds.tolist()]
        for each, count in zip(described, np.bincount(kind.ravel(), minlength=len(kinds)).tolist(), strict=True):
            if each is not None:
                slack.undecided += count
                slack.less.update({name: by * count for name, by in each.less.items()})
                slack.more.update({name: by * count for name, by in each.more.items()})
        if slack.undecided:
            path = undecided_path(cluster.name, result.bucket.number)
            out.write_table(path, _table(result, chosen, kind.ravel(), described))
    return slacks


def _open_decisions(result: BucketResult, number: int) -> Int64:
    """Return the decisions of an applier's pass TRACK with several candidates, on transactions in conflict."""
    candidates, tracked, conflicts = result.folded.candidates, result.folded.tracked, result.conflicts
    several = np.flatnonzero(candidates & (candidates - 1))  # more than one bit
    several = several[result.applies.applier[tracked.apply[several]] == number]
    mine = tracked.apply[several], tracked.group[several]
    rejected = np.zeros(len(several), np.bool_)
    are_rejected(*(*each_read_only(*mine, conflicts.offsets, conflicts.groups), rejected))
    return np.asarray(several[rejected])


def _kind(
    result: BucketResult, number: int, table: int, operation: int, verdict: int, cause: int, bits: int
) -> _Kind | None:
    """Return one kind of open decisions; None if all candidates move the counters alike."""
    setup, kind = result.clusters[number].setups[table], Operation(operation)
    decided = Decision(Verdict(verdict), Cause(cause))
    candidates = tuple(outcome for bit, outcome in _OUTCOMES.items() if bits & bit)
    if setup.function is None or not counts_differ(setup.function.spec, kind, candidates):
        return None
    now = moved_counters(setup.function.spec, kind, decided)
    moved = [moved_counters(setup.function.spec, kind, candidate) for candidate in candidates]
    names = {*now, *(name for each in moved for name in each)}
    less = Counter({name: now[name] - min(each[name] for each in moved) for name in names})
    more = Counter({name: max(each[name] for each in moved) - now[name] for name in names})
    return _Kind(result.bucket.numbers.tables[table].full_name, kind, decided, candidates, less, more)


def _table(result: BucketResult, decisions: Int64, kind: Int64, kinds: Sequence[_Kind | None]) -> pa.Table:
    """
    Return open decisions as `UNDECIDED`.

    Args:
        result: The bucket.
        decisions: Numbers of decisions of pass TRACK. Shape (decisions,).
        kind: Number of the kind of each. Shape (decisions,).
        kinds: The kinds; decisions of None are left out.
    """
    is_open = np.array([each is not None for each in kinds], np.bool_)
    chosen, known = decisions[is_open[kind]], [each for each in kinds if each is not None]
    of_each = pa.array((np.cumsum(is_open) - 1)[kind[is_open[kind]]])
    by_kind = {
        "table": [each.table for each in known],
        "operation": [each.operation.name for each in known],
        "decided": [decision_text(each.decided) for each in known],
        "candidates": [sorted({decision_text(candidate) for candidate in each.candidates}) for each in known],
    }
    arrays = {name: pa.array(values, UNDECIDED.field(name).type).take(of_each) for name, values in by_kind.items()}
    arrays["source_epoch"] = pa.array(result.applies.foreign_epoch[result.folded.tracked.apply[chosen]])
    arrays["key"] = result.bucket.key_texts.take(pa.array(result.folded.tracked.key[chosen]))
    return pa.table([arrays[name] for name in UNDECIDED.names], schema=UNDECIDED)
