"""
Whether the binlog files of a run are those of its clusters, and none is missing between two others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from conflict.config.configuration import Configuration
from conflict.errors import ConfigurationError
from ndb_formats.binlog_reader import read_headers
from ndb_formats.errors import FormatError

__all__ = ["check_log_files"]

_UNKNOWN = -1


def check_log_files(configuration: Configuration) -> None:
    """
    Check what the names and the first events of the binlog files say. A file that cannot be read is left to its reader.

    Raises:
        ConfigurationError: A file was written by another server, or is a folder or a pipe, or files are out of order,
            or one is missing.
    """
    servers = {cluster.server_id: cluster.name for cluster in configuration.clusters}
    for cluster in configuration.clusters:
        _check_numbers(cluster.name, cluster.files)
        for file in cluster.files:
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


def _writer(file: Path) -> int:
    """Return the id of the server that wrote a file, by its first event; `_UNKNOWN` if it cannot be read."""
    try:
        for _, header in itertools.islice(read_headers(file), 1):
            return header.server_id
    except (FormatError, OSError):
        pass
    return _UNKNOWN


def _check_numbers(cluster: str, files: Sequence[Path]) -> None:
    """Check that files with the same name, but for the number at its end, have consecutive numbers."""
    for first, second in itertools.pairwise(files):
        same = first.parent == second.parent and first.stem == second.stem
        if not (same and first.suffix[1:].isdecimal() and second.suffix[1:].isdecimal()):
            continue
        expected, found = int(first.suffix[1:]) + 1, int(second.suffix[1:])
        if found != expected:
            missing = f"{first.stem}.{expected:0{len(first.suffix) - 1}d}"
            what = (
                f"{missing} is missing between them" if found > expected else "give them in the order of their numbers"
            )
            message = f"the binlogs of {cluster} go from {first.name} to {second.name}; {what}"
            raise ConfigurationError(message)
