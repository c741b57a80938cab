"""
Stretches of events to the places of their rows: the compiled walker, and the register that it asks.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.kernels.layout import Place, Stop
from ndb_formats.columnar.kernels.rows import walk_rows
from ndb_formats.columnar.tables import TableRegister
from ndb_formats.errors import FormatError

__all__ = ["Facts", "RowWalk"]

_CELLS_PER_ROW = 16
_MIN_CELLS = 1 << 14  # two images of as many columns as a table can have


@attrs.frozen(eq=False)
class Facts:
    """
    What the walker finds out per event; in the order that `walk_rows` takes. All arrays have shape (events,).

    Attributes:
        transaction_ids: Id of the user transaction. uint64.
        no_id: Whether there is none. bool.
        flags: Conflict flags. uint16.
        no_flags: Whether there are none. bool.
        epochs: NDB epoch. uint64.
        no_epoch: Whether there is none. bool.
        batches: Of a rows event of a wanted table, the number of its shape in the register; else -1. int32.
    """

    transaction_ids: npt.NDArray[np.uint64]
    no_id: npt.NDArray[np.bool_]
    flags: npt.NDArray[np.uint16]
    no_flags: npt.NDArray[np.bool_]
    epochs: npt.NDArray[np.uint64]
    no_epoch: npt.NDArray[np.bool_]
    batches: npt.NDArray[np.int32]

    @classmethod
    def room(cls, events: int) -> Facts:
        """Return arrays for so many events."""
        return cls(
            np.zeros(events, np.uint64),
            np.zeros(events, np.bool_),
            np.zeros(events, np.uint16),
            np.zeros(events, np.bool_),
            np.zeros(events, np.uint64),
            np.zeros(events, np.bool_),
            np.full(events, -1, np.int32),
        )

    @property
    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """All of them."""
        return (
            self.transaction_ids,
            self.no_id,
            self.flags,
            self.no_flags,
            self.epochs,
            self.no_epoch,
            self.batches,
        )


class RowWalk:
    """
    Walks over the stretches of one file, in order.

    Attributes:
        register: The tables, kinds and columns met so far.
        facts: What was found of the events of the last stretch.
        rows: What was found of the rows of the last take, see `walk_rows`: batch, event, number, first cell, places.
        cells: Their cells.
    """

    def __init__(self, register: TableRegister, most_rows: int) -> None:
        """
        Make the arrays.

        Args:
            register: The tables; what is met is added.
            most_rows: Most rows of a take.
        """
        self.register = register
        self.facts = Facts.room(0)
        self.rows = (
            np.empty(most_rows, np.int64),
            np.empty(most_rows, np.int64),
            np.empty(most_rows, np.int32),
            np.empty(most_rows, np.int64),
            np.empty((most_rows, 3), np.uint32),
        )
        self.cells = np.empty(max(most_rows * _CELLS_PER_ROW, _MIN_CELLS), np.uint32)
        self._state = np.zeros(len(Place), np.int64)
        self._epoch = np.zeros(1, np.uint64)
        self._scratch = np.zeros(2, np.uint32)

    def takes(self, stretch: EventChunk) -> Iterator[tuple[int, int | None]]:
        """
        Yield how many rows each take of a stretch has, and the event that cannot be read behind them, if there is one.
        """
        self.facts = Facts.room(len(stretch.types))
        self._state[[Place.EVENT, Place.ROW_AT]] = 0, -1
        stop = Stop.FULL
        while stop == Stop.FULL:
            self._state[[Place.ROWS, Place.CELLS]] = 0
            stop = self._fill(stretch)
            yield int(self._state[Place.ROWS]), int(self._state[Place.EVENT]) if stop == Stop.FAULT else None

    def _fill(self, stretch: EventChunk) -> Stop:
        """Walk until the take is full, the stretch is done or something is wrong."""
        events = (stretch.types, stretch.starts, stretch.ends)
        while True:
            register = self.register
            kinds, keys, columns = register.kinds
            stop = Stop(
                walk_rows(
                    stretch.data, stretch.base, events, self._state, register.tables, kinds, keys, columns,
                    self.rows, self.cells, self.facts.arrays, self._epoch, self._scratch,
                )
            )  # fmt: skip
            event = int(self._state[Place.EVENT])
            try:
                if stop == Stop.TABLE_MAP:
                    register.add_table(stretch.body(event))
                elif stop == Stop.KIND:
                    register.add_kind(int(stretch.types[event]), stretch.body(event), int(self._state[Place.DIFFS]))
                else:
                    return stop
            except FormatError:
                return Stop.FAULT
