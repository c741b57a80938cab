"""
The tables `[clusters.NAME]` of a run file: SQL nodes, binlogs, settings, filters, and who replicates from whom.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import attrs

from conflict.config.configuration import ClusterConfiguration, Links, LoggingServer
from conflict.config.option_values import words_of
from conflict.config.replica_status import ReplicaChannel, load_replica_status
from conflict.config.replication_rows import load_replication_rows
from conflict.config.server_settings import load_epoch_times, load_server_variables
from conflict.config.text_file import FileName, FileNames, plain_path
from conflict.documents import Epoch, Must, ServerId, Text, missing, read
from conflict.errors import ConfigurationError
from conflict.rules.replication_filter import FILTER_OPTIONS, ReplicationFilter, channels_of, options_of
from conflict.rules.replication_table import Role
from conflict.telling.shown_text import listed
from ndb_formats.binlog_reader import read_headers
from ndb_formats.cursor import whole_number
from ndb_formats.errors import FormatError, did_you_mean
from ndb_formats.rules.replica.conversions import parse_type_conversions
from ndb_formats.rules.update_format import ServerOptions, switch
from ndb_formats.stored import beside, matches, reading

_CLUSTER_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def _several(kind: Any, words: str, split: Callable[[str], Sequence[str]] = lambda text: [text]) -> Must:
    """Return what one text or a list of texts must be; a list is kept."""
    return Must(words, given=kind | list[kind], convert=lambda given: split(given) if isinstance(given, str) else given)


_OnOff = Annotated[bool, Must("ON or OFF", given=Any, convert=partial(switch, "it"))]
_ServerIds = Annotated[
    tuple[ServerId, ...],
    Must("a list of different server ids, like [1, 3]", lambda value: 0 < len(set(value)) == len(value)),
]
_Clusters = Annotated[tuple[Text, ...], Must('a list of clusters, like ["A"]')]
_Filter = Annotated[
    tuple[str, ...], _several(Text, 'a text, or a list of names or patterns, like ["shop.log%"]', words_of)
]
_OfNodes = Annotated[tuple[str, ...], _several(FileName, "a file name, or a list of files, one for each SQL node")]
_Rows = Annotated[tuple[str, ...], _several(FileName, "a file name, or a list of file names or patterns")]


@attrs.frozen
class ClusterTable:
    """A table ``[clusters.NAME]``, see `conflict.config.run_file`; None is what is not given."""

    server_id: ServerId | None = None
    server_ids: _ServerIds | None = None
    binlogs: FileNames | None = None
    role: Role | None = None
    schema: FileName | None = None
    variables: _OfNodes = ()
    config_ini: FileName | None = None
    ndb_replication: FileName | None = None
    replica_status: _OfNodes = ()
    rows: _Rows = ()
    rows_epoch: Epoch | None = None
    rows_of: Text | None = None
    replicates_from: _Clusters | None = None
    ignore_server_ids: dict[str, tuple[ServerId, ...]] = attrs.field(factory=dict)
    replica_type_conversions: Text | None = None
    replicate_do_db: _Filter | None = None
    replicate_ignore_db: _Filter | None = None
    replicate_do_table: _Filter | None = None
    replicate_ignore_table: _Filter | None = None
    replicate_wild_do_table: _Filter | None = None
    replicate_wild_ignore_table: _Filter | None = None
    replicate_rewrite_db: _Filter | None = None
    ndb_log_transaction_id: _OnOff | None = None
    ndb_log_updated_only: _OnOff | None = None
    ndb_log_update_as_write: _OnOff | None = None
    ndb_log_update_minimal: _OnOff | None = None

    @property
    def files(self) -> list[str]:
        """The files that it names, besides binlogs and rows."""
        single = (self.schema, self.config_ini, self.ndb_replication)
        return [*filter(None, single), *self.variables, *self.replica_status]


# The entries that a server's variables give where the run file does not, and the variable of each.
_OF_VARIABLES = {
    **{name: name for name in ("server_id", "replica_type_conversions", "ndb_log_transaction_id")},
    **{name: name for name in attrs.fields_dict(ServerOptions)},
    "role": "ndb_applier_conflict_role",
}


def read_clusters(
    folder: Path, tables: Mapping[str, ClusterTable], *, binlogs: bool
) -> tuple[ClusterConfiguration, ...]:
    """
    Return the clusters of a run file.

    Args:
        folder: The folder of the run file, which its paths are relative to.
        tables: By name, the table of each cluster.
        binlogs: Whether the binlogs must be there.

    Raises:
        ConfigurationError: An entry is missing or wrong, or the clusters do not fit together.
    """
    if len(tables) < 2:
        message = "two or more tables [clusters.NAME] are needed"
        raise ConfigurationError(message)
    check_cluster_names(list(tables))
    clusters = tuple(_cluster(folder, name, table, binlogs=binlogs) for name, table in tables.items())
    check_clusters(clusters)
    return tuple(_with_filters(each, Links(clusters), folder, tables[each.name]) for each in clusters)


def matching_binlogs(folder: Path, tables: Mapping[str, ClusterTable]) -> dict[str, tuple[Path, ...]]:
    """
    Return, by cluster, the binlogs that its patterns match now.

    Args:
        folder: As for `read_clusters`.
        tables: As for `read_clusters`.

    Raises:
        ConfigurationError: A pattern is none.
    """
    return {name: _binlogs(folder, name, table.binlogs or (), needed=False) for name, table in tables.items()}


def check_clusters(clusters: Sequence[ClusterConfiguration]) -> None:
    """
    Make sure that names, server ids and sources of some clusters fit together.

    Raises:
        ConfigurationError: They do not.
    """
    check_cluster_names([cluster.name for cluster in clusters])
    for first, second in itertools.combinations(clusters, 2):
        same = first.server_ids & second.server_ids
        if same:
            message = (
                f"clusters {first.name} and {second.name} have server_id {min(same)}; it tells them apart in their "
                "binlogs"
            )
            raise ConfigurationError(message)
    _check_sources(clusters)


def check_cluster_names(names: Sequence[str]) -> None:
    """
    Make sure that names of clusters can be parts of paths on any filesystem.

    Raises:
        ConfigurationError: One cannot, or two are the same there.
    """
    for name in names:
        if not _CLUSTER_NAME.fullmatch(name):
            message = (
                f"{name!r} is no name for a cluster: use up to 64 letters from A to Z, digits, _ and -, and begin with "
                "a letter or digit"
            )
            raise ConfigurationError(message)
    for first, second in itertools.combinations(names, 2):
        if first.lower() == second.lower():
            message = f"clusters {first} and {second} have names that some filesystems take for one; rename one of them"
            raise ConfigurationError(message)


def _check_sources(clusters: Sequence[ClusterConfiguration]) -> None:
    """Make sure that every cluster says from which others it replicates, if any does or there are more than two."""
    names = [cluster.name for cluster in clusters]
    needed = len(clusters) > 2 or any(cluster.replicates_from is not None for cluster in clusters)
    for cluster in clusters:
        given = cluster.replicates_from
        others = [name for name in names if name != cluster.name]
        if given is None and needed:
            message = (
                f"cluster {cluster.name} needs replicates_from, the clusters whose binlogs its applier applies; it is "
                "[] if it applies none"
            )
            raise ConfigurationError(message)
        wrong = [name for name in given or () if name not in others or list(given or ()).count(name) > 1]
        if wrong:
            message = (
                f"replicates_from of cluster {cluster.name} has {wrong[0]!r}; it may name each of {', '.join(others)} "
                f"once{did_you_mean(str(wrong[0]), others)}"
            )
            raise ConfigurationError(message)
    if all(cluster.replicates_from == () for cluster in clusters):
        message = "no cluster replicates from another one; give replicates_from"
        raise ConfigurationError(message)


def _cluster(folder: Path, name: str, given: ClusterTable, *, binlogs: bool) -> ClusterConfiguration:
    path = f"clusters.{name}"
    of_nodes = [load_server_variables(beside(folder, file)) for file in given.variables]
    table = _with_variables(given, of_nodes, f"{path}.variables")
    if given.server_id is not None and given.server_ids:
        message = f"{path}.server_id and {path}.server_ids are both given; give one of them"
        raise ConfigurationError(message)
    server_ids = table.server_ids or ((table.server_id,) if table.server_id is not None else ())
    if not server_ids:
        raise missing(f"{path}.server_id", ServerId)
    if binlogs and table.binlogs is None:
        raise missing(f"{path}.binlogs", FileNames)
    options = {name: value for name in attrs.fields_dict(ServerOptions) if (value := getattr(table, name)) is not None}
    replication, config_ini = (name and beside(folder, name) for name in (table.ndb_replication, table.config_ini))
    return ClusterConfiguration(
        name,
        logging_servers(server_ids, _binlogs(folder, name, table.binlogs or (), needed=binlogs)),
        table.role or Role.NONE,
        ServerOptions(**options),
        table.ndb_log_transaction_id,
        _binlogs(folder, name, table.rows, "rows"),
        table.rows_of,
        conversions=parse_type_conversions(table.replica_type_conversions or ""),
        replicates_from=table.replicates_from,
        ignored=_ignored(name, table),
        replication=load_replication_rows(replication) if replication else None,
        variables=of_nodes[0] if of_nodes else None,
        other_nodes=tuple(of_nodes[1:]),
        epoch_times=load_epoch_times(config_ini) if config_ini else None,
    )


def _with_variables(given: ClusterTable, of_nodes: Sequence[Mapping[str, str]], path: str) -> ClusterTable:
    """Return a table with what it does not say, and the variables of its SQL nodes do."""
    found = _of_variables(of_nodes[0]) if of_nodes else {}
    if given.server_ids or len(of_nodes) > 1:
        found.pop("server_id", None)
    if len(of_nodes) > 1 and given.server_id is None:
        found["server_ids"] = [_of_variables(each).get("server_id") for each in of_nodes]
    added = {entry: value for entry, value in found.items() if getattr(given, entry) is None}
    of_server = read(ClusterTable, added, path)
    return attrs.evolve(given, **{entry: getattr(of_server, entry) for entry in added})


def _with_filters(
    cluster: ClusterConfiguration, links: Links, folder: Path, given: ClusterTable
) -> ClusterConfiguration:
    """
    Return a cluster with the filters of its channels.

    Those of the run file count, else those that are in force (SHOW REPLICA STATUS), else those of its variables.

    Raises:
        ConfigurationError: It is not known which channel reads which cluster, or they cannot be followed.
    """
    where, sources = f"[clusters.{cluster.name}]", links.sources(cluster.name)
    options = {name: value for name in FILTER_OPTIONS if (value := getattr(given, name)) is not None}
    channels = tuple(channel for file in given.replica_status for channel in load_replica_status(beside(folder, file)))
    if given.replica_status:
        cluster = attrs.evolve(cluster, has_channels=bool(channels))
    if channels:
        read = {each.name: _channel_from(each, channels, f"replica_status of {where}") for each in sources}
        _refuse_ignored(read, links, where)
        filters = {name: each.filter.with_options(options_of(options, each.name)) for name, each in read.items()}
        ignored = {name: each.ignored | cluster.ignored.get(name, frozenset()) for name, each in read.items()}
        return attrs.evolve(cluster, channel_filters=filters, ignored=ignored, channels=read)
    of_server = cluster.given_variables
    options = {**{name: words_of(of_server[name]) for name in FILTER_OPTIONS if name in of_server}, **options}
    names = channels_of(options)
    if len(names) > 1 or (names and len(sources) > 1):
        shown = listed([f"channel {name}" for name in names])
        message = (
            f"filters of {where} are for {shown}, and it is not known which one reads which cluster; give "
            "replica_status, a file with what SHOW REPLICA STATUS prints"
        )
        raise ConfigurationError(message)
    return attrs.evolve(cluster, filter=ReplicationFilter().with_options(options_of(options, next(iter(names), ""))))


def _channel_from(source: ClusterConfiguration, channels: Sequence[ReplicaChannel], where: str) -> ReplicaChannel:
    """
    Return the channel that reads a cluster, by the server id of its source; the only one, if that is not known.

    Raises:
        ConfigurationError: There is none, or there are several whose filters differ.
    """
    found = [each for each in channels if each.source_id in source.server_ids]
    if not found and len(channels) == 1 and not channels[0].source_id:
        return channels[0]
    if len({(each.filter, each.ignored) for each in found}) == 1:
        return min(found, key=lambda each: bool(each.state))  # another one can be kept for a failover
    known = listed([f"channel {each.name!r} from server {each.source_id}" for each in channels])
    what = "several channels whose filters differ" if found else "no channel"
    servers = " or ".join(map(str, sorted(source.server_ids)))
    message = f"{where} has {what} from {source.name} (server {servers}); it has {known}"
    raise ConfigurationError(message)


def _refuse_ignored(read: Mapping[str, ReplicaChannel], links: Links, where: str) -> None:
    """
    Refuse that an applier ignores the servers of its only source, whose changes would not arrive at all.

    Raises:
        ConfigurationError: It does.
    """
    for source in links.clusters:
        left_out = read[source.name].ignored & source.server_ids if source.name in read else frozenset[int]()
        if left_out:
            message = (
                f"replica_status of {where}: Replicate_Ignore_Server_Ids has {min(left_out)}, a server of "
                f"{source.name}: its changes do not arrive; leave {source.name} out of replicates_from, or give the "
                "status of the channel that applied them"
            )
            raise ConfigurationError(message)


def logging_servers(server_ids: Sequence[int], files: Sequence[Path]) -> tuple[LoggingServer, ...]:
    """
    Return the SQL nodes of a cluster, each with the files that it wrote, by their first events.

    Args:
        server_ids: Their server ids.
        files: The files of all, oldest first; those of an unknown writer are given to the first SQL node.
    """
    if len(server_ids) == 1:
        return (LoggingServer(server_ids[0], tuple(files)),)
    written: dict[int, list[Path]] = {each: [] for each in server_ids}
    for file in files:
        written.get(writer_of(file), written[server_ids[0]]).append(file)
    return tuple(LoggingServer(server_id, tuple(own)) for server_id, own in written.items())


def writer_of(file: Path) -> int:
    """Return the id of the server that wrote a file, by its first event; -1 if it cannot be read."""
    try:
        with reading(file):
            for _, header in itertools.islice(read_headers(file), 1):
                return header.server_id
    except (FormatError, OSError):
        pass
    return -1


def _of_variables(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the entries of a cluster that its server's variables give."""
    found: dict[str, Any] = {entry: variables[name] for entry, name in _OF_VARIABLES.items() if name in variables}
    if "server_id" in found:
        number = whole_number(found["server_id"])
        found["server_id"] = found["server_id"] if number is None else number
    if "role" in found:
        found["role"] = found["role"].upper()
    return found


def _ignored(cluster: str, table: ClusterTable) -> dict[str, frozenset[int]]:
    """Return, per source, the server ids that an applier leaves out."""
    given = table.ignore_server_ids
    if not given.keys() <= set(table.replicates_from or ()):
        message = (
            f"clusters.{cluster}.ignore_server_ids is {given!r}; give a list of server ids for clusters of its "
            "replicates_from, like { A = [3] }"
        )
        raise ConfigurationError(message)
    return {source: frozenset(ids) for source, ids in given.items()}


def _binlogs(
    folder: Path, cluster: str, patterns: Sequence[str], what: str = "binlogs", *, needed: bool = True
) -> tuple[Path, ...]:
    files: list[Path] = []
    for pattern in patterns:
        try:
            found = matches(folder, pattern)
        except (ValueError, NotImplementedError, OSError, RecursionError) as error:  # ** inside a name; a name too long
            message = (
                f"{pattern[:200]}, {what} of cluster {cluster}, is no pattern: {getattr(error, 'strerror', error)}"
            )
            raise ConfigurationError(message) from error
        if not found and needed:
            message = f"no file matches {pattern}, {what} of cluster {cluster}"
            raise ConfigurationError(message)
        files += map(plain_path, found)
    return tuple(files)
