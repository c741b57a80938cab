"""
The image that each column of each final row comes from.

Repeats the fold with the decisions known. A row is one image number per column, or one for all columns, so that no
value is read before the end. A write sets the numbers of the columns that it carries; a refresh copies the numbers of
the whole row to the other cluster, and a reflected change those of the columns that its event carries. A column that
nothing wrote has its default there too. See docs/concepts.md, "Before image and after image" and "Refresh, reflect,
read".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from conflict.engine.kernels.arrays import (
    NONE,
    ZERO,
    Bool,
    BucketRows,
    EpochApplies,
    Int16,
    Int64,
)
from conflict.engine.kernels.fold import Folded
from conflict.engine.kernels.last_images import last_images
from conflict.engine.kernels.logged_rows import EventMasks, mark_columns
from conflict.engine.kernels.provenance_records import (
    Columns,
    ColumnSets,
    EarlierRows,
    FinalRows,
    ImageArrays,
    LoggedColumns,
    States,
    Trace,
    Traced,
    WatchedRows,
)
from conflict.history.grid.schemas import RowStep
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernel import each_read_only, inlined, kernel, read_only
from ndb_formats.events.rows_event import Operation

ABSENT_IMAGE = -1
UNKNOWN_IMAGE = -2  # of a column of a row that is older than the log
DEFAULT_IMAGE = -3  # of a column of a logged event that nothing wrote: the event carries the default
WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
CHANGED, EMPTIED = int(RowStep.CHANGED), int(RowStep.EMPTIED)
APPLIED = int(Verdict.APPLIED)
BEFORE, AFTER = 0, 1  # added to twice the number of a change, the number of its image
# An own change of a cluster: its row, and the column sets of its images.
CHANGE = np.dtype([("key", "i4"), ("before", "i4"), ("after", "i4"), ("operation", "i1")], align=True)
# A row of a cluster: whether it exists, and the one image that all its columns come from, unless they are `spread`.
TRACED_ROW = np.dtype([("whole", "i8"), ("exists", "?"), ("spread", "?")], align=True)


def trace_images(
    applies: EpochApplies,
    rows: Sequence[BucketRows],
    images: tuple[ColumnSets, Sequence[ImageArrays]],
    keys: tuple[Int64, Int16],
    masks: EventMasks,
    folded: Folded,
    held: Bool,
    watched: Bool | None = None,
    earlier: EarlierRows | None = None,
) -> FinalRows:
    """
    Return the image that every column of every final row comes from.

    Args:
        applies: As given to `fold`.
        rows: As given to `fold`.
        images: The column sets, and per cluster the sets of the rows' images.
        keys: First slot of each key, one slot per column of its table, and their total, shape (keys + 1,); table number
            of each key, shape (keys,).
        masks: Which columns a reflected event carries.
        folded: What `fold` returned.
        held: The columns that a cluster had for each row that its applier logged. Shape (entries, widest table).
        watched: Tables of whose rows every state is returned; None for none. Shape (tables,).
        earlier: The rows before their first change; None if there were none.
    """
    decisions, logged, first = folded.decisions, folded.logged, len(rows[0])
    (sets, sides), (slots, key_table) = images, keys
    columns = Columns(*each_read_only(sets.offsets, sets.columns, slots, key_table))
    changes = _changes(rows, sides)
    plan = each_read_only(applies.applier, folded.own_end)
    made = each_read_only(decisions.apply, decisions.source, decisions.verdict)
    traced = Traced._make([*plan, changes, (0, first), (first, len(changes)), *made])
    watching = np.zeros(len(key_table), np.bool_) if watched is None else watched[key_table]
    followed = watching.copy()
    followed[logged.key] = True
    if earlier is not None:
        followed |= earlier.exists.any(axis=0)
    exists, final = last_images(traced, columns, read_only(followed))
    widest, capacity = int(np.diff(slots).max(initial=0)), len(decisions) + len(changes) if watching.any() else 0
    plain = each_read_only(logged.key, logged.apply, logged.operation, logged.refresh, held)
    before, after = (np.full((len(logged), widest), ABSENT_IMAGE, np.int64) for _ in range(2))
    entries = LoggedColumns._make([*plain, before, after])
    trace = _trace_of(read_only(followed), final, columns, widest, reflecting=bool(masks.reflects.any()))
    if earlier is not None:
        trace.rows["exists"] = trace.rows["spread"] = earlier.exists
        np.copyto(final, earlier.images, where=earlier.images != ABSENT_IMAGE)
    kinds: tuple[npt.DTypeLike, ...] = (np.int8, np.int32, np.int64, np.int64, np.bool_)
    plain_states = [np.empty(capacity, kind) for kind in kinds]
    images_of_states = np.full((capacity, widest), ABSENT_IMAGE, np.int64)
    states = States._make([read_only(watching), *plain_states, images_of_states])
    mine, count = np.flatnonzero(followed), 0
    if len(mine):
        count = _trace(traced, columns, EventMasks(*each_read_only(*masks)), entries, trace, states)
        exists[:, mine] = trace.rows["exists"][:, mine]
    found = {name: column[:count] for name, column in states._asdict().items() if name != "watched"}
    unknown = np.zeros(0, np.bool_)
    if earlier is not None:
        unknown = final == UNKNOWN_IMAGE
        for images_found in (final, entries.before, entries.after, states.images):
            images_found[images_found == UNKNOWN_IMAGE] = ABSENT_IMAGE
    return FinalRows(exists, final, entries.before, entries.after, WatchedRows(**found), unknown)


def _changes(rows: Sequence[BucketRows], images: Sequence[ImageArrays]) -> npt.NDArray[np.void]:
    """Return the changes of both clusters, with the column sets of their images."""
    records = np.empty(sum(len(side) for side in rows), CHANGE)
    start = 0
    for side, sets in zip(rows, images, strict=True):
        part = records[start : start + len(side)]
        part["key"], part["operation"], part["before"], part["after"] = (
            side.key,
            side.operation,
            sets.before,
            sets.after,
        )
        start += len(side)
    return records


def _trace_of(followed: Bool, final: Int64, columns: Columns, widest: int, *, reflecting: bool) -> Trace:
    keys = len(columns.table)
    rows = np.zeros((2, keys), TRACED_ROW)
    rows["whole"] = ABSENT_IMAGE
    slots = int(columns.slots[-1]) if reflecting else 0
    stamps = np.full(keys if reflecting else 0, -1, np.int64)
    old, written = np.full(slots, ABSENT_IMAGE, np.int64), np.full(slots, -1, np.int64)
    return Trace(followed, final, rows, stamps, old, written, np.empty(widest, np.bool_))


@inlined
def _spread(trace, columns, side, key):
    """Give a row one image number per column instead of one for all."""
    mine = trace.rows[side, key]
    if not mine["spread"]:
        for slot in range(columns.slots[key], columns.slots[key + 1]):
            trace.final[side, slot] = mine["whole"]
        mine["spread"] = True


@inlined
def _put(trace, columns, side, key, chosen, image):
    """Set the columns that an image carries, those of the column set `chosen`."""
    if chosen >= 0:
        start, stop = columns.slots[key], columns.slots[key + 1]
        first, last = columns.offsets[chosen], columns.offsets[chosen + 1]
        if last - first == stop - start:
            mine = trace.rows[side, key]
            mine["whole"], mine["spread"] = image, False
        else:
            _spread(trace, columns, side, key)
            for place in range(first, last):
                trace.final[side, start + columns.columns[place]] = image


@kernel
def _write(trace, columns, side, number, change):
    """Make a change to a row of a cluster; `number` is that of the change."""
    key = change["key"]
    mine = trace.rows[side, key]
    if change["operation"] == CHANGED:
        return
    if change["operation"] == DELETE or change["operation"] == EMPTIED:
        mine["exists"] = False
    else:
        if not mine["exists"]:
            mine["exists"], mine["whole"], mine["spread"] = True, ABSENT_IMAGE, False
            _put(trace, columns, side, key, change["before"], 2 * number + BEFORE)
        _put(trace, columns, side, key, change["after"], 2 * number + AFTER)


@inlined
def _tell_older(trace, columns, side, key, chosen, image):
    """Set the columns of a row that nothing showed, and that the before image of an own change carries."""
    mine = trace.rows[side, key]
    if chosen < 0 or not mine["exists"] or (not mine["spread"] and mine["whole"] != UNKNOWN_IMAGE):
        return
    _spread(trace, columns, side, key)
    for place in range(columns.offsets[chosen], columns.offsets[chosen + 1]):
        slot = columns.slots[key] + columns.columns[place]
        if trace.final[side, slot] == UNKNOWN_IMAGE:
            trace.final[side, slot] = image


@kernel
def _keep_state(trace, columns, states, count, side, key, row, decision):
    """Keep the present state of a row as state `count`; return the number of the next."""
    _spread(trace, columns, side, key)
    states.cluster[count], states.key[count], states.row[count], states.decision[count] = side, key, row, decision
    states.exists[count] = trace.rows[side, key]["exists"]
    start = columns.slots[key]
    for slot in range(start, columns.slots[key + 1]):
        states.images[count, slot - start] = trace.final[side, slot]
    return count + 1


@inlined
def _logged_image(image, held):
    """Return the image of a column in a logged event from that in the row; `held`: the row has such a column."""
    return DEFAULT_IMAGE if held and image == ABSENT_IMAGE else image


@kernel
def _reflect(trace, columns, masks, entries, entry, side):
    """Fill in the images of a reflected event, as the table's format logs it."""
    key, operation = entries.key[entry], entries.operation[entry]
    table, slot = columns.table[key], columns.slots[key]
    width = columns.slots[key + 1] - slot
    if operation == UPDATE:
        mark_columns(masks, table, trace.written[slot : slot + width], entries.apply[entry], trace.marked)
    for column in range(width):
        in_before, in_after = False, False
        if operation == WRITE:
            in_after = masks.write_after[side, table, column]
        elif operation == DELETE:
            in_before = masks.delete_before[side, table, column]
        else:
            marked = trace.marked[column]
            in_before = masks.base_before[side, table, column] or (marked and masks.all_before[side, table, column])
            in_after = masks.base_after[side, table, column] or (marked and masks.all_after[side, table, column])
        held = entries.held[entry, column]
        if in_before:
            entries.before[entry, column] = _logged_image(trace.old[slot + column], held)
        if in_after:
            entries.after[entry, column] = _logged_image(trace.final[side, slot + column], held)


@kernel
def _apply(trace, columns, traced, entries, side, source, apply, reflecting):
    """Make one change that an applier applied; `reflecting`: mark the columns that it wrote."""
    if source < 0:
        entry = -1 - source
        key = entries.key[entry]
        mine, start = trace.rows[side, key], columns.slots[key]
        if not mine["exists"]:
            mine["whole"], mine["spread"] = ABSENT_IMAGE, False
        _spread(trace, columns, side, key)
        mine["exists"] = entries.operation[entry] != DELETE
        for column in range(columns.slots[key + 1] - start):
            image = entries.after[entry, column]
            if image != ABSENT_IMAGE:
                trace.final[side, start + column] = ABSENT_IMAGE if image == DEFAULT_IMAGE else image
                if reflecting:
                    trace.written[start + column] = apply
        return
    number = traced.begin[1 - side] + source
    change = traced.changes[number]
    _write(trace, columns, side, number, change)
    chosen = change["after"]
    if reflecting and chosen >= 0:
        for place in range(columns.offsets[chosen], columns.offsets[chosen + 1]):
            trace.written[columns.slots[change["key"]] + columns.columns[place]] = apply


@inlined
def _do_own(trace, columns, traced, states, count, side, first, last):
    """Make own changes of a cluster to the rows that are followed; return the number of states."""
    changes, followed = traced.changes, trace.followed
    for number in range(first, last):
        change = changes[number]
        key = change["key"]
        if followed[key]:
            if change["operation"] == UPDATE:
                _tell_older(trace, columns, side, key, change["before"], 2 * number + BEFORE)
            _write(trace, columns, side, number, change)
            if states.watched[key]:
                count = _keep_state(trace, columns, states, count, side, key, number - traced.begin[side], NONE)
    return count


@kernel
def _trace(traced, columns, masks, entries, trace, states):
    """
    Follow rows through all epoch applies, and fill in their images; return the number of states.

    Args:
        traced: `Traced`.
        columns: `Columns`.
        masks: `EventMasks`.
        entries: `LoggedColumns`; their images are filled in.
        trace: `Trace`; filled in.
        states: `States`; filled in.
    """
    decision, entry, count, watching = ZERO, ZERO, ZERO, len(states.cluster) > 0
    # Compiled code counts references to every array of a tuple that it assigns or passes on; per row that is too slow.
    applies, sources, verdicts, followed = traced.apply, traced.source, traced.verdict, trace.followed
    changes, entry_keys = traced.changes, entries.key
    done = np.array([traced.begin[0], traced.begin[1]])
    for apply in range(len(traced.applier)):
        here = np.int64(traced.applier[apply])
        first = traced.begin[1 - here]
        stop = max(done[here], traced.begin[here] + traced.own_end[apply])
        count = _do_own(trace, columns, traced, states, count, here, done[here], stop)
        done[here] = stop
        started = decision
        while decision < len(applies) and applies[decision] == apply:
            source = sources[decision]
            decision += 1
            key = changes[first + source]["key"] if source >= 0 else entry_keys[-1 - source]
            if verdicts[decision - 1] != APPLIED or not followed[key]:
                continue
            reflecting = len(trace.stamps) > 0 and masks.reflects[here, columns.table[key]]
            if reflecting and trace.stamps[key] != apply:
                _spread(trace, columns, here, key)
                trace.stamps[key] = apply
                for slot in range(columns.slots[key], columns.slots[key + 1]):
                    trace.old[slot] = trace.final[here, slot]
            _apply(trace, columns, traced, entries, here, source, apply, reflecting)
        for changed in range(started, decision if watching else started):
            source = sources[changed]
            key = changes[first + source]["key"] if source >= 0 else entry_keys[-1 - source]
            if verdicts[changed] == APPLIED and states.watched[key]:
                count = _keep_state(trace, columns, states, count, here, key, NONE, changed)
        while entry < len(entries.key) and entries.apply[entry] == apply:
            key = entries.key[entry]
            _spread(trace, columns, here, key)
            if not entries.refresh[entry]:
                _reflect(trace, columns, masks, entries, entry, here)
            elif entries.operation[entry] != DELETE:
                start = columns.slots[key]
                for slot in range(start, columns.slots[key + 1]):
                    held = entries.held[entry, slot - start]
                    entries.after[entry, slot - start] = _logged_image(trace.final[here, slot], held)
            entry += 1
    for side in range(2):
        count = _do_own(trace, columns, traced, states, count, side, done[side], traced.end[side])
        for key in range(len(columns.table)):
            if trace.followed[key]:
                _spread(trace, columns, side, key)
    return count
