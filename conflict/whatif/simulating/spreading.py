"""
How the epochs of a simulation spread: when what an epoch brings was applied on each cluster, and what is on its way.

An applier takes the epochs of its source in order. If it changes something with one, the epoch that is open on its own
cluster carries it on.
"""

from __future__ import annotations

import attrs
import numpy as np

from conflict.engine.kernels.arrays import Bool, Int64
from conflict.whatif.simulating.kernels.losses import Taken, spread_epochs
from conflict.whatif.simulating.kernels.users import epoch_number
from conflict.whatif.simulating.kernels.world import NEVER, World
from ndb_formats.columnar.kernel import each_read_only

_NOWHERE = -1


@attrs.frozen(eq=False)
class Spread:
    """
    How the logged epochs of all clusters spread, one cluster's after the other's, the open epoch of each last.

    Attributes:
        first: The first epoch of each cluster, and the number of all. Shape (clusters + 1,).
        last: One past the last change of each. Shape (epochs,).
        came: When what each brings was applied on each cluster, `NEVER` if it was not; on its own cluster, when it came
            back. Shape (epochs, clusters).
        waiting: Whether an applier has not taken it yet, or an epoch that carries it on. Shape (epochs,).
    """

    first: Int64
    last: Int64
    came: Int64
    waiting: Bool

    def of(self, side: int) -> slice:
        """Return the epochs of a cluster."""
        return slice(int(self.first[side]), int(self.first[side + 1]))

    def epochs_of(self, side: int, changes: Int64) -> Int64:
        """Return the epoch of each change of a cluster."""
        found: Int64 = self.first[side] + np.searchsorted(self.last[self.of(side)][:-1], changes, "right")
        return found

    def unsettled(self, side: int, changes: Int64) -> int:
        """Return how many changes of a cluster are on their way to one that has not applied or rejected them yet."""
        waiting: Bool = self.waiting[self.of(side)] & (self.everywhere(side) == NEVER)
        return int(np.count_nonzero(waiting[self.epochs_of(side, changes) - self.first[side]]))

    def known_back(self, side: int) -> Int64:
        """Return when a cluster knew that each of its epochs, or a later one, had come back."""
        return np.minimum.accumulate(self.came[self.of(side), side][::-1])[::-1]

    def everywhere(self, side: int) -> Int64:
        """Return when each epoch of a cluster had reached all others; `NEVER` if it did not."""
        found: Int64 = np.delete(self.came[self.of(side)], side, axis=1).max(axis=1)
        return found


def spread_of(world: World) -> Spread:
    """Return how the epochs of a simulation spread."""
    logged, sources = world.site["logged"], world.settings["source"].astype(np.int64)
    first = np.concatenate([[0], np.cumsum(logged + 1)])
    mine = [world.epochs[side, : int(count)] for side, count in enumerate(logged)]
    last, closed = (np.concatenate([np.append(each[name], NEVER) for each in mine]) for name in ("last", "closed"))
    carriers = np.full((len(sources), int(world.site["next_foreign"].max(initial=0))), _NOWHERE)
    for applier in np.flatnonzero(sources >= 0).tolist():
        found = _carriers(world, applier)
        carriers[applier, : len(found)] = np.where(found == _NOWHERE, _NOWHERE, first[applier] + found)
    came = np.full((int(first[-1]), len(sources)), NEVER)
    waiting = np.zeros(len(came), np.bool_)
    waiting[first[1:] - 1] = world.site["content"]
    order = np.argsort(-closed, kind="stable")[len(sources) :]  # without the open ones
    owner = np.repeat(np.arange(len(sources)), logged + 1)
    applied = world.taken["applied"][:, : carriers.shape[1]]
    taken = Taken(*each_read_only(first, owner, sources, world.site["next_foreign"], applied, carriers))
    spread_epochs(*each_read_only(order), taken, came, waiting)
    return Spread(first, last, came, waiting)


def _carriers(world: World, applier: int) -> Int64:
    """
    Return the place of the own epoch that carries each epoch that an applier took, among those that its cluster logged.

    The end is the open epoch; one that changed nothing is carried by none.
    """
    site, applies = world.site[applier], world.schedule.applies[: int(world.run[0]["applies"])]
    mine = applies[applies["applier"] == applier]
    numbers = world.epochs["number"][applier, : int(site["logged"])]
    if site["content"]:
        numbers = np.append(numbers, np.uint64(epoch_number(world.settings[applier], int(site["tick"]))))
    carried = mine["traced"] & np.isin(mine["epoch"], numbers)
    return np.where(carried, np.searchsorted(numbers, mine["epoch"]), _NOWHERE)
