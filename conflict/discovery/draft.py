"""
Drafts a run file from bare binlogs, and from what a user adds to them.

Server ids, the order of files, tables and binlog types come from the binlogs. They do not say which conflict functions
are in force; who can try functions on them finds which ones fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from conflict.config.additions import Additions, ShownFunctions, refuse_other_primary, refuse_unknown_primary
from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.config.run_file import RunFile, parse_run_file
from conflict.discovery.clusters import FoundCluster, clusters_of
from conflict.discovery.draft_text import DraftText, LoggedFormats
from conflict.discovery.logs import FoundLog, find_logs
from conflict.errors import ConfigurationError
from conflict.history.preparing.definitions_over_time import make_run
from conflict.rules.functions import typed_function
from ndb_formats.schema.tables import Schema

# Finds what the binlogs of a run show, whose tables have no functions; None if they show nothing.
Finder = Callable[[Configuration], ShownFunctions | None]


@attrs.frozen
class Draft:
    """
    A run file that was drafted.

    Attributes:
        text: Its text.
        clusters: The clusters whose binlogs it names.
        run: What it says.
        shown: The functions that were found; None if none were, or not looked for.
    """

    text: str = attrs.field(repr=False)
    clusters: tuple[FoundCluster, ...]
    run: RunFile = attrs.field(repr=False)
    shown: ShownFunctions | None = None


def draft_run(given: Sequence[Path], additions: Additions, path: Path, find: Finder | None = None) -> Draft:
    """
    Draft a run file.

    Args:
        given: Folders, index files, patterns or files with the binlogs of two clusters, of one or more SQL nodes each.
        additions: What the user adds.
        path: Where the run file is to stand, which its paths are relative to. Nothing is written.
        find: Finds the conflict functions if nothing is said of them; None for none.

    Raises:
        ConfigurationError: The binlogs are not those of two clusters, or what is added does not fit them.
    """
    logs = _two_clusters(find_logs(given))
    names = [log.name for log in logs]
    refuse_unknown_primary(additions.primary, names)
    functions = {pattern: typed_function(text, additions.known) for pattern, text in additions.functions.items()}
    if any(function.spec.by_epoch for function in functions.values()) and additions.primary is None:
        epoch = next(str(function) for function in functions.values() if function.spec.by_epoch)
        message = f"{epoch} works on a primary; say which cluster it is: --primary {' or --primary '.join(names)}"
        raise ConfigurationError(message)
    if additions.ndb_replication is not None:
        refuse_other_primary(additions.primary, {log.name: log.server_id for log in logs}, additions.ndb_replication)
    text = DraftText(tuple(logs), additions, functions, additions.primary)
    # Paths are absolute first: the folder of the run file may not be there yet.
    try:
        run = make_run(parse_run_file(text.head(None, {}), path).configuration)
    except ConfigurationError as error:
        beside = [file for each in given if each.is_dir() for file in sorted(each.glob("*.toml"))]
        if not beside or additions != Additions():
            raise
        message = f"{error}; or give {beside[0]}, if that is the run file of these binlogs"
        raise ConfigurationError(message) from error
    logged = LoggedFormats.of(run, additions)
    unsaid = not functions and additions.ndb_replication is None and additions.primary is None
    shown = find(parse_run_file(text.of(logged, None), path).configuration) if find is not None and unsaid else None
    if shown is not None:
        text = attrs.evolve(text, functions=shown.functions, primary=shown.primary, shown=shown)
    drafted = parse_run_file(text.of(logged, None), path)
    if shown is not None:
        drafted = attrs.evolve(drafted, open_functions=shown.doubt)
    return Draft(text.of(logged, path.parent), tuple(logs), drafted, shown)


def _two_clusters(logs: Sequence[FoundLog]) -> list[FoundCluster]:
    """
    Return the two clusters whose logs some files are.

    Raises:
        ConfigurationError: They are of one cluster, or of more than two.
    """
    clusters = clusters_of(logs) if len(logs) > 1 else []
    if len(clusters) == 2:
        return clusters
    found = ", ".join(f"{log.server_id} ({log.files[0]})" for log in logs)
    message = f"binlogs of two clusters are needed; these have the server ids {found}"
    if len(clusters) == 1:
        message += ", and all are of one cluster, with the same changes in the same epochs; give the other one's, too"
    elif len(clusters) > 2:
        message += (
            f", and are of {len(clusters)} clusters, as far as epochs and changes show; a run file says which "
            "server_ids are of one cluster, and who replicates from whom where there are more"
        )
    raise ConfigurationError(message)


def bare_clusters(given: Sequence[Path], *, alone: bool = False) -> Configuration:
    """
    Return the clusters whose logs some files are; nothing is said of their tables.

    Args:
        given: As for `draft_run`.
        alone: Whether the logs of one cluster, or of more than two, will do.

    Raises:
        ConfigurationError: They are not those of two clusters.
    """
    logs = find_logs(given)
    found = clusters_of(logs) if alone else _two_clusters(logs)
    clusters = (
        ClusterConfiguration(each.name, tuple(LoggingServer(log.server_id, log.files) for log in each.logs))
        for each in found
    )
    return Configuration(tuple(clusters), Schema(), ())
