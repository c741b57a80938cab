"""
What appliers log: the columns of events, and the number of rows.

The event of an update always carries some columns, and others only if they count as written, which follows from the
columns that the operations set: `ndb_formats.rules.update_format` over arrays. Computes docs/concepts.md, "Refresh,
reflect, read".

An epoch is applied as one transaction, so the binlog has one row change for each row of it: the net effect of its
operations. A row that was not there before and is not there afterwards has none. Computes docs/compare.md, "Figures".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.arrays import Bool, EpochApplies, Int8, Int32
from conflict.engine.kernels.fold import Folded
from conflict.rules.decision import Verdict
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.columnar.kernel import each_read_only, kernel
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import stored_columns, updated_columns
from ndb_formats.rules.update_format import ndb_columns
from ndb_formats.schema.tables import Table

NO_COLUMN = -1


class EventMasks(NamedTuple):
    """
    Columns of reflected events. Shape (clusters, tables, widest table), unless another one is given.

    Attributes:
        reflects: Whether the cluster logs what its applier does to the table. Shape (clusters, tables).
        write_after: After image of a write.
        delete_before: Before image of a delete.
        base_before: Columns that the before image of an update always carries.
        all_before: Columns that it carries if they count as written.
        base_after: Columns that the after image of an update always carries.
        all_after: Columns that it carries if they count as written.
        consequences: The columns that count as written when one is set. Shape (tables, widest, widest).
        first_virtual: First virtual column of each table; `NO_COLUMN` if there is none. Shape (tables,).
        after_virtual: The column that is marked instead (see `ndb_formats.rules.update_format`). Shape (tables,).
    """

    reflects: Bool
    write_after: Bool
    delete_before: Bool
    base_before: Bool
    all_before: Bool
    base_after: Bool
    all_after: Bool
    consequences: Bool
    first_virtual: Int32
    after_virtual: Int32


def event_masks(clusters: Sequence[tuple[Role, Sequence[TableSetup]]]) -> EventMasks:
    """
    Return the masks of the tables of both clusters.

    Args:
        clusters: Per cluster its role, and its setup of each table in the order of the table numbers.
    """
    tables = [setup.table for setup in clusters[0][1]]
    widest = max((len(table.columns) for table in tables), default=0)
    masks = np.zeros((6, len(clusters), len(tables), widest), np.bool_)
    reflecting = np.array([[setup.deployed(role).reflects for setup in setups] for role, setups in clusters], np.bool_)
    for cluster, table in np.argwhere(reflecting).tolist():
        setup = clusters[cluster][1][table]
        every = range(len(setup.table.columns))
        write = ndb_columns(setup.format, setup.table, Operation.WRITE_ROW)
        delete = ndb_columns(setup.format, setup.table, Operation.DELETE_ROW)
        none, full = (ndb_columns(setup.format, setup.table, Operation.UPDATE_ROW, set_) for set_ in ((), every))
        assert write is not None
        assert delete is not None
        assert none is not None
        assert full is not None
        sets = (write.after, delete.before, none.before, full.before, none.after, full.after)
        for mask, columns in zip(masks, sets, strict=True):
            mask[cluster, table, list(columns or ())] = True
    consequences = np.zeros((len(tables), widest, widest), np.bool_)
    for number, each in enumerate(tables):
        for column in range(len(each.columns)):
            consequences[number, column, list(updated_columns(each, {column}))] = True
    virtual = np.array([_virtual(table) for table in tables], np.int32).reshape(-1, 2)
    return EventMasks(
        reflecting,
        masks[0],
        masks[1],
        masks[2],
        masks[3],
        masks[4],
        masks[5],
        consequences,
        virtual[:, 0],
        virtual[:, 1],
    )


def _virtual(table: Table) -> tuple[int, int]:
    """Return the first virtual column, and the stored one after it that is marked instead; `NO_COLUMN` for none."""
    stored = stored_columns(table)
    first = min(set(range(len(table.columns))) - stored, default=NO_COLUMN)
    following = min((place for place in stored if place > first), default=NO_COLUMN)
    if NO_COLUMN in (first, following) or table.columns[following].is_blob:
        return NO_COLUMN, NO_COLUMN
    return first, following


@kernel
def mark_columns(masks, table, written, apply, marked):
    """
    Find the columns of a row that count as written, virtual ones included, which no mask has.

    Args:
        masks: `EventMasks`.
        table: Number of the table.
        written: The last epoch apply that set each column. int64, shape (columns,).
        apply: The epoch apply that is reflected.
        marked: Filled in. bool, shape (at least columns,).
    """
    last = -1
    for column in range(len(written)):
        marked[column] = False
    for column in range(len(written)):
        if written[column] == apply:
            for other in range(len(written)):
                if masks.consequences[table, column, other]:
                    marked[other] = True
                    last = max(last, other)
    if last >= 0 and last == masks.first_virtual[table]:
        marked[masks.after_virtual[table]] = True


APPLIED, DELETE = int(Verdict.APPLIED), int(Operation.DELETE_ROW)


class AppliedDecisions(NamedTuple):
    """
    All decisions in order; see `Decisions`. Shape (operations,).

    Attributes:
        apply: Number of the epoch apply. int32.
        key: Its row. int32.
        operation: `Operation`. int8.
        verdict: `Verdict`. int8.
        existed: Whether the row existed before. bool.
    """

    apply: Int32
    key: Int32
    operation: Int8
    verdict: Int8
    existed: Bool


def logged_rows(applies: EpochApplies, keys: int, folded: Folded) -> tuple[int, int]:
    """
    Return, per cluster, how many rows its applier logs: applied, refreshed and reflected ones.

    Args:
        applies: As given to `fold`.
        keys: Number of keys.
        folded: What `fold` returned.
    """
    decisions, logged = folded.decisions, folded.logged
    made = AppliedDecisions(*each_read_only(*(getattr(decisions, name) for name in AppliedDecisions._fields)))
    sent = tuple(each_read_only(logged.apply, logged.key))
    (applier,) = each_read_only(applies.applier)
    first, second = _logged_rows(made, sent, applier, keys)
    return int(first), int(second)


@kernel
def _logged_rows(made, sent, applier, keys):
    """Return how many rows each of two appliers logs; `sent`: epoch apply and row of what is refreshed or reflected."""
    found = np.zeros(2, np.int64)
    # Per row: the last epoch apply that changed it, whether it was there before that, and whether it is there now.
    last, before, now = np.full(keys, -1, np.int32), np.zeros(keys, np.bool_), np.zeros(keys, np.bool_)
    changed = np.empty(keys, np.int32)
    place, entry = 0, 0
    while place < len(made.apply) or entry < len(sent[0]):
        apply = _next_apply(made.apply, place, sent[0], entry)
        count = 0
        while place < len(made.apply) and made.apply[place] == apply:
            key = made.key[place]
            if made.verdict[place] == APPLIED:
                if last[key] != apply:
                    last[key], before[key] = apply, made.existed[place]
                    changed[count] = key
                    count += 1
                now[key] = made.operation[place] != DELETE
            place += 1
        while entry < len(sent[0]) and sent[0][entry] == apply:
            key = sent[1][entry]
            if last[key] != apply:
                last[key] = apply
                changed[count] = key
                count += 1
            before[key] = True  # it is logged whatever became of the row
            entry += 1
        for key in changed[:count]:
            found[applier[apply]] += before[key] or now[key]
    return found[0], found[1]


@kernel
def _next_apply(decided, place, sent, entry):
    """Return the earlier one of the epoch applies of the next decision and of the next row that is sent back."""
    if place == len(decided):
        return sent[entry]
    if entry == len(sent):
        return decided[place]
    return min(decided[place], sent[entry])
