"""
The rows of a bucket that some epoch applies touch, where functions compare no column: operations, and states over time.

Read with their images are the operations of the epochs that are looked at, and those that an applier refreshed or
reflected in these epochs. Of all else, narrow columns say where a row was changed, and by whom; that is its state (see
`conflict.engine.inference.row_states`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.setups import rules_of
from conflict.engine.inference.row_states import RowStates, row_changed
from conflict.engine.kernels.arrays import Int64
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.shown_effects import Effect
from conflict.runs.rows.row_spans import Spans, WantedRows, joined_spans, last_change, rows_in_spans, rows_looked_at
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.touched_rows import TouchedRows, TouchedTask, rows_of_bucket
from ndb_formats.events.rows_event import Operation

REFRESHES = (Effect.REFRESHED, Effect.REFRESHED_ABSENT)


def states_decide(run: TaskInputs) -> bool:
    """
    Whether rows are known by where they were changed, and by whom; then `read_states` reads what decides on them.

    No function compares a column, no row is older than the log, and no refresh answers another one. Definitions do not
    change: the caller makes sure of that.
    """
    tables = rules_of(run.clusters).tables
    sends = (tables["reflects"] | tables["refreshes"]).any(axis=1)
    # Not whether the History has columns to compare: those of functions that are tried are among them.
    functions = (setup.function for cluster in run.clusters for setup in cluster.setups)
    compares = any(each is not None and each.column is not None for each in functions)
    left = run.part.starts_in_the_middle or run.careful is not None or run.view is not None
    return not (compares or left or (sends[::2].any() and sends[1::2].any()))


@attrs.frozen
class StatesOverTime:
    """
    What a bucket holds of these rows.

    Attributes:
        touched: The operations, and the effects of the epoch applies that are looked at or are answered.
        states: Per cluster, the states of the rows.
    """

    touched: TouchedRows
    states: dict[str, dict[RowKey, RowStates]]


@attrs.define
class _Needed:
    """
    What is needed of one cluster.

    Attributes:
        changes: Own changes, with their images.
        effects: Effects of its applier.
        states: Where its rows were changed.
    """

    changes: list[Spans] = attrs.field(factory=list)
    effects: list[Spans] = attrs.field(factory=list)
    states: list[Spans] = attrs.field(factory=list)


def read_states(task: TouchedTask) -> StatesOverTime:
    """Read the rows of a bucket that epochs touch."""
    bucket = task.run.load_bucket(task.bucket)
    reflects = [bool(cluster.reflects.any()) for cluster in task.run.clusters]
    needed = _needed(bucket, task.wanted.load(), reflects)
    chosen = np.zeros(len(bucket.key_table), np.bool_)
    rows, changed = [], []
    for side, each in enumerate(needed):
        for spans in (*each.changes, *each.states):
            chosen[spans.key] = True
        columns = bucket.changes[side], bucket.consequences[side]
        asked = each.changes, each.effects
        rows.append([rows_in_spans(*both) for both in zip(columns, map(joined_spans, asked), strict=True)])
        changed.append([rows_in_spans(own, joined_spans(each.states)) for own in columns])
    touched = rows_of_bucket(bucket, chosen, rows)
    names = {number: key for key, (_, number) in touched.located.items()}
    pairs = zip(bucket.clusters, changed, strict=True)
    return StatesOverTime(touched, {name: _states(bucket, side, own, names) for side, (name, own) in enumerate(pairs)})


def _needed(bucket: Bucket, wanted: Mapping[str, WantedRows], reflects: Sequence[bool]) -> list[_Needed]:
    """Return, per cluster, what is needed to judge the rows that epochs touch."""
    needed = [_Needed(), _Needed()]
    for here, name in enumerate(bucket.clusters):
        source = 1 - here
        mine, theirs = wanted[name], wanted[bucket.clusters[source]]
        key, place = rows_looked_at(bucket, here, mine, everything=reflects[source])
        epoch, until = mine.epochs[place], mine.until[place]
        needed[source].changes.append(Spans(key, epoch, epoch))
        needed[here].effects.append(Spans(key, mine.arrived[place], until))
        needed[here].states.append(Spans(key, last_change(bucket, here, key, mine.arrived[place]), until))
        sent = bucket.consequences[source]
        rows = rows_in_spans(sent, Spans(key, epoch, epoch))
        if not reflects[source] and len(rows):
            rows = rows[np.isin(sent.of_rows("effect", rows), REFRESHES)]
        if len(rows):
            applied = theirs.applied_at(sent.of_rows("epoch", rows), sent.of_rows("group", rows))
            rows, answered = rows[applied >= 0], theirs.traced_foreign[applied[applied >= 0]]
            key, epoch = sent.of_rows("key", rows).astype(np.int64), sent.of_rows("epoch", rows)
            needed[here].changes.append(Spans(key, answered, answered))
            needed[source].effects.append(Spans(key, epoch, epoch))
            needed[source].states.append(Spans(key, last_change(bucket, source, key, epoch), epoch))
    return needed


def _states(bucket: Bucket, side: int, rows: Sequence[Int64], names: Mapping[int, RowKey]) -> dict[RowKey, RowStates]:
    """Return the states of rows by their changes and effects; `rows` are those of either."""
    (changes, effects), (own, applied) = (bucket.changes[side], bucket.consequences[side]), rows
    key, epoch, group = (
        np.concatenate([changes.of_rows(name, own), effects.of_rows(name, applied)])
        for name in ("key", "epoch", "group")
    )
    effect = effects.of_rows("effect", applied)
    exists = np.concatenate(
        [
            changes.of_rows("operation", own) != Operation.DELETE_ROW,
            (effect != Effect.DELETED) & (effect != Effect.REFRESHED_ABSENT),
        ]
    )
    local = np.concatenate([np.ones(len(own), np.bool_), effect != Effect.CHANGED])
    order = np.lexsort((group, epoch, key))
    last = np.ones(len(order), np.bool_)  # of the changes of one group
    for column in (key, epoch, group):
        column[:] = column[order]
    last[:-1] = (np.diff(key) != 0) | (epoch[1:] != epoch[:-1]) | (np.diff(group) != 0)
    kept = order[last]
    moments = list(zip(epoch[last].tolist(), group[last].tolist(), strict=True))
    states: list[Row | None] = [
        row_changed(moment[0], local=by_own) if here else None
        for moment, here, by_own in zip(moments, exists[kept].tolist(), local[kept].tolist(), strict=True)
    ]
    keys, starts = np.unique(key[last], return_index=True)
    ends = np.append(starts, len(moments))[1:].tolist()
    return {
        names[number]: RowStates(moments[start:end], states[start:end])
        for number, start, end in zip(keys.tolist(), starts.tolist(), ends, strict=True)
    }
