"""
What the fold works on: records, so that all that is known of a row, a take or a state stands in one place in memory.

A fold goes to rows in no order, and one record is one trip to memory. It is also one argument to compiled code,
which pays for every array that it is handed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
from numba import njit

from conflict.columnar.kernels.arrays import (
    BucketRows,
    EpochApplies,
    FunctionArrays,
    Int16,
    Presence,
    UInt64,
    each_read_only,
    holds_anything,
    read_only,
)
from ndb_formats.events.rows_event import Operation

__all__ = [
    "BOTH",
    "COMPARED",
    "EARLIER",
    "ENTRY",
    "EPOCH_APPLY",
    "FETCHED_AHEAD",
    "NOTE",
    "ROW",
    "RULE",
    "STATE",
    "Records",
    "RowImages",
    "Walk",
    "row_records",
    "rule_records",
    "state_records",
    "walk_of",
]

Records = npt.NDArray[np.void]
UPDATE = int(Operation.UPDATE_ROW)
_CACHE_LINE = 64
FETCHED_AHEAD = 48  # rows
PRESENT, NO_COLUMNS = int(Presence.PRESENT), int(Presence.NO_COLUMNS)

_VERSION = [("epoch", "u8"), ("value", "u8"), ("lacks", "u8"), ("exists", "?"), ("local", "?"), ("given", "?")]

# A take: the columns of `EpochApplies` that count; `previous` is the one before of the same applier, and from
# `heard_start` to `heard_stop` in `Walk.hearers` stand the takes of the other applier that hear of it.
EPOCH_APPLY = np.dtype(
    [
        *[("epoch", "u8"), ("foreign_epoch", "u8"), ("max_replicated", "u8"), ("judged_epoch", "u8")],
        *[("arrived_epoch", "u8"), ("group", "i4"), ("judged_group", "i4"), ("arrived_group", "i4")],
        *[("previous", "i4"), ("heard_start", "i4"), ("heard_stop", "i4")],
        *[("applier", "i1"), ("traced", "?"), ("judged", "?")],
    ],
    align=True,
)
# An own change of a cluster, the second cluster's after the first one's.
ROW = np.dtype(
    [
        *[("epoch", "u8"), ("key", "i4"), ("group", "i4"), ("operation", "i1")],
        *[("before_given", "?"), ("after_given", "?"), ("empty", "?")],
    ],
    align=True,
)
# A number of its before image and one of its after image.
BOTH = np.dtype([("before", "u8"), ("after", "u8")])
# What an applier does with a table; bit n of `needs_before` is operation n.
RULE = np.dtype(
    [
        *[("required", "u8"), ("code", "i2"), ("gci_bits", "i1"), ("needs_before", "i1"), ("needs_after", "i1")],
        *[("refreshes", "?"), ("secondary", "?"), ("reflects", "?"), ("whole_rows", "?")],
    ],
    align=True,
)
# A row of a cluster; those of both clusters fill one line of a processor's cache.
STATE = np.dtype([*_VERSION, ("table", "i2")], align=True)
# What is seldom looked at of a row of a cluster. `wrote` is the last pass that wrote it, if its applier reflects parts
# of rows, and `unwritten` the required columns that pass did not write; `logged` the last take that logged it, `kept`
# the last that kept it to undo a pass, `last_own` its own change.
NOTE = np.dtype(
    [("unwritten", "u8"), ("wrote", "i8"), ("logged", "i4"), ("kept", "i4"), ("last_own", "i4")],
    align=True,
)
# How a row was before: before a pass that is undone (`key`), or before an own change (`previous` is the one before).
EARLIER = np.dtype([*_VERSION, ("key", "i4"), ("previous", "i4")], align=True)
# The columns of `Logged`.
ENTRY = np.dtype(
    [
        *[("value", "u8"), ("lacks", "u8"), ("apply", "i8"), ("decision", "i8"), ("key", "i4")],
        *[("cluster", "i1"), ("operation", "i1"), ("refresh", "?"), ("given", "?")],
    ],
    align=True,
)
COMPARED = np.dtype([("incoming", "u8"), ("stored", "u8")])


class RowImages(NamedTuple):
    """
    What the images of rows hold. A tuple, so that compiled code can take it as one argument.

    Where that is nothing that counts, one record stands for all: the functions that go by epoch look at no values.

    Attributes:
        values: The resolve column. `BOTH`, shape (rows,) or (1,).
        lacks: The required columns that they lack, one bit each. `BOTH`, shape (rows,) or (1,).
    """

    values: Records
    lacks: Records


@attrs.frozen(eq=False)
class Walk:
    """
    All takes of both appliers, the same for every bucket.

    Attributes:
        applies: In order. `EPOCH_APPLY`, shape (takes,).
        hearers: Numbers of the takes by foreign epoch, those of the first applier before those of the second. Shape
            (takes,), int32.
        heard: The foreign epochs of `hearers`. Shape (takes,), uint64.
        split: Where those of the second applier begin.
    """

    applies: Records
    hearers: npt.NDArray[np.int32]
    heard: npt.NDArray[np.uint64]
    split: int


@lru_cache(maxsize=2)  # of the takes that every bucket of a task's process has
def walk_of(applies: EpochApplies) -> Walk:
    """Return the takes as the fold reads them."""
    records = np.zeros(len(applies), EPOCH_APPLY)
    for name in EPOCH_APPLY.names or ():
        if hasattr(applies, name):
            records[name] = getattr(applies, name)
    records["max_replicated"] = applies.max_replicated_epoch
    by_applier = [np.flatnonzero(applies.applier == side) for side in (0, 1)]
    sides = [mine[np.argsort(applies.foreign_epoch[mine], kind="stable")] for mine in by_applier]
    split = len(sides[0])
    for side, mine in enumerate(by_applier):
        records["previous"][mine] = np.append(-1, mine)[: len(mine)]
        theirs = applies.foreign_epoch[sides[1 - side]]
        start = 0 if side else split
        records["heard_start"][mine] = start + np.searchsorted(theirs, applies.epoch[mine], "left")
        records["heard_stop"][mine] = start + np.searchsorted(theirs, applies.epoch[mine], "right")
    hearers = np.concatenate(sides).astype(np.int32)
    return Walk(records, hearers, applies.foreign_epoch[hearers], split)


def row_records(rows: Sequence[BucketRows]) -> tuple[Records, RowImages]:
    """
    Return the rows of both clusters, `ROW`, and what their images hold.

    `FETCHED_AHEAD` rows of key 0 follow, so that those ahead of any row can be looked at.
    """
    total = sum(len(side) for side in rows)
    records = np.empty(total + FETCHED_AHEAD, ROW)
    records[total:] = np.zeros((), ROW)
    start = 0
    for side in rows:
        stop = start + len(side)
        _pack_rows(
            records[start:stop],
            *(read_only(array) for array in (side.key, side.operation, side.epoch, side.group)),
            *(read_only(array) for array in (side.before_presence, side.after_presence)),
        )
        start = stop
    values = _of_both([(side.before_value, side.after_value) for side in rows])
    lacks = _of_both([(side.before_lacks, side.after_lacks) for side in rows])
    return records, RowImages(values, lacks)


def _of_both(sides: Sequence[tuple[UInt64, UInt64]]) -> Records:
    """Return a number of the before images and one of the after images of both clusters; one for all if all are 0."""
    if not any(holds_anything(column) for side in sides for column in side):
        return np.zeros(1, BOTH)
    records = np.empty(sum(len(before) for before, _ in sides), BOTH)
    start = 0
    for before, after in sides:
        _pack_both(records[start : start + len(before)], *each_read_only(before, after))
        start += len(before)
    return records


@njit(cache=True, nogil=True)
def _pack_rows(records, key, operation, epoch, group, before_presence, after_presence):
    for place in range(len(key)):
        row = records[place]
        row["key"], row["epoch"], row["group"] = key[place], epoch[place], group[place]
        row["operation"], row["before_given"] = operation[place], before_presence[place] == PRESENT
        row["after_given"] = after_presence[place] == PRESENT
        row["empty"] = operation[place] == UPDATE and after_presence[place] == NO_COLUMNS


@njit(cache=True, nogil=True)
def _pack_both(records, before, after):
    for place in range(len(before)):
        record = records[place]
        record["before"], record["after"] = before[place], after[place]


def rule_records(functions: FunctionArrays) -> Records:
    """Return what appliers do with tables. Shape (clusters, tables)."""
    records = np.zeros(functions.code.shape, RULE)
    for name in ("code", "gci_bits", "refreshes", "secondary", "reflects", "whole_rows", "required"):
        records[name] = getattr(functions, name)
    for name in ("needs_before", "needs_after"):
        wanted = getattr(functions, name)
        records[name] = (wanted * (1 << np.arange(wanted.shape[2]))).sum(axis=2)
    return records


def state_records(key_table: Int16) -> tuple[Records, Records]:
    """
    Return rows that do not exist yet, `STATE`, and what is noted of them, `NOTE`. Shape (keys, clusters).

    Both states of a row stand side by side: what one cluster changes the other soon applies.

    Args:
        key_table: Table number of each key. Shape (keys,).
    """
    states = _aligned((len(key_table), 2), STATE)
    states["table"] = key_table[:, None]
    notes = np.empty(states.shape, NOTE)
    _start_notes(notes)
    return states, notes


def _aligned(shape: tuple[int, int], kind: np.dtype[np.void]) -> Records:
    """Return zeros, the first of which begins a line of the processor's cache."""
    size = shape[0] * shape[1] * kind.itemsize
    room = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -room.ctypes.data % _CACHE_LINE
    return room[start : start + size].view(kind).reshape(shape)


@njit(cache=True, nogil=True)
def _start_notes(notes):
    for key in range(notes.shape[0]):
        for side in range(2):
            note = notes[key, side]
            note["wrote"], note["logged"], note["kept"], note["last_own"] = -1, -1, -1, -1
