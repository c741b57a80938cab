"""
What is particular to runs of more than two clusters, or of two that replicate one way.

The binlog of a cluster that logs what it applies (`log_replica_updates`, `ndb_log_apply_status`) carries rows of
``mysql.ndb_apply_status`` from its own sources on. So a group that an applier logs for one epoch can name several
servers, and one of them made the epoch that was applied; the others are news that came with it.

Source: MySQL manual, "NDB Cluster Replication: Bidirectional and Circular Replication", and ``ndb_log_apply_status``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import attrs

from conflict.config.configuration import Links
from conflict.errors import ConfigurationError
from conflict.history.epochs import AppliedEpoch
from conflict.history.run import Run
from conflict.history.scheduling.start import starts_in_the_middle
from conflict.history.scheduling.summaries import Summary

_FROM_THE_START = (
    "a part of a log, and logs that start in the middle, are resolved only with two clusters that replicate to each "
    "other; give the binlogs of every cluster from before its tables held rows"
)


def direct_traces(links: Links, summaries: Mapping[str, Sequence[Summary]]) -> dict[str, list[Summary]]:
    """
    Return the epochs of each cluster without the news of its sources that came by way of another source.

    Of several sources in one group, the one counts whose own epoch names the others.
    """
    sources = {name: {source.server_id for source in links.sources(name)} for name in summaries}
    if all(len(each) < 2 for each in sources.values()):
        return {name: list(own) for name, own in summaries.items()}
    named = {
        (links.server_ids[name], summary.number): {(item.server_id, item.epoch) for item in summary.applied}
        for name, own in summaries.items()
        for summary in own
    }
    return {
        name: [attrs.evolve(each, applied=tuple(_direct(each, sources[name], named))) for each in own]
        for name, own in summaries.items()
    }


def _direct(
    summary: Summary, sources: set[int], named: Mapping[tuple[int, int], set[tuple[int, int]]]
) -> Iterator[AppliedEpoch]:
    """Yield what was applied in an epoch, with one source per group."""
    for _, items in groupby(sorted(summary.applied, key=lambda item: item.group), key=lambda item: item.group):
        group = list(items)
        direct = [item for item in group if item.server_id in sources]
        news = {
            (item.server_id, item.epoch)
            for item in direct
            if any((item.server_id, item.epoch) in named.get((other.server_id, other.epoch), ()) for other in direct)
        }
        yield from (item for item in group if (item.server_id, item.epoch) not in news)


def refuse_network(run: Run) -> None:
    """
    Make sure that a run of other than a pair of clusters asks for nothing that two clusters alone can do.

    Raises:
        ConfigurationError: A table has a function by epoch, and there are more than two clusters: these functions know
            one other cluster ("NDB Cluster Replication Conflict Resolution"). Or the tables held rows at the start.
    """
    if run.links.is_pair:
        return
    for name, setups in run.setups.at_end.items():
        for table, setup in setups.items():
            if len(run.clusters) > 2 and setup.function is not None and setup.function.spec.refreshes:
                message = (
                    f"table {table} on {name}: {setup.function} works between two clusters, and the run has "
                    f"{len(run.clusters)}; use a function by column, such as NDB$MAX, or none"
                )
                raise ConfigurationError(message)
    if run.span.cuts or run.span.empty is False:
        raise ConfigurationError(_FROM_THE_START)


def refuse_logs_of_network(run: Run, summaries: Mapping[str, Sequence[Summary]]) -> None:
    """
    Make sure that the logs of other than a pair of clusters start with empty tables, and that definitions stay.

    Args:
        run: The run.
        summaries: Per cluster, its own epochs.

    Raises:
        ConfigurationError: A log starts in the middle, or definitions change.
    """
    if run.links.is_pair:
        return
    if starts_in_the_middle(run.span, run.links, summaries):
        raise ConfigurationError(_FROM_THE_START)
    if run.definitions:
        errors = [known.error for known in run.definitions.values() if known.error is not None]
        message = (
            "definitions of tables change in the binlogs, or differ between the clusters; that is followed only with "
            f"two clusters that replicate to each other{''.join(f'; {error}' for error in errors)}"
        )
        raise ConfigurationError(message)
