"""
Decisions of a bucket that the binlogs leave open: how many, what they mean for the counters, and what may have been.

See `conflict.engine.open_decisions`, which the kernels follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs
import numpy as np
import pyarrow as pa

from conflict.bucket_result import BucketResult
from conflict.decision import Cause, Decision, Verdict
from conflict.grid import Folder
from conflict.kernels.arrays import Int64
from conflict.kernels.open_decisions import outcome_bit
from conflict.outputs import UNDECIDED
from conflict.undecided import counts_differ, decision_text, moved_counters
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


def write_undecided(result: BucketResult, out: Folder) -> dict[str, Slack]:
    """Write the open decisions of a bucket, and return per applier what they mean."""
    slacks = {}
    for number, site in enumerate(result.sites):
        slacks[site.name] = slack = Slack()
        rows = [row for place in _several(result, number).tolist() for row in _rows(result, place, slack)]
        if rows:
            columns = zip(*rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, UNDECIDED, strict=True)]
            path = f"undecided/applier={site.name}/bucket={result.bucket.number:05d}.parquet"
            out.write_table(path, pa.table(arrays, schema=UNDECIDED))
    return slacks


def _several(result: BucketResult, number: int) -> Int64:
    """Return decisions of pass TRACK of one applier that may have been others, of transactions in conflict."""
    candidates, about, take = result.folded.candidates, result.tracked, result.folded.tracked.take
    several = np.flatnonzero((candidates & (candidates - 1)) & -(about.applier == number).astype(np.int64))
    rejected = [about.group[place] in result.conflicts.of(int(take[place])) for place in several.tolist()]
    return several[np.array(rejected, np.bool_)]


def _rows(result: BucketResult, place: int, slack: Slack) -> Iterator[tuple[object, ...]]:
    """Yield a decision as `UNDECIDED` has it if it matters, and add up what it means."""
    tracked, about = result.folded.tracked, result.tracked
    table = result.bucket.numbers.tables[int(about.table[place])]
    operation = Operation(int(about.operation[place]))
    decided = Decision(Verdict(int(tracked.verdict[place])), Cause(int(tracked.cause[place])))
    bits = int(result.folded.candidates[place])
    candidates = [outcome for bit, outcome in _OUTCOMES.items() if bits & bit]
    function = result.sites[int(about.applier[place])].setups[int(about.table[place])].function
    if function is None or not counts_differ(function.spec, operation, candidates):
        return
    slack.undecided += 1
    now = moved_counters(function.spec, operation, decided)
    moved = [moved_counters(function.spec, operation, candidate) for candidate in candidates]
    for counter in {*now, *(name for each in moved for name in each)}:
        slack.less[counter] += now[counter] - min(each[counter] for each in moved)
        slack.more[counter] += max(each[counter] for each in moved) - now[counter]
    yield (
        int(result.takes.foreign_epoch[tracked.take[place]]),
        table.full_name,
        result.bucket.key_texts[int(about.key[place])].as_py(),
        operation.name,
        decision_text(decided),
        sorted({decision_text(candidate) for candidate in candidates}),
    )
