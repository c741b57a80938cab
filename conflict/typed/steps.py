"""
The steps of a cluster: transactions, applies of the other cluster's epochs, restarts of its applier.

A step belongs to an epoch of its cluster. A step that names none is in an epoch of its own, the next one; steps that
name one epoch share it. Epoch *n* is global checkpoint *n*; ``n/m`` is its micro epoch *m*, as servers print epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from conflict.errors import ConfigurationError
from ndb_formats.events.rows_event import Operation

_LOW_BITS = 32
_LOW = (1 << _LOW_BITS) - 1
FIRST_EPOCH = 1 << _LOW_BITS
LAST_EPOCH = 2**64 - 1
READ = "read"
# By word, the operation. A read under an exclusive lock is an update that sets nothing; servers log it so where
# `ndb_log_exclusive_reads` is on, and transactions can depend on it.
OPERATIONS = {
    "insert": Operation.WRITE_ROW,
    "update": Operation.UPDATE_ROW,
    "delete": Operation.DELETE_ROW,
    READ: Operation.UPDATE_ROW,
}


def epoch_of(number: int | str) -> int:
    """
    Return the epoch of a number, or of a text such as ``3`` or ``3/1``.

    Raises:
        ValueError: It is none.
    """
    high, _, low = str(number).partition("/")
    found = int(high) << _LOW_BITS | int(low or 0)
    if not (0 < found <= LAST_EPOCH and int(low or 0) <= _LOW and int(high) >= 0 <= int(low or 0)):
        message = f"{number} is no epoch; the first one is 1"
        raise ValueError(message)
    return found


def epoch_text(epoch: int) -> str:
    """Return an epoch as `epoch_of` takes it."""
    low = epoch & _LOW
    return f"{epoch >> _LOW_BITS}/{low}" if low else str(epoch >> _LOW_BITS)


def next_epoch(epoch: int) -> int:
    """Return the first epoch of the next global checkpoint."""
    return ((epoch >> _LOW_BITS) + 1) << _LOW_BITS


@attrs.frozen
class Change:
    """
    A change of one row.

    Attributes:
        operation: What the statement does: inserts, updates or deletes; one that updates nothing reads under a lock.
        key: Values of the columns of the primary key, in key order.
        values: The columns that an insert names besides the key, or that an update sets, and their values.
        table: Its table, with or without its database; empty for the first table.
    """

    operation: Operation
    key: tuple[Any, ...]
    values: tuple[tuple[str, Any], ...] = ()
    table: str = ""

    @property
    def word(self) -> str:
        """Its operation as a word: insert, update, delete or read."""
        return READ if self.reads else next(word for word, each in OPERATIONS.items() if each is self.operation)

    @property
    def reads(self) -> bool:
        """Whether it reads the row under an exclusive lock, and changes nothing."""
        return self.operation is Operation.UPDATE_ROW and not self.values


@attrs.frozen
class Transaction:
    """
    What a user commits.

    Attributes:
        changes: Changes of rows, in order. Several of one row are logged as one, as NDB does.
        epoch: The epoch in which it commits; None for the next one.
        id: Its transaction id, for exceptions tables; None for one of its own.
    """

    changes: tuple[Change, ...]
    epoch: int | None = None
    id: int | None = None


@attrs.frozen
class Apply:
    """
    The applier applies epochs of the other cluster: all that it has not applied yet, up to one.

    Attributes:
        foreign_epoch: The last one; None for the next one.
        epoch: Own epoch in which it commits; None for the next one.
        logged: Whether its own epoch is logged, so that the other cluster hears of it: None if that follows from
            whether it changes rows; True or False if that is known, because of rows that are not in the History.
    """

    foreign_epoch: int | None = None
    epoch: int | None = None
    logged: bool | None = None


@attrs.frozen
class Restart:
    """
    The applier is stopped and started again.

    Attributes:
        rewound: Whether it was set back to the start of the other cluster's binlog before, so that it applies epochs
            again.
    """

    rewound: bool = False


Step = Transaction | Apply | Restart


def insert(key: Any, values: Mapping[str, Any] | None = None, /, *, table: str = "", **columns: Any) -> Change:
    """
    Return an insert.

    Args:
        key: The key of the row; of several columns a tuple, in key order.
        values: Columns whose names are no names in Python.
        table: Its table; by default the first one.
        columns: All other columns that are given a value.
    """
    return _change(Operation.WRITE_ROW, key, {**(values or {}), **columns}, table)


def update(key: Any, values: Mapping[str, Any] | None = None, /, *, table: str = "", **columns: Any) -> Change:
    """
    Return an update; arguments as for `insert`.

    Raises:
        ConfigurationError: It sets no column.
    """
    found = _change(Operation.UPDATE_ROW, key, {**(values or {}), **columns}, table)
    if found.reads:
        message = f"the update of {key!r} sets no column; add what it sets, as in v=5, or read the row: read({key!r})"
        raise ConfigurationError(message)
    return found


def read(key: Any, /, *, table: str = "") -> Change:
    """Return a read under an exclusive lock that is logged (`ndb_log_exclusive_reads`); arguments as for `insert`."""
    return _change(Operation.UPDATE_ROW, key, {}, table)


def delete(key: Any, /, *, table: str = "") -> Change:
    """Return a delete; arguments as for `insert`."""
    return _change(Operation.DELETE_ROW, key, {}, table)


def transaction(*changes: Change, epoch: int | str | None = None) -> Transaction:
    """Return a transaction of several changes, or of one in an epoch that is named."""
    return Transaction(changes, None if epoch is None else epoch_of(epoch))


def apply(foreign_epoch: int | str | None = None, *, epoch: int | str | None = None) -> Apply:
    """Return the applying of the other cluster's epochs up to one; without it, of the next one."""
    foreign, own = (None if each is None else epoch_of(each) for each in (foreign_epoch, epoch))
    return Apply(foreign, own)


def _change(operation: Operation, key: Any, values: Mapping[str, Any], table: str) -> Change:
    return Change(operation, key if isinstance(key, tuple) else (key,), tuple(values.items()), table)
