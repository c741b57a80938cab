"""
Whether the binlog files of a run are those of its clusters, each once, and none is missing between two others.
"""

from __future__ import annotations

import filecmp
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from conflict.config.configuration import Configuration
from conflict.errors import ConfigurationError
from ndb_formats.binlog_reader import read_headers
from ndb_formats.errors import FormatError

__all__ = ["check_log_files", "refuse_same_names"]

_UNKNOWN = -1


def check_log_files(configuration: Configuration) -> None:
    """
    Check what the names and the first events of the binlog files say. A file that cannot be read is left to its reader.

    Raises:
        ConfigurationError: A file was written by another server, or is a folder or a pipe, or files are out of order,
            or one is missing, or there twice.
    """
    servers = {cluster.server_id: cluster.name for cluster in configuration.clusters}
    for cluster in configuration.clusters:
        files = cluster.log.files
        refuse_same_names(cluster.name, ((file.name, file) for file in files))
        _check_numbers(cluster.name, files)
        for file in files:
            if file.exists() and not file.is_file():
                message = f"{file} is no regular file; give copies of the binlogs"
                raise ConfigurationError(message)
            writer = _writer(file)
            if writer in (_UNKNOWN, cluster.server_id):
                continue
            message = f"{file} is given as a binlog of {cluster.name}, and was written by "
            if writer in servers:
                message += f"the server of {servers[writer]}; are the two sides swapped?"
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


def _writer(file: Path) -> int:
    """Return the id of the server that wrote a file, by its first event; `_UNKNOWN` if it cannot be read."""
    try:
        for _, header in itertools.islice(read_headers(file), 1):
            return header.server_id
    except (FormatError, OSError):
        pass
    return _UNKNOWN


def _check_numbers(cluster: str, files: Sequence[Path]) -> None:
    """Check that files with the same name, but for the number at its end, have consecutive numbers, in any folders."""
    for first, second in itertools.pairwise(files):
        if not (first.stem == second.stem and first.suffix[1:].isdecimal() and second.suffix[1:].isdecimal()):
            continue
        expected, found = int(first.suffix[1:]) + 1, int(second.suffix[1:])
        if found != expected:
            missing = f"{first.stem}.{expected:0{len(first.suffix) - 1}d}"
            what = (
                f"{missing} is missing between them" if found > expected else "give them in the order of their numbers"
            )
            apart = "" if first.parent == second.parent else f" ({first.parent} and {second.parent})"
            message = f"the binlogs of {cluster} go from {first.name} to {second.name}{apart}; {what}"
            raise ConfigurationError(message)
