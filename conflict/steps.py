"""
The steps of a recording to hints on when foreign epochs without a trace were taken.

Steps stand in the order in which they ran, so they say which transactions came before an applier
started, and that an applier had taken everything when a wait ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from conflict.schedule import Hint, Position, Summary

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
    """

    commits: dict[str, list[tuple[int, int, int]]]
    running: dict[str, list[list[int]]]
    waits: dict[str, list[int]]


def hints_of_steps(steps: Sequence[Step], summaries: Mapping[str, Sequence[Summary]]) -> dict[str, dict[int, Hint]]:
    """
    Return, per applying side and epoch of the other side, when it was taken.

    Args:
        steps: Steps of a scenario, in order.
        summaries: Per side, its own epochs.
    """
    walk = _walk(steps, list(summaries))
    hints: dict[str, dict[int, Hint]] = {}
    for side, own in summaries.items():
        (other,) = (name for name in summaries if name != side)
        positions = _positions(walk.commits[side], own)
        hints[side] = {
            summary.number: _hint(walk, side, _commit_step(walk.commits[other], summary.number), positions)
            for summary in summaries[other]
        }
    return hints


def _walk(steps: Sequence[Step], sides: Sequence[str]) -> _Walk:
    walk = _Walk({side: [] for side in sides}, {side: [[-1, _NEVER]] for side in sides}, {side: [] for side in sides})
    ranks: dict[tuple[str, int], int] = {}
    for number, step in enumerate(steps):
        if "on" in step and "epoch" in step and _changed(step):
            side, epoch = step["on"], step["epoch"]
            rank = ranks[side, epoch] = ranks.get((side, epoch), -1) + 1
            walk.commits[side].append((number, epoch, rank))
        action = step.get("action")
        appliers = [step["applier"]] if "applier" in step else list(sides)
        for side in appliers:
            if action == "stop" and walk.running[side][-1][1] == _NEVER:
                walk.running[side][-1][1] = number
            elif action == "start" and walk.running[side][-1][1] != _NEVER:
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


def _hint(walk: _Walk, side: str, commit_step: int, positions: Sequence[tuple[int, Position]]) -> Hint:
    arrival = next((max(commit_step, start) for start, stop in walk.running[side] if commit_step < stop), None)
    if arrival is None:
        return Hint(taken=False)
    waited = next((number for number in walk.waits[side] if number > arrival), None)
    earliest = max((place for number, place in positions if number < arrival), default=None)
    latest = None
    if waited is not None:
        latest = max((place for number, place in positions if number < waited), default=(0, -1))
    return Hint(earliest or (0, -1), latest)
