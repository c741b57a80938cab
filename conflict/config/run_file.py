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
    replicate_rewrite_db = ["b->a"] # databases that its applier renames
    replica_status = "status.txt"  # or what SHOW REPLICA STATUS prints: the filters of each channel
    variables = "my.cnf"           # or what SHOW VARIABLES prints; gives the settings above that are left out; like
                                   # replica_status, also a list with a file of each SQL node
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

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from conflict.config.cluster_tables import OWN_FILES, read_clusters
from conflict.config.configuration import ClusterConfiguration, Configuration, Span
from conflict.config.replication_rows import load_replication_rows, rows_of_tables
from conflict.config.schema_file import load_schema
from conflict.config.structure import (
    EPOCH,
    NAME,
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
from conflict.config.text_file import located, parsed_toml, place_of, read_text, what_commands_wrote
from conflict.errors import ConfigurationError
from conflict.rules.functions import FUNCTIONS
from conflict.rules.replication_table import Role
from conflict.rules.user_policies import add_functions, policies_of_tables
from ndb_formats.columnar.kernel_mode import expect_files
from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.errors import did_you_mean
from ndb_formats.schema.tables import Schema
from ndb_formats.stored import beside

# A name of a cluster is part of paths; Spark does not read folders that start with an underscore.
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
        open_functions: Which conflict functions may have been in force besides those that were found by trial, as a
            sentence; empty if none may, and None if they were given.
    """

    path: Path
    configuration: Configuration
    schedule: Mapping[str, Any]
    inputs: tuple[Path, ...] = attrs.field(repr=False)
    text: str = attrs.field(default="", repr=False)
    open_functions: str | None = attrs.field(default=None, repr=False)


def load_run_file(path: Path | str, *, binlogs: bool = True) -> RunFile:
    """
    Read a run file.

    Args:
        path: The file.
        binlogs: Whether the binlogs must be there.

    Raises:
        ConfigurationError: Something in it, or a file that it names, is missing or wrong.
    """
    path = place_of(path, "the run file")
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
        _check_addresses("", document)
        clusters = read_clusters(path.parent, document.get("clusters", {}), binlogs=binlogs)
        expect_files(file for cluster in clusters for file in cluster.files)
        at_end = document.get("schema_at", "start") == "end"
        policies = policies_of_tables(document.get("conflict_function", []))
        functions = add_functions(FUNCTIONS, policies)
        span = _span(document, clusters)
        inexact_keys = document.get("inexact_keys", False)
        schedule = document.get("schedule", {})
        _check_schedule(schedule, [cluster.name for cluster in clusters])
    if "steps" in schedule:
        load_steps(beside(path.parent, schedule["steps"]), [cluster.name for cluster in clusters])
    rows = document.get("ndb_replication", [])
    if isinstance(rows, str):
        replication = load_replication_rows(beside(path.parent, rows))
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
    of_clusters = [table.get(entry, ()) for table in document["clusters"].values() for entry in OWN_FILES]
    files = [name for given in of_clusters for name in ([given] if isinstance(given, str) else given)]
    texts = (document.get("schema"), *own.values(), *files, rows, schedule.get("steps"))
    named = [name for name in texts if isinstance(name, str)]
    inputs = (
        *(beside(path.parent, name) for name in named),
        *(file for cluster in clusters for file in (*cluster.files, *cluster.rows)),
    )
    configuration = Configuration(clusters, schema, replication, functions, span=span, schema_at_end=at_end)
    if inexact_keys:
        configuration = configuration.with_inexact_keys()
    return RunFile(path, configuration, schedule, inputs, text)


def _check_addresses(where: str, table: Mapping[str, Any]) -> None:
    """Refuse addresses that cannot be read, wherever a run file names files."""
    for entry, value in table.items():
        if isinstance(value, Mapping):
            _check_addresses(f"{where}{entry}.", value)
        for text in value if isinstance(value, list) else [value]:
            if entry in _NAMING_FILES and isinstance(text, str):
                place_of(text, f"{where}{entry}")


_NAMING_FILES = frozenset({"schema", "binlogs", "rows", "ndb_replication", "steps", *OWN_FILES})


def _schema(folder: Path, name: str | None, document: Mapping[str, Any], binlogs: Sequence[Path]) -> Schema:
    """Return the tables of a file of definitions; none without a file."""
    path = None if name is None else beside(folder, name)
    database, charset = document.get("database", ""), document.get("charset", DEFAULT_CHARSET)
    return load_schema(path, database=database, charset=charset, binlogs=binlogs)


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


def _check_schedule(table: Mapping[str, Any], clusters: Sequence[str]) -> None:
    check_entries("[schedule]", table, _SCHEDULE_ENTRIES)
    for name, entries in _SCHEDULE.items():
        for entry in table.get(name, ()):
            check_entries(
                f"[[schedule.{name}]]", entry, {"applier": one_of(clusters), **entries}, ("applier", *entries)
            )
