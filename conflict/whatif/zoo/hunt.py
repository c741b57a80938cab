"""
The searches of a zoo, as tasks: one for each pair, and one for each group of prefixes where a pair has many states.

A search begins alone. When a level has many states, the schedules that lead to them are prefixes of all that is left;
each task goes on from a group of them, on its own, so that two tasks may see one state. A prefix is one of epochs: what
both clusters logged so far. Each task that ends is kept in the folder, if there is one, under a name that follows from
all that determines it; a hunt that was killed goes on with those that are missing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import attrs

from conflict.config.arguments import StageProgress
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Runner
from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.search import Explored, explore
from conflict.whatif.diverging.steps import Schedule
from conflict.whatif.diverging.words import schedule_of, step_text
from conflict.whatif.zoo.pairs import Pair

SEARCHES = "searches"
WIDE = 2000  # states of a level from which on a search is parted
TOGETHER = 250  # prefixes of a task
_FORMAT = 1  # raised when the search changes


@attrs.frozen
class Caught:
    """
    What was found of a pair.

    Attributes:
        pair: The pair.
        schedules: The shortest schedule to each anomaly that there is.
        states: How many states were seen; of a search in parts, some of them by several parts.
        depth: Steps of the longest schedules that were tried.
        seconds: How long all its searches took.
    """

    pair: Pair
    schedules: Mapping[Goal, Schedule]
    states: int
    depth: int
    seconds: float


@attrs.frozen
class _Task:
    """
    A search.

    Attributes:
        pair: What is searched.
        goals: For what.
        folder: Where it is kept; None for nowhere.
        begin: The prefixes that it goes on from; None for all of a pair.
    """

    pair: Pair
    goals: tuple[Goal, ...]
    folder: Folder | None
    begin: tuple[tuple[str, ...], ...] | None = None

    @property
    def path(self) -> str:
        """The path of its file in the folder."""
        scope = attrs.asdict(self.pair.scope, filter=lambda field, _: field.name != "functions")
        whole = json.dumps([_FORMAT, version("ndb-conflict"), WIDE, scope, self.goals, self.begin], sort_keys=True)
        return f"{SEARCHES}/{self.pair.name}-{hashlib.sha256(whole.encode()).hexdigest()[:16]}.json"

    def kept(self) -> dict[str, Any] | None:
        """Return what it found, if it ended before; a file without content is of a machine that went down."""
        if self.folder is None or not self.folder.sizes([self.path]).get(self.path):
            return None
        try:
            found: dict[str, Any] = self.folder.read_json(self.path)
        except HistoryError as error:
            message = f"{self.folder.uri}/{self.path} is damaged; delete this file, and run the command again"
            raise HistoryError(message) from error
        return found


def _searched(task: _Task) -> dict[str, Any]:
    """Search, keep what was found, and return it."""
    scope = task.pair.scope
    begin = None if task.begin is None else [schedule_of(each, scope) for each in task.begin]
    began = time.monotonic()
    found = explore(scope, task.goals, begin, wide=WIDE if begin is None else None)
    document = _document(found, scope, time.monotonic() - began)
    if task.folder is not None:
        task.folder.write_json(task.path, document)
    return document


def _document(found: Explored, scope: Scope, seconds: float) -> dict[str, Any]:
    def texts(schedule: Schedule) -> list[str]:
        return [step_text(step, scope) for step in schedule]

    return {
        "reached": {goal.value: texts(schedule) for goal, schedule in found.reached.items()},
        "states": found.states,
        "depth": found.depth,
        "seconds": round(seconds, 3),
        "frontier": [texts(schedule) for schedule in found.frontier],
    }


def hunt(
    pairs: Sequence[Pair], goals: Sequence[Goal], folder: Folder | None, runner: Runner, progress: StageProgress
) -> list[Caught]:
    """
    Search every pair for every anomaly, and return what was found, in the order of the pairs.

    Args:
        pairs: The pairs; those that are refused are left out.
        goals: The anomalies.
        folder: Where finished searches are kept; None for nowhere.
        runner: Runs the searches.
        progress: Called with the name of the stage, what is done, and what there is to do.

    Raises:
        HistoryError: A file of the folder is damaged.
    """
    allowed = [pair for pair in pairs if pair.refusal is None]
    # What a function of one's own does follows from no name, so that its searches are made each time.
    whole = [_Task(pair, tuple(goals), folder if pair.is_of_servers else None) for pair in allowed]
    first = _run(whole, "searching", runner, progress)
    parts = [_parts(task, found) for task, found in zip(whole, first, strict=True)]
    rest = iter(_run([task for part in parts for task in part], "going on from prefixes", runner, progress))
    return [
        _caught(pair, [found, *(next(rest) for _ in part)])
        for pair, found, part in zip(allowed, first, parts, strict=True)
    ]


def _parts(task: _Task, found: Mapping[str, Any]) -> list[_Task]:
    """Return the searches that are left of a pair."""
    left = tuple(goal for goal in task.goals if goal.value not in found["reached"])
    prefixes = tuple(tuple(each) for each in found["frontier"])
    groups = [prefixes[first : first + TOGETHER] for first in range(0, len(prefixes), TOGETHER)]
    return [_Task(task.pair, left, task.folder, each) for each in groups]


def _run(tasks: Sequence[_Task], stage: str, runner: Runner, progress: StageProgress) -> list[dict[str, Any]]:
    """Return what each task found, now or before."""
    found = [task.kept() for task in tasks]
    missing = [task for task, each in zip(tasks, found, strict=True) if each is None]
    done = len(tasks) - len(missing)
    progress(stage, done, len(tasks))
    new = iter(runner(_searched, missing, lambda more, _: progress(stage, done + more, len(tasks))))
    return [next(new) if each is None else each for each in found]


def _caught(pair: Pair, parts: Sequence[Mapping[str, Any]]) -> Caught:
    """Return what all searches of a pair found: of several schedules, the first one of the shortest."""
    schedules: dict[Goal, Schedule] = {}
    for part in parts:
        for name, texts in part["reached"].items():
            goal, schedule = Goal(name), schedule_of(texts, pair.scope)
            if goal not in schedules or len(schedule) < len(schedules[goal]):
                schedules[goal] = schedule
    states, seconds = (sum(part[name] for part in parts) for name in ("states", "seconds"))
    return Caught(pair, schedules, states, max(part["depth"] for part in parts), seconds)
