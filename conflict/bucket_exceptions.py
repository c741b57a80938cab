"""
A bucket's rows of exceptions tables, which get their numbers later.
"""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa

from conflict.bucket_result import BucketResult
from conflict.decision import Cause, Verdict
from conflict.exceptions_table import UNKNOWN_TRANSACTION_ID, ConflictRecord
from conflict.grid import Folder
from conflict.kernels.operations import place_of
from conflict.outputs import staged_exceptions_path
from conflict.typed_rows import rows_to_arrow
from ndb_formats.events.rows_event import Operation
from ndb_formats.extra_row_info import ConflictFlag
from ndb_formats.values import Value

__all__ = ["tracked_rows", "write_exceptions"]

REJECTED = int(Verdict.REJECTED)


def write_exceptions(result: BucketResult, out: Folder) -> None:
    """Write the rows of exceptions tables, not numbered yet, each with what its place in the order depends on."""
    decisions, about = result.folded.decisions, result.operations
    staged: dict[tuple[int, int], list[tuple[int, str, tuple[Value, ...]]]] = {}
    for decision in np.flatnonzero(decisions.verdict == REJECTED).tolist():
        applier, table = int(about.applier[decision]), int(about.table[decision])
        exceptions = result.sites[applier].setups[table].exceptions
        if exceptions is None:
            continue
        row = exceptions.row(_record(result, decision))
        staged.setdefault((applier, table), []).append((int(decisions.take[decision]), _order(result, decision), row))
    for (applier, table), entries in staged.items():
        exceptions = result.sites[applier].setups[table].exceptions
        assert exceptions is not None
        rows = rows_to_arrow(exceptions.table, [row for _, _, row in entries])
        rows = rows.append_column("take", pa.array([take for take, _, _ in entries], pa.int64()))
        rows = rows.append_column("order", pa.array([order for _, order, _ in entries]))
        name = exceptions.table.full_name
        out.write_table(staged_exceptions_path(result.sites[applier].name, name, result.bucket.number), rows)


def _order(result: BucketResult, decision: int) -> str:
    """Return a row's place among those of its take: rows of rejected transactions come first."""
    decisions = result.folded.decisions
    place = place_of(decision, decisions, result.folded.logged, result.takes, result.bucket.rows)
    return json.dumps([int(decisions.cause[decision] != Cause.TRANS_IN_CONFLICT), *place])


def _record(result: BucketResult, decision: int) -> ConflictRecord:
    decisions, about = result.folded.decisions, result.operations
    applier, cause = int(about.applier[decision]), Cause(int(decisions.cause[decision]))
    before, after = result.images_of(decision)
    transaction_id, read = UNKNOWN_TRANSACTION_ID, False
    source = int(decisions.source[decision])
    if cause is Cause.TRANS_IN_CONFLICT and source >= 0:
        changes = result.bucket.changes[1 - applier]
        logged_id = changes.column("transaction_id")[source].as_py()
        transaction_id = UNKNOWN_TRANSACTION_ID if logged_id is None else logged_id
        read = bool(changes.column("flags")[source].as_py() & ConflictFlag.READ)
    return ConflictRecord(
        server_id=result.sites[applier].server_id,
        source_server_id=result.sites[1 - applier].server_id,
        source_epoch=int(result.takes.foreign_epoch[decisions.take[decision]]),
        count=0,
        operation=Operation(int(about.operation[decision])),
        cause=cause,
        transaction_id=transaction_id,
        before=before,
        after=after,
        read=read,
    )


def tracked_rows(result: BucketResult) -> dict[tuple[str, str], dict[int, int]]:
    """Return how many exceptions rows pass TRACK made, per site and table, and take."""
    decisions, about = result.folded.tracked, result.tracked
    found: dict[tuple[str, str], Counter[int]] = {}
    rejected = decisions.verdict == REJECTED
    for number, site in enumerate(result.sites):
        for table, setup in enumerate(site.setups):
            if setup.exceptions is None:
                continue
            here = rejected & (about.applier == number) & (about.table == table)
            place = (site.name, setup.exceptions.table.full_name)
            found.setdefault(place, Counter()).update(decisions.take[here].tolist())
    return {place: dict(counts) for place, counts in found.items()}
