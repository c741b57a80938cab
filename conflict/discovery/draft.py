"""
Drafts a run file from bare binlogs, and from what a user adds to them.

Server ids, the order of files, tables and binlog types come from the binlogs. They do not say which conflict functions
are in force; who can try functions on them finds which ones fit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Self

import attrs

from conflict.config.arguments import ConflictFns
from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.config.option_values import words_of
from conflict.config.replication_rows import load_replication_rows
from conflict.config.run_file import RunFile, parse_run_file
from conflict.config.text_file import place_of
from conflict.discovery.clusters import FoundCluster, clusters_of
from conflict.discovery.logged_types import logged_options, logged_types
from conflict.discovery.logs import FoundLog, find_logs
from conflict.errors import ConfigurationError
from conflict.history.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.rules.functions import ConflictFunction, parse_conflict_function, typed_function
from conflict.shown_text import listed
from ndb_formats.errors import did_you_mean
from ndb_formats.schema.tables import Schema
from ndb_formats.stored import Stored, path_of

__all__ = [
    "Additions",
    "Draft",
    "Finder",
    "ShownFunctions",
    "additions_of",
    "bare_clusters",
    "draft_run",
    "functions_by_table",
    "refuse_other_primary",
]

# By cluster, the server options that are not at their defaults.
Options = Mapping[str, Mapping[str, bool]]
_TYPE_NAMES = {2: "UPDATED_ONLY", 3: "FULL", 6: "UPDATED_ONLY_USE_UPDATE", 7: "FULL_USE_UPDATE"} | {
    8: "UPDATED_ONLY_USE_UPDATE_MINIMAL",
    9: "FULL_USE_UPDATE_MINIMAL",
}


@attrs.frozen
class Additions:
    """
    What a user adds to the binlogs.

    Attributes:
        schema: File of CREATE TABLE statements.
        ndb_replication: File with the rows of ``mysql.ndb_replication``.
        functions: Conflict function by table, or by a pattern such as ``shop.*``; the first that matches counts.
        primary: Name of the cluster that is the primary, for functions by epoch.
    """

    schema: Path | None = None
    ndb_replication: Path | None = None
    functions: Mapping[str, str] = attrs.field(factory=dict)
    primary: str | None = None


def additions_of(
    schema: Path | str | None, ndb_replication: Path | str | None, conflict_fn: ConflictFns | None, primary: str | None
) -> Additions:
    """
    Return what a user adds to bare binlogs.

    Raises:
        ConfigurationError: A conflict function has no table or no text, or there are rows of their own.
    """
    functions = functions_by_table(conflict_fn or {})
    if functions and ndb_replication is not None:
        message = "--ndb-replication and --conflict-fn both say which functions are in force; give one of them"
        raise ConfigurationError(message)
    definitions, rows = (None if file is None else place_of(file) for file in (schema, ndb_replication))
    return Additions(definitions, rows, functions, primary)


def functions_by_table(given: ConflictFns) -> dict[str, str]:
    """
    Return conflict functions by table or pattern.

    Args:
        given: That already; or texts, or one with commas between several, of a table, ``=`` and a function each.

    Raises:
        ConfigurationError: A table or a function is missing.
    """
    if isinstance(given, Mapping):
        texts = [f"{table}={function}" for table, function in given.items()]
    else:
        texts = [word for text in ([given] if isinstance(given, str) else given) for word in words_of(text)]
    found = {}
    for text in texts:
        table, _, function = (part.strip() for part in text.partition("="))
        if not (table and function):
            example = "'shop.orders=NDB$MAX(version)', in single quotes in a shell"
            message = f"--conflict-fn {text} is not understood; give TABLE=FUNCTION, as in {example}"
            raise ConfigurationError(message)
        found[table] = function
    return found


@attrs.frozen
class ShownFunctions:
    """
    The conflict functions that binlogs show.

    Attributes:
        functions: By table.
        primary: Name of the primary; None if there is no function by epoch.
        others: By table, functions that fit as well.
        sentences: What was found, and by what.
    """

    functions: Mapping[str, ConflictFunction]
    primary: str | None
    others: Mapping[str, Sequence[ConflictFunction]]
    sentences: tuple[str, ...]


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
    if additions.primary is not None and additions.primary not in names:
        meant = did_you_mean(additions.primary, names)
        message = f"--primary {additions.primary} is no cluster{meant}; they are {' and '.join(names)}"
        raise ConfigurationError(message)
    functions = {pattern: typed_function(text) for pattern, text in additions.functions.items()}
    if any(function.spec.refreshes for function in functions.values()) and additions.primary is None:
        epoch = next(str(function) for function in functions.values() if function.spec.refreshes)
        message = f"{epoch} works on a primary; say which cluster it is: --primary {' or --primary '.join(names)}"
        raise ConfigurationError(message)
    if additions.ndb_replication is not None:
        refuse_other_primary(additions.primary, {log.name: log.server_id for log in logs}, additions.ndb_replication)
    text = _Text(tuple(logs), additions, functions, additions.primary)
    # Paths are absolute first: the folder of the run file may not be there yet.
    try:
        run = make_run(parse_run_file(text.head(None, {}), path).configuration)
    except ConfigurationError as error:
        beside = [file for each in given if each.is_dir() for file in sorted(each.glob("*.toml"))]
        if not beside or additions != Additions():
            raise
        message = f"{error}; or give {beside[0]}, if that is the run file of these binlogs"
        raise ConfigurationError(message) from error
    logged = _Logged.of(run, additions)
    unsaid = not functions and additions.ndb_replication is None and additions.primary is None
    shown = find(parse_run_file(text.of(logged, None), path).configuration) if find is not None and unsaid else None
    if shown is not None:
        text = attrs.evolve(text, functions=shown.functions, primary=shown.primary, shown=shown)
    return Draft(text.of(logged, path.parent), tuple(logs), parse_run_file(text.of(logged, None), path), shown)


@attrs.frozen
class _Logged:
    """
    How the servers logged their tables.

    Attributes:
        run: A run of their binlogs.
        types: By cluster and table, the binlog type; empty if rows of ``mysql.ndb_replication`` say it.
        options: By cluster, its options, where such rows leave the type to them.
    """

    run: Run
    types: Mapping[str, Mapping[str, int | None]] = attrs.field(factory=dict)
    options: Options = attrs.field(factory=dict)

    @classmethod
    def of(cls, run: Run, additions: Additions) -> Self:
        """Return what the images in the binlogs show."""
        if additions.ndb_replication is not None:
            return cls(run, options={each.name: logged_options(run, each) for each in run.clusters})
        return cls(run, {each.name: logged_types(run, each) for each in run.clusters})


@attrs.frozen
class _Text:
    """
    The text of a run file, in which paths are relative to a folder, or absolute.

    Attributes:
        logs: The clusters.
        additions: What the user adds.
        functions: Conflict function by table or pattern.
        primary: Name of the primary; None if there is none.
        shown: Where the functions come from; None if the user gave them.
    """

    logs: tuple[FoundCluster, ...]
    additions: Additions
    functions: Mapping[str, ConflictFunction]
    primary: str | None
    shown: ShownFunctions | None = None

    def of(self, logged: _Logged, folder: Path | None) -> str:
        """Return it for servers that log so; no folder for absolute paths."""
        head = self.head(folder, logged.options)
        if self.additions.ndb_replication is not None:
            return head
        others = {} if self.shown is None else self.shown.others
        return head + "\n".join(_replication(logged, self.functions, self.primary, others)) + "\n"

    def head(self, folder: Path | None, options: Options) -> str:
        """Return it without rows of ``mysql.ndb_replication``."""
        roles = self.additions.ndb_replication is not None or any(
            each.spec.uses_role for each in self.functions.values()
        )
        clusters = _clusters(self.logs, folder, self.primary if roles else None, options)
        return "\n".join((*_head(self.additions, folder, self.shown), *clusters)) + "\n"


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


def refuse_other_primary(primary: str | None, server_ids: Mapping[str, int], rows: Path) -> None:
    """
    Refuse a primary on which no row sets NDB$EPOCH or NDB$EPOCH_TRANS, where one does so on the other cluster alone.

    Args:
        primary: Name of the primary; None if none is given.
        server_ids: By cluster, the id of its server.
        rows: File with the rows of ``mysql.ndb_replication``.

    Raises:
        ConfigurationError: The rows contradict the primary.
    """
    if primary is None:
        return
    on = {row.server_id: row for row in load_replication_rows(rows) if _of_primary(row.conflict_fn)}
    other = next((name for name, server_id in server_ids.items() if name != primary and server_id in on), None)
    if other is not None and server_ids[primary] not in on and 0 not in on:
        row = on[server_ids[other]]
        message = (
            f"--primary {primary}: {rows} sets {row.conflict_fn} for {row.db}.{row.table_name} on server "
            f"{row.server_id}, which is {other}, and on no server of {primary}; give --primary {other}, or correct the "
            "rows"
        )
        raise ConfigurationError(message)


def _of_primary(text: str | None) -> bool:
    """Whether a function is set on the primary alone; a text that is none is refused elsewhere."""
    try:
        spec = None if not text else parse_conflict_function(text).spec
    except ConfigurationError:
        return False
    return spec is not None and spec.refreshes and not spec.uses_role


def _head(additions: Additions, folder: Path | None, shown: ShownFunctions | None) -> Iterator[str]:
    if shown is None:
        yield "# Drafted from the binlogs. Check the conflict functions: binlogs do not say which ones are in force."
    else:
        yield "# Drafted from the binlogs. Check the conflict functions: those here fit what appliers logged."
        yield from (f"# {sentence}" for sentence in shown.sentences)
    if additions.schema is None:
        yield "# No schema: the binlogs create the tables, or name their columns (binlog_row_metadata=FULL)."
        yield '# schema = "schema.sql"'
    else:
        yield f"schema = {_relative(additions.schema, folder)}"
    yield '# start = "empty"              # or "middle": whether tables held rows before the binlogs'
    if additions.ndb_replication is not None:
        yield f"ndb_replication = {_relative(additions.ndb_replication, folder)}"
    yield ""


def _clusters(
    logs: Sequence[FoundCluster], folder: Path | None, primary: str | None, options: Options
) -> Iterator[str]:
    for log in logs:
        yield f"[clusters.{log.name}]"
        several = [each.server_id for each in log.logs]
        yield f"server_id = {log.server_id}" if len(several) == 1 else f"server_ids = {several}"
        patterns = [pattern for each in log.logs for pattern in _patterns(each.files)]
        if len(patterns) == 1:
            yield f"binlogs = [{_relative(patterns[0], folder)}]"
        else:
            yield "binlogs = ["
            yield from (f"    {_relative(pattern, folder)}," for pattern in patterns)
            yield "]"
        if primary is None:
            yield '# role = "PRIMARY"             # ndb_applier_conflict_role, for NDB$EPOCH2 and NDB$EPOCH2_TRANS'
        else:
            yield f'role = "{"PRIMARY" if log.name == primary else "SECONDARY"}"'
        for name, value in options.get(log.name, {}).items():
            state = "ON" if value else "OFF"
            yield f'{name} = "{state}"    # as the images of tables with binlog_type 0 show'
        yield '# rows = "rows.sql"            # rows that its tables held before the binlogs'
        yield ""


def _patterns(files: Sequence[Path]) -> list[Path]:
    """Return one pattern for files that are all of their name, or the files as patterns that match them alone."""
    first = files[0]
    pattern = first.parent / f"{escape(first.stem)}.[0-9]*"
    if first.suffix[1:].isdecimal() and sorted(first.parent.glob(pattern.name)) == list(files):
        return [path_of(escape(str(first.parent))) / pattern.name]
    return [path_of(escape(str(file))) for file in files]


def _replication(
    logged: _Logged,
    functions: Mapping[str, ConflictFunction],
    primary: str | None,
    others: Mapping[str, Sequence[ConflictFunction]],
) -> Iterator[str]:
    """Yield the rows of mysql.ndb_replication, one for each table, or one for each cluster where they differ."""
    run, types = logged.run, logged.types
    tables = {table.full_name: (table.database, table.name) for table in run.data_schema.tables}
    for pattern in functions:
        if not any(fnmatchcase(name, pattern) for name in tables):
            known = ", ".join(sorted(tables)[:10]) or "none"
            meant = did_you_mean(pattern, tables)
            message = f"--conflict-fn {pattern} matches no table{meant}; the tables are {known}"
            raise ConfigurationError(message)
    for full_name, (database, name) in tables.items():
        function = next((each for pattern, each in functions.items() if fnmatchcase(full_name, pattern)), None)
        if function is None and all(full_name not in own for own in types.values()):
            continue  # nothing happens to it
        rows = {
            cluster.name: (types[cluster.name].get(full_name), _text(function, cluster, primary))
            for cluster in run.clusters
        }
        numbers = {number for number, _ in rows.values()} - {None}
        if len(numbers) == 1:  # a cluster that changed nothing tells nothing
            rows = {cluster: (next(iter(numbers)), text) for cluster, (_, text) in rows.items()}
        same = len(set(rows.values())) == 1
        servers = [(each, server.server_id) for each in run.clusters for server in each.servers]
        for cluster, server_id in [(run.clusters[0], 0)] if same else servers:
            yield "[[ndb_replication]]"
            yield f"db = {_quoted(database)}"
            yield f"table_name = {_quoted(name)}"
            yield f"server_id = {server_id}"
            yield from _row(*rows[cluster.name], others.get(full_name, ()))
            yield ""


def _text(function: ConflictFunction | None, cluster: ClusterConfiguration, primary: str | None) -> str | None:
    """Return the function of a table on one cluster: NDB$EPOCH and NDB$EPOCH_TRANS are set on the primary alone."""
    if function is None or (function.spec.refreshes and not function.spec.uses_role and cluster.name != primary):
        return None
    return function.short


def _row(number: int | None, function: str | None, others: Sequence[ConflictFunction]) -> Iterator[str]:
    if number is None:
        yield "# binlog_type = 7             # the binlog shows no change from which to tell it"
    else:
        yield f"binlog_type = {number}               # {_TYPE_NAMES.get(number, '')}, as its images show"
    if function is None:
        yield '# conflict_fn = "NDB$MAX(column)"'
    else:
        yield f"conflict_fn = {_quoted(function)}" + (
            f"    # or {listed([each.short for each in others], 'or')}" if others else ""
        )


def _relative(path: Path, folder: Path | None) -> str:
    """Return a path as it is written in a folder; an absolute one without a folder."""
    if folder is None or isinstance(path, Stored):
        return _quoted(str(path.absolute()))
    real = path.parent.resolve() / path.name  # ".." after a link leads elsewhere
    return _quoted(os.path.relpath(real, folder.resolve()))


def _quoted(text: str) -> str:
    """Return a TOML string; its escapes are those of JSON, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
