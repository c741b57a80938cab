"""
What a walk over a segment finds, as arrays: its events, its rows, and the rows of `mysql.ndb_apply_status`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Events", "Rows", "StatusRows", "UnreadableError", "joined", "no_status_rows"]

Bool = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt16 = npt.NDArray[np.uint16]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]


class UnreadableError(Exception):
    """A segment cannot be read in columns; the scalar reader reads it, and reports what is wrong if anything is."""


class Events(NamedTuple):
    """
    The events of a segment. All arrays have shape (events,).

    Attributes:
        role: `conflict.ingestion.kernels.event_roles.EventRole`. uint8.
        transaction_id: Transaction id. uint64.
        no_id: Whether it has no transaction id. bool.
        server_id: Server on which the change was made. uint32.
        flags: Conflict flags; 0 for none. uint16.
        position: Where it starts in the file. int64.
        payload_position: Where it starts inside its compressed transaction; 0 outside of one. uint32.
        stop: Where it ends. int64.
        second: Second since 1970 of its header. uint32.
        committed: A Gtid event: microsecond since 1970 at which its transaction committed; else 0. int64.
        shape: Number of its `RowShapes` entry; -1 for none. int32.
        rows: How many rows it has. int64.
    """

    role: Bytes
    transaction_id: UInt64
    no_id: Bool
    server_id: UInt32
    flags: UInt16
    position: Int64
    payload_position: UInt32
    stop: Int64
    second: UInt32
    committed: Int64
    shape: Int32
    rows: Int64


class Rows(NamedTuple):
    """
    The rows of a segment, including those of `ndb_apply_status`. All arrays except `keys` have shape (rows,).

    Attributes:
        event: Number of its event. int64.
        number: Its number in the event. int32.
        source: Number of the array of bytes that holds it. int32.
        before_start: Where its before image starts in that array. int64.
        before_size: Bytes of the before image; -1 if there is none. int64.
        after_start: Where its after image starts. int64.
        after_size: Bytes of the after image; -1 if there is none. int64.
        digest: Digest of the after image (see `conflict.grid.image_digests`); 0 if there is none, or the row was only
            read. uint64.
        before_value: Value of the resolve column in the before image; 0 if it is NULL or absent. uint64.
        after_value: The same of the after image. uint64.
        bucket: Its bucket. int32.
        key_size: Bytes of its identity. int64.
        keys: Identities, one after the other. Shape (bytes,), uint8.
    """

    event: Int64
    number: Int32
    source: Int32
    before_start: Int64
    before_size: Int64
    after_start: Int64
    after_size: Int64
    digest: UInt64
    before_value: UInt64
    after_value: UInt64
    bucket: Int32
    key_size: Int64
    keys: Bytes


class StatusRows(NamedTuple):
    """
    Rows that were written to `ndb_apply_status`, in the order of the binlog. All arrays have shape (rows,).

    Attributes:
        event: Number of its event. int64.
        number: Its number in the event. int32.
        server_id: Column `server_id`. uint64.
        epoch: Column `epoch`. uint64.
        has_log: Whether column `log_name` is not empty. bool.
    """

    event: Int64
    number: Int32
    server_id: UInt64
    epoch: UInt64
    has_log: Bool


Arrays = TypeVar("Arrays", Events, Rows, StatusRows)


def joined(pieces: Sequence[Arrays]) -> Arrays:
    """Return pieces, at least one, as one."""
    if len(pieces) == 1:
        return pieces[0]
    return type(pieces[0])._make(map(np.concatenate, zip(*pieces, strict=True)))


def no_status_rows() -> StatusRows:
    """Return arrays without rows."""
    return StatusRows._make(np.zeros(0, kind) for kind in (np.int64, np.int32, np.uint64, np.uint64, np.bool_))
