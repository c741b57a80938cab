"""
`run.toml`: the file that describes a run.

    schema = "schema.sql"          # CREATE TABLE of every table, exceptions tables among them; needless for tables that
                                   # the binlogs create, or describe (binlog_row_metadata=FULL)
    schema_at = "start"            # whether it says how tables stand at the "start" or the "end" of the binlogs
    database = "shop"              # of tables that schema.sql does not qualify
    charset = "utf8mb4"            # of tables that declare none
    start = "empty"                # tables were empty before the binlogs; or "middle"; else the binlogs show it
    inexact_keys = false           # optional: allow keys whose equality is not known exactly (docs/keys.md)

    [clusters.A]
    server_id = 1
    binlogs = ["a/binlog.0*"]      # relative to this file; patterns are sorted by name
    role = "NONE"                  # ndb_applier_conflict_role
    ndb_log_update_as_write = "ON" # and the other two options that count for binlog_type 0
    ndb_log_transaction_id = "ON"  # if known; the _TRANS functions need it
    rows = ["a/rows.sql"]          # rows that its tables held before the binlogs: a dump, or .csv, .parquet per table
    rows_epoch = 4294967297        # the own epoch after which they were read; by default before the first one
    rows_of = "B"                  # or: the rows of the other cluster stand for this one's
    replicates_from = ["B"]        # with more than two clusters: those whose binlogs its applier applies
    ignore_server_ids = { B = [3] } # IGNORE_SERVER_IDS of the channel from a source
    schema = "schema-a.sql"        # if its tables differ from those of the other cluster
    replica_type_conversions = ""  # if it is set

    [clusters.B]
    ...

    [[ndb_replication]]            # rows of mysql.ndb_replication, the same on both clusters
    db = "shop"
    table_name = "%"
    server_id = 0
    binlog_type = 7                # or by name: "FULL_USE_UPDATE"
    conflict_fn = "NDB$MAX(version)"
    # or, at the top, a file with the rows: ndb_replication = "ndb_replication.sql" (or .csv, .tsv, .toml)

    [[conflict_function]]          # optional: a function of your own, for conflict_fn = "NEWEST(version)"
    name = "NEWEST"
    write = "reject if present"    # and update, delete; see `conflict.rules.functions.Cell`
    update = "at least"
    delete = "equal"

    [schedule]                     # optional: apply times that the binlogs do not show
    steps = "scenario.json"        # steps of a recording, or:
    [[schedule.applied]]           # cluster A applied this epoch of the other one after its own epoch
    applier = "A"
    epoch = 4294967297
    after_epoch = 4294967300
    [[schedule.stopped]]           # cluster A's applier applied nothing after this epoch of the other one
    applier = "A"
    after_epoch = 4294967299
    [[schedule.role]]              # cluster A had this role after its applier had applied this epoch of the other one
    applier = "A"
    after_epoch = 4294967299
    role = "SECONDARY"
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, Span
from conflict.config.replication_rows import load_replication_rows, rows_of_tables
from conflict.config.text_file import located, read_text
from conflict.errors import ConfigurationError
from conflict.rules.functions import FUNCTIONS
from conflict.rules.roles import Role
from conflict.rules.user_policies import add_functions, policies_of_tables
from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.rules.replica.conversions import parse_type_conversions
from ndb_formats.rules.update_format import ServerOptions, server_options, switch
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema

__all__ = ["RunFile", "load_run_file", "parse_run_file"]

_ENTRIES = {"schema", "schema_at", "database", "charset", "start", "inexact_keys", "clusters", "ndb_replication"} | {
    *("conflict_function", "schedule")
}
_OPTIONS = {field.name for field in attrs.fields(ServerOptions)}
_TRANSACTION_IDS = "ndb_log_transaction_id"
_CONVERSIONS = "replica_type_conversions"
_CLUSTER_ENTRIES = {"server_id", "binlogs", "role", "schema", "rows", "rows_epoch", "rows_of"} | {
    *("replicates_from", "ignore_server_ids", _TRANSACTION_IDS, _CONVERSIONS)
}
# The entries of each list of a schedule, besides the applier.
_SCHEDULE: Mapping[str, Mapping[str, type]] = {
    "applied": {"epoch": int, "after_epoch": int},
    "stopped": {"after_epoch": int},
    "role": {"after_epoch": int, "role": Role},
}


@attrs.frozen
class RunFile:
    """
    A run as its file describes it.

    Attributes:
        path: The file.
        configuration: The run.
        schedule: The file's `schedule` table; empty if there is none.
        inputs: Every file that the run reads: the run file if there is one, the files that it names, and the binlogs.
    """

    path: Path
    configuration: Configuration
    schedule: Mapping[str, Any]
    inputs: tuple[Path, ...] = attrs.field(repr=False)


def load_run_file(path: Path | str) -> RunFile:
    """
    Read a run file.

    Raises:
        ConfigurationError: Something in it, or a file that it names, is missing or wrong.
    """
    path = Path(path)
    run = parse_run_file(read_text(path), path)
    return attrs.evolve(run, inputs=(path, *run.inputs))


def parse_run_file(text: str, path: Path) -> RunFile:
    """
    Return the run that the text of a run file describes.

    Args:
        text: The text.
        path: Where the file stands, or would stand: its paths are relative to that.

    Raises:
        ConfigurationError: Something in it, or a file that it names, is missing or wrong.
    """
    with located(path):
        document = tomllib.loads(text)
        _no_others("the run file", document, _ENTRIES)
        clusters = _clusters(path.parent, document.get("clusters"))
        if "schema" in document:
            _required(document, "schema", str)
        at_end = _schema_at_end(document.get("schema_at", "start"))
        policies = policies_of_tables(document.get("conflict_function", []))
        functions = add_functions(FUNCTIONS, policies)
        span = _span(document, clusters)
        inexact_keys = _required({"inexact_keys": False, **document}, "inexact_keys", bool)
        schedule = _schedule(document.get("schedule", {}), [cluster.name for cluster in clusters])
    rows = document.get("ndb_replication", [])
    if isinstance(rows, str):
        replication = load_replication_rows(path.parent / rows)
    else:
        with located(path):
            replication = rows_of_tables(rows)
    schema = _schema(path.parent, document.get("schema"), document)
    own = {name: table["schema"] for name, table in document["clusters"].items() if "schema" in table}
    clusters = tuple(
        attrs.evolve(each, schema=_schema(path.parent, own[each.name], document)) if each.name in own else each
        for each in clusters
    )
    texts = (document.get("schema"), *own.values(), rows, schedule.get("steps"))
    named = [name for name in texts if isinstance(name, str)]
    inputs = (
        *(path.parent / name for name in named),
        *(file for cluster in clusters for file in (*cluster.files, *cluster.rows)),
    )
    configuration = Configuration(clusters, schema, replication, functions, span=span, schema_at_end=at_end)
    if inexact_keys:
        configuration = configuration.with_inexact_keys()
    return RunFile(path, configuration, schedule, inputs)


def _schema(folder: Path, name: str | None, document: Mapping[str, Any]) -> Schema:
    """Return the tables of a file of definitions; none without a file."""
    if name is None:
        return Schema()
    text = read_text(folder / name)
    with located(folder / name):
        database, charset = document.get("database", ""), document.get("charset", DEFAULT_CHARSET)
        return parse_schema(text, database=database, charset=charset)


def _schema_at_end(text: Any) -> bool:
    if text not in ("start", "end"):
        message = f'schema_at is "start" or "end", not {text!r}'
        raise ConfigurationError(message)
    return bool(text == "end")


def _required(table: Mapping[str, Any], name: str, kind: type) -> Any:
    value = table.get(name)
    if not isinstance(value, kind):
        message = f"{name} is missing, or is not of type {kind.__name__}"
        raise ConfigurationError(message)
    return value


def _no_others(where: str, table: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        message = f"{where} has unknown entries {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        raise ConfigurationError(message)


def _clusters(folder: Path, tables: Any) -> tuple[ClusterConfiguration, ...]:
    if not isinstance(tables, dict) or len(tables) < 2:
        message = "two or more tables [clusters.NAME] are needed"
        raise ConfigurationError(message)
    clusters = tuple(_cluster(folder, name, table) for name, table in tables.items())
    for first, second in itertools.combinations(clusters, 2):
        if first.server_id == second.server_id:
            message = (
                f"clusters {first.name} and {second.name} have server_id {first.server_id}; it tells them apart in "
                "their binlogs"
            )
            raise ConfigurationError(message)
    _check_sources(clusters)
    return clusters


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
                "once"
            )
            raise ConfigurationError(message)
    if all(cluster.replicates_from == () for cluster in clusters):
        message = "no cluster replicates from another one; give replicates_from"
        raise ConfigurationError(message)


def _cluster(folder: Path, name: str, table: Mapping[str, Any]) -> ClusterConfiguration:
    _no_others(f"[clusters.{name}]", table, _CLUSTER_ENTRIES | _OPTIONS)
    role = table.get("role", "NONE")
    if role not in set(Role):
        message = f"role {role} of cluster {name} is none of {', '.join(Role)}"
        raise ConfigurationError(message)
    files = _binlogs(folder, name, _required(table, "binlogs", list))
    server_id = _required(table, "server_id", int)
    transaction_ids = switch(_TRANSACTION_IDS, table[_TRANSACTION_IDS]) if _TRANSACTION_IDS in table else None
    given = table.get("rows", [])
    rows = _binlogs(folder, name, [given] if isinstance(given, str) else given, "rows") if given else ()
    return ClusterConfiguration(
        name,
        server_id,
        files,
        Role(role),
        server_options(table),
        transaction_ids,
        rows,
        table.get("rows_of"),
        conversions=parse_type_conversions(table.get(_CONVERSIONS, "")),
        replicates_from=_names(name, table["replicates_from"]) if "replicates_from" in table else None,
        ignored=_ignored(name, table),
    )


def _ignored(cluster: str, table: Mapping[str, Any]) -> dict[str, frozenset[int]]:
    """Return, per source, the server ids that an applier leaves out."""
    given, sources = table.get("ignore_server_ids", {}), table.get("replicates_from", ())
    right = isinstance(given, dict) and all(
        source in sources and isinstance(ids, list) and all(isinstance(each, int) for each in ids)
        for source, ids in given.items()
    )
    if not right:
        message = (
            f"ignore_server_ids of cluster {cluster} is {given!r}; give a list of server ids for clusters of its "
            "replicates_from, like { A = [3] }"
        )
        raise ConfigurationError(message)
    return {source: frozenset(ids) for source, ids in given.items()}


def _names(cluster: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        message = f'replicates_from of cluster {cluster} is {given!r}; give a list of clusters, like ["A"]'
        raise ConfigurationError(message)
    return tuple(given)


def _span(document: Mapping[str, Any], clusters: Sequence[ClusterConfiguration]) -> Span:
    """Return what part of the logs to read: after the epochs at which rows were read, if any were."""
    empty, first = _starts_empty(document.get("start")), dict[str, int]()
    names = {cluster.name for cluster in clusters}
    for cluster in clusters:
        if cluster.rows_of is not None and cluster.rows_of not in names - {cluster.name}:
            message = f"rows_of of cluster {cluster.name} is {cluster.rows_of!r}; it must name the other cluster"
            raise ConfigurationError(message)
        if cluster.rows and empty:
            message = f'cluster {cluster.name} has rows at the start, but start is "empty"; leave one of them out'
            raise ConfigurationError(message)
        table = document["clusters"][cluster.name]
        if "rows_epoch" in table:
            first[cluster.name] = _required(table, "rows_epoch", int) + 1
    given = any(cluster.rows for cluster in clusters)
    return Span(False if given else empty, first)


def _starts_empty(start: Any) -> bool | None:
    """Return whether all tables were empty before the binlogs; None if the binlogs have to show it."""
    answers = {None: None, "empty": True, "middle": False}
    if not isinstance(start, str | None) or start not in answers:
        message = f'start is {start!r}; give "empty" or "middle", or leave it out'
        raise ConfigurationError(message)
    return answers[start]


def _binlogs(folder: Path, cluster: str, patterns: Sequence[str], what: str = "binlogs") -> tuple[Path, ...]:
    files: list[Path] = []
    for pattern in patterns:
        base = Path(pattern)
        root = Path(base.anchor) if base.is_absolute() else folder
        found = sorted(root.glob(str(base.relative_to(base.anchor))))
        if not found:
            message = f"no file matches {pattern}, {what} of cluster {cluster}"
            raise ConfigurationError(message)
        files += found
    return tuple(files)


def _one_of(where: str, entry: Mapping[str, Any], name: str, known: Sequence[str]) -> None:
    if entry.get(name) not in known:
        message = f"{name} of {where} must be one of {', '.join(known)}"
        raise ConfigurationError(message)


def _schedule(table: Mapping[str, Any], clusters: Sequence[str]) -> Mapping[str, Any]:
    _no_others("[schedule]", table, {"steps", *_SCHEDULE})
    for name, needed in _SCHEDULE.items():
        for entry in table.get(name, ()):
            where = f"[[schedule.{name}]]"
            _no_others(where, entry, {"applier", *needed})
            _one_of(where, entry, "applier", clusters)
            for field, kind in needed.items():
                if kind is Role:
                    _one_of(where, entry, field, list(Role))
                else:
                    _required(entry, field, kind)
    return table
