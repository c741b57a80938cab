"""
Which cells were recorded: their schedules were carried out on real clusters, and ended as the search says, or not.

`recorded.json` holds them: the cell, the steps that were carried out, the server, and whether it agreed. A cell whose
shortest schedule is another one is not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import attrs

from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.steps import Schedule
from conflict.whatif.diverging.words import step_text

_FILE = "recorded.json"


@attrs.frozen
class Recorded:
    """
    What came of a schedule on real clusters.

    Attributes:
        server: Their version.
        agreed: Whether rows, counters and stops were those of the search.
    """

    server: str
    agreed: bool


def recorded(pair: str, goal: Goal, schedule: Schedule, scope: Scope) -> Recorded | None:
    """Return what came of a schedule of a cell on real clusters; None if it was not recorded."""
    return _cells().get((pair, goal.value, tuple(step_text(step, scope) for step in schedule)))


@cache
def _cells() -> Mapping[tuple[str, str, tuple[str, ...]], Recorded]:
    document = json.loads(files(__package__).joinpath(_FILE).read_text("utf-8"))
    return {
        (each["pair"], each["anomaly"], tuple(each["steps"])): Recorded(each["server"], each["agreed"])
        for each in document["cells"]
    }
