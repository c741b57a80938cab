"""
How steps fall into epochs: a scenario that was recorded, or searched, tells; a recording of it should do the same.

Transactions of one SQL node whose epochs are given as one follow each other at once, from the start of an epoch on;
those with other epochs wait for the one before to be complete. A schedule that was searched (`ndb-conflict diverge`,
`zoo`) also names the last epoch that an applier takes before it is stopped, and its binlogs tell the epochs in which an
applier applied something. There, what falls into one epoch of a cluster stands together: what the other cluster does
meanwhile can come before, because nobody applies an epoch that is open.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from conflict.history.epochs import EpochReader
from conflict.judge.case import ConflictCase
from ndb_formats.binlog_reader import read_events
from tests.recorder.sql_node import Position
from tests.recorder.steps import Stage, Step, carried_out

__all__ = ["EpochsFellApartError", "Planned", "planned", "taken"]


class EpochsFellApartError(Exception):
    """What is to fall into one epoch fell into several; recording again helps."""


@attrs.frozen(eq=False)
class Planned:
    """
    A step to take, or an applier's start and the stop after it.

    Attributes:
        step: The step.
        name: The SQL node that takes it; None for all, or for none.
        epoch: The epoch of that SQL node's cluster into which it falls, as the scenario numbers them; None if not told.
        last: Of an applier's start, the last epoch that it takes; None for all that there are.
    """

    step: Step
    name: str | None
    epoch: int | None = None
    last: int | None = None


def planned(scenario: Mapping[str, Any], folder: Path) -> list[Planned]:
    """Return the steps of a scenario as they are to be taken; its folder has the binlogs of a schedule."""
    steps = scenario["steps"]
    if not any(step.get("action") == "stop" and "epoch" in step for step in steps):
        return [Planned(step, step.get("on"), None if step.get("rolled_back") else step.get("epoch")) for step in steps]
    return _together(_with_inner_epochs(list(_searched(steps, _applied_in(folder)))))


def _searched(steps: Sequence[Step], applied: Mapping[str, dict[int, list[int]]]) -> Iterable[Planned]:
    """Yield the steps of a schedule; an applier's start and the stop after it are one."""
    left = iter([*steps, {}])
    step = next(left)
    while step:
        after = next(left, {})
        name = step.get("on") or step.get("applier")
        if step.get("action") == "start" and after.get("action") == "stop" and after.get("applier") == name:
            own = applied[step["applier"]].get(after["epoch"], [])
            yield Planned(step, name, own.pop(0) if own else None, after["epoch"])
            after = next(left, {})
        else:
            yield Planned(step, name, step.get("epoch") if "sql" in step else None)
        step = after


def _applied_in(folder: Path) -> dict[str, dict[int, list[int]]]:
    """Return, by cluster and foreign epoch, the own epochs in which the binlogs of a schedule show it applied."""
    configuration = ConflictCase.load(folder).configuration()
    found = dict[str, dict[int, list[int]]]()
    for cluster in configuration.clusters:
        (server,) = cluster.servers
        reader, own = EpochReader(server.server_id, configuration.schema), found.setdefault(cluster.name, {})
        for epoch in filter(None, (reader.feed(event) for path in server.files for event in read_events(path))):
            for each in epoch.applied:
                own.setdefault(each.epoch, []).append(epoch.number)
    return found


def _with_inner_epochs(steps: Sequence[Planned]) -> list[Planned]:
    """Return the steps with the epoch of what left no trace between two things of one epoch."""
    found = list(steps)
    for name in {each.name for each in found}:
        places = [place for place, each in enumerate(found) if each.name == name]
        for before, place, after in zip(places, places[1:], places[2:], strict=False):
            if found[place].epoch is None and found[before].epoch == found[after].epoch:
                found[place] = attrs.evolve(found[place], epoch=found[after].epoch)
    return found


def _together(steps: Sequence[Planned]) -> list[Planned]:
    """Return the steps with those of one SQL node and epoch next to each other, in the place of the last one."""
    found = list[Planned]()
    for each in steps:
        same = [other for other in found if each.epoch is not None and _place(other) == _place(each)]
        found = [*(other for other in found if other not in same), *same, each]
    return found


def _place(step: Planned) -> tuple[str | None, int | None]:
    return step.name, step.epoch


@attrs.define
class _Epochs:
    """
    How given epochs became real ones.

    Attributes:
        strict: Whether to refuse what falls into other epochs.
        real: By cluster and given epoch, the real one.
        last: By SQL node, the given epoch of what it did last.
    """

    strict: bool = True
    real: dict[tuple[str, int], int] = attrs.field(factory=dict)
    last: dict[str, int | None] = attrs.field(factory=dict)

    def note(self, cluster: str, given: int, real: int) -> None:
        """
        Note into which epoch something fell.

        Raises:
            EpochsFellApartError: Something of the same given epoch fell into another one, or of another one into this.
        """
        known = self.real.setdefault((cluster, given), real)
        others = [other for (name, each), other in self.real.items() if name == cluster and each != given]
        if self.strict and (known != real or real in others):
            message = f"{cluster}: epoch {given} of the scenario fell into {known} and {real}, or together with another"
            raise EpochsFellApartError(message)


def taken(stage: Stage, steps: Sequence[Planned], *, strict: bool = True) -> list[Step]:
    """
    Take steps; return them with what came of them.

    Raises:
        EpochsFellApartError: They fell into other epochs than planned, and it is strict.
        UnknownStepError: One is of a kind that is not known.
    """
    epochs, found = _Epochs(strict), list[Step]()
    for (name, epoch), same in groupby(steps, _place):
        group = list(same)
        if name is not None and (epoch is not None or any(each.last is not None for each in group)):
            _begin(stage, group, epochs)
        for each in group:
            found += _take(stage, each, epochs)
    return found


def _begin(stage: Stage, group: Sequence[Planned], epochs: _Epochs) -> None:
    """Bring an SQL node into a new epoch, near its start if several things are to fall into it."""
    name, epoch = group[0].name, group[0].epoch
    assert name is not None
    for each in group:
        if each.last is not None:
            stage.appliers.fetch(name, _position(stage, each, epochs))
    last, epochs.last[name] = epochs.last.get(name), epoch
    if last is not None and last == epoch:
        return
    node = stage.node(name)
    node.close_epoch()
    if len(group) > 1:
        latest = node.latest_epoch()
        while node.latest_epoch() == latest:
            time.sleep(0.002)


def _position(stage: Stage, step: Planned, epochs: _Epochs) -> Position:
    """Return where the source's log goes on after the last epoch that an applier is to take."""
    assert step.name is not None
    assert step.last is not None
    source = stage.appliers.source_of(step.name)
    source.position()
    real = epochs.real.get((source.cluster, step.last), 0)
    return source.after_epoch(real) or stage.appliers.starts[stage.appliers.links[step.name]]


def _take(stage: Stage, each: Planned, epochs: _Epochs) -> list[Step]:
    if each.last is None:
        step = carried_out(stage, each.step)
        if each.epoch is not None and each.name is not None and not step.get("rolled_back"):
            epochs.note(stage.node(each.name).cluster, each.epoch, step["epoch"])
        return [step]
    assert each.name is not None
    stage.appliers.run_until(each.name, _position(stage, each, epochs))
    node = stage.node(each.name)
    if each.epoch is not None:
        epochs.note(node.cluster, each.epoch, node.last_commit())
    last = stage.appliers.applied_epoch(each.name)
    return [each.step, {"applier": each.name, "action": "stop", "epoch": last}]
