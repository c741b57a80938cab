"""
A cell of the zoo, as a value.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs

from conflict.whatif.diverging.retelling import TakenStep, ending, retell, timeline
from conflict.whatif.diverging.scope import Goal, Scope, Values
from conflict.whatif.diverging.steps import Schedule
from conflict.whatif.diverging.words import step_text
from conflict.whatif.zoo.pairs import NONE
from conflict.whatif.zoo.recorded import Recorded


@attrs.frozen(slots=False)
class Cell:
    """
    A cell: a resolver with a format, and an anomaly.

    Attributes:
        scope: What was searched.
        anomaly: What for.
        pair: The name of resolver and format among files.
        row: The resolver, and what is written to the column that it compares.
        refusal: Why there is nothing to search; None if there is.
        steps: The shortest schedule that shows it, one text a step; None if there is none in the scope.
        schedule: The same.
        states: How many states were seen of resolver and format, for all anomalies.
        recorded: What came of the schedule on real clusters; None if nobody tried.
    """

    scope: Scope = attrs.field(repr=False)
    anomaly: Goal
    pair: str = attrs.field(repr=False)
    row: str
    refusal: str | None = None
    schedule: Schedule | None = attrs.field(default=None, repr=False)
    states: int = 0
    recorded: Recorded | None = None

    @property
    def name(self) -> str:
        """Its name among files."""
        return f"{self.pair}_{self.anomaly}"

    @property
    def function(self) -> str:
        """The conflict function, or ``none``."""
        return self.scope.function or NONE

    @property
    def written(self) -> Values | None:
        """What is written to the column that the function compares; None if it compares none."""
        return None if self.scope.resolve_column is None else self.scope.values  # of a scope, not of a frame

    @property
    def binlog_type(self) -> int:
        """The format."""
        return self.scope.binlog_type

    @property
    def length(self) -> int | None:
        """Steps of the schedule, without the load."""
        return None if self.schedule is None else len(self.schedule) - 1

    @property
    def steps(self) -> tuple[str, ...] | None:
        """The schedule, one text a step, the load first."""
        return None if self.schedule is None else tuple(step_text(step, self.scope) for step in self.schedule)

    @property
    def answer(self) -> str:
        """``found``, ``none`` or ``refused``."""
        return "refused" if self.refusal is not None else "none" if self.schedule is None else "found"

    @property
    def mark(self) -> str:
        """``recorded`` if real clusters did the same, ``contradicted`` if they did not, else ``searched``."""
        if self.recorded is None:
            return "" if self.refusal is not None else "searched"
        return "recorded" if self.recorded.agreed else "contradicted"

    @cached_property
    def walk(self) -> list[TakenStep]:
        """The schedule, carried out."""
        return [] if self.schedule is None else retell(self.scope, self.schedule)

    @property
    def rows_at_the_end(self) -> dict[str, str]:
        """The rows of each cluster where the schedule ends."""
        return ending(self.scope, self.walk) if self.walk else {}

    def document(self) -> dict[str, Any]:
        """Return the cell as a document."""
        found: dict[str, Any] = {
            "pair": self.pair,
            "function": self.scope.function,
            "values": None if self.written is None else self.written.value,
            "binlog_type": self.binlog_type,
            "anomaly": self.anomaly.value,
            "answer": self.answer,
            "length": self.length,
            "states": self.states,
            "mark": self.mark,
            "server": None if self.recorded is None else self.recorded.server,
        }
        if self.refusal is not None:
            found["refusal"] = self.refusal
        if self.schedule is not None:
            lines = timeline(self.scope, self.walk)
            found["steps"] = list(self.steps or ())
            found["timeline"] = [{"step": each.number, "cluster": each.cluster, "text": each.text} for each in lines]
            found["ending"] = self.rows_at_the_end
        return found
