"""
How many bytes the rows of a log take in every format.

`size_rows` goes over the rows that the row walker found. It reads the length of every value, and notes which columns
have another value than before: the row's *changed columns*. The columns that a format logs depend on the shape of the
row, on its changed columns and on whether its key changed; together these are the row's *variant*. A variant names the
sets of columns whose lengths are added up, and the events that hold the images. The loop stops at a variant that is
not registered yet.

Rows go into events as the server packs them: a row joins the previous event if that has the same table, operation and
columns, nothing ends it, and its body stays within ``binlog_row_event_max_size``. A row without columns has no bytes,
and an event of its own.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel, wrapping_product
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import little_endian, load16, load64
from ndb_formats.constants import EVENT_HEADER_SIZE, EventType

# In place of the length of a column's default.
NO_DEFAULT, NULL_DEFAULT = -1, -2
# In place of the number of a column of the after image among those of the before image.
NO_TWIN, DIFF_TWIN = -1, -2


class SizeStop(IntEnum):
    """Why the loop stopped."""

    END = 0  # of the rows
    VARIANT = 1  # a variant that is not registered
    KEYS = 2  # a text key with other bytes: is it the same key?


class SizeState(IntEnum):
    """What the numbers of the loop's state are."""

    ROW = 0
    KEY_CHANGE = 1  # the answer at `SizeStop.KEYS`; -1 if it was not asked for
    VARIANT = 2  # at `SizeStop.VARIANT`: what happened to the key, times 2, plus 1 for a read event


class ShapeMode(IntEnum):
    """What the changed columns of a shape's rows are."""

    NOTHING = 0  # not looked for
    INSERT = 1  # those that differ from their default
    UPDATE = 2  # those that differ from the before image


class SizeOutcome(IntEnum):
    """What is known of a variant in one format and bound."""

    FIRST_EVENT = 0
    EVENTS = 1
    LACKING = 2  # whether the log lacks values that the format logs
    HIDDEN = 3  # whether the two bounds have other columns


class SizedShape(IntEnum):
    """The columns of the array of shapes."""

    CELLS_AT = 0  # number of its first cell among all shapes
    BEFORE = 1  # columns of the before image
    AFTER = 2  # columns of the after image
    COLUMNS = 3  # columns of the table
    FIRST_COLUMN = 4  # number of the table's first column among those of all tables
    KIND = 5  # kind of change of its table
    MASKS_AT = 6  # where its masks of key columns are: all, then those whose bytes can differ in equal keys
    MODE = 7
    NDB = 8  # whether it is a table of NDB


HEADER = EVENT_HEADER_SIZE
FIRST_V1, LAST_V1 = int(EventType.WRITE_ROWS_EVENT_V1), int(EventType.DELETE_ROWS_EVENT_V1)
FIRST_V2, LAST_V2 = int(EventType.WRITE_ROWS_EVENT), int(EventType.DELETE_ROWS_EVENT)
PARTIAL, TABLE_MAP = int(EventType.PARTIAL_UPDATE_ROWS_EVENT), int(EventType.TABLE_MAP_EVENT)
CELLS_AT, BEFORE, AFTER, COLUMNS, FIRST_COLUMN, KIND, MASKS_AT, MODE, NDB = (int(part) for part in SizedShape)
FIRST_EVENT, EVENTS, LACKING, HIDDEN = (int(part) for part in SizeOutcome)
ROW, KEY_CHANGE, VARIANT = (int(part) for part in SizeState)
END, NEW_VARIANT, COMPARE_KEYS = (int(stop) for stop in SizeStop)
INSERT, UPDATE = int(ShapeMode.INSERT), int(ShapeMode.UPDATE)
SAME_KEY, OTHER_SPELLING, OTHER_KEY = range(3)
STATEMENT_END, READ_FLAG = 1, 4
TABLE_HEAD = 8  # table id and flags
NO_GROUP, ANY_GROUP = -1, -2
LEAST = 0  # the bound
OLD = 0  # the image that a set of columns is of


@inlined
def _is_rows(code):
    return FIRST_V2 <= code <= LAST_V2 or FIRST_V1 <= code <= LAST_V1 or code == PARTIAL


@kernel
def join_events(data, types, starts, ends, servers, trailer, joins, heads):
    """
    Find out which rows events continue the one before them, as far as format does not matter.

    Args:
        data: The bytes of the chunk. Shape (bytes,), uint8.
        types: Type codes. Shape (events,), like the arrays after it.
        starts: Start of each body.
        ends: End of each body.
        servers: Server ids.
        trailer: Bytes of the checksum.
        joins: Filled in: whether the event directly follows a rows event that does not end its statement, and has the
            same version, server id and extra row info.
        heads: Filled in: bytes of header, checksum and post-header of a rows event.
    """
    previous = -1
    previous_extra = np.int64(0)
    for event in range(len(types)):
        joins[event] = False
        code, start = types[event], starts[event]
        if not _is_rows(code):
            previous = -1
            continue
        extra = np.int64(0)
        if code >= FIRST_V2 and ends[event] - start >= TABLE_HEAD + 2:
            extra = np.int64(load16(data, start + TABLE_HEAD))
        heads[event] = HEADER + trailer + TABLE_HEAD + extra
        if previous >= 0 and servers[event] == servers[previous] and extra == previous_extra:
            same = (code >= FIRST_V2) == (types[previous] >= FIRST_V2)
            before = starts[previous] + TABLE_HEAD
            for byte in range(extra):
                if data[before + byte] != data[start + TABLE_HEAD + byte]:
                    same = False
                    break
            joins[event] = same
        ended = ends[event] - start >= TABLE_HEAD and load16(data, start + 6) & STATEMENT_END
        fits = start + TABLE_HEAD + extra <= ends[event]
        previous, previous_extra = (event if fits and not ended else -1), extra


@kernel
def account_events(data, events, trailer, shapes, names, first, logged, maps, others):
    """
    Add up the bytes and the number of events as they are.

    Args:
        data: The bytes of the chunk. Shape (bytes,), uint8.
        events: Type, start of body, end of body and shape of each event; the shape is -1 if it has no rows.
        trailer: Bytes of the checksum.
        shapes: The shapes, by `SizedShape`.
        names: Database and table of each table as in a Table_map event, concatenated, and where each starts.
        first: Event to start with.
        logged: Bytes and events by kind of change. Shape (kinds, 2), int64; added to, like the arrays after it.
        maps: Bytes and events of Table_map events, by table. Shape (tables, 2), int64.
        others: Bytes and events of all other events, by type. Shape (256, 2), int64.

    Returns:
        The first event that was not accounted for, a Table_map event whose table is not registered; else their number.
    """
    types, starts, ends, batches = events
    texts, bounds = names
    table = 0
    for event in range(first, len(types)):
        size = HEADER + ends[event] - starts[event] + trailer
        code = types[event]
        if batches[event] >= 0:
            row = shapes[batches[event], KIND]
            logged[row, 0] += size
            logged[row, 1] += 1
        elif code == TABLE_MAP:
            table = _table_of(data, starts[event] + TABLE_HEAD, ends[event], texts, bounds, table)
            if table < 0:
                return event
            maps[table, 0] += size
            maps[table, 1] += 1
        else:
            others[code, 0] += size
            others[code, 1] += 1
    return len(types)


@inlined
def _table_of(data, start, end, texts, bounds, guess):
    """Return the table that a Table_map event names, or -1; `guess` is looked at first."""
    count = len(bounds) - 1
    for turn in range(count):
        table = (guess + turn) % count
        length = bounds[table + 1] - bounds[table]
        same = start + length <= end
        byte = 0
        while same and byte < length:
            same = data[start + byte] == texts[bounds[table] + byte]
            byte += 1
        if same:
            return table
    return -1


@inlined
def _same_bytes(data, first, second, length):
    byte = np.int64(0)
    while byte + 8 <= length:
        if load64(data, first + byte) != load64(data, second + byte):
            return False
        byte += 8
    while byte < length:
        if data[np.uint64(first + byte)] != data[np.uint64(second + byte)]:
            return False
        byte += 1
    return True


@inlined
def _is_default(data, offset, size, prefix, default_at, default_size, default_data):
    """Return whether a value is the declared default; `size` is -1 for NULL."""
    if size < 0:
        return default_size == NULL_DEFAULT
    head = max(prefix, 0)
    if size - head != default_size:
        return False
    for byte in range(default_size):
        if data[offset + head + byte] != default_data[default_at + byte]:
            return False
    return True


@inlined
def _size_of(data, offset, prefix, width):
    if prefix < 0:
        return width
    if prefix == 1:
        return 1 + np.int64(data[np.uint64(offset)])
    if prefix == 2:
        return 2 + np.int64(load16(data, offset))
    return prefix + np.int64(little_endian(data, offset, min(prefix, 8)))


@kernel
def mask_hash(shape, state, mask, words):
    """Return the hash of a variant."""
    number = wrapping_product(np.uint64(shape), np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(state)
    for word in range(words):
        number = wrapping_product(number ^ mask[word], np.uint64(0xFF51AFD7ED558CCD))
        number ^= number >> np.uint64(32)
    return number


@inlined
def _variant_of(shape, state, mask, words, table, keys, masks):
    """Return the number of a variant, or -1; `table` has open addressing."""
    last = np.uint64(len(table) - 1)
    at = mask_hash(shape, state, mask, words) & last
    while table[at] >= 0:
        variant = table[at]
        if keys[variant, 0] == shape and keys[variant, 1] == state:
            same = True
            for word in range(words):
                if masks[keys[variant, 2] + word] != mask[word]:
                    same = False
                    break
            if same:
                return variant
        at = (at + np.uint64(1)) & last
    return np.int64(-1)


@kernel
def size_rows(data, base, trailer, events_of_chunk, rows, cells, most, shapes, variants, state, work, pending, sums):
    """
    Add up the bytes of rows in every format, from the state's row on.

    Args:
        data: The bytes of the chunk. Shape (bytes,), uint8.
        base: What cells count from.
        trailer: Bytes of the checksum.
        events_of_chunk: Type and conflict flags of each event, and what `join_events` found. Each of shape (events,).
        rows: The arrays of `ndb_formats.columnar.row_walk.WalkedRows`, cut to the rows of the block.
        cells: The cells of the rows.
        most: ``binlog_row_event_max_size``.
        shapes: The arrays of `SizePlan.shape_arrays`.
        variants: The arrays of `SizePlan.variant_arrays`.
        state: By `SizeState`; changed.
        work: Old and new length of each column (-1: not in the image; int64) and the changed columns (uint64); changed.
        pending: The event that rows may still join: its columns (`ANY_GROUP` if only hidden ones are in it), its table
            and operation, and the size of its body. Three arrays of shape (bounds, formats), int64; changed.
        sums: The arrays of `log_sizes.Tally`; added to.

    Returns:
        A `SizeStop`. At all but `END` it concerns the state's row.
    """
    codes, flags, joins, heads = events_of_chunk
    row_shape, row_event, row_number, row_cell, _ = rows
    shape_table, specs, key_masks, defaults, default_data = shapes
    hashed, keys, masks, set_bounds, sets, set_columns, outcomes, events, groups = variants
    old, new, mask = work
    pending_group, pending_kind, pending_size = pending
    total, found, lacking, row_counts, column_bytes = sums
    formats = pending_group.shape[1]
    set_sums = np.zeros(8 * formats, np.int64)
    row, count = state[ROW], len(row_shape)
    while row < count:
        shape, event = row_shape[row], row_event[row]
        mode, before, after = shape_table[shape, MODE], shape_table[shape, BEFORE], shape_table[shape, AFTER]
        columns, first = shape_table[shape, COLUMNS], shape_table[shape, FIRST_COLUMN]
        words = (columns + 63) >> 6
        for word in range(words):
            mask[word] = 0
        for column in range(columns):
            old[column] = -1
            new[column] = -1
        spec, cell = shape_table[shape, CELLS_AT], row_cell[row]
        for number in range(before):
            at = cells[np.uint64(cell + number)]
            size = np.int64(0)
            if at != NULL_CELL:
                size = _size_of(data, base + np.int64(at), specs[spec + number, 1], specs[spec + number, 2])
            old[specs[spec + number, 0]] = size
        for number in range(after):
            at = cells[np.uint64(cell + before + number)]
            column, prefix = specs[spec + before + number, 0], specs[spec + before + number, 1]
            size = np.int64(0)
            if at != NULL_CELL:
                size = _size_of(data, base + np.int64(at), prefix, specs[spec + before + number, 2])
            new[column] = size
            differs = False
            if mode == UPDATE:
                twin = specs[spec + before + number, 3]
                if twin >= 0:
                    other = cells[np.uint64(cell + twin)]
                    if NULL_CELL in (at, other):
                        differs = at != other
                    elif size != old[column]:
                        differs = True
                    else:
                        differs = not _same_bytes(data, base + np.int64(at), base + np.int64(other), size)
                elif twin == DIFF_TWIN:
                    differs = size > prefix  # an empty diff changes nothing
            elif mode == INSERT:
                default_size = defaults[first + column, 1]
                if default_size == NO_DEFAULT:
                    differs = True
                else:
                    differs = not _is_default(
                        data, base + np.int64(at), size if at != NULL_CELL else -1, prefix,
                        defaults[first + column, 0], default_size, default_data,
                    )  # fmt: skip
            if differs:
                mask[column >> 6] |= np.uint64(1) << np.uint64(column & 63)

        key_change = SAME_KEY
        if mode == UPDATE:
            fixed_differs, text_differs = False, False
            at = shape_table[shape, MASKS_AT]
            for word in range(words):
                fixed_differs |= mask[word] & key_masks[at + word] & ~key_masks[at + words + word] != 0
                text_differs |= mask[word] & key_masks[at + words + word] != 0
            if shape_table[shape, NDB] and (fixed_differs or text_differs):
                key_change = OTHER_SPELLING
            elif fixed_differs:
                key_change = OTHER_KEY
            elif text_differs:
                if state[KEY_CHANGE] < 0:
                    state[ROW] = row
                    return COMPARE_KEYS
                key_change = state[KEY_CHANGE]
        variant_state = key_change * 2 + (1 if flags[event] & READ_FLAG else 0)
        variant = _variant_of(shape, variant_state, mask, words, hashed, keys, masks)
        if variant < 0:
            state[ROW], state[VARIANT] = row, variant_state
            return NEW_VARIANT
        state[KEY_CHANGE] = -1

        for number in range(before):
            column_bytes[first + specs[spec + number, 0], 0] += old[specs[spec + number, 0]]
        for number in range(before, before + after):
            column_bytes[first + specs[spec + number, 0], 1] += new[specs[spec + number, 0]]
        partial = np.int64(codes[event] == PARTIAL)
        first_set, last_set = set_bounds[variant], set_bounds[variant + 1]
        for number in range(first_set, last_set):
            chosen, length = sets[number, 1], sets[number, 3]
            last = chosen + sets[number, 2]
            # What an image lacks has the same value in the other one, or the plan left it out.
            if sets[number, 0] == OLD:
                for column in range(chosen, last):
                    size = old[set_columns[column]]
                    length += size if size >= 0 else new[set_columns[column]]
            else:
                for column in range(chosen, last):
                    size = new[set_columns[column]]
                    length += size if size >= 0 else old[set_columns[column]]
            set_sums[number - first_set] = length

        kind = shape_table[shape, KIND]
        row_counts[kind, 0] += 1
        row_counts[kind, 1] += keys[variant, 3]
        row_counts[kind, 2] += keys[variant, 4]
        if row_number[row] == 0 and not joins[event]:
            pending_group[:] = NO_GROUP
            pending_kind[:] = NO_GROUP
        for bound in range(2):
            for form in range(formats):
                outcome = outcomes[variant, bound, form]
                lacking[bound, form, kind] += outcome[LACKING]
                # Of a row whose columns are hidden, the least is that it has those of its neighbours.
                loose = bound == LEAST and outcome[HIDDEN]
                for number in range(outcome[FIRST_EVENT], outcome[FIRST_EVENT] + outcome[EVENTS]):
                    group = events[number, 0]
                    length = partial * events[number, 3]
                    if events[number, 1] >= 0:
                        length += set_sums[events[number, 1]]
                    if events[number, 2] >= 0:
                        length += set_sums[events[number, 2]]
                    joined = pending_group[bound, form] == group
                    if pending_kind[bound, form] == groups[group, 1]:
                        joined |= loose or pending_group[bound, form] == ANY_GROUP
                    joined &= loose or length > 0
                    if not joined or pending_size[bound, form] + length > most:
                        head = heads[event] + groups[group, 0]
                        pending_group[bound, form] = ANY_GROUP if loose else group
                        pending_kind[bound, form] = groups[group, 1]
                        pending_size[bound, form] = head - HEADER - trailer
                        found[bound, form, kind] += 1
                        total[bound, form, kind] += head
                    elif not loose:
                        pending_group[bound, form] = group
                    pending_size[bound, form] += length
                    total[bound, form, kind] += length
        row += 1
    state[ROW] = row
    return END
