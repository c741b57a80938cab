"""
Which cluster of a simulation replicates from which, and how long epochs travel.

Of more than two clusters, each has one source at most: the schedule of a run file can be given for these alone
(docs/run-file.md, "More than two clusters").
"""

from __future__ import annotations

import numpy as np

from conflict.config.run_file import check_clusters
from conflict.engine.kernels.arrays import Int64
from conflict.errors import ConfigurationError
from conflict.history.network import refuse_network
from conflict.history.run import Run
from conflict.model.chance import Purpose, stream
from conflict.model.configuration import Latency, Model, Site
from conflict.model.words import LONGEST

__all__ = ["followers_of", "latency_of", "loading_site", "phase_of", "refuse_unconnected", "source_of", "upstream"]


def refuse_unconnected(model: Model) -> None:
    """
    Make sure that a simulation can be run between its clusters.

    Raises:
        ConfigurationError: Names, server ids or sources do not fit together; a function works between two clusters
            alone; or there are clusters that no cluster could load.
    """
    run = Run(model.configuration())
    check_clusters(run.clusters)
    if model.is_pair:
        return
    if len(model.sites) == 2:
        message = "two clusters of a simulation replicate to each other; leave out replicates_from"
        raise ConfigurationError(message)
    for site in model.sites:
        if len(site.replicates_from or ()) > 1:
            message = (
                f"cluster {site.name} replicates from {', '.join(site.replicates_from or ())}; in a simulation of more "
                "than two clusters each replicates from one other, as in a ring or a chain"
            )
            raise ConfigurationError(message)
    refuse_network(run)
    loading_site(model)


def source_of(model: Model, side: int) -> int | None:
    """Return the number of the cluster that one replicates from; None if it has none."""
    names = [site.name for site in model.sites]
    given = model.sites[side].replicates_from
    if given is None:
        return 1 - side
    return names.index(given[0]) if given else None


def loading_site(model: Model) -> int:
    """
    Return the number of the first cluster whose changes reach all others, which loads the tables.

    Raises:
        ConfigurationError: There is none.
    """
    sides = range(len(model.sites))
    reached = [[other for other in sides if other == side or side in upstream(model, other)] for side in sides]
    best = max(sides, key=lambda side: len(reached[side]))
    if len(reached[best]) < len(sides):
        away = next(site.name for side, site in enumerate(model.sites) if side not in reached[best])
        message = (
            f"no cluster reaches all others: {model.sites[best].name} does not reach {away}; let replicates_from make "
            "a ring, or a chain"
        )
        raise ConfigurationError(message)
    return best


def upstream(model: Model, side: int) -> list[int]:
    """Return the numbers of the clusters whose changes reach one, the nearest first; in a ring, its own last."""
    found = list[int]()
    source = source_of(model, side)
    while source is not None and source not in found:
        found.append(source)
        source = source_of(model, source)
    return found


def followers_of(model: Model, side: int) -> list[int]:
    """Return the numbers of the clusters that replicate from one."""
    return [other for other in range(len(model.sites)) if source_of(model, other) == side]


def phase_of(site: Site, seed: int, side: int) -> int:
    """Return when the first epoch of a cluster begins: at a random time, before everything else."""
    return -int(stream(seed, side, Purpose.PHASE).random() * site.epoch)


def latency_of(model: Model, seed: int, start: int, until: int) -> Int64:
    """Return how long each epoch of each cluster would travel, of those that end by a time. Shape (clusters, ticks)."""
    ticks = (start + until) // min(site.epoch for site in model.sites) + 3
    return np.array([_latencies(site, ticks, seed, side, start) for side, site in enumerate(model.sites)])


def _latencies(site: Site, ticks: int, seed: int, side: int, start: int) -> Int64:
    """Return how long each epoch of a cluster would travel. Shape (ticks,)."""
    latency: Latency = site.link.latency
    chance = stream(seed, side, Purpose.LATENCY)
    if latency.kind == "normal":
        drawn = chance.normal(latency.middle, latency.spread, ticks)
    elif latency.kind == "lognormal":
        drawn = latency.middle * np.exp(latency.spread * chance.standard_normal(ticks))
    elif latency.kind == "trace":
        moments, each = np.array(latency.trace).T
        closed = phase_of(site, seed, side) + np.arange(1, ticks + 1) * site.epoch - start
        drawn = each[np.maximum(np.searchsorted(moments, closed, "right") - 1, 0)]
    else:
        drawn = np.full(ticks, latency.middle)
    return np.rint(drawn).clip(0, LONGEST).astype(np.int64)
