"""
The searches of a zoo: each pair is a task, and where a level has many states, its states are tasks.

All pairs are searched beside each other. If they are fewer than processes, a search in which a level gets wide is left,
and made afterwards with all processes together: they expand the states of a level, and this process knows which of them
were seen. So no state is seen twice, and a search ends with the step at which its last anomaly is found, whatever ran
where. What cannot stop an applier by its format is not searched for that (`conflict.whatif.diverging.stopping`). Each
search that ends is kept in the folder, if there is one, under a name that follows from all that determines it; a hunt
that was killed goes on with those that are missing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import attrs

from conflict.config.arguments import StageProgress
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Runner, cores_of
from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.search import Mapper, Progress, explore, nobody
from conflict.whatif.diverging.steps import Schedule
from conflict.whatif.diverging.stopping import can_stop
from conflict.whatif.diverging.words import schedule_of, step_text
from conflict.whatif.zoo.pairs import Pair

SEARCHES = "searches"
WIDE = 10_000  # states of a level from which on all processes make one search together
_FORMAT = 2  # raised when the search changes


@attrs.frozen
class Caught:
    """
    What was found of a pair.

    Attributes:
        pair: The pair.
        schedules: The shortest schedule to each anomaly that there is.
        states: How many states were seen, symmetric ones once.
        depth: Steps of the longest schedules that were tried.
        seconds: How long its search took.
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
    """

    pair: Pair
    goals: tuple[Goal, ...]
    folder: Folder | None

    @property
    def path(self) -> str:
        """The path of its file in the folder."""
        scope = attrs.asdict(self.pair.scope, filter=lambda field, _: field.name != "functions")
        whole = json.dumps([_FORMAT, version("ndb-conflict"), scope, self.goals], sort_keys=True)
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


def _searched(
    task: _Task, *, wide: int | None = None, mapper: Mapper | None = None, progress: Progress = nobody
) -> dict[str, Any]:
    """Search, keep what was found, and return it; the rest as of `explore`."""
    scope, began = task.pair.scope, time.monotonic()
    found = explore(scope, task.goals, mapper=mapper, progress=progress, wide=wide)
    document = {
        "reached": {goal.value: _texts(schedule, scope) for goal, schedule in found.reached.items()},
        "states": found.states,
        "depth": found.depth,
        "seconds": round(time.monotonic() - began, 3),
        "complete": found.complete,
    }
    if task.folder is not None and found.complete:
        task.folder.write_json(task.path, document)
    return document


def _texts(schedule: Schedule, scope: Scope) -> list[str]:
    return [step_text(step, scope) for step in schedule]


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
    tasks = [_Task(pair, _possible(goals, pair.scope), folder if pair.is_of_servers else None) for pair in allowed]
    found = _run(tasks, runner, progress)
    for number, task in enumerate(tasks):
        if not found[number]["complete"]:

            def show(depth: int, done: int, total: int, name: str = task.pair.name) -> None:
                progress(f"{name}, step {depth}", done, total)

            together = partial(runner, progress=lambda done, total: None)
            found[number] = _searched(task, mapper=together, progress=show)
    return [_caught(pair, each) for pair, each in zip(allowed, found, strict=True)]


def _possible(goals: Sequence[Goal], scope: Scope) -> tuple[Goal, ...]:
    """Return the anomalies that a search is needed for."""
    return tuple(goal for goal in goals if goal is not Goal.STOP or can_stop(scope))


def _run(tasks: Sequence[_Task], runner: Runner, progress: StageProgress) -> list[dict[str, Any]]:
    """Return what each task found, now or before."""
    found = [task.kept() for task in tasks]
    missing = [task for task, each in zip(tasks, found, strict=True) if each is None]
    done = len(tasks) - len(missing)
    progress("searching", done, len(tasks))
    # Searches beside each other move no states between processes, so that each of them takes less work.
    search = partial(_searched, wide=WIDE if len(missing) < cores_of(runner) else None)
    new = iter(runner(search, missing, lambda more, _: progress("searching", done + more, len(tasks))))
    return [next(new) if each is None else each for each in found]


def _caught(pair: Pair, found: Mapping[str, Any]) -> Caught:
    """Return what the search of a pair found."""
    schedules = {Goal(name): schedule_of(texts, pair.scope) for name, texts in found["reached"].items()}
    return Caught(pair, schedules, found["states"], found["depth"], found["seconds"])
