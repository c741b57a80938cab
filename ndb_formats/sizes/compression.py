"""
What compression of transactions would bring, measured on a log's own bytes.

A server that compresses a transaction (``binlog_transaction_compression``) writes one Transaction_payload event in
place of all events but the GTID: a zstd frame of these events without checksums. The same is done here with
transactions from all over the log, as many as a budget allows.
"""

from __future__ import annotations

import attrs
import numpy as np
import zstandard

from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.constants import EVENT_HEADER_SIZE, EventType
from ndb_formats.events.transaction_payload import TransactionPayload, encode_transaction_payload

_LEVEL = 3  # the default of binlog_transaction_compression_level_zstd
_ZSTD = 0
_MARKS = np.array([EventType.QUERY_EVENT, EventType.XID_EVENT], np.uint8)
_LONGEST_MARK = 8


@attrs.frozen
class Compression:
    """
    What was measured.

    Attributes:
        transactions: Transactions that were compressed.
        plain: Bytes of their events as they are, checksums included, without the GTID event.
        compressed: Bytes of the Transaction_payload events in their place.
    """

    transactions: int
    plain: int
    compressed: int

    @property
    def ratio(self) -> float:
        """Compressed bytes per plain byte."""
        return self.compressed / self.plain


class CompressionMeter:
    """Compresses transactions of a log, chunk by chunk."""

    def __init__(self, log_bytes: int, budget: int = 1 << 22) -> None:
        """
        Start with nothing.

        Args:
            log_bytes: Bytes of all files.
            budget: Most bytes to compress; each chunk gets a part of it by its size.
        """
        self._share = min(budget / max(log_bytes, 1), 1.0)
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._found = Compression(0, 0, 0)

    @property
    def found(self) -> Compression | None:
        """What was measured; None if the log has no transaction that is not compressed."""
        return self._found if self._found.transactions else None

    def add(self, chunk: EventChunk) -> None:
        """Measure transactions of a chunk, if it is as in the file and not a copy of what was compressed there."""
        if not len(chunk.types) or not np.array_equal(chunk.positions + EVENT_HEADER_SIZE, chunk.starts):
            return
        budget = self._share * int(chunk.stops[-1] - chunk.positions[0])
        begin, used = None, 0
        for event in np.flatnonzero(np.isin(chunk.types, _MARKS)).tolist():
            if used >= budget:
                break
            mark = _mark(chunk, event)
            if mark == "BEGIN":
                begin = event
            elif mark and begin is not None:
                used += self._measure(chunk, begin, event + 1)
                begin = None

    def _measure(self, chunk: EventChunk, first: int, last: int) -> int:
        """Compress the events of a transaction; return how many bytes they have in the file."""
        data = memoryview(chunk.data.data)
        events = b"".join(
            data[start - EVENT_HEADER_SIZE : end]
            for start, end in zip(chunk.starts[first:last].tolist(), chunk.ends[first:last].tolist(), strict=True)
        )
        body = encode_transaction_payload(TransactionPayload(_ZSTD, len(events), self._compressor.compress(events)))
        plain = len(events) + (last - first) * chunk.trailer
        size = EVENT_HEADER_SIZE + len(body) + chunk.trailer
        found = self._found
        self._found = Compression(found.transactions + 1, found.plain + plain, found.compressed + size)
        return plain


def _mark(chunk: EventChunk, event: int) -> str:
    """Return how an event begins or ends a transaction; empty for any other event."""
    if chunk.types[event] == EventType.XID_EVENT:
        return "COMMIT"
    tail = chunk.data[max(chunk.ends[event] - _LONGEST_MARK, chunk.starts[event]) : chunk.ends[event]].tobytes()
    return next((word for word in ("BEGIN", "COMMIT") if tail.endswith(b"\0" + word.encode())), "")
