"""
The transaction that each event of a chunk belongs to: its GTID, and when it committed.

Nothing is decoded before it is asked for. `ndb_formats.events.gtid_event` says where the fields are.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.columnar.event_chunks import EventChunk, stored_event
from ndb_formats.columnar.event_index import recent_index
from ndb_formats.constants import TRANSACTION_STARTS, EventType
from ndb_formats.events.gtid_event import CLOCK, LOGICAL, NUMBER, SOURCE, TIME, TIME_BITS, gtid_and_time, uuid_text

_Int64 = npt.NDArray[np.int64]
MICROSECONDS = pa.timestamp("us", tz="UTC")
_TIMED = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)


@attrs.frozen(eq=False, slots=False)
class Commits:
    """
    The transactions of a chunk.

    Attributes:
        chunk: The events.
        begins: Numbers of the events that begin a transaction. Shape (transactions,), int64.
        before: The GTID and the time of the last transaction that begins before the chunk; None if that is not known.
    """

    chunk: EventChunk
    begins: _Int64
    before: tuple[str | None, int | None] | None

    @classmethod
    def of(cls, chunk: EventChunk, last: Commits | None) -> Commits:
        """Return those of a chunk; `last` are those of the chunk before it in the file."""
        begins = np.flatnonzero(np.isin(chunk.types, TRANSACTION_STARTS))
        if last is not None:
            return cls(chunk, begins, last.told(int(last.begins[-1])) if len(last.begins) else last.before)
        is_first = len(chunk.positions) > 0 and chunk.positions[0] <= FIRST_POSITION
        return cls(chunk, begins, (None, None) if is_first else None)

    def gtids(self, events: _Int64) -> pa.StringArray:
        """Return the GTID of the transaction of each event, given by their numbers; null if none is logged."""
        if self._gtids.null_count == len(self._gtids):
            return pa.nulls(len(events), pa.string())
        return self._gtids.take(pa.array(self._transactions.take(events)))

    def times(self, events: _Int64) -> pa.TimestampArray:
        """Return when the transaction of each event committed on the server of the log; null if that is not logged."""
        return self._times.take(pa.array(self._transactions.take(events)))

    @cached_property
    def _transactions(self) -> _Int64:
        """Number of the transaction of each event, from 1; 0 is the one that begins before the chunk."""
        begins = np.zeros(len(self.chunk.types), np.int64)
        begins[self.begins] = 1
        return np.cumsum(begins)

    def told(self, number: int) -> tuple[str | None, int | None]:
        """Return what an event says of the transaction that it begins."""
        chunk = self.chunk
        return gtid_and_time(int(chunk.types[number]), int(chunk.server_ids[number]), chunk.body(number))

    @cached_property
    def _first(self) -> tuple[str | None, int | None]:
        """What is told of the transaction that begins before the chunk, which is looked for if it is not known."""
        if self.before is not None:
            return self.before
        index = recent_index(self.chunk.file)
        begins = index.positions[np.isin(index.types, TRANSACTION_STARTS)]
        earlier = begins[begins < self.chunk.positions[0]]
        if not len(earlier):
            return None, None
        event = stored_event(self.chunk.file, int(earlier[-1]), self.chunk.trailer)
        return gtid_and_time(event.header.type_code, event.header.server_id, event.body)

    @cached_property
    def _gtids(self) -> pa.StringArray:
        found = [pa.array([self._first[0]], pa.string())]
        types = self.chunk.types[self.begins]
        if not np.isin(types, _TIMED).all():
            found.append(pa.array([self.told(number)[0] for number in self.begins.tolist()], pa.string()))
        elif (types == EventType.ANONYMOUS_GTID_LOG_EVENT).all():
            found.append(pa.nulls(len(types), pa.string()))
        else:
            found.append(self._of_sources(types == EventType.GTID_LOG_EVENT))
        return pa.concat_arrays(found)

    def _of_sources(self, named: npt.NDArray[np.bool_]) -> pa.StringArray:
        """Return the GTIDs of events without tags; others are anonymous."""
        starts, ends = (each[self.begins] for each in (self.chunk.starts, self.chunk.ends))
        named = named & (ends - starts >= NUMBER.stop)
        heads = self.chunk.data[starts[named][:, None] + np.arange(NUMBER.stop)]
        sources = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16), len(heads), [None, pa.py_buffer(np.ascontiguousarray(heads[:, SOURCE]))]
        ).dictionary_encode()
        names = pa.array(map(uuid_text, sources.dictionary.to_pylist()), pa.string()).take(sources.indices)
        numbers = pa.array(np.ascontiguousarray(heads[:, NUMBER]).view("<i8").ravel()).cast(pa.string())
        places = pa.array(np.cumsum(named) - 1, mask=~named)
        return pc.binary_join_element_wise(names, numbers, ":").take(places)

    @cached_property
    def _times(self) -> pa.TimestampArray:
        data, begins = self.chunk.data, self.begins
        starts, ends = (each[begins] for each in (self.chunk.starts, self.chunk.ends))
        timed = np.isin(self.chunk.types[begins], _TIMED) & (ends - starts >= TIME.stop)
        timed[timed] = data[starts[timed] + CLOCK] == LOGICAL
        found = np.zeros(len(begins) + 1, np.int64)
        found[0] = self._first[1] or 0
        found[1:][timed] = _numbers(data, starts[timed] + TIME.start)
        for place in np.flatnonzero(self.chunk.types[begins] == EventType.GTID_TAGGED_LOG_EVENT).tolist():
            found[place + 1] = self.told(int(begins[place]))[1] or 0
        return pa.array(found, mask=found == 0).cast(MICROSECONDS)


def _numbers(data: npt.NDArray[np.uint8], places: _Int64) -> _Int64:
    """Return the times at some places."""
    width = TIME.stop - TIME.start
    bytes_of = data[places[:, None] + np.arange(width)].astype(np.int64)
    found: _Int64 = (bytes_of << 8 * np.arange(width)).sum(axis=1) & TIME_BITS
    return found
