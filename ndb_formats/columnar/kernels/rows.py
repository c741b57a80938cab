"""
The rows of rows events: where every value of every wanted column stands.

One walk over the events of a stretch. Per row it notes its event, its number in the event and its kind; per wanted
column of the row one *cell*: where the value starts (at its length, if it has one), counted from the stretch's base.
What values mean is not looked at. A kind is a table, an operation and a set of columns; the walker asks for kinds that
it has not met, and stops at what it cannot read.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ndb_formats.columnar.kernels.layout import MODE_EPOCH, MODE_ROWS, NULL_CELL, Kind, Place, Slot, Spec, Stop
from ndb_formats.columnar.kernels.words import little_endian, load16, load32, load64
from ndb_formats.constants import EventType

__all__ = ["walk_rows"]

# All functions but the last are inlined: calling one would count a reference to every array passed, which costs more
# than what it does for an event.

BODY_AT, BODY_SIZE, FIRST_KIND, MODE = (int(part) for part in Slot)
NEXT, TYPE, KEY_AT, KEY_SIZE, KIND_DIFFS, SPEC, BEFORE, AFTER, WIDTH, DOCUMENTS, BATCH, EPOCH_SPEC = (
    int(part) for part in Kind
)
PREFIX, BYTES, CELL = (int(part) for part in Spec)
EVENT, ROW_AT, ROW, KIND, HAS_EPOCH, ROWS, CELLS, DIFFS = (int(place) for place in Place)
END, FULL, NEW_TABLE_MAP, NEW_KIND, FAULT = (int(stop) for stop in Stop)
QUERY, XID, TABLE_MAP = int(EventType.QUERY_EVENT), int(EventType.XID_EVENT), int(EventType.TABLE_MAP_EVENT)
FIRST_V1, LAST_V1 = int(EventType.WRITE_ROWS_EVENT_V1), int(EventType.DELETE_ROWS_EVENT_V1)
FIRST_V2, LAST_V2 = int(EventType.WRITE_ROWS_EVENT), int(EventType.DELETE_ROWS_EVENT)
UPDATE_V1, UPDATE_V2 = int(EventType.UPDATE_ROWS_EVENT_V1), int(EventType.UPDATE_ROWS_EVENT)
PARTIAL = int(EventType.PARTIAL_UPDATE_ROWS_EVENT)
# Events that say that what follows, or they themselves, cannot be read.
ENCRYPTED = int(EventType.MARIADB_START_ENCRYPTION_EVENT)
FIRST_OLD, LAST_OLD = int(EventType.PRE_GA_WRITE_ROWS_EVENT), int(EventType.PRE_GA_DELETE_ROWS_EVENT)
EPOCH_PLACE, LOG_NAME_PLACE = 1, 2
TABLE_ID, QUERY_HEAD = 6, 13


@njit(cache=True, nogil=True, inline="always")
def _table_id(data, place):
    return np.uint64(load32(data, place)) | np.uint64(load16(data, place + 4)) << np.uint64(32)


@njit(cache=True, nogil=True, inline="always")
def _same(data, place, other, other_place, length):
    byte = np.int64(0)
    while byte + 8 <= length:
        if load64(data, place + byte) != load64(other, other_place + byte):
            return False
        byte += 8
    while byte < length:
        if data[place + byte] != other[other_place + byte]:
            return False
        byte += 1
    return True


@njit(cache=True, nogil=True, inline="always")
def _packed(data, place, end):
    """Return a length-encoded integer and where it ends; -1 if there is none."""
    if place >= end:
        return np.int64(-1), place
    first = data[place]
    if first < 251:
        return np.int64(first), place + 1
    width = 2 if first == 252 else 3 if first == 253 else 8 if first == 254 else 0
    if width == 0 or place + 1 + width > end:
        return np.int64(-1), place
    number = np.int64(little_endian(data, place + 1, width))
    return (number if number >= 0 else np.int64(1) << 62), place + 1 + width


@njit(cache=True, nogil=True, inline="always")
def _extra(data, place, end, event, facts):
    """Read the blocks of extra row info; return whether they can be read."""
    ids, no_id, flags, no_flags = facts[:4]
    while place < end:
        kind = data[place]
        place += 1
        if kind == 0:
            if place + 2 > end:
                return False
            stop = place + np.int64(data[place])
            form = data[place + 1]
            place += 2
            if stop < place or stop > end:
                return False
            if form == 0:
                no_id[event], no_flags[event] = True, True
                if place + 2 > stop:
                    return False
                present = load16(data, place)
                place += 2
                if present & 1:
                    if place + 8 > stop:
                        return False
                    ids[event], no_id[event] = load64(data, place), False
                    place += 8
                if present & 2:
                    if place + 2 > stop:
                        return False
                    flags[event], no_flags[event] = load16(data, place), False
            place = stop
        elif kind == 1:
            return place + 2 <= end
        else:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def _slot_of(number, ids, slots):
    """Return the slot of a table id; -1 if there is none. The ids are hashed with open addressing."""
    mask = len(ids) - 1
    place = np.int64(number) & mask
    while slots[place] >= 0:
        if ids[place] == number:
            return slots[place]
        place = (place + 1) & mask
    return np.int64(-1)


@njit(cache=True, nogil=True, inline="always")
def _kind_of(data, event_type, place, length, diffs, first, kinds, keys):
    """Return the kind of a rows event, of those from `first` on; -1 if it is new."""
    kind = np.int64(first)
    while kind >= 0:
        if (
            kinds[kind, TYPE] == event_type
            and kinds[kind, KIND_DIFFS] == diffs
            and kinds[kind, KEY_SIZE] == length
            and _same(data, place, keys, kinds[kind, KEY_AT], length)
        ):
            return kind
        kind = kinds[kind, NEXT]
    return np.int64(-1)


@njit(cache=True, nogil=True, inline="always")
def _image(data, place, end, base, first, count, columns, cells, cell):
    """Step over one image, noting where the wanted values start; return where it ends, or -1."""
    nulls = place
    place += (count + 7) >> 3
    if place > end:
        return np.int64(-1)
    for column in range(count):
        spec = np.uint64(first + column)
        out = columns[spec, CELL]
        if data[np.uint64(nulls + (column >> 3))] >> (column & 7) & 1:
            if out >= 0:
                cells[np.uint64(cell + out)] = NULL_CELL
            continue
        if out >= 0:
            cells[np.uint64(cell + out)] = place - base
        prefix = columns[spec, PREFIX]
        if prefix < 0:
            place += columns[spec, BYTES]
        else:
            if place + prefix > end:
                return np.int64(-1)
            if prefix == 1:
                place += 1 + np.int64(data[np.uint64(place)])
            elif prefix == 2:
                place += 2 + np.int64(load16(data, place))
            else:
                length = little_endian(data, place, min(prefix, 5))
                for byte in range(5, prefix):
                    if data[place + byte]:
                        return np.int64(-1)
                place += prefix + np.int64(length)
        if place > end:
            return np.int64(-1)
    return place


@njit(cache=True, nogil=True, inline="always")
def _partial_mask(data, place, end, documents):
    """Read which JSON columns of an after image hold a diff: a mask and where it ends, or -1."""
    options, place = _packed(data, place, end)
    if options < 0:
        return np.int64(0), np.int64(-1)
    if not options & 1:
        return np.int64(0), place
    size = (documents + 7) >> 3
    if place + size > end or documents > 64:
        return np.int64(0), np.int64(-1)
    mask = little_endian(data, place, size)
    if documents < 64:
        mask &= (np.uint64(1) << np.uint64(documents)) - np.uint64(1)
    return np.int64(mask), place + size


@njit(cache=True, nogil=True, inline="always")
def _note_epoch(data, place, end, kind, kinds, columns, scratch, epochs):
    """Look for the epoch that an event names, and make it the open one: 1 found, 0 none, -1 if it cannot be read."""
    before, after, first = kinds[kind, BEFORE], kinds[kind, AFTER], kinds[kind, EPOCH_SPEC]
    found = 0
    while place < end:
        start = place
        if before >= 0:
            place = _image(data, place, end, start, first, before, columns, scratch, 0)
        if place >= 0 and after >= 0:
            spec = first + max(before, 0)
            place = _image(data, place, end, start, spec, after, columns, scratch, 0)
            if place >= 0 and after > LOG_NAME_PLACE:
                prefix, width = columns[spec + LOG_NAME_PLACE, PREFIX], columns[spec + EPOCH_PLACE, BYTES]
                empty = scratch[1] == NULL_CELL
                if not empty and prefix >= 0:
                    empty = little_endian(data, start + np.int64(scratch[1]), min(prefix, 5)) == 0
                if empty:
                    known = scratch[0] != NULL_CELL
                    at = start + np.int64(scratch[0])
                    epochs[0] = little_endian(data, at, min(width, 8)) if known else np.uint64(0)
                    found = 1
        if place < 0:
            return -1
        if before <= 0 and after <= 0:
            break
    return found


@njit(cache=True, nogil=True, inline="always")
def _head(data, code, start, end, event, facts, tables, kinds, keys):
    """
    Read what stands before an event's images.

    Returns:
        Why it ended (`END`: it was read), its mode, its kind, and where its images start.
    """
    ids, id_slots, slots, _ = tables
    nothing = np.int64(-1)
    if end - start < 8:
        return FAULT, nothing, nothing, start
    place = start + 8
    facts[1][event], facts[3][event] = True, True
    if code >= FIRST_V2:
        size = np.int64(load16(data, place)) if place + 2 <= end else np.int64(0)
        if size < 2 or place + size > end:
            return FAULT, nothing, nothing, start
        if size > 2 and not _extra(data, place + 2, place + size, event, facts):
            return FAULT, nothing, nothing, start
        place += size
    key = place
    count, place = _packed(data, place, end)
    if count < 0 or count > 8 * (end - place):
        return FAULT, nothing, nothing, start
    maps = 2 if code in (UPDATE_V1, UPDATE_V2, PARTIAL) else 1
    place += maps * ((count + 7) >> 3)
    slot = _slot_of(_table_id(data, start), ids, id_slots)
    if place > end or slot < 0:
        return FAULT, nothing, nothing, start
    mode = slots[slot, MODE]
    if mode == 0:
        return END, mode, nothing, place
    kind = _kind_of(data, code, key, place - key, 0, slots[slot, FIRST_KIND], kinds, keys)
    return (END if kind >= 0 else NEW_KIND), mode, kind, place


@njit(cache=True, nogil=True, inline="always")
def _known_table(data, start, end, tables):
    """Whether a Table_map event says the same as the last one of its table id."""
    ids, id_slots, slots, bodies = tables
    size = end - start - TABLE_ID
    if size < 2:
        return False
    slot = _slot_of(_table_id(data, start), ids, id_slots)
    if slot < 0 or slots[slot, BODY_SIZE] != size:
        return False
    return _same(data, start + TABLE_ID, bodies, slots[slot, BODY_AT], size)


@njit(cache=True, nogil=True, inline="always")
def _whole_query(data, start, end):
    """Whether a Query event holds what its head says."""
    size = end - start
    if size < QUERY_HEAD:
        return False
    return size > QUERY_HEAD + np.int64(data[start + 8]) + np.int64(load16(data, start + 11))


@njit(cache=True, nogil=True, inline="always")
def _rows(data, base, code, end, event, state, kinds, keys, columns, rows, cells):
    """Walk the rows of one event from the state's place on; return why it ended."""
    row_batch, row_event, row_number, row_cell, spans = rows
    kind, row_at = state[KIND], state[ROW_AT]
    number, count, cell = state[ROW], state[ROWS], state[CELLS]
    before, after, spec, width = kinds[kind, BEFORE], kinds[kind, AFTER], kinds[kind, SPEC], kinds[kind, WIDTH]
    stop = END
    while row_at < end:
        if count == len(row_batch) or cell + width > len(cells):
            stop = FULL
            break
        place, chosen = row_at, kind
        if before >= 0:
            place = _image(data, place, end, base, spec, before, columns, cells, cell)
        between = place
        if code == PARTIAL and place >= 0:
            # Which columns are diffs stands between the images, row by row: each set of them is a kind of its own.
            diffs, place = _partial_mask(data, place, end, kinds[kind, DOCUMENTS])
            if place >= 0 and diffs:
                chosen = _kind_of(keys, code, kinds[kind, KEY_AT], kinds[kind, KEY_SIZE], diffs, kind, kinds, keys)
                if chosen < 0:
                    state[DIFFS] = diffs
                    stop = NEW_KIND
                    break
            between = place
        if place >= 0 and after >= 0:
            first = kinds[chosen, SPEC] + max(before, 0)
            place = _image(data, place, end, base, first, after, columns, cells, cell)
        if place < 0:
            stop = FAULT
            break
        row_batch[count], row_event[count] = kinds[chosen, BATCH], event
        row_number[count], row_cell[count] = number, cell
        spans[count, 0], spans[count, 1], spans[count, 2] = row_at - base, between - base, place - base
        count += 1
        cell += width
        number += 1
        # Images of no columns take no bytes: without this the loop would not end.
        row_at = place if before > 0 or after > 0 else end
    state[ROW_AT], state[ROW], state[ROWS], state[CELLS] = row_at, number, count, cell
    return stop


@njit(cache=True, nogil=True)
def walk_rows(data, base, events, state, tables, kinds, keys, columns, rows, cells, facts, epochs, scratch):
    """
    Walk the events of a stretch from where the state says, until something stops the walk.

    Args:
        data: What the events stand in. Shape (bytes,), uint8.
        base: What cells count from.
        events: Type codes, and where each body starts and ends. Each of shape (events,).
        state: Where the walk stands, by `Place`; changed. Shape (8,), int64.
        tables: Ids and slots of a hash table (slot -1: empty); slots by `Slot`; the bodies of their Table_map events.
        kinds: By `Kind`. Shape (kinds, 12), int64.
        keys: The keys of the kinds, one after the other. Shape (bytes,), uint8.
        columns: Columns of every kind, before image and after image, by `Spec`. Shape (columns, 3), int64.
        rows: Per row its batch, event, number and first cell, each of shape (most rows,); and where it starts, where
            its after image does, and where it ends, counted as cells are, of shape (most rows, 3), uint32. Filled in.
        cells: Filled in. Shape (most cells,), uint32.
        facts: Per event transaction id, whether it is missing, conflict flags, whether they are missing, NDB epoch,
            whether it is missing, batch (-1 if no rows of it are wanted); filled in. Each of shape (events,).
        epochs: The open epoch; changed. Shape (1,), uint64.
        scratch: Room for two cells. Shape (2,), uint32.

    Returns:
        A `Stop`. At `TABLE_MAP`, `KIND` and `FAULT` the state's event is the one that it is about.
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
                stop, mode, kind, place = _head(data, code, start, end, event, facts, tables, kinds, keys)
                if stop == END and mode:
                    if mode & MODE_EPOCH:
                        found = _note_epoch(data, place, end, kind, kinds, columns, scratch, epochs)
                        if found < 0:
                            stop = FAULT
                        elif found:
                            state[HAS_EPOCH] = 1
                    facts[4][event], facts[5][event] = epochs[0], state[HAS_EPOCH] == 0
                    facts[6][event] = kinds[kind, BATCH] if mode & MODE_ROWS else -1
                    if mode & MODE_ROWS and stop == END:
                        state[KIND], state[ROW], state[ROW_AT] = kind, 0, place
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
