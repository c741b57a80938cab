"""
`run.toml`: the file that describes a run.

    schema = "schema.sql"          # CREATE TABLE of every table, also of exceptions tables; not needed for tables that
                                   # the binlogs create, or describe (binlog_row_metadata=FULL)
    schema_at = "start"            # whether it describes the tables at the "start" or the "end" of the binlogs
    database = "shop"              # of tables that schema.sql does not qualify
    charset = "utf8mb4"            # of tables that declare none
    start = "empty"                # tables were empty before the binlogs; or "middle"; else the binlogs show it
    inexact_keys = false           # optional: allow keys whose equality is not known exactly (docs/keys.md)

    [clusters.A]
    server_id = 1                  # or server_ids = [1, 3] of several SQL nodes, the first of which applies at first
    binlogs = ["a/binlog.0*"]      # relative to this file; patterns are sorted by name
    role = "NONE"                  # ndb_applier_conflict_role
    ndb_log_update_as_write = "ON" # and the other two options that count for binlog_type 0
    ndb_log_transaction_id = "ON"  # if known; the _TRANS functions need it
    rows = ["a/rows.sql"]          # rows that its tables held before the binlogs: a dump, or .csv, .parquet per table
    rows_epoch = 4294967297        # the own epoch after which they were read; by default before the first one
    rows_of = "B"                  # or: the rows of the other cluster are also those of this one
    replicates_from = ["B"]        # with more than two clusters: those whose binlogs its applier applies
    ignore_server_ids = { B = [3] } # IGNORE_SERVER_IDS of the channel from a source
    schema = "schema-a.sql"        # if its tables differ from those of the other cluster
    replica_type_conversions = ""  # if it is set
    replicate_wild_ignore_table = ["shop.log%"] # and the other replicate_* filters of its applier
    variables = "my.cnf"           # or what SHOW VARIABLES prints; gives the settings above that are left out
    config_ini = "config.ini"      # of its management node, for `check`
    ndb_replication = "a.sql"      # if its rows differ from those of the run

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
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer, Span
from conflict.config.option_values import words_of
from conflict.config.replication_rows import load_replication_rows, rows_of_tables
from conflict.config.schema_file import load_schema
from conflict.config.server_settings import load_epoch_times, load_server_variables
from conflict.config.structure import (
    EPOCH,
    NAME,
    SERVER_ID,
    SWITCH,
    TABLE,
    TABLES,
    TEXT,
    ValueKind,
    check_entries,
    either,
    list_of,
    load_steps,
    one_of,
)
from conflict.config.text_file import located, parsed_toml, plain_path, read_text, refuse_address, what_commands_wrote
from conflict.errors import ConfigurationError
from conflict.rules.functions import FUNCTIONS
from conflict.rules.replication_filter import FILTER_OPTIONS, ReplicationFilter
from conflict.rules.replication_table import Role
from conflict.rules.user_policies import add_functions, policies_of_tables
from ndb_formats.binlog_reader import read_headers
from ndb_formats.columnar.kernel_mode import expect_files
from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.cursor import whole_number
from ndb_formats.errors import FormatError, did_you_mean
from ndb_formats.rules.replica.conversions import parse_type_conversions
from ndb_formats.rules.update_format import ServerOptions, server_options, switch
from ndb_formats.schema.tables import Schema

__all__ = ["RunFile", "load_run_file", "parse_run_file"]

# A name of a cluster is part of paths; Spark does not read folders that start with an underscore.
_CLUSTER_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FILE, _FILES = NAME, list_of(NAME, "a list of file names or patterns")
_ENTRIES = {
    "schema": _FILE,
    "schema_at": one_of(["start", "end"]),
    "database": TEXT,
    "charset": NAME,
    "start": one_of(["empty", "middle"]),
    "inexact_keys": SWITCH,
    "clusters": TABLE,
    "ndb_replication": either(
        ValueKind("tables [[ndb_replication]]", TABLES.accepts), ValueKind("a file name", _FILE.accepts)
    ),
    "conflict_function": ValueKind("tables [[conflict_function]]", TABLES.accepts),
    "schedule": TABLE,
}
_TRANSACTION_IDS = "ndb_log_transaction_id"
_CONVERSIONS = "replica_type_conversions"
_OPTION = ValueKind("ON or OFF", lambda value: str(value).strip().upper() in {"ON", "OFF", "1", "0", "TRUE", "FALSE"})
_OWN_FILES = ("variables", "config_ini", "ndb_replication")
_CLUSTER_ENTRIES = {
    "server_id": SERVER_ID,
    "server_ids": ValueKind(
        "a list of different server ids, like [1, 3]",
        lambda value: list_of(SERVER_ID, "").accepts(value) and 0 < len(set(value)) == len(value),
    ),
    "binlogs": _FILES,
    "role": one_of(list(Role)),
    **dict.fromkeys(("schema", *_OWN_FILES), _FILE),
    "rows": either(_FILE, _FILES),
    "rows_epoch": EPOCH,
    "rows_of": TEXT,
    "replicates_from": list_of(TEXT, 'a list of clusters, like ["A"]'),
    "ignore_server_ids": ValueKind(
        "lists of server ids for clusters of its replicates_from, like { A = [3] }",
        lambda value: TABLE.accepts(value) and all(map(list_of(SERVER_ID, "").accepts, value.values())),
    ),
    _CONVERSIONS: TEXT,
    **dict.fromkeys(FILTER_OPTIONS, either(TEXT, list_of(TEXT, 'a list of names or patterns, like ["shop.log%"]'))),
    **dict.fromkeys((_TRANSACTION_IDS, *attrs.fields_dict(ServerOptions)), _OPTION),
}
# The entries that a server's variables give where the run file does not, and the variable of each.
_OF_VARIABLES = {
    **{
        name: name
        for name in ("server_id", *attrs.fields_dict(ServerOptions), _TRANSACTION_IDS, _CONVERSIONS, *FILTER_OPTIONS)
    },
    "role": "ndb_applier_conflict_role",
}
# The lists of a schedule, and the entries of each besides the applier.
_SCHEDULE: Mapping[str, Mapping[str, ValueKind]] = {
    "applied": {"epoch": EPOCH, "after_epoch": EPOCH},
    "stopped": {"after_epoch": EPOCH},
    "role": {"after_epoch": EPOCH, "role": one_of(list(Role))},
}
_SCHEDULE_ENTRIES = {
    "steps": _FILE,
    **{name: ValueKind(f"tables [[schedule.{name}]]", TABLES.accepts) for name in _SCHEDULE},
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
        text: Its text; empty if it was made otherwise.
    """

    path: Path
    configuration: Configuration
    schedule: Mapping[str, Any]
    inputs: tuple[Path, ...] = attrs.field(repr=False)
    text: str = attrs.field(default="", repr=False)


def load_run_file(path: Path | str, *, binlogs: bool = True) -> RunFile:
    """
    Read a run file.

    Args:
        path: The file.
        binlogs: Whether the binlogs must be there.

    Raises:
        ConfigurationError: Something in it, or a file that it names, is missing or wrong.
    """
    path = Path(path)
    if path.is_dir():
        give = next((str(file) for file in sorted(path.glob("*.toml"))), "the run file (.toml)")
        written = what_commands_wrote(path, "a run file", give)
        raise ConfigurationError(written or f"{path} is a folder, not a run file; give {give}")
    run = parse_run_file(read_text(path), path, binlogs=binlogs)
    return attrs.evolve(run, inputs=(path, *run.inputs))


def parse_run_file(text: str, path: Path, *, binlogs: bool = True) -> RunFile:
    """
    Return the run that the text of a run file describes.

    Args:
        text: The text.
        path: Where the file stands, or would stand: its paths are relative to that.
        binlogs: Whether the binlogs must be there.

    Raises:
        ConfigurationError: Something in it, or a file that it names, is missing or wrong.
    """
    with located(path):
        document = parsed_toml(text)
        check_entries("the run file", document, _ENTRIES)
        _refuse_addresses("", document)
        clusters = _clusters(path.parent, document.get("clusters", {}), binlogs=binlogs)
        expect_files(file for cluster in clusters for file in cluster.files)
        at_end = document.get("schema_at", "start") == "end"
        policies = policies_of_tables(document.get("conflict_function", []))
        functions = add_functions(FUNCTIONS, policies)
        span = _span(document, clusters)
        inexact_keys = document.get("inexact_keys", False)
        schedule = document.get("schedule", {})
        _check_schedule(schedule, [cluster.name for cluster in clusters])
    if "steps" in schedule:
        load_steps(path.parent / schedule["steps"], [cluster.name for cluster in clusters])
    rows = document.get("ndb_replication", [])
    if isinstance(rows, str):
        replication = load_replication_rows(path.parent / rows)
    else:
        with located(path):
            replication = rows_of_tables(rows)
    logs = [file for cluster in clusters for file in cluster.files]
    schema = _schema(path.parent, document.get("schema"), document, logs)
    own = {name: table["schema"] for name, table in document["clusters"].items() if "schema" in table}
    clusters = tuple(
        attrs.evolve(each, schema=_schema(path.parent, own[each.name], document, each.files))
        if each.name in own
        else each
        for each in clusters
    )
    of_clusters = [table.get(entry) for table in document["clusters"].values() for entry in _OWN_FILES]
    texts = (document.get("schema"), *own.values(), *of_clusters, rows, schedule.get("steps"))
    named = [name for name in texts if isinstance(name, str)]
    inputs = (
        *(path.parent / name for name in named),
        *(file for cluster in clusters for file in (*cluster.files, *cluster.rows)),
    )
    configuration = Configuration(clusters, schema, replication, functions, span=span, schema_at_end=at_end)
    if inexact_keys:
        configuration = configuration.with_inexact_keys()
    return RunFile(path, configuration, schedule, inputs, text)


def _refuse_addresses(where: str, table: Mapping[str, Any]) -> None:
    """Refuse files that are not local, wherever a run file names them."""
    for entry, value in table.items():
        if isinstance(value, Mapping):
            _refuse_addresses(f"{where}{entry}.", value)
        for text in value if isinstance(value, list) else [value]:
            if entry in _NAMING_FILES and isinstance(text, str):
                refuse_address(text, f"{where}{entry}")


_NAMING_FILES = frozenset({"schema", "binlogs", "rows", "ndb_replication", "steps", *_OWN_FILES})


def _schema(folder: Path, name: str | None, document: Mapping[str, Any], binlogs: Sequence[Path]) -> Schema:
    """Return the tables of a file of definitions; none without a file."""
    path = None if name is None else folder / name
    database, charset = document.get("database", ""), document.get("charset", DEFAULT_CHARSET)
    return load_schema(path, database=database, charset=charset, binlogs=binlogs)


def _clusters(folder: Path, tables: Any, *, binlogs: bool) -> tuple[ClusterConfiguration, ...]:
    if len(tables) < 2:
        message = "two or more tables [clusters.NAME] are needed"
        raise ConfigurationError(message)
    _check_names(list(tables))
    clusters = tuple(_cluster(folder, name, table, binlogs=binlogs) for name, table in tables.items())
    check_clusters(clusters)
    return clusters


def check_clusters(clusters: Sequence[ClusterConfiguration]) -> None:
    """
    Make sure that names, server ids and sources of some clusters fit together.

    Raises:
        ConfigurationError: They do not.
    """
    _check_names([cluster.name for cluster in clusters])
    for first, second in itertools.combinations(clusters, 2):
        same = first.server_ids & second.server_ids
        if same:
            message = (
                f"clusters {first.name} and {second.name} have server_id {min(same)}; it tells them apart in their "
                "binlogs"
            )
            raise ConfigurationError(message)
    _check_sources(clusters)


def _check_names(names: Sequence[str]) -> None:
    """Make sure that names can be parts of paths on any filesystem."""
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


def _cluster(folder: Path, name: str, given: Mapping[str, Any], *, binlogs: bool) -> ClusterConfiguration:
    where = f"[clusters.{name}]"
    check_entries(where, given, _CLUSTER_ENTRIES)
    own = {entry: folder / given[entry] for entry in _OWN_FILES if entry in given}
    variables = load_server_variables(own["variables"]) if "variables" in own else None
    table = {**_of_variables(variables or {}), **given}
    if "server_ids" in given:
        if "server_id" in given:
            message = f"server_id and server_ids of {where} are both given; give one of them"
            raise ConfigurationError(message)
        table["server_id"] = given["server_ids"][0] if given["server_ids"] else given["server_ids"]
    check_entries(where, table, _CLUSTER_ENTRIES, required=("server_id", *(("binlogs",) if binlogs else ())))
    files = _binlogs(folder, name, table.get("binlogs", []), needed=binlogs)
    transaction_ids = switch(_TRANSACTION_IDS, table[_TRANSACTION_IDS]) if _TRANSACTION_IDS in table else None
    rows = table.get("rows", [])
    return ClusterConfiguration(
        name,
        logging_servers(table.get("server_ids", [table["server_id"]]), files),
        Role(table.get("role", "NONE")),
        server_options(table),
        transaction_ids,
        _binlogs(folder, name, [rows] if isinstance(rows, str) else rows, "rows"),
        table.get("rows_of"),
        conversions=parse_type_conversions(table.get(_CONVERSIONS, "")),
        replicates_from=tuple(table["replicates_from"]) if "replicates_from" in table else None,
        ignored=_ignored(name, table),
        replication=load_replication_rows(own["ndb_replication"]) if "ndb_replication" in own else None,
        variables=variables,
        epoch_times=load_epoch_times(own["config_ini"]) if "config_ini" in own else None,
        filter=_filter(table),
    )


def _filter(table: Mapping[str, Any]) -> ReplicationFilter:
    """Return the filters of an applier, each given as a list, or as a text with commas between names."""
    given = {FILTER_OPTIONS[name]: value for name, value in table.items() if name in FILTER_OPTIONS}
    return ReplicationFilter(
        **{name: tuple(words_of(value)) if isinstance(value, str) else tuple(value) for name, value in given.items()}
    )


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


def _ignored(cluster: str, table: Mapping[str, Any]) -> dict[str, frozenset[int]]:
    """Return, per source, the server ids that an applier leaves out."""
    given, sources = table.get("ignore_server_ids", {}), table.get("replicates_from", ())
    if not given.keys() <= set(sources):
        message = (
            f"ignore_server_ids of cluster {cluster} is {given!r}; give a list of server ids for clusters of its "
            "replicates_from, like { A = [3] }"
        )
        raise ConfigurationError(message)
    return {source: frozenset(ids) for source, ids in given.items()}


def _span(document: Mapping[str, Any], clusters: Sequence[ClusterConfiguration]) -> Span:
    """Return what part of the logs to read: after the epochs at which rows were read, if any were."""
    # Without an entry, the binlogs have to show it.
    empty, first = {"empty": True, "middle": False}.get(document.get("start", "")), dict[str, int]()
    names = {cluster.name for cluster in clusters}
    for cluster in clusters:
        if cluster.rows_of is not None and cluster.rows_of not in names - {cluster.name}:
            meant = did_you_mean(cluster.rows_of, names)
            message = f"rows_of of cluster {cluster.name} is {cluster.rows_of!r}; it must name the other cluster{meant}"
            raise ConfigurationError(message)
        if cluster.rows and empty:
            message = f'cluster {cluster.name} has rows at the start, but start is "empty"; leave one of them out'
            raise ConfigurationError(message)
        table = document["clusters"][cluster.name]
        if "rows_epoch" in table:
            first[cluster.name] = table["rows_epoch"] + 1
    given = any(cluster.rows for cluster in clusters)
    return Span(False if given else empty, first)


def _binlogs(
    folder: Path, cluster: str, patterns: Sequence[str], what: str = "binlogs", *, needed: bool = True
) -> tuple[Path, ...]:
    files: list[Path] = []
    for pattern in patterns:
        base = Path(pattern)
        root = Path(base.anchor) if base.is_absolute() else folder
        try:
            found = sorted(root.glob(str(base.relative_to(base.anchor))))
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


def _check_schedule(table: Mapping[str, Any], clusters: Sequence[str]) -> None:
    check_entries("[schedule]", table, _SCHEDULE_ENTRIES)
    for name, entries in _SCHEDULE.items():
        for entry in table.get(name, ()):
            check_entries(
                f"[[schedule.{name}]]", entry, {"applier": one_of(clusters), **entries}, ("applier", *entries)
            )
