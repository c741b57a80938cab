"""
Why transactions are in conflict: for each, the operation that put it there. Computes docs/conflicts.md, "Transactions".

A transaction is in conflict because one of its operations is (`own_cause` in its outcome), or because it touched a row
that a transaction in conflict had touched before it in its epoch. All operations of both are rejected, so outcomes
alone tell which one depends on which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.rules.decision import Cause

__all__ = ["ROOT_COLUMNS", "TRANSACTION", "numbered", "root_outcomes"]

Int64 = npt.NDArray[np.int64]
# What tells a transaction from others in the outcomes of all appliers.
TRANSACTION = ("applier", "source", "source_epoch", "epoch", "group")
_EPOCH = TRANSACTION[:-1]
# What `root_outcomes` needs of outcomes.
ROOT_COLUMNS = (*TRANSACTION, "table", "key", "ordinal", "cause", "own_cause")
_NONE = -1


def root_outcomes(outcomes: pa.Table) -> Int64:
    """
    Return, for each outcome of a transaction in conflict, the one that put it there: of its own transaction if one did.

    Of several, it is the first one of the nearest transactions, in the order of the log.

    Args:
        outcomes: Rejected operations, with the columns `ROOT_COLUMNS`.

    Returns:
        Row numbers; -1 where an operation was rejected for itself. Shape (outcomes,).
    """
    roots = np.full(len(outcomes), _NONE)
    rows = np.flatnonzero(pc.equal(outcomes["cause"], Cause.TRANS_IN_CONFLICT.name).to_numpy())
    if not len(rows):
        return roots
    mine = outcomes.take(pa.array(rows))
    group, ordinal = (mine[name].to_numpy().astype(np.int64) for name in ("group", "ordinal"))
    transaction = numbered(mine, TRANSACTION)
    # A root is the rank of an outcome in the order of the log, so that the least one is the first one.
    order = np.lexsort((ordinal, group))
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.arange(len(rows))
    found = np.full(transaction.max() + 1, len(rows))
    own = mine["own_cause"].is_valid().to_numpy()
    np.minimum.at(found, transaction[own], rank[own])
    before, after = _dependencies(numbered(mine, (*_EPOCH, "table", "key")), group, transaction)
    _spread(found, before, after, len(rows))
    known = found[transaction] < len(rows)
    roots[rows[known]] = rows[order[found[transaction[known]]]]
    return roots


def numbered(table: pa.Table, names: Sequence[str]) -> Int64:
    """Return numbers from 0 on, equal where the given columns are equal. Shape (rows,)."""
    numbers = np.zeros(len(table), np.int64)
    for name in names:
        codes = table[name].combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        _, numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return numbers.astype(np.int64)


def _dependencies(row: Int64, group: Int64, transaction: Int64) -> tuple[Int64, Int64]:
    """Return the transactions of one epoch that touched a row one right after the other. Each of shape (pairs,)."""
    order = np.lexsort((group, row))
    row, transaction = row[order], transaction[order]
    follows = (row[1:] == row[:-1]) & (transaction[1:] != transaction[:-1])
    return transaction[:-1][follows], transaction[1:][follows]


def _spread(found: Int64, before: Int64, after: Int64, none: int) -> None:
    """Give each transaction without a root, `none`, the first root of those that it depends on, nearest ones first."""
    while True:
        open_pairs = found[after] == none
        before, after = before[open_pairs], after[open_pairs]
        told = found[before] < none
        if not told.any():
            return
        roots = found[before[told]]
        np.minimum.at(found, after[told], roots)
