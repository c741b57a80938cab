"""
Steps in an order in which everything happens after its cause, and side by side where the order does not matter.

An epoch can be applied once its cluster has done all that it did in it. What follows from that alone is the order; of
two steps that it leaves open, neither can know of the other, so either may come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from conflict.errors import ConfigurationError
from conflict.typed.notation import step_text
from conflict.typed.steps import Apply, Restart, Step

Lanes = Mapping[str, Sequence[Step]]


@attrs.frozen
class PlacedStep:
    """
    A step at its place.

    Attributes:
        row: From 1: it comes after all steps of lower rows that it depends on, and depends on none of its own row.
        cluster: Its cluster.
        number: Its number among the steps of its cluster, from 1.
        step: The step.
    """

    row: int
    cluster: str
    number: int
    step: Step


def placed_steps(lanes: Lanes) -> list[PlacedStep]:
    """
    Return all steps, row by row.

    Raises:
        ConfigurationError: Steps wait for each other.
    """
    rows: dict[str, list[int]] = {name: [] for name in lanes}
    while True:
        moved = False
        for name, steps in lanes.items():
            (other,) = (each for each in lanes if each != name)
            while len(rows[name]) < len(steps):
                causes = _causes(steps[len(rows[name])], lanes[other])
                if causes > len(rows[other]):
                    break
                before = max(rows[name][-1:] + rows[other][max(causes - 1, 0) : causes], default=0)
                rows[name].append(before + 1)
                moved = True
        if not moved:
            break
    if any(len(rows[name]) < len(steps) for name, steps in lanes.items()):
        raise _circle(lanes, {name: len(each) for name, each in rows.items()})
    placed = [
        PlacedStep(row, name, number, step)
        for name, steps in lanes.items()
        for number, (row, step) in enumerate(zip(rows[name], steps, strict=True), start=1)
    ]
    order = {name: place for place, name in enumerate(lanes)}
    return sorted(placed, key=lambda each: (each.row, order[each.cluster]))


def _causes(step: Step, others: Sequence[Step]) -> int:
    """Return how many steps of the other cluster must be done before a step."""
    if not isinstance(step, Apply):
        return 0
    foreign = step.foreign_epoch or 0
    return max((n for n, each in enumerate(others, start=1) if 0 < _epoch(each) <= foreign), default=0)


def _epoch(step: Step) -> int:
    return 0 if isinstance(step, Restart) else step.epoch or 0


def _circle(lanes: Lanes, done: Mapping[str, int]) -> ConfigurationError:
    """Return the error of steps that wait for each other."""
    waiting = (
        f"step {done[name] + 1} of {name} ({step_text(steps[done[name]])})"
        for name, steps in lanes.items()
        if done[name] < len(steps)
    )
    return ConfigurationError(
        f"{' and '.join(waiting)} wait for each other: an epoch can be applied after all steps of it. Apply an earlier "
        "epoch, or move the step that is applied before it"
    )
