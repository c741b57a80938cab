"""
The text of a run file that is drafted from bare binlogs: what is known as entries, the rest as comments to fill in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Self

import attrs

from conflict.config.additions import Additions, ShownFunctions
from conflict.config.configuration import ClusterConfiguration
from conflict.discovery.clusters import FoundCluster
from conflict.discovery.logged_types import logged_options, logged_types
from conflict.errors import ConfigurationError
from conflict.history.run import Run
from conflict.rules.functions import ConflictFunction
from conflict.telling.shown_text import listed
from ndb_formats.errors import did_you_mean
from ndb_formats.stored import Stored, path_of

# By cluster, the server options that are not at their defaults.
Options = Mapping[str, Mapping[str, bool]]
_TYPE_NAMES = {2: "UPDATED_ONLY", 3: "FULL", 6: "UPDATED_ONLY_USE_UPDATE", 7: "FULL_USE_UPDATE"} | {
    8: "UPDATED_ONLY_USE_UPDATE_MINIMAL",
    9: "FULL_USE_UPDATE_MINIMAL",
}


@attrs.frozen
class LoggedFormats:
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
class DraftText:
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

    def of(self, logged: LoggedFormats, folder: Path | None) -> str:
        """Return it for servers that log so; no folder for absolute paths."""
        head = self.head(folder, logged.options)
        if self.additions.ndb_replication is not None:
            return head
        others = {} if self.shown is None else self.shown.others
        rows = _replication(logged, self.functions, self.primary, others)
        return head + "\n".join((*rows, *self.additions.resolver_tables())) + "\n"

    def head(self, folder: Path | None, options: Options) -> str:
        """Return it without rows of ``mysql.ndb_replication``."""
        roles = self.additions.ndb_replication is not None or any(
            each.spec.uses_role for each in self.functions.values()
        )
        clusters = _clusters(self.logs, folder, self.primary if roles else None, options)
        return "\n".join((*_head(self.additions, folder, self.shown), *clusters)) + "\n"


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
    logged: LoggedFormats,
    functions: Mapping[str, ConflictFunction],
    primary: str | None,
    others: Mapping[str, Sequence[ConflictFunction | None]],
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
    """Return the function of a table on one cluster, as text."""
    if function is None or (function.spec.on_primary_alone and cluster.name != primary):
        return None
    return function.short


def _row(number: int | None, function: str | None, others: Sequence[ConflictFunction | None]) -> Iterator[str]:
    if number is None:
        yield "# binlog_type = 7             # the binlog shows no change from which to tell it"
    else:
        yield f"binlog_type = {number}               # {_TYPE_NAMES.get(number, '')}, as its images show"
    if function is None:
        yield '# conflict_fn = "NDB$MAX(column)"'
    else:
        other = ["none" if each is None else each.short for each in others]
        yield f"conflict_fn = {_quoted(function)}" + (f"    # or {listed(other, 'or')}" if other else "")


def _relative(path: Path, folder: Path | None) -> str:
    """Return a path as it is written in a folder; an absolute one without a folder."""
    if folder is None or isinstance(path, Stored):
        return _quoted(str(path.absolute()))
    real = path.parent.resolve() / path.name  # ".." after a link leads elsewhere
    return _quoted(os.path.relpath(real, folder.resolve()))


def _quoted(text: str) -> str:
    """Return a TOML string; its escapes are those of JSON, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
