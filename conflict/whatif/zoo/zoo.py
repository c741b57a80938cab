"""
The zoo: its cells, as one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from conflict.errors import ConfigurationError
from conflict.extras import data_frame
from conflict.telling.shown import Shown
from conflict.telling.value import Telling
from conflict.whatif.diverging.scope import Goal, Values
from conflict.whatif.zoo.cell import Cell
from conflict.whatif.zoo.hunt import Caught
from conflict.whatif.zoo.pairs import NONE, Bounds, Pair
from conflict.whatif.zoo.recorded import recorded
from conflict.whatif.zoo.telling import tell_cells

if TYPE_CHECKING:
    import pandas as pd


@attrs.frozen(repr=False)
class Zoo(Shown):
    """
    What breaks: a cell for every resolver, format and anomaly.

    Attributes:
        cells: The cells, row by row.
        bounds: How much was searched.
        seconds: How long the searches took, added up.
    """

    cells: tuple[Cell, ...]
    bounds: Bounds
    seconds: float

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def states(self) -> int:
        """How many states were seen."""
        return sum({cell.pair: cell.states for cell in self.cells}.values())

    def cell(
        self, function: str | None, anomaly: Goal | str, binlog_type: int = 7, values: Values | str = Values.VERSION
    ) -> Cell:
        """
        Return a cell.

        Args:
            function: The conflict function; None or ``none`` for none.
            anomaly: The anomaly: ``difference``, ``lost``, ``stop``, ``returns`` or ``counters``.
            binlog_type: The format.
            values: What is written to the column that the function compares: ``version`` or ``clock``.

        Raises:
            ConfigurationError: There is no such cell.
        """
        asked = (function or NONE, anomaly, binlog_type)
        for each in self.cells:
            if (each.function, each.anomaly, each.binlog_type) == asked and each.written in (None, values):
                return each
        rows = ", ".join(dict.fromkeys(each.row for each in self.cells))
        message = f"the zoo has no cell of {function or NONE}, {anomaly}, type {binlog_type}; its rows are {rows}"
        raise ConfigurationError(message)

    def document(self) -> dict[str, Any]:
        """Return the zoo as a document, as the command ``zoo --json`` writes it."""
        return {
            "bounds": attrs.asdict(self.bounds),
            "states": self.states,
            "seconds": round(self.seconds, 1),
            "zoo": [each.document() for each in self.cells],
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per cell; `steps` is the schedule as one text, NULL where there is none."""
        names = ("function", "values", "binlog_type", "anomaly", "answer", "length", "states", "mark")
        rows = []
        for each in self.cells:
            document = each.document()
            steps = None if each.steps is None else "; ".join(each.steps)
            rows.append({**{name: document[name] for name in names}, "function": each.function, "steps": steps})
        return data_frame(rows).astype({"length": "Int64"})

    def telling(self) -> Telling:
        """Return what is told of it."""
        return tell_cells(self.cells, self.bounds, self.states)


def zoo_of(pairs: Sequence[Pair], goals: Sequence[Goal], caught: Sequence[Caught], bounds: Bounds) -> Zoo:
    """Return the zoo of all pairs, from what was found of those that are not refused."""
    found = {each.pair.name: each for each in caught}
    cells = tuple(_cell(pair, goal, found.get(pair.name)) for pair in pairs for goal in goals)
    return Zoo(cells, bounds, sum(each.seconds for each in caught))


def _cell(pair: Pair, goal: Goal, caught: Caught | None) -> Cell:
    if caught is None:
        return Cell(pair.scope, goal, pair.name, pair.row, pair.refusal)
    schedule = caught.schedules.get(goal)
    known = None if schedule is None else recorded(pair.name, goal, schedule, pair.scope)
    return Cell(pair.scope, goal, pair.name, pair.row, None, schedule, caught.states, known)
