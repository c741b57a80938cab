"""
Which events of a block a `Selection` selects, for the text of a log.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.constants import EventType
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.selection import Selection

__all__ = ["EventSelection"]

Bools = npt.NDArray[np.bool_]
_ENDS = np.array([EventType.QUERY_EVENT, EventType.XID_EVENT], np.uint8)


class EventSelection:
    """Selects the events of one file, block by block, in order."""

    def __init__(self, selection: Selection, start: int) -> None:
        """
        Start before the first event.

        Args:
            selection: What to select; its moment to stop at is left to the reader.
            start: First position.
        """
        self._selection = selection
        self._start = start
        self._epoch: int | None = None

    @property
    def key(self) -> Sequence[tuple[str, str]]:
        """The key by which rows are selected."""
        return self._selection.key

    def is_past(self, walk: RowWalk) -> bool:
        """Return whether the walk has met an epoch after the last selected one."""
        stop = self._selection.stop_epoch
        return stop is not None and int(walk.facts.epochs.max(initial=0)) > stop

    def kept(self, chunk: EventChunk, walk: RowWalk, events: range) -> Bools:
        """Return which of these events are selected, as far as their own facts say. Shape (events,)."""
        chosen, part = self._selection, slice(events.start, events.stop)
        kept = chunk.positions[part] >= self._start
        if chosen.start_time:
            kept &= chunk.timestamps[part] >= chosen.start_time
        if chosen.server_ids:
            kept &= np.isin(chunk.server_ids[part], list(chosen.server_ids))
        if chosen.transactions:
            ids = np.array(sorted(chosen.transactions), np.uint64)
            kept &= np.isin(walk.facts.transaction_ids[part], ids) & ~walk.facts.no_id[part]
        if chosen.databases or chosen.tables:
            kept &= self._of_tables(chunk, walk, events)
        if chosen.start_epoch or chosen.stop_epoch is not None:
            kept &= self._in_epochs(chunk, walk, events)
        if chosen.by_row:
            kept &= walk.facts.batches[part] >= 0
        return kept

    def _of_tables(self, chunk: EventChunk, walk: RowWalk, events: range) -> Bools:
        """Return which events are of a selected table, or of no table."""
        shapes = walk.register.shapes
        wanted = np.array([self._selection.has_table(shape.table_map) for shape in shapes] + [True], np.bool_)
        kept = wanted[walk.facts.batches[events.start : events.stop]]
        for event in np.flatnonzero(chunk.types[events.start : events.stop] == EventType.TABLE_MAP_EVENT).tolist():
            kept[event] = self._selection.has_table(decode_table_map(chunk.body(events.start + event)))
        return kept

    def _in_epochs(self, chunk: EventChunk, walk: RowWalk, events: range) -> Bools:
        """Return which events belong to a selected epoch; that of an event is the last one before it."""
        facts, types = walk.facts, chunk.types
        kept = np.zeros(len(events), np.bool_)
        for number, event in enumerate(events):
            if facts.batches[event] >= 0:
                self._epoch = None if facts.no_epoch[event] else int(facts.epochs[event])
            kept[number] = self._selection.has_epoch(self._epoch)
            if types[event] in _ENDS:
                self._epoch = None
        return kept
