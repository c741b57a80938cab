"""
What `conflict.diverge` returns: the shortest schedules that end badly, or that there are none.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs

from conflict.extras import data_frame
from conflict.telling.shown import Shown
from conflict.telling.value import Telling
from conflict.whatif.diverging.search import Found
from conflict.whatif.diverging.telling import found_json, tell_searches

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("function", "binlog_type", "goal", "found", "steps", "states", "depth", "seconds", "complete")


@attrs.frozen(repr=False, eq=False, slots=False)
class Divergence(Shown):
    """
    What searches of a small scope found. Printed, it is the schedules, or how far none was found.

    Attributes:
        searches: The searches, one for each goal: the shortest schedule in `steps`, the number of `states` that were
            seen, the `depth` in steps, the `seconds` that it took, and whether it is `complete`.
    """

    searches: tuple[Found, ...]

    @property
    def found(self) -> bool:
        """Whether any schedule was found."""
        return any(each.steps is not None for each in self.searches)

    @property
    def complete(self) -> bool:
        """Whether each search went through its whole scope, or found a schedule."""
        return all(each.complete for each in self.searches)

    def document(self) -> dict[str, Any]:
        """Return the document of ``--json``."""
        return {"searches": self._documents}

    def telling(self) -> Telling:
        """Return what is told of it."""
        return tell_searches(self._documents)

    def to_pandas(self) -> pd.DataFrame:
        """Return a search a row: function, binlog_type, goal, found, steps, states, depth, seconds, complete."""
        return data_frame([{name: each.get(name) for name in _COLUMNS} for each in self._documents])

    @cached_property
    def _documents(self) -> list[dict[str, Any]]:
        return [found_json(each) for each in self.searches]
