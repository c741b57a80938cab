"""
Which cluster of a simulation replicates from which.

Of more than two clusters, each has one source at most: the schedule of a run file can be given for these alone
(docs/run-file.md, "More than two clusters").
"""

from __future__ import annotations

from conflict.config.run_file import check_clusters
from conflict.errors import ConfigurationError
from conflict.history.network import refuse_network
from conflict.history.run import Run
from conflict.model.configuration import Model

__all__ = ["followers_of", "loading_site", "refuse_unconnected", "source_of"]


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
    sources = [source_of(model, side) for side in range(len(model.sites))]
    reached: list[set[int]] = [{side} for side in range(len(sources))]
    for _ in sources:
        for side, source in enumerate(sources):
            if source is not None:
                reached[source] |= reached[side]
    best = max(range(len(sources)), key=lambda side: len(reached[side]))
    if len(reached[best]) < len(sources):
        away = next(site.name for side, site in enumerate(model.sites) if side not in reached[best])
        message = (
            f"no cluster reaches all others: {model.sites[best].name} does not reach {away}; let replicates_from make "
            "a ring, or a chain"
        )
        raise ConfigurationError(message)
    return best


def followers_of(model: Model, side: int) -> list[int]:
    """Return the numbers of the clusters that replicate from one."""
    return [other for other in range(len(model.sites)) if source_of(model, other) == side]
