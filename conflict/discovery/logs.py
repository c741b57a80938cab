"""
The binlogs in what a user names, by the server that wrote them, and the definitions of their tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from conflict.config.option_values import full_name_of, is_full_name
from conflict.config.run_file import RunFile, is_run_file, load_run_file
from conflict.config.schema_file import load_schema
from conflict.config.text_file import place_of, what_commands_wrote
from conflict.discovery.found_files import INDEX, BinlogFile, binlog_files, named_files
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.preparing.log_files import refuse_same_names
from ndb_formats.binlog_reader import server_of
from ndb_formats.columnar.kernel_mode import expect_files
from ndb_formats.columnar.stretches import schema_at_start, table_names
from ndb_formats.constants import BINLOG_MAGIC, ENCRYPTED_MAGIC
from ndb_formats.errors import FormatError
from ndb_formats.schema.row_keys import with_inexact_keys
from ndb_formats.schema.tables import Schema

STANDARD_INPUT = Path("-")
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@attrs.frozen
class FoundLog:
    """
    The binlog of one server.

    Attributes:
        name: Name for its cluster.
        server_id: Server id in its first events.
        files: Its files, oldest first.
    """

    name: str
    server_id: int
    files: tuple[Path, ...]


def find_logs(given: Sequence[Path], *, unpacks: bool = False) -> tuple[FoundLog, ...]:
    """
    Return the binlogs below some paths, one per server, in the order in which they are met.

    Args:
        given: Files, folders, index files and patterns.
        unpacks: Whether whoever reads them unpacks compressed ones.

    Raises:
        ConfigurationError: Something is missing, is no binlog, or holds none, or one twice; or two of one server have
            one name; or one is compressed.
        FormatError: A file is damaged at its start, or encrypted.
    """
    files = {file.path.resolve(): file for path in given for file in binlog_files(path)}
    packed = [str(file.path) for file in files.values() if file.packed]
    if packed and not unpacks:
        message = f"{packed[0]} is compressed, and is read where it is here; unpack it first (gunzip, unzstd)"
        raise ConfigurationError(message)
    expect_files(files)
    logs: dict[int, list[BinlogFile]] = {}
    for file in files.values():
        logs.setdefault(file.header.server_id, []).append(file)
    for server, own in logs.items():
        refuse_same_names(f"server {server}", ((file.plain.name, file.path) for file in own))
    names = [_name(each) for each in logs.values()]
    named = None not in names and len(set(names)) == len(names)
    return tuple(
        FoundLog(str(name) if named else f"server{server}", server, tuple(_in_order(each)))
        for name, (server, each) in zip(names, logs.items(), strict=True)
    )


def files_of(given: Iterable[Path], *, unpacks: bool = False) -> Iterator[Path]:
    """
    Yield single files as they are, so that compressed ones and pipes can be given, and what all else represents.

    Args:
        given: As for `find_logs`.
        unpacks: See there.

    Raises:
        ConfigurationError: As `find_logs`.
        FormatError: As `find_logs`.
    """
    for path in given:
        single = path == STANDARD_INPUT or (path.exists() and not path.is_dir() and path.suffix != INDEX)
        yield from [path] if single else (file for log in find_logs([path], unpacks=unpacks) for file in log.files)


def readable_files(given: Path) -> tuple[list[Path], dict[Path, str]]:
    """
    Return the binlogs that a path represents, as `find_logs` orders them, and of its other files why they are none.

    Args:
        given: A file, a folder, an index file or a pattern. Compressed binlogs are binlogs.

    Raises:
        ConfigurationError: There is no file at all.
    """
    given = place_of(given)
    paths = [given] if given.is_dir() else named_files(given)
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    logs, others = list[Path](), dict[Path, str]()
    for file in files:
        if not file.is_dir() and file.suffix != INDEX:
            try:
                find_logs([file], unpacks=True)
            except (ConfigurationError, FormatError) as error:
                others[file] = str(error)
            else:
                logs.append(file)
    if not logs and not others:
        message = f"{given} holds no file"
        raise ConfigurationError(message)
    return [file for log in find_logs(logs, unpacks=True) for file in log.files], others


def refuse_inputs(path: Path) -> None:
    """
    Say to who wants a result what else a path is.

    A run file, a binlog or a folder with binlogs, from which results are made; or what another command wrote.

    Raises:
        HistoryError: It is.
    """
    binlogs = False
    with suppress(OSError):  # whoever wants the result says that it cannot be read
        binlogs = any(map(_starts_as_binlog, path.iterdir() if path.is_dir() else [path]))
    if binlogs or path.suffix == ".toml":
        what = "a run file" if not binlogs else "a folder of binlogs" if path.is_dir() else "a binlog"
        message = f"{path} is {what}, not a result; resolve it with ndb-conflict resolve, and give the result's folder"
        raise HistoryError(message)
    if (written := what_commands_wrote(path, "a result", "what resolve wrote")) is not None:
        raise HistoryError(written)


def _starts_as_binlog(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(BINLOG_MAGIC)) in (BINLOG_MAGIC, ENCRYPTED_MAGIC)


def _in_order(files: Sequence[BinlogFile]) -> list[Path]:
    """Return files by the numbers in their names; those of the base name that was used first come first."""
    began: dict[Path, int] = {}
    for file in files:
        began[file.base] = min(began.get(file.base, file.header.timestamp), file.header.timestamp)
    ordered = sorted(files, key=lambda file: (began[file.base], file.base, file.number))
    return [file.path for file in ordered]


def _name(files: Sequence[BinlogFile]) -> str | None:
    """Return the name of the folder that holds all files of a server, if it can name a cluster."""
    folders = {file.path.resolve().parent.name for file in files}
    name = folders.pop()
    return name if not folders and _NAME.fullmatch(name) else None


@attrs.frozen
class _LogSource:
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
) -> _LogSource:
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
    if len(given) != 1 or not is_run_file(given[0]):
        return _LogSource(tuple(files_of(given, unpacks=unpacks)), schema, at_end)
    run = load_run_file(given[0].absolute())
    files = run.configuration.files
    if schema is not None:
        return _LogSource(files, schema, at_end)
    return _LogSource(files, None, run.configuration.schema_at_end, _schema_of(run))


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
    configuration = run.configuration.with_database_names({})
    own = {
        server: configuration.schema_of(cluster)
        for cluster in configuration.clusters
        for server in map(server_of, cluster.files)
        if (cluster.schema is not None or configuration.databases) and server is not None
    }
    return attrs.evolve(configuration.schema, of_servers=tuple(own.items()))
