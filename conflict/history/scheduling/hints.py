"""
Hints on when untraced foreign epochs were applied: from a run file, or from the steps of a recording.

Steps are listed in the order in which they ran. So they show which transactions came before an applier started, and
that an applier had applied everything when a wait ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs

from conflict.config.run_file import RunFile, load_steps
from conflict.errors import ConfigurationError
from conflict.history.scheduling.schedule import ClusterHints, Hint, Hints
from conflict.history.scheduling.summaries import Summary
from conflict.history.timeline import LAST_GROUP, START, Position
from conflict.rules.replication_table import Role
from ndb_formats.stored import beside

Step = Mapping[str, Any]
_NEVER = 2**62


@attrs.frozen
class _Commit:
    """A transaction: the number of its step, its epoch, and its rank among the transactions of that epoch."""

    step: int
    epoch: int
    rank: int


@attrs.frozen
class _Uptime:
    """
    A stretch of steps in which an applier was running.

    Attributes:
        start: The step before it; -1 for none.
        stop: The step that ended it.
        last: The last epoch of the other cluster that was applied by then; None if not known.
    """

    start: int
    stop: int = _NEVER
    last: int | None = None

    def may_apply(self, epoch: int, made: int) -> bool:
        """Whether an epoch that was made at a step can have been applied in it."""
        return made < self.stop and (self.last is None or epoch <= self.last)


@attrs.define
class _Side:
    """
    What the steps say of one cluster, by step number.

    Attributes:
        commits: Its transactions that can have logged something.
        runs: When its applier was running, in order.
        waits: Steps after which its applier had applied everything.
        rewinds: Steps at which its applier was rewound to the start of the other cluster's binlog.
        roles: Steps that changed its role, each with the new one.
    """

    commits: list[_Commit] = attrs.field(factory=list)
    runs: list[_Uptime] = attrs.field(factory=lambda: [_Uptime(-1)])
    waits: list[int] = attrs.field(factory=list)
    rewinds: list[int] = attrs.field(factory=list)
    roles: list[tuple[int, Role]] = attrs.field(factory=list)

    @property
    def running(self) -> bool:
        """Whether its applier is running after the last step so far."""
        return self.runs[-1].stop == _NEVER

    def act(self, number: int, step: Step) -> None:
        """Add a step that concerns its applier; a wait with a result ended before everything was applied."""
        action = step.get("action")
        if action in ("stop", "rewind") and self.running:
            self.runs[-1] = attrs.evolve(self.runs[-1], stop=number, last=step.get("epoch"))
        if action == "rewind":
            self.rewinds.append(number)
        elif action == "start" and not self.running:
            self.runs.append(_Uptime(number))
        elif action in ("wait", "quiesce") and self.running and "result" not in step:
            self.waits.append(number)


def hints_of_steps(steps: Sequence[Step], summaries: Mapping[str, Sequence[Summary]]) -> dict[str, Hints]:
    """
    Return, per applying cluster, the hints on each epoch of the other cluster, from each rewind to the next.

    The steps of more than two clusters do not say which of them a step waits for: they give no hints.

    Args:
        steps: Steps of a scenario, in order.
        summaries: Per cluster, its own epochs.
    """
    if len(summaries) != 2:
        return {}
    sides = _sides(steps, list(summaries))
    hints: dict[str, Hints] = {}
    for name, own in summaries.items():
        (other,) = (each for each in summaries if each != name)
        side = sides[name]
        positions = _positions(side.commits, own)
        made = {summary.number: _made_by(sides[other].commits, summary.number) for summary in summaries[other]}
        hints[name] = [
            {epoch: _hint(side, epoch, step, positions, period) for epoch, step in made.items()}
            for period in pairwise([-1, *side.rewinds, _NEVER])
        ]
    return hints


def _sides(steps: Sequence[Step], names: Sequence[str]) -> dict[str, _Side]:
    """Return what the steps say, by cluster."""
    sides = {name: _Side() for name in names}
    ranks: dict[tuple[str, int], int] = {}
    for number, step in enumerate(steps):
        if "on" in step and "epoch" in step and _changed(step):
            name, epoch = step["on"], step["epoch"]
            rank = ranks[name, epoch] = ranks.get((name, epoch), -1) + 1
            sides[name].commits.append(_Commit(number, epoch, rank))
        if step.get("action") == "role":
            sides[step["applier"]].roles.append((number, Role(step["role"])))
        for name in [step["applier"]] if "applier" in step else names:
            sides[name].act(number, step)
    return sides


def _changed(step: Step) -> bool:
    """Whether a transaction can have logged anything."""
    if step.get("rolled_back"):
        return False
    return any(isinstance(result, dict) and result.get("affected") for result in step.get("result", ()))


def _made_by(commits: Sequence[_Commit], epoch: int) -> int:
    """Return the last step that is known to have committed in an epoch or before it; -1 for none."""
    return max((commit.step for commit in commits if commit.epoch <= epoch), default=-1)


def _positions(commits: Sequence[_Commit], own: Sequence[Summary]) -> list[tuple[int, Position]]:
    """Return the step and the own position of each transaction."""
    groups = {summary.number: summary.transactions for summary in own}
    return [
        (commit.step, (commit.epoch, groups[commit.epoch][min(commit.rank, len(groups[commit.epoch]) - 1)]))
        for commit in commits
        if groups.get(commit.epoch)
    ]


def _hint(
    side: _Side, epoch: int, made: int, positions: Sequence[tuple[int, Position]], period: tuple[int, int]
) -> Hint:
    """
    Return the hint on one foreign epoch.

    Args:
        side: The applying cluster.
        epoch: The epoch.
        made: The step that made the epoch.
        positions: Step and own position of each of the cluster's transactions.
        period: From which step to which the epoch is applied, between two rewinds.
    """
    begin, end = period
    runs = enumerate(side.runs)
    applied = next(((n, run) for n, run in runs if begin <= run.start < end and run.may_apply(epoch, made)), None)
    if applied is None:
        return Hint(applied=False)
    number, run = applied
    # A role changes while the applier is stopped.
    role = next((role for step, role in reversed(side.roles) if step < run.start), None)
    arrival = max(made, run.start)
    known = [step for step in side.waits if step > arrival][:1] + ([] if run.last is None else [run.stop])
    latest = _last(positions, min(known)) if known else None
    return Hint(_last(positions, arrival), latest, run=number, role=role)


def _last(positions: Sequence[tuple[int, Position]], step: int) -> Position:
    """Return the position of the last transaction before a step."""
    return max((position for number, position in positions if number < step), default=START)


def hints_of_run_file(run_file: RunFile, summaries: Mapping[str, Sequence[Summary]]) -> ClusterHints:
    """
    Return the hints of a run file, per applying cluster.

    Raises:
        ConfigurationError: There are steps, and other than a pair of clusters; or an applier has other than one source.
    """
    configuration = run_file.configuration
    schedule = run_file.schedule
    if schedule.steps is not None and not configuration.links.is_pair:
        message = (
            "[schedule] steps are those of two clusters that replicate to each other; give [[schedule.applied]] and "
            "[[schedule.stopped]]"
        )
        raise ConfigurationError(message)
    if schedule.steps is not None:
        steps = load_steps(beside(run_file.path.parent, schedule.steps), list(configuration.links.server_ids))
        return hints_of_steps(steps, summaries)
    hints: dict[str, dict[int, Hint]] = {name: {} for name in summaries}
    for entry in schedule.entries.values():
        if len(configuration.links.sources(entry.applier)) != 1:
            message = f"[schedule] is for appliers with one source; cluster {entry.applier} has another number"
            raise ConfigurationError(message)
    for apply in schedule.applied:
        place = (apply.after_epoch, LAST_GROUP)
        hints[apply.applier][apply.epoch] = Hint(earliest=place, latest=place)
    for stop in schedule.stopped:
        (source,) = configuration.links.sources(stop.applier)
        later = (each.number for each in summaries[source.name] if each.number > stop.after_epoch)
        hints[stop.applier].update({number: Hint(applied=False) for number in later})
    for change in sorted(schedule.role, key=lambda each: each.after_epoch):
        mine, (source,) = hints[change.applier], configuration.links.sources(change.applier)
        for number in (each.number for each in summaries[source.name] if each.number > change.after_epoch):
            before = mine.get(number, Hint())
            # The applier was stopped for it.
            mine[number] = attrs.evolve(before, run=before.run + 1, role=change.role)
    return {name: [each] for name, each in hints.items()}
