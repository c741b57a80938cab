"""
Blocks: how the rows of a segment stand in a file until tasks of buckets fetch them.

A file is a row of blocks, each an Arrow stream of its own with the rows of some neighbouring buckets. The task of these
buckets reads one block of each segment: one piece of bytes, wherever the file lies. So all tasks together read each
byte once.
"""

from __future__ import annotations

import json
import mmap
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.stored import fetch_pieces

_ROWS = b"rows"  # of each bucket, in the metadata of a block's schema
_FEW_TASKS, _FEW_TOGETHER = 64, 4
_TASKS, _MOST_TOGETHER = 256, 64


def ranges_of(buckets: int) -> list[range]:
    """
    Return the buckets whose rows stand in one block, and are taken by one task; one bucket each if there are few.

    A block is a request, so it takes up to 4 buckets as soon as 64 tasks have work, and more from 256 tasks on. It has
    30 to 300 KiB of each segment then.
    """
    together = max(1, min(buckets // _FEW_TASKS, _FEW_TOGETHER), min(buckets // _TASKS, _MOST_TOGETHER))
    return [range(first, min(first + together, buckets)) for first in range(0, buckets, together)]


class Parts(Protocol):
    """The tables of neighbouring buckets."""

    def of(self, bucket: int) -> pa.Table:
        """Return the table of one of them."""
        ...


@attrs.frozen
class BlockPlace:
    """
    Where a block is.

    Attributes:
        path: Its file.
        buckets: The buckets whose tables it has.
        start: Where it starts in the file.
        stop: Where it ends.
    """

    path: str
    buckets: range
    start: int
    stop: int


def places_of(path: str, buckets: int, bounds: npt.NDArray[np.int64]) -> list[BlockPlace]:
    """Return where the blocks of a file are, given what `write_blocks` yielded for the tables of so many buckets."""
    pieces = zip(ranges_of(buckets), bounds.tolist(), bounds[1:].tolist(), strict=False)
    return [BlockPlace(path, *piece) for piece in pieces]


@attrs.frozen(eq=False)
class Block:
    """
    A block that was read.

    Attributes:
        rows: Its rows, those of each bucket together.
        first: The first bucket.
        bounds: Where the rows of each bucket start, and where those of the last one end. Shape (buckets + 1,).
    """

    rows: pa.Table
    first: int
    bounds: npt.NDArray[np.int64]

    def of(self, bucket: int) -> pa.Table:
        """Return the table of a bucket."""
        start, stop = self.bounds[bucket - self.first : bucket - self.first + 2].tolist()
        return self.rows.slice(start, stop - start)


def write_blocks(stream: pa.NativeFile, parts: Sequence[pa.Table]) -> Iterator[int]:
    """
    Write the tables of all buckets, and yield where each block starts, and where the last one ends.

    Args:
        stream: Where they go; it is at its beginning.
        parts: The tables, at least one; they have one schema.
    """
    yield 0
    for buckets in ranges_of(len(parts)):
        own = parts[buckets.start : buckets.stop]
        rows = pa.concat_tables(own).unify_dictionaries().combine_chunks()
        rows = rows.replace_schema_metadata({_ROWS: json.dumps([len(each) for each in own])})
        # Blocks of few buckets are compressed: less to move. Of many they stay mapped, as memory would not hold them.
        compression = "lz4" if len(own) <= _FEW_TOGETHER else None
        options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
        with pa.ipc.new_stream(stream, rows.schema, options=options) as writer:
            writer.write_table(rows)
        yield stream.tell()


def read_block(data: pa.Buffer, first: int) -> Block:
    """
    Return a block; unless it is compressed, its columns are where its bytes are.

    Args:
        data: Its bytes.
        first: Its first bucket.

    Raises:
        ArrowException: It is none.
    """
    rows = pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
    counts = json.loads(rows.schema.metadata[_ROWS])
    return Block(rows.replace_schema_metadata(None), first, np.cumsum([0, *counts]))


def fetch_blocks(objects: Mapping[BlockPlace, str], scratch: str) -> dict[BlockPlace, pa.Buffer]:
    """
    Fetch blocks, given the address of the file of each, and return their bytes, which are in a file without a name.

    That goes with them, or with the process if it is killed.

    Args:
        objects: The addresses.
        scratch: Folder on the disk where that file is to be.

    Raises:
        OSError: The storage does not answer, or a file is not there.
    """
    if not objects:
        return {}
    with tempfile.TemporaryFile(dir=scratch) as file:
        fetch_pieces([(address, place.start, place.stop) for place, address in objects.items()], file)
        file.flush()
        data = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    sizes = [place.stop - place.start for place in objects]
    starts = accumulate(sizes, initial=0)
    return {place: data.slice(start, size) for place, start, size in zip(objects, starts, sizes, strict=False)}
