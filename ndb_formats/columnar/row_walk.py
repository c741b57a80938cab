"""The row walker over the chunks of a file: compiled loops, with a register of tables that grows on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.commits import Commits
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.kernels.layout import WalkState, WalkStop
from ndb_formats.columnar.kernels.rows import walk_rows
from ndb_formats.columnar.tables import TableRegister
from ndb_formats.errors import FormatError

_CELLS_PER_ROW = 16
_MIN_CELLS = 1 << 14  # two images of as many columns as a table can have


@attrs.frozen(eq=False)
class Facts:
    """
    What the walker finds out about each event. All arrays have shape (events,).

    Attributes:
        transaction_ids: Id of the user transaction. uint64.
        no_id: Whether there is none. bool.
        flags: Conflict flags. uint16.
        no_flags: Whether there are none. bool.
        epochs: NDB epoch. uint64.
        no_epoch: Whether there is none. bool.
        batches: Number of a rows event's shape in the register; -1 for events whose rows are not read. int32.
    """

    transaction_ids: npt.NDArray[np.uint64]
    no_id: npt.NDArray[np.bool_]
    flags: npt.NDArray[np.uint16]
    no_flags: npt.NDArray[np.bool_]
    epochs: npt.NDArray[np.uint64]
    no_epoch: npt.NDArray[np.bool_]
    batches: npt.NDArray[np.int32]

    @classmethod
    def of(cls, events: int) -> Facts:
        """Return the facts of that many events, before the walk."""
        return cls(
            np.zeros(events, np.uint64),
            np.zeros(events, np.bool_),
            np.zeros(events, np.uint16),
            np.zeros(events, np.bool_),
            np.zeros(events, np.uint64),
            np.zeros(events, np.bool_),
            np.full(events, -1, np.int32),
        )


class WalkedRows(NamedTuple):
    """
    What the walker finds out about each row. All arrays but the last have shape (rows,).

    Attributes:
        batches: Number of its shape in the register. int64.
        events: Number of its event in the chunk. int64.
        numbers: Its number in the event. int32.
        first_cells: Number of its first cell. int64.
        offsets: Its start, the start of its after image and its end, counted from the chunk's base. Shape (rows, 3),
            uint32.
    """

    batches: npt.NDArray[np.int64]
    events: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int32]
    first_cells: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.uint32]


class RowWalk:
    """
    Walks over the chunks of one file, in order.

    Attributes:
        register: The tables, kinds and columns met so far.
        facts: The facts of the events of the last chunk.
        rows: The rows of the last block.
        cells: Their cells. Shape (cells,), uint32.
        commits: The transactions of the last chunk; None before the first one.
    """

    def __init__(self, register: TableRegister, most_rows: int) -> None:
        """
        Allocate the arrays.

        Args:
            register: The tables; new ones are added.
            most_rows: Most rows of a block.
        """
        self.register = register
        self.facts = Facts.of(0)
        self.commits: Commits | None = None
        self.rows = WalkedRows(
            np.empty(most_rows, np.int64),
            np.empty(most_rows, np.int64),
            np.empty(most_rows, np.int32),
            np.empty(most_rows, np.int64),
            np.empty((most_rows, 3), np.uint32),
        )
        self.cells = np.empty(max(most_rows * _CELLS_PER_ROW, _MIN_CELLS), np.uint32)
        self._state = np.zeros(len(WalkState), np.int64)
        self._epoch = np.zeros(1, np.uint64)
        self._scratch = np.zeros(2, np.uint32)

    def blocks(self, chunk: EventChunk) -> Iterator[tuple[int, int | None]]:
        """
        Walk over a chunk, and stop whenever the arrays are full: each time is a *block* of rows.

        Yields:
            The number of rows of the block, and the event after them if it cannot be read, else None.
        """
        self.facts = Facts.of(len(chunk.types))
        self.commits = Commits.of(chunk, self.commits)
        self._state[[WalkState.EVENT, WalkState.ROW_AT]] = 0, -1
        stop = WalkStop.FULL
        while stop == WalkStop.FULL:
            self._state[[WalkState.ROWS, WalkState.CELLS]] = 0
            stop = self._fill(chunk)
            yield (
                int(self._state[WalkState.ROWS]),
                int(self._state[WalkState.EVENT]) if stop == WalkStop.FAULT else None,
            )

    @property
    def place(self) -> tuple[int, bool]:
        """The event at which the last block ended, and whether it has rows in that block."""
        return int(self._state[WalkState.EVENT]), bool(
            self._state[WalkState.ROW_AT] >= 0 and self._state[WalkState.ROW] > 0
        )

    def _fill(self, chunk: EventChunk) -> WalkStop:
        """Walk until the arrays are full, the chunk ends or an event cannot be read."""
        events = (chunk.types, chunk.starts, chunk.ends)
        while True:
            register = self.register
            kinds, keys, columns = register.kinds
            stop = WalkStop(
                walk_rows(
                    chunk.data, chunk.base, events, self._state, register.tables, kinds, keys, columns,
                    tuple(self.rows), self.cells, attrs.astuple(self.facts, recurse=False), self._epoch, self._scratch,
                )
            )  # fmt: skip
            event = int(self._state[WalkState.EVENT])
            try:
                if stop == WalkStop.TABLE_MAP:
                    register.add_table(chunk.body(event), chunk.server)
                elif stop == WalkStop.KIND:
                    register.add_kind(int(chunk.types[event]), chunk.body(event), int(self._state[WalkState.DIFFS]))
                else:
                    return stop
            except FormatError:
                return WalkStop.FAULT
