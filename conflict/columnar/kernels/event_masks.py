"""
The columns of the event that reflects a row: `ndb_formats.rules.update_format`, as arrays.

The event of an update always carries some columns, and others only if they count as written, which follows from the
columns that the operations set. Computes docs/concepts.md, "Refresh, reflect, read".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from conflict.columnar.kernels.arrays import Bool, Int32
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.columnar.kernel import kernel
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.event_columns import stored_columns, updated_columns
from ndb_formats.rules.update_format import ndb_columns
from ndb_formats.schema.tables import Table

__all__ = ["EventMasks", "event_masks", "mark_columns", "reflects"]

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


def reflects(setup: TableSetup, role: Role) -> bool:
    """Whether a cluster's applier logs what it applies to a table for the secondary."""
    return setup.function is not None and setup.function.spec.uses_role and role is Role.PRIMARY and setup.format.logged


def event_masks(clusters: Sequence[tuple[Role, Sequence[TableSetup]]]) -> EventMasks:
    """
    Return the masks of the tables of both clusters.

    Args:
        clusters: Per cluster its role, and its setup of each table in the order of the table numbers.
    """
    tables = [setup.table for setup in clusters[0][1]]
    widest = max((len(table.columns) for table in tables), default=0)
    masks = np.zeros((6, len(clusters), len(tables), widest), np.bool_)
    reflecting = np.array([[reflects(setup, role) for setup in setups] for role, setups in clusters], np.bool_)
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
