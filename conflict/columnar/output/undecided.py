"""
Decisions of a bucket that the binlogs leave open: how many, what they mean for the counters, and what may have been.

See `conflict.reference.open_decisions`, which the kernels follow.
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
from conflict.results.layout import UNDECIDED
from conflict.results.undecided import counts_differ, decision_text, moved_counters
from conflict.rules.decision import Cause, Decision, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["Slack", "write_undecided"]

_OUTCOMES = {
    int(outcome_bit(int(verdict), int(cause))): Decision(verdict, cause)
    for verdict in Verdict
    for cause in (Cause if verdict is Verdict.REJECTED else (Cause.NONE,))
}


@attrs.define
class Slack:
    """
    What the open decisions of one applier mean.

    Attributes:
        undecided: How many there are.
        less: By how much each counter may be less than it is.
        more: By how much it may be more.
    """

    undecided: int = 0
    less: Counter[str] = attrs.field(factory=Counter)
    more: Counter[str] = attrs.field(factory=Counter)


@attrs.frozen
class _Meaning:
    """
    What open decisions of one kind mean.

    Attributes:
        table: Full name of the table.
        operation: The operation.
        decided: What pass TRACK decided.
        candidates: What it may have decided.
        less: By how much one such decision makes each counter less.
        more: By how much it makes it more.
    """

    table: str
    operation: Operation
    decided: Decision
    candidates: tuple[Decision, ...]
    less: Counter[str]
    more: Counter[str]


def write_undecided(result: BucketResult, out: Folder) -> dict[str, Slack]:
    """Write the open decisions of a bucket, and return per applier what they mean."""
    slacks = {}
    for number, cluster in enumerate(result.clusters):
        slacks[cluster.name] = slack = Slack()
        places = _several(result, number)
        tracked = result.folded.tracked
        columns = (tracked.operation, tracked.verdict, tracked.cause, result.folded.candidates)
        found = [result.bucket.key_table[tracked.key[places]], *(column[places] for column in columns)]
        kinds, kind = np.unique(np.stack(found, axis=1), axis=0, return_inverse=True)
        meanings = [_meaning(result, number, *each) for each in kinds.tolist()]
        for meaning, count in zip(meanings, np.bincount(kind.ravel(), minlength=len(kinds)).tolist(), strict=True):
            if meaning is not None:
                slack.undecided += count
                slack.less.update({name: by * count for name, by in meaning.less.items()})
                slack.more.update({name: by * count for name, by in meaning.more.items()})
        if slack.undecided:
            path = f"undecided/applier={cluster.name}/bucket={result.bucket.number:05d}.parquet"
            out.write_table(path, _table(result, places, kind.ravel(), meanings))
    return slacks


def _several(result: BucketResult, number: int) -> Int64:
    """Return decisions of pass TRACK of one applier that may have been others, of transactions in conflict."""
    candidates, tracked, conflicts = result.folded.candidates, result.folded.tracked, result.conflicts
    several = np.flatnonzero(candidates & (candidates - 1))
    several = several[result.applies.applier[tracked.apply[several]] == number]
    mine = tracked.apply[several], tracked.group[several]
    rejected = np.zeros(len(several), np.bool_)
    are_rejected(*(*each_read_only(*mine, conflicts.offsets, conflicts.groups), rejected))
    return np.asarray(several[rejected])


def _meaning(
    result: BucketResult, number: int, table: int, operation: int, verdict: int, cause: int, bits: int
) -> _Meaning | None:
    """Return what open decisions of one kind mean; None if it does not matter which was made."""
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
    return _Meaning(setup.table.full_name, kind, decided, candidates, less, more)


def _table(result: BucketResult, places: Int64, kind: Int64, meanings: Sequence[_Meaning | None]) -> pa.Table:
    """Return open decisions that matter as `UNDECIDED`."""
    matters = np.array([meaning is not None for meaning in meanings], np.bool_)[kind]
    chosen, known = places[matters], [meaning for meaning in meanings if meaning is not None]
    number = np.cumsum([meaning is not None for meaning in meanings]) - 1
    of_each = pa.array(number[kind[matters]])
    by_kind = {
        "table": [meaning.table for meaning in known],
        "operation": [meaning.operation.name for meaning in known],
        "decided": [decision_text(meaning.decided) for meaning in known],
        "candidates": [sorted({decision_text(each) for each in meaning.candidates}) for meaning in known],
    }
    arrays = {name: pa.array(values, UNDECIDED.field(name).type).take(of_each) for name, values in by_kind.items()}
    arrays["source_epoch"] = pa.array(result.applies.foreign_epoch[result.folded.tracked.apply[chosen]])
    arrays["key"] = result.bucket.key_texts.take(pa.array(result.folded.tracked.key[chosen]))
    return pa.table([arrays[name] for name in UNDECIDED.names], schema=UNDECIDED)
