"""
The binlogs that `decode`, `sizes` and `read_binlog` are given, and the definitions of their tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from conflict.config.option_values import full_name_of, is_full_name
from conflict.config.run_file import RunFile, load_run_file
from conflict.config.schema_file import load_schema
from conflict.discovery.logs import files_of
from ndb_formats.binlog_reader import server_of
from ndb_formats.columnar.stretches import schema_at_start, table_names
from ndb_formats.schema.row_keys import with_inexact_keys
from ndb_formats.schema.tables import Schema

__all__ = ["LogSource", "full_names", "log_source"]


@attrs.frozen
class LogSource:
    """
    Binlogs, and what they do not say themselves.

    Attributes:
        files: In order, server by server where they were found.
        schema_file: File of CREATE TABLE statements; None if there is none, or a run file says what it says.
        at_end: Whether definitions are those at the end of the logs, not at the start.
        known: Definitions of the run file; None without one.
    """

    files: tuple[Path, ...]
    schema_file: Path | None
    at_end: bool
    known: Schema | None = attrs.field(default=None, repr=False)

    def definitions(self, binlogs: Sequence[Path | str]) -> Schema:
        """
        Return the definitions of tables.

        Args:
            binlogs: The files as they can be read; which server wrote them decides what statements mean.

        Raises:
            ConfigurationError: The file of statements cannot be used.
        """
        return load_schema(self.schema_file, binlogs=binlogs) if self.known is None else self.known

    def definitions_at_start(self, *, inexact_keys: bool = False) -> Schema:
        """
        Return the definitions of tables at the start of the logs, whose files can be read as they are.

        Args:
            inexact_keys: Compare keys without an exact comparison by their bytes.

        Raises:
            ConfigurationError: The file of statements cannot be used.
        """
        found = self.definitions(self.files)
        if self.at_end:
            found = schema_at_start([*map(str, self.files)], found)
        return with_inexact_keys(found) if inexact_keys else found


def log_source(
    given: Sequence[Path], schema: Path | None = None, *, at_end: bool = False, unpacks: bool = False
) -> LogSource:
    """
    Return the binlogs that some paths represent.

    Args:
        given: Files, which may be compressed, pipes or ``-``; folders, index files, patterns; or one run file (.toml).
        schema: File of CREATE TABLE statements; by default that of the run file.
        at_end: Whether it describes the end of the logs.
        unpacks: Whether whoever reads the files unpacks compressed ones.

    Raises:
        ConfigurationError: Something is missing, holds no binlog or cannot be used.
        FormatError: A binlog is damaged at its start, or encrypted.
    """
    if len(given) != 1 or given[0].suffix != ".toml":
        return LogSource(tuple(files_of(given, unpacks=unpacks)), schema, at_end)
    run = load_run_file(given[0].absolute())
    files = run.configuration.files
    if schema is not None:
        return LogSource(files, schema, at_end)
    return LogSource(files, None, run.configuration.schema_at_end, _schema_of(run))


def full_names(tables: Iterable[str], binlogs: Sequence[str]) -> frozenset[str]:
    """
    Return the full names of tables; the binlogs are looked through only for those that are given without a database.

    Args:
        tables: ``database.table``, or tables alone.
        binlogs: The files as they can be read.

    Raises:
        ConfigurationError: The binlogs have changes of a table of that name in several databases.
        FormatError: A file cannot be read at all.
    """
    given = frozenset(tables)
    if all(map(is_full_name, given)):
        return given
    known = table_names(binlogs)
    return frozenset(full_name_of(name, known) for name in given)


def _schema_of(run: RunFile) -> Schema:
    """Return the definitions of a run, for the log of each server those of its cluster."""
    own = {
        server: cluster.schema
        for cluster in run.configuration.clusters
        for server in map(server_of, cluster.log.files)
        if cluster.schema is not None and server is not None
    }
    return attrs.evolve(run.configuration.schema, of_servers=tuple(own.items()))
