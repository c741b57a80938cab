"""
What each event of a binlog means for epochs, when its transaction committed, where its images are, and their digests.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel, wrapping_product
from ndb_formats.columnar.kernels.words import crc32, little_endian, load16
from ndb_formats.constants import EventType


class EventRole(IntEnum):
    """What an event means for epochs."""

    NONE = 0
    BEGIN = 1
    END = 2
    OTHER_ROWS = 3  # rows of a table that is not read
    ROWS = 4
    STATUS = 5  # rows of ndb_apply_status
    UNREADABLE = 6


NONE, BEGIN, END, OTHER_ROWS, ROWS, STATUS, UNREADABLE = (int(role) for role in EventRole)
QUERY, XID = int(EventType.QUERY_EVENT), int(EventType.XID_EVENT)
PREPARE = int(EventType.XA_PREPARE_LOG_EVENT)
FIRST_V1, LAST_V1 = int(EventType.WRITE_ROWS_EVENT_V1), int(EventType.DELETE_ROWS_EVENT_V1)
FIRST_V2, LAST_V2 = int(EventType.WRITE_ROWS_EVENT), int(EventType.DELETE_ROWS_EVENT)
PARTIAL = int(EventType.PARTIAL_UPDATE_ROWS_EVENT)
BEGIN_TEXT, COMMIT_TEXT, ROLLBACK_TEXT, XA_TEXT = (
    np.frombuffer(text, np.uint8) for text in (b"BEGIN", b"COMMIT", b"ROLLBACK", b"XA START ")
)
QUERY_HEAD = 13
TABLE_ID_BYTES = 6
GTID, ANONYMOUS_GTID = int(EventType.GTID_LOG_EVENT), int(EventType.ANONYMOUS_GTID_LOG_EVENT)
# Of a Gtid event: where the type of its logical timestamp is, its value, and where the time of the commit is; see
# `ndb_formats.events.gtid_event`.
GTID_CLOCK, LOGICAL, GTID_TIME, TIME_BYTES = 25, 2, 42, 7
TIME_BITS = np.uint64((1 << 55) - 1)


@inlined
def _starts(data, place, end, text):
    if end - place < len(text):
        return False
    for byte in range(len(text)):
        if data[place + byte] != text[byte]:
            return False
    return True


@inlined
def _is(data, place, end, text):
    return end - place == len(text) and _starts(data, place, end, text)


@kernel
def roles_of(data, types, starts, ends, batches, of_status):
    """
    Return the `EventRole` of each event. Shape (events,), uint8.

    Args:
        data: The bytes that hold the events. Shape (bytes,), uint8.
        types: Type codes. Shape (events,), uint8.
        starts: Where each body starts. Shape (events,), int64.
        ends: Where each body ends. Shape (events,), int64.
        batches: Batch of a rows event; -1 for one of a table that is not read. Shape (events,), int32.
        of_status: Whether a batch is of `ndb_apply_status`. Shape (batches,), bool.
    """
    roles = np.empty(len(types), np.uint8)
    for event in range(len(types)):
        code = types[event]
        role = NONE
        if code == QUERY:
            start = starts[event]
            place = start + QUERY_HEAD + np.int64(data[start + 8]) + np.int64(load16(data, start + 11)) + 1
            if _is(data, place, ends[event], BEGIN_TEXT) or _starts(data, place, ends[event], XA_TEXT):
                role = BEGIN
            elif _is(data, place, ends[event], COMMIT_TEXT) or _is(data, place, ends[event], ROLLBACK_TEXT):
                role = END
        elif code in (XID, PREPARE):
            role = END
        elif code == PARTIAL:
            role = UNREADABLE
        elif FIRST_V2 <= code <= LAST_V2 or FIRST_V1 <= code <= LAST_V1:
            role = OTHER_ROWS
            if batches[event] >= 0:
                role = STATUS if of_status[batches[event]] else ROWS
        roles[event] = role
    return roles


@kernel
def commit_times(data, types, starts, ends):
    """
    Return the microsecond since 1970 at which the transaction of each Gtid event committed; 0 for other events.

    Arguments as for `roles_of`. Shape (events,), int64.
    """
    times = np.zeros(len(types), np.int64)
    for event in range(len(types)):
        if types[event] == GTID or types[event] == ANONYMOUS_GTID:
            start = starts[event]
            if ends[event] - start >= GTID_TIME + TIME_BYTES and data[start + GTID_CLOCK] == LOGICAL:
                times[event] = np.int64(little_endian(data, start + GTID_TIME, TIME_BYTES) & TIME_BITS)
    return times


@kernel
def change_digests(data, types, starts, ends):
    """
    Return a digest of each rows event but for its table id, which every server chooses; 0 for other events.

    Digests of the events of an epoch are added, so their order does not count. Arguments as for `roles_of`. Shape
    (events,), uint64.
    """
    digests = np.zeros(len(types), np.uint64)
    for event in range(len(types)):
        code = types[event]
        if FIRST_V2 <= code <= LAST_V2 or FIRST_V1 <= code <= LAST_V1:
            start, end = starts[event] + TABLE_ID_BYTES, ends[event]
            digest = np.uint64(crc32(data, start, end)) | np.uint64(end - start) << np.uint64(32)
            digest = wrapping_product(digest ^ np.uint64(code), np.uint64(0x9E3779B97F4A7C15))
            digests[event] = digest ^ digest >> np.uint64(29)
    return digests


@kernel
def read_numbers(data, starts, lengths):
    """
    Read little-endian numbers of up to 8 bytes; NULL, of length -1, is 0.

    Returns:
        The numbers, shape (rows,), uint64, and whether none is longer than 8 bytes.
    """
    numbers = np.zeros(len(starts), np.uint64)
    for row in range(len(starts)):
        if lengths[row] > 8:
            return numbers, False
        if lengths[row] > 0:
            numbers[row] = little_endian(data, starts[row], lengths[row])
    return numbers, True


@kernel
def add_values(data, starts, sizes, digests):
    """
    Add the lower half to digests of images that have the upper half.

    Args:
        data: Bytes that hold images. uint8, shape (bytes,).
        starts: Where each image starts. int64, shape (rows,).
        sizes: Its bytes; -1 if there is none. int64, shape (rows,).
        digests: The digests. uint64, shape (rows,).
    """
    for place in range(len(digests)):
        if sizes[place] >= 0:
            digests[place] |= np.uint64(crc32(data, starts[place], starts[place] + sizes[place]))


@kernel
def image_slices(offsets, base, batches, carries):
    """
    Return where the images of rows start, and their bytes, -1 for none. Each of shape (2, rows), int64: before, after.

    Args:
        offsets: See `ndb_formats.columnar.row_walk.WalkedRows`. Shape (rows, 3), uint32.
        base: What they count from.
        batches: Number of the shape of each row. Shape (rows,), int64.
        carries: Whether rows of each shape have a before image, and an after image. Shape (2, shapes), bool.
    """
    starts, sizes = np.empty((2, len(batches)), np.int64), np.empty((2, len(batches)), np.int64)
    for row in range(len(batches)):
        for image in range(2):
            start, end = np.int64(offsets[row, image]), np.int64(offsets[row, image + 1])
            starts[image, row] = base + start
            sizes[image, row] = end - start if carries[image, batches[row]] else -1
    return starts, sizes
