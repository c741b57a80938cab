"""
The effect of each epoch apply on rows, and where a binlog shows other effects.

Computes `compared_with_binlogs` and `contradicted_by_binlogs` of docs/result.md, "run.json".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.arrays import Bool, Int8, Int32, Int64, UInt64
from conflict.history.grid.columns import COLUMNS_SHIFT as SHIFT_OF_COLUMNS
from conflict.history.shown_effects import NO_EFFECT, Effect
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.events.rows_event import Operation

APPLIED, DELETE = int(Verdict.APPLIED), int(Operation.DELETE_ROW)
CHANGED, DELETED = int(Effect.CHANGED), int(Effect.DELETED)
NOTHING, COLUMNS_SHIFT = np.uint64(0), np.uint64(SHIFT_OF_COLUMNS)
REFRESHED, REFRESHED_ABSENT = int(Effect.REFRESHED), int(Effect.REFRESHED_ABSENT)


class DecidedRows(NamedTuple):
    """Columns of `Decisions`. Shape (decisions,)."""

    apply: Int32
    source: Int32
    verdict: Int8
    existed: Bool
    key: Int32
    operation: Int8


class SentRows(NamedTuple):
    """Rows that one applier refreshed: columns of `Logged`. Shape (entries,)."""

    apply: Int64
    key: Int32
    operation: Int8


class ShownRows(NamedTuple):
    """
    Effects of one applier, sorted by epoch and group. Shape (rows,).

    Attributes:
        epoch: Own epoch of the epoch apply. uint64.
        group: Group of that epoch. int32.
        key: The row. An integer.
        effect: `Effect`. int8.
        digest: What the row was given (see `conflict.history.grid.columns`); 0 where that is not known. uint64.
    """

    epoch: UInt64
    group: Int32
    key: Int64
    effect: Int8
    digest: UInt64


@inlined
def effect_number(refreshed, wrote, existed, exists):
    """Return the number of `conflict.history.shown_effects.effect_on_row`, `NO_EFFECT` if there is none."""
    if refreshed:
        return REFRESHED if exists else REFRESHED_ABSENT
    if not wrote or not (exists or existed):
        return NO_EFFECT
    return CHANGED if exists else DELETED


@kernel
def effects_on_rows(side, applier, decided, sent, digests, keys):
    """
    Return epoch apply, row, effect and digest of one applier, in order; an epoch apply has one effect on a row.

    Args:
        side: Number of the applier.
        applier: Of each epoch apply.
        decided: `DecidedRows` of both appliers.
        sent: `SentRows` of this one.
        digests: Digest of the after image of each change of the other cluster. uint64, shape (changes,).
        keys: Number of rows.

    Returns:
        int64, int64, int8 and uint64, shape (effects,).
    """
    count = len(decided.apply) + len(sent.apply)
    applies, rows, effects = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int8)
    given = np.empty(count, np.uint64)
    there, gone = np.empty(count, np.bool_), np.empty(count, np.bool_)
    last, slot = np.full(keys, -1, np.int64), np.zeros(keys, np.int64)
    found, entry, decision = 0, 0, 0
    while decision < len(decided.apply):
        now, start = decided.apply[decision], found
        mine = applier[now] == side
        while decision < len(decided.apply) and decided.apply[decision] == now:
            if mine and decided.verdict[decision] == APPLIED:
                row = decided.key[decision]
                if last[row] != now:
                    last[row], slot[row] = now, found
                    applies[found], rows[found], effects[found] = now, row, NO_EFFECT
                    there[found] = decided.existed[decision]
                    found += 1
                gone[slot[row]] = decided.operation[decision] == DELETE
                source = decided.source[decision]
                given[slot[row]] = digests[source] if source >= 0 else NOTHING
            decision += 1
        while mine and entry < len(sent.apply) and sent.apply[entry] <= now:
            row = sent.key[entry]
            if last[row] != now:
                last[row], slot[row] = now, found
                applies[found], rows[found] = now, row
                found += 1
            given[slot[row]] = NOTHING
            effects[slot[row]] = effect_number(True, False, False, sent.operation[entry] != DELETE)
            entry += 1
        kept = start
        for place in range(start, found):
            effect = effects[place]
            if effect == NO_EFFECT:  # it is not refreshed
                effect = effect_number(False, True, there[place], not gone[place])
            if effect != NO_EFFECT:  # else the row did not exist before, and does not now
                applies[kept], rows[kept], effects[kept] = applies[place], rows[place], effect
                given[kept] = given[place]
                kept += 1
        found = kept
    return applies[:found], rows[:found], effects[:found], given[:found]


@kernel
def is_in_order(epochs, groups):
    """Whether rows are sorted by epoch and group. Shape of both columns (rows,)."""
    for place in range(1, len(epochs)):
        before, after = epochs[place - 1], epochs[place]
        if after < before or (after == before and groups[place] < groups[place - 1]):
            return False
    return True


@inlined
def _other_values(mine, shown):
    """Whether two digests are of the same columns with other values."""
    return mine != shown and mine >> COLUMNS_SHIFT == shown >> COLUMNS_SHIFT


@inlined
def _same_in_order(mine, start, stop, shown, shown_start, shown_stop):
    """Whether two runs of `ShownRows` have the same effects on the same rows in the same order."""
    if stop - start != shown_stop - shown_start:
        return False
    for place in range(stop - start):
        if mine.key[start + place] != shown.key[shown_start + place]:
            return False
        if mine.effect[start + place] != shown.effect[shown_start + place]:
            return False
        if _other_values(mine.digest[start + place], shown.digest[shown_start + place]):
            return False
    return True


@kernel
def compare_with_binlog(mine, apply, shown, keys):
    """
    Compare the effects of one applier with those that its binlog shows.

    Epoch applies without a trace can have the same epoch and group; the last effect on a row counts then.

    Args:
        mine: `ShownRows` of the engine; an epoch apply has each row once.
        apply: Epoch apply of each row of `mine`. int64, shape (rows,).
        shown: `ShownRows` of the binlog.
        keys: Number of rows.

    Returns:
        Number of rows, per epoch and group, that either has; and epoch, group and row of those that differ, with the
        effects of the engine and of the binlog, bit n for effect n, which are the same where only values differ. Shape
        (differing,).
    """
    count = len(mine.key) + len(shown.key)
    at_epoch, at_group, at_row = np.empty(count, np.uint64), np.empty(count, np.int32), np.empty(count, np.int64)
    done_there, seen_there = np.empty(count, np.int8), np.empty(count, np.int8)
    done, seen = np.zeros(keys, np.int8), np.zeros(keys, np.int8)  # bit n is effect n
    given, written = np.zeros(keys, np.uint64), np.zeros(keys, np.uint64)
    first, second, compared, differing = 0, 0, 0, 0
    while first < len(mine.key) or second < len(shown.key):
        earlier = second >= len(shown.key) or (
            first < len(mine.key)
            and (
                mine.epoch[first] < shown.epoch[second]
                or (mine.epoch[first] == shown.epoch[second] and mine.group[first] <= shown.group[second])
            )
        )
        epoch = mine.epoch[first] if earlier else shown.epoch[second]
        group = mine.group[first] if earlier else shown.group[second]
        start, shown_start = first, second
        while first < len(mine.key) and mine.epoch[first] == epoch and mine.group[first] == group:
            first += 1
        while second < len(shown.key) and shown.epoch[second] == epoch and shown.group[second] == group:
            second += 1
        if _same_in_order(mine, start, first, shown, shown_start, second) and apply[start] == apply[first - 1]:
            compared += first - start
            continue  # nearly always: a third of the time
        for place in range(start, first):
            done[mine.key[place]], given[mine.key[place]] = 1 << mine.effect[place], mine.digest[place]
        for place in range(shown_start, second):
            seen[shown.key[place]] |= 1 << shown.effect[place]
            written[shown.key[place]] = shown.digest[place]
        for number in range(first - start + second - shown_start):
            own = start + number
            row = np.int64(mine.key[own] if own < first else shown.key[shown_start + own - first])
            if done[row] == 0 and seen[row] == 0:
                continue  # the row was compared before
            compared += 1
            if done[row] != seen[row] or (done[row] == 1 << CHANGED and _other_values(given[row], written[row])):
                at_epoch[differing], at_group[differing], at_row[differing] = epoch, group, row
                done_there[differing], seen_there[differing] = done[row], seen[row]
                differing += 1
            done[row], seen[row] = 0, 0
    effects = done_there[:differing], seen_there[:differing]
    return compared, at_epoch[:differing], at_group[:differing], at_row[:differing], *effects
