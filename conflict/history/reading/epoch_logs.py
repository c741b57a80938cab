"""
Whole logs to epochs: files, or pieces of the files of several SQL nodes, in order. Epochs rise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from conflict.config.configuration import LogPiece
from conflict.errors import HistoryError
from conflict.history.epochs import BinlogEpoch, EpochReader
from ndb_formats.binlog_reader import FIRST_POSITION, read_events


def read_epochs(
    files: Iterable[str | Path], reader: EpochReader, ranges: Mapping[str, tuple[int, int | None]] | None = None
) -> Iterator[BinlogEpoch]:
    """
    Yield the epochs of a cluster's binlog files, in order.

    Args:
        files: Binlog files in the order in which they were written.
        reader: Holds the layouts, and the rows pending where a file ends early.
        ranges: Per file, the positions to read from and up to; by default the whole file.

    Raises:
        FormatError: A file cannot be read further. Every epoch complete before that has been yielded.
        WrongKeyError: A table has another primary key, so that the epochs yielded are not what they seem.
        HistoryError: Epochs do not rise.
    """
    last = -1
    for file in files:
        start, stop = (ranges or {}).get(str(file), (FIRST_POSITION, None))
        for event in read_events(file, start=start, stop=stop):
            epoch = reader.feed(event)
            if epoch is None:
                continue
            if epoch.number <= last:
                raise disordered(f"{file}, position {event.position}", epoch.number, str(last))
            last = epoch.number
            yield epoch


def read_log(pieces: Iterable[LogPiece], reader: EpochReader) -> Iterator[BinlogEpoch]:
    """
    Yield the epochs of what is read as the log of a cluster, in order.

    Args:
        pieces: The pieces of its SQL nodes' logs.
        reader: As for `read_epochs`.

    Raises:
        FormatError: As `read_epochs`.
        WrongKeyError: As `read_epochs`.
        HistoryError: As `read_epochs`.
    """
    last = -1
    for piece in pieces:
        reader.server_id = piece.server_id
        ranges = {str(piece.file): (piece.start or FIRST_POSITION, piece.stop)}
        for epoch in read_epochs([piece.file], reader, ranges):
            if epoch.number <= last:
                raise disordered(str(piece.file), epoch.number, str(last))
            last = epoch.number
            yield epoch


def disordered(place: str, epoch: int, last: str) -> HistoryError:
    """Return the error of an epoch that does not rise; `last`: the one before it, and its file."""
    return HistoryError(
        f"{place}: epoch {epoch} follows {last}, so the files are not one log in its order; give them in the order in "
        "which they were written, and leave out those of another server or another time"
    )
