"""
Whether the binlog files of a run are those of its clusters, each once, and none is missing between two others.
"""

from __future__ import annotations

import filecmp
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from conflict.config.cluster_tables import writer_of
from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.errors import ConfigurationError
from conflict.history.ingestion.logged_epochs import step_of_files

_UNKNOWN = -1


@attrs.frozen
class MissingFile:
    """
    A file that is missing from a log, as the numbers of its files tell.

    Attributes:
        cluster: The cluster.
        server_id: Its SQL node.
        before: The files before the missing one.
        rest: The files after it.
        what: The sentence that says so, without a full stop.
    """

    cluster: str
    server_id: int
    before: tuple[Path, ...]
    rest: tuple[Path, ...]
    what: str


def missing_files(configuration: Configuration) -> Iterator[MissingFile]:
    """Yield the files that are missing from each log, the last ones first."""
    for cluster in configuration.clusters:
        for server in cluster.servers:
            files, whose = server.files, _named(cluster, server)
            for place in range(len(files) - 1, 0, -1):
                what = _gap(whose, files[place - 1], files[place])
                if what is not None:
                    yield MissingFile(cluster.name, server.server_id, files[:place], files[place:], what)


def check_log_files(configuration: Configuration, *, may_lack_files: bool = False) -> None:
    """
    Check what the names and the first events of the binlog files say. A file that cannot be read is left to its reader.

    Args:
        configuration: The run.
        may_lack_files: Whether files may be missing between others; see `missing_files`.

    Raises:
        ConfigurationError: A file was written by another server, or is a folder or a pipe, or files are out of order,
            or one is missing, or there twice.
    """
    for cluster in configuration.clusters:
        for server in cluster.servers:
            whose = _named(cluster, server)
            refuse_same_names(whose, ((file.name, file) for file in server.files))
            _check_numbers(whose, server.files)
            for file in server.files:
                _check_writer(configuration, cluster, file)
    if not may_lack_files:
        for missing in missing_files(configuration):
            raise ConfigurationError(missing.what)


def _check_writer(configuration: Configuration, cluster: ClusterConfiguration, file: Path) -> None:
    """Check that a file is one that a cluster's SQL nodes can have written."""
    servers = {server: each.name for each in configuration.clusters for server in each.server_ids}
    if file.exists() and not file.is_file():
        message = f"{file} is no regular file; give copies of the binlogs"
        raise ConfigurationError(message)
    writer = writer_of(file)
    if writer == _UNKNOWN or writer in cluster.server_ids:
        return
    message = f"{file} is given as a binlog of {cluster.name}, and was written by "
    if writer in servers:
        message += f"the server of {servers[writer]}; are the two sides swapped?"
    elif len(cluster.servers) > 1:
        message += f"server {writer}; server_ids of {cluster.name} are {sorted(cluster.server_ids)}"
    else:
        message += f"server {writer}; server_id of {cluster.name} is {cluster.server_id}"
    raise ConfigurationError(message)


def refuse_same_names(whose: str, files: Iterable[tuple[str, Path]]) -> None:
    """
    Refuse two files of one name and one server, which no log has.

    Args:
        whose: What the files are given as.
        files: The files, each with its name before it was compressed.

    Raises:
        ConfigurationError: There are two; the message says what to do.
    """
    known: dict[str, Path] = {}
    for name, file in files:
        other = known.setdefault(name, file)
        if other is file:
            continue
        if file.name != other.name:
            what = "one is compressed; give one of them"
        elif file.exists() and other.exists() and filecmp.cmp(file, other, shallow=False):
            what = "they are copies; give one of them"
        else:
            what = (
                "they differ, so they are of two times, as before and after RESET, or of two servers that were given "
                "the same server_id; give the files of one server and one time"
            )
        message = f"{other} and {file} are both given as {name} of {whose}: {what}"
        raise ConfigurationError(message)


def _named(cluster: ClusterConfiguration, server: LoggingServer) -> str:
    return cluster.name if len(cluster.servers) == 1 else f"server {server.server_id} of {cluster.name}"


def _check_numbers(cluster: str, files: Sequence[Path]) -> None:
    """Check that files with the same name, but for the number at its end, have rising numbers, in any folders."""
    for first, second in itertools.pairwise(files):
        if step_of_files(first, second) < 1:
            message = f"{_pair(cluster, first, second)}; give them in the order of their numbers"
            raise ConfigurationError(message)


def _gap(cluster: str, first: Path, second: Path) -> str | None:
    """Return the sentence that says that files are missing between two others; None if none are."""
    if step_of_files(first, second) < 2:
        return None
    missing = f"{first.stem}.{int(first.suffix[1:]) + 1:0{len(first.suffix) - 1}d}"
    return f"{_pair(cluster, first, second)}; {missing} is missing between them"


def _pair(cluster: str, first: Path, second: Path) -> str:
    apart = "" if first.parent == second.parent else f" ({first.parent} and {second.parent})"
    return f"the binlogs of {cluster} go from {first.name} to {second.name}{apart}"
