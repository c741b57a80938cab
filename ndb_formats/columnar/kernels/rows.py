"""
The row walker: finds the offset of every wanted value in the rows events of a chunk.

For every row it writes its batch, its event and its number in the event; for every wanted column of the row a *cell*:
the offset of the value (of its length, if it has one), counted from the chunk's base. It does not decode values.
A kind is a table, an event type and a set of columns. The walker stops at a kind that is not registered yet, and at an
event that it cannot read.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel, part, wrapping_product
from ndb_formats.columnar.kernels.layout import (
    MODE_EPOCH,
    MODE_ROWS,
    NULL_CELL,
    EventKind,
    LayoutSlot,
    Spec,
    WalkState,
    WalkStop,
)
from ndb_formats.columnar.kernels.words import little_endian, load16, load32, load64
from ndb_formats.constants import EventType

# All functions but the last are inlined: calling one would count a reference to every array passed, which costs more
# than what it does for an event.

BODY_AT, BODY_SIZE, FIRST_KIND, MODE = (int(part) for part in LayoutSlot)
NEXT, TYPE, KEY_AT, KEY_SIZE, KIND_DIFFS, SPEC, BEFORE, AFTER, WIDTH, DOCUMENTS, BATCH, EPOCH_SPEC = (
    int(part) for part in EventKind
)
PREFIX, BYTES, CELL = (int(part) for part in Spec)
EVENT, ROW_AT, ROW, KIND, HAS_EPOCH, ROWS, CELLS, DIFFS = (int(part) for part in WalkState)
END, FULL, NEW_TABLE_MAP, NEW_KIND, FAULT = (int(stop) for stop in WalkStop)
QUERY, XID, TABLE_MAP = int(EventType.QUERY_EVENT), int(EventType.XID_EVENT), int(EventType.TABLE_MAP_EVENT)
FIRST_V1, LAST_V1 = int(EventType.WRITE_ROWS_EVENT_V1), int(EventType.DELETE_ROWS_EVENT_V1)
FIRST_V2, LAST_V2 = int(EventType.WRITE_ROWS_EVENT), int(EventType.DELETE_ROWS_EVENT)
UPDATE_V1, UPDATE_V2 = int(EventType.UPDATE_ROWS_EVENT_V1), int(EventType.UPDATE_ROWS_EVENT)
PARTIAL = int(EventType.PARTIAL_UPDATE_ROWS_EVENT)
# Events that cannot be read, or after which nothing can.
ENCRYPTED = int(EventType.MARIADB_START_ENCRYPTION_EVENT)
FIRST_OLD, LAST_OLD = int(EventType.PRE_GA_WRITE_ROWS_EVENT), int(EventType.PRE_GA_DELETE_ROWS_EVENT)
EPOCH_COLUMN, LOG_NAME_COLUMN = 1, 2  # of ndb_apply_status
TABLE_ID, QUERY_HEAD = 6, 13


@inlined
def _table_id(data, offset):
    return np.uint64(load32(data, offset)) | np.uint64(load16(data, offset + 4)) << np.uint64(32)


@inlined
def _same(data, offset, other, other_offset, length):
    byte = np.int64(0)
    while byte + 8 <= length:
        if load64(data, offset + byte) != load64(other, other_offset + byte):
            return False
        byte += 8
    while byte < length:
        if data[offset + byte] != other[other_offset + byte]:
            return False
        byte += 1
    return True


@inlined
def _packed(data, offset, end):
    """Return a length-encoded integer, or -1, and where it ends."""
    if offset >= end:
        return np.int64(-1), offset
    first = data[offset]
    if first < 251:
        return np.int64(first), offset + 1
    width = 2 if first == 252 else 3 if first == 253 else 8 if first == 254 else 0
    if width == 0 or offset + 1 + width > end:
        return np.int64(-1), offset
    number = np.int64(little_endian(data, offset + 1, width))
    return (number if number >= 0 else np.int64(1) << 62), offset + 1 + width


@part
def _extra(data, offset, end, event, facts):
    """Read the blocks of extra row info; return whether they are valid."""
    ids, no_id, flags, no_flags = facts[:4]
    while offset < end:
        kind = data[offset]
        offset += 1
        if kind == 0:
            if offset + 2 > end:
                return False
            stop = offset + np.int64(data[offset])
            form = data[offset + 1]
            offset += 2
            if stop < offset or stop > end:
                return False
            if form == 0:
                no_id[event], no_flags[event] = True, True
                if offset + 2 > stop:
                    return False
                present = load16(data, offset)
                offset += 2
                if present & 1:
                    if offset + 8 > stop:
                        return False
                    ids[event], no_id[event] = load64(data, offset), False
                    offset += 8
                if present & 2:
                    if offset + 2 > stop:
                        return False
                    flags[event], no_flags[event] = load16(data, offset), False
            offset = stop
        elif kind == 1:
            return offset + 2 <= end
        else:
            return False
    return True


@inlined
def _slot_of(number, ids, slots, hashing):
    """Return the slot of a table id, or -1; `ids` and `slots` are a hash table with open addressing."""
    mask = len(ids) - 1
    offset = np.int64(wrapping_product(number, hashing[0]) >> hashing[1])
    while slots[offset] >= 0:
        if ids[offset] == number:
            return slots[offset]
        offset = (offset + 1) & mask
    return np.int64(-1)


@inlined
def _kind_of(data, event_type, offset, length, diffs, first, kinds, keys):
    """Return the kind of a rows event, searched from `first` on; -1 if it is not registered."""
    kind = np.int64(first)
    while kind >= 0:
        if (
            kinds[kind, TYPE] == event_type
            and kinds[kind, KIND_DIFFS] == diffs
            and kinds[kind, KEY_SIZE] == length
            and _same(data, offset, keys, kinds[kind, KEY_AT], length)
        ):
            return kind
        kind = kinds[kind, NEXT]
    return np.int64(-1)


@inlined
def _image(data, offset, end, base, first, count, columns, cells, cell):
    """Step over an image and write the cells of its wanted values; return where it ends, or -1."""
    nulls = offset
    offset += (count + 7) >> 3
    if offset > end:
        return np.int64(-1)
    for column in range(count):
        spec = np.uint64(first + column)
        out = columns[spec, CELL]
        if data[np.uint64(nulls + (column >> 3))] >> (column & 7) & 1:
            if out >= 0:
                cells[np.uint64(cell + out)] = NULL_CELL
            continue
        if out >= 0:
            cells[np.uint64(cell + out)] = offset - base
        prefix = columns[spec, PREFIX]
        if prefix < 0:
            offset += columns[spec, BYTES]
        else:
            if offset + prefix > end:
                return np.int64(-1)
            if prefix == 1:
                offset += 1 + np.int64(data[np.uint64(offset)])
            elif prefix == 2:
                offset += 2 + np.int64(load16(data, offset))
            else:
                length = little_endian(data, offset, min(prefix, 5))
                for byte in range(5, prefix):
                    if data[offset + byte]:
                        return np.int64(-1)
                offset += prefix + np.int64(length)
        if offset > end:
            return np.int64(-1)
    return offset


@inlined
def _partial_mask(data, offset, end, documents):
    """Return a mask of the JSON columns whose after image is a diff, and where the mask ends, or -1."""
    options, offset = _packed(data, offset, end)
    if options < 0:
        return np.int64(0), np.int64(-1)
    if not options & 1:
        return np.int64(0), offset
    size = (documents + 7) >> 3
    if offset + size > end or documents > 64:
        return np.int64(0), np.int64(-1)
    mask = little_endian(data, offset, size)
    if documents < 64:
        mask &= (np.uint64(1) << np.uint64(documents)) - np.uint64(1)
    return np.int64(mask), offset + size


@part
def _partial_kind(data, offset, end, code, kind, kinds, keys):
    """Return which JSON columns are diffs, the kind with these or -1, and where the mask ends, or -1."""
    diffs, offset = _partial_mask(data, offset, end, kinds[kind, DOCUMENTS])
    chosen = np.int64(kind)
    if offset >= 0 and diffs:
        chosen = _kind_of(keys, code, kinds[kind, KEY_AT], kinds[kind, KEY_SIZE], diffs, kind, kinds, keys)
    return diffs, chosen, offset


@part
def _note_epoch(data, offset, end, kind, kinds, columns, scratch, epochs):
    """Set the current epoch to the one that an event names: 1 if it names one, 0 if not, -1 if it cannot be read."""
    before, after, first = kinds[kind, BEFORE], kinds[kind, AFTER], kinds[kind, EPOCH_SPEC]
    found = 0
    while offset < end:
        start = offset
        if before >= 0:
            offset = _image(data, offset, end, start, first, before, columns, scratch, 0)
        if offset >= 0 and after >= 0:
            spec = first + max(before, 0)
            offset = _image(data, offset, end, start, spec, after, columns, scratch, 0)
            if offset >= 0 and after > LOG_NAME_COLUMN and columns[spec + LOG_NAME_COLUMN, CELL] >= 0:
                prefix, width = columns[spec + LOG_NAME_COLUMN, PREFIX], columns[spec + EPOCH_COLUMN, BYTES]
                empty = scratch[1] == NULL_CELL
                if not empty:
                    empty = little_endian(data, start + np.int64(scratch[1]), min(prefix, 5)) == 0
                if empty:
                    known = scratch[0] != NULL_CELL
                    at = start + np.int64(scratch[0])
                    epochs[0] = little_endian(data, at, min(width, 8)) if known else np.uint64(0)
                    found = 1
        if offset < 0:
            return -1
        if before <= 0 and after <= 0:
            break
    return found


@inlined
def _head(data, code, start, end, event, facts, tables, kinds, keys):
    """
    Read the head of a rows event, up to its images.

    Returns:
        A `WalkStop` (`END` if the head was read), the mode of its table, its kind, and where its images start.
    """
    ids, id_slots, slots, _, hashing = tables
    nothing = np.int64(-1)
    if end - start < 8:
        return FAULT, nothing, nothing, start
    offset = start + 8
    facts[1][event], facts[3][event] = True, True
    if code >= FIRST_V2:
        size = np.int64(load16(data, offset)) if offset + 2 <= end else np.int64(0)
        if size < 2 or offset + size > end:
            return FAULT, nothing, nothing, start
        if size > 2 and not _extra(data, offset + 2, offset + size, event, facts):
            return FAULT, nothing, nothing, start
        offset += size
    key = offset
    count, offset = _packed(data, offset, end)
    if count < 0 or count > 8 * (end - offset):
        return FAULT, nothing, nothing, start
    maps = 2 if code in (UPDATE_V1, UPDATE_V2, PARTIAL) else 1
    offset += maps * ((count + 7) >> 3)
    slot = _slot_of(_table_id(data, start), ids, id_slots, hashing)
    if offset > end or slot < 0:
        return FAULT, nothing, nothing, start
    mode = slots[slot, MODE]
    if mode == 0 or (code == PARTIAL and not mode & MODE_ROWS):  # a partial update names no epoch
        return END, np.int64(0), nothing, offset
    kind = _kind_of(data, code, key, offset - key, 0, slots[slot, FIRST_KIND], kinds, keys)
    return (END if kind >= 0 else NEW_KIND), mode, kind, offset


@inlined
def _known_table(data, start, end, tables):
    """Return whether a Table_map event equals the last one of its table id."""
    ids, id_slots, slots, bodies, hashing = tables
    size = end - start - TABLE_ID
    if size < 2:
        return False
    slot = _slot_of(_table_id(data, start), ids, id_slots, hashing)
    if slot < 0 or slots[slot, BODY_SIZE] != size:
        return False
    return _same(data, start + TABLE_ID, bodies, slots[slot, BODY_AT], size)


@inlined
def _whole_query(data, start, end):
    """Return whether a Query event is as long as its head says."""
    size = end - start
    if size < QUERY_HEAD:
        return False
    return size > QUERY_HEAD + np.int64(data[start + 8]) + np.int64(load16(data, start + 11))


@inlined
def _rows(data, base, code, end, event, state, kinds, keys, columns, rows, cells):
    """Walk the rows of one event from the state's position on; return a `WalkStop`."""
    row_batch, row_event, row_number, row_cell, spans = rows
    kind, row_at = state[KIND], state[ROW_AT]
    number, count, cell = state[ROW], state[ROWS], state[CELLS]
    before, after, spec, width = kinds[kind, BEFORE], kinds[kind, AFTER], kinds[kind, SPEC], kinds[kind, WIDTH]
    stop = END
    # A Write_rows event without columns and without a body is one row.
    bare = before < 0 and after == 0 and number == 0
    while row_at < end or bare:
        if count == len(row_batch) or cell + width > len(cells):
            stop = FULL
            break
        offset, chosen = row_at, kind
        if before >= 0:
            offset = _image(data, offset, end, base, spec, before, columns, cells, cell)
        between = offset
        if code == PARTIAL and offset >= 0:
            # The mask of diffs is between the images of each row; every mask is a kind of its own.
            diffs, chosen, offset = _partial_kind(data, offset, end, code, kind, kinds, keys)
            if chosen < 0:
                state[DIFFS] = diffs
                stop = NEW_KIND
                break
            between = offset
        if offset >= 0 and after >= 0:
            first = kinds[chosen, SPEC] + max(before, 0)
            offset = _image(data, offset, end, base, first, after, columns, cells, cell)
        if offset < 0:
            stop = FAULT
            break
        row_batch[count], row_event[count] = kinds[chosen, BATCH], event
        row_number[count], row_cell[count] = number, cell
        spans[count, 0], spans[count, 1], spans[count, 2] = row_at - base, between - base, offset - base
        count += 1
        cell += width
        number += 1
        # Images without columns have no bytes: without this the loop would not end.
        row_at = offset if before > 0 or after > 0 else end
        bare = False
    state[ROW_AT], state[ROW], state[ROWS], state[CELLS] = row_at, number, count, cell
    return stop


@kernel
def walk_rows(data, base, events, state, tables, kinds, keys, columns, rows, cells, facts, epochs, scratch):
    """
    Walk the events of a chunk from the state's position on, until a `WalkStop`.

    Args:
        data: The bytes of the chunk. Shape (bytes,), uint8.
        base: What cells count from.
        events: Type code, start and end of body of each event. Each of shape (events,).
        state: The position of the walk, by `WalkState`; changed. Shape (8,), int64.
        tables: Ids and slots of a hash table (slot -1: empty); slots, by `LayoutSlot`; the bodies of their Table_map
            events; the factor and the shift that give an id its first place in the hash table, shape (2,), uint64.
        kinds: The kinds, by `EventKind`. Shape (kinds, 12), int64.
        keys: The keys of the kinds, concatenated. Shape (bytes,), uint8.
        columns: The columns of each kind, before image and after image, by `Spec`. Shape (columns, 3), int64.
        rows: The arrays of `ndb_formats.columnar.row_walk.WalkedRows`. Filled in.
        cells: Filled in. Shape (cells,), uint32.
        facts: The arrays of `ndb_formats.columnar.row_walk.Facts`. Filled in.
        epochs: The current epoch; changed. Shape (1,), uint64.
        scratch: Two cells to work with. Shape (2,), uint32.

    Returns:
        A `WalkStop`. At `TABLE_MAP`, `KIND` and `FAULT` it concerns the state's event.
    """
    types, starts, ends = events
    event, stop = state[EVENT], END
    while event < len(types):
        code, start, end = types[event], starts[event], ends[event]
        if code == TABLE_MAP:
            if not _known_table(data, start, end, tables):
                stop = NEW_TABLE_MAP
        elif FIRST_V2 <= code <= LAST_V2 or FIRST_V1 <= code <= LAST_V1 or code == PARTIAL:
            if state[ROW_AT] < 0:
                state[DIFFS] = 0
                stop, mode, kind, offset = _head(data, code, start, end, event, facts, tables, kinds, keys)
                if stop == END and mode:
                    if mode & MODE_EPOCH and code != PARTIAL:
                        found = _note_epoch(data, offset, end, kind, kinds, columns, scratch, epochs)
                        if found < 0:
                            stop = FAULT
                        elif found:
                            state[HAS_EPOCH] = 1
                    facts[4][event], facts[5][event] = epochs[0], state[HAS_EPOCH] == 0
                    facts[6][event] = kinds[kind, BATCH] if mode & MODE_ROWS else -1
                    if mode & MODE_ROWS and stop == END:
                        state[KIND], state[ROW], state[ROW_AT] = kind, 0, offset
            if stop == END and state[ROW_AT] >= 0:
                stop = _rows(data, base, code, end, event, state, kinds, keys, columns, rows, cells)
        elif code in (QUERY, XID):
            if code == QUERY and not _whole_query(data, start, end):
                stop = FAULT
            state[HAS_EPOCH] = 0
        elif code == ENCRYPTED or FIRST_OLD <= code <= LAST_OLD:
            stop = FAULT
        if stop != END:
            break
        state[ROW_AT] = -1
        event += 1
    state[EVENT] = event
    return stop
