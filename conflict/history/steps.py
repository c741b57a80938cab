"""
The steps of a recording to hints on when foreign epochs without a trace were taken.

Steps stand in the order in which they ran, so they say which transactions came before an applier
started, and that an applier had taken everything when a wait ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs

from conflict.history.schedule import Hint, Hints, Position, Summary

__all__ = ["hints_of_steps"]

Step = Mapping[str, Any]
_NEVER = 2**62


@attrs.define
class _Walk:
    """
    What the steps say, by their number.

    Attributes:
        commits: Per side, (step, epoch, rank among the transactions of that epoch).
        running: Per side, [start, stop) of its applier.
        waits: Per side, steps after which its applier had taken everything.
        rewinds: Per side, steps at which its applier was set back to the start of the other side's binlog.
    """

    commits: dict[str, list[tuple[int, int, int]]]
    running: dict[str, list[list[int]]]
    waits: dict[str, list[int]]
    rewinds: dict[str, list[int]]


def hints_of_steps(steps: Sequence[Step], summaries: Mapping[str, Sequence[Summary]]) -> dict[str, Hints]:
    """
    Return, per applying side, when it took each epoch of the other side; from each time on that it was set back.

    Args:
        steps: Steps of a scenario, in order.
        summaries: Per side, its own epochs.
    """
    walk = _walk(steps, list(summaries))
    hints: dict[str, Hints] = {}
    for side, own in summaries.items():
        (other,) = (name for name in summaries if name != side)
        positions = _positions(walk.commits[side], own)
        commits = {summary.number: _commit_step(walk.commits[other], summary.number) for summary in summaries[other]}
        bounds = [-1, *walk.rewinds[side], _NEVER]
        hints[side] = [
            {epoch: _hint(walk, side, step, positions, stretch) for epoch, step in commits.items()}
            for stretch in pairwise(bounds)
        ]
    return hints


def _walk(steps: Sequence[Step], sides: Sequence[str]) -> _Walk:
    walk = _Walk(
        {side: [] for side in sides},
        {side: [[-1, _NEVER]] for side in sides},
        {side: [] for side in sides},
        {side: [] for side in sides},
    )
    ranks: dict[tuple[str, int], int] = {}
    for number, step in enumerate(steps):
        if "on" in step and "epoch" in step and _changed(step):
            side, epoch = step["on"], step["epoch"]
            rank = ranks[side, epoch] = ranks.get((side, epoch), -1) + 1
            walk.commits[side].append((number, epoch, rank))
        action = step.get("action")
        appliers = [step["applier"]] if "applier" in step else list(sides)
        for side in appliers:
            if action in ("stop", "rewind") and walk.running[side][-1][1] == _NEVER:
                walk.running[side][-1][1] = number
            if action == "rewind":
                walk.rewinds[side].append(number)
            if action == "start" and walk.running[side][-1][1] != _NEVER:
                walk.running[side].append([number, _NEVER])
            elif action in ("wait", "quiesce") and "result" not in step and walk.running[side][-1][1] == _NEVER:
                walk.waits[side].append(number)
    return walk


def _changed(step: Step) -> bool:
    """Whether a transaction can have logged anything."""
    if step.get("rolled_back"):
        return False
    return any(isinstance(result, dict) and result.get("affected") for result in step.get("result", ()))


def _commit_step(commits: Sequence[tuple[int, int, int]], epoch: int) -> int:
    """Return the last step known to lie before or in an epoch."""
    return max((number for number, committed, _ in commits if committed <= epoch), default=-1)


def _positions(commits: Sequence[tuple[int, int, int]], own: Sequence[Summary]) -> list[tuple[int, Position]]:
    """Return where each step's transaction stands in its side's own order."""
    groups = {summary.number: summary.transactions for summary in own}
    return [
        (number, (epoch, groups[epoch][min(rank, len(groups[epoch]) - 1)]))
        for number, epoch, rank in commits
        if groups.get(epoch)
    ]


def _hint(
    walk: _Walk, side: str, commit_step: int, positions: Sequence[tuple[int, Position]], stretch: tuple[int, int]
) -> Hint:
    """Return when an epoch was taken between the two steps of a stretch."""
    begin, end = stretch
    runs = enumerate(walk.running[side])
    applied = next(((run, start) for run, (start, stop) in runs if begin <= start < end and commit_step < stop), None)
    if applied is None:
        return Hint(applied=False)
    run, start = applied
    arrival = max(commit_step, start)
    waited = next((number for number in walk.waits[side] if number > arrival), None)
    earliest = max((place for number, place in positions if number < arrival), default=(0, -1))
    latest = None
    if waited is not None:
        latest = max((place for number, place in positions if number < waited), default=(0, -1))
    return Hint(earliest, latest, run=run)
