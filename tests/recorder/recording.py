"""
A scenario is recorded: clusters are set up as it says, its steps carried out, and binlogs and contents written.

Clusters are used again for the next scenario, since a start takes most of a minute: nothing of the one before is left
but epochs, which go on, and counters, of which the difference is taken.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pymysql

from conflict.history.grid.whole_files import new_folder
from tests.recorder import contents
from tests.recorder.appliers import Appliers
from tests.recorder.clusters import Clusters, Topology
from tests.recorder.schedule import EpochsFellApartError, planned, taken
from tests.recorder.sql_node import SqlNode
from tests.recorder.steps import Stage, Step

__all__ = ["Scenario", "record"]

# What a scenario says of each SQL node: what the rules read, and what shows how the recording was made.
VARIABLES = (
    *("binlog_checksum", "binlog_format", "binlog_row_event_max_size", "binlog_row_image", "binlog_row_metadata"),
    *("binlog_row_value_options", "binlog_rows_query_log_events", "binlog_transaction_compression"),
    *("character_set_server", "collation_server", "default_storage_engine", "explicit_defaults_for_timestamp"),
    *("gtid_mode", "log_bin", "log_replica_updates", "lower_case_table_names", "ndb_applier_allow_skip_epoch"),
    *("ndb_applier_conflict_role", "ndb_clear_apply_status", "ndb_log_apply_status", "ndb_log_bin"),
    *("ndb_log_binlog_index", "ndb_log_empty_epochs", "ndb_log_empty_update", "ndb_log_exclusive_reads"),
    *("ndb_log_orig", "ndb_log_row_slice_count", "ndb_log_row_slice_id", "ndb_log_transaction_compression"),
    *("ndb_log_transaction_dependency", "ndb_log_transaction_id", "ndb_log_update_as_write"),
    *("ndb_log_update_minimal", "ndb_log_updated_only", "ndb_replica_batch_size"),
    *("ndb_replica_blob_write_batch_bytes", "ndb_table_temporary", "replica_allow_batching", "replica_exec_mode"),
    *("replica_parallel_workers", "replica_preserve_commit_order", "replica_type_conversions", "server_id"),
    *("server_id_bits", "sql_mode", "system_time_zone", "time_zone", "version", "version_comment"),
)
_OWN = {"server_id", "system_time_zone", "version", "version_comment", "ndb_applier_conflict_role"}
_READ_ONLY, _UNKNOWN = 1238, 1193  # errors of SET GLOBAL
_SYSTEM = ("information_schema", "mysql", "ndbinfo", "performance_schema", "sys")
TRIES = 8


@attrs.frozen
class Scenario:
    """
    A scenario, and the folder that it was read from.

    Attributes:
        document: Contents of its `scenario.json`.
        folder: Its folder.
    """

    document: Mapping[str, Any] = attrs.field(repr=False)
    folder: Path

    @classmethod
    def load(cls, path: Path) -> Scenario:
        """Read a `scenario.json`, or that of a folder."""
        file = path / "scenario.json" if path.is_dir() else path
        return cls(json.loads(file.read_text("utf-8")), file.parent)

    @property
    def servers(self) -> dict[str, tuple[str, int]]:
        """The cluster and the server id of each SQL node; of a plain pair, one of the cluster's name."""
        given = self.document.get("servers")
        if given is None:
            return {name: (name, int(each["server_id"])) for name, each in self.document["globals"].items()}
        return {name: (each["cluster"], each["server_id"]) for name, each in given.items()}

    @property
    def topology(self) -> Topology:
        """The SQL nodes that it needs."""
        return tuple(self.servers.values())

    @property
    def epoch_ms(self) -> int:
        """TimeBetweenEpochs: long where an applier is to apply something in a certain epoch."""
        return 500 if self.is_schedule else 100

    @property
    def is_schedule(self) -> bool:
        """Whether it was searched, so that every epoch matters."""
        return "made_by" in self.document

    def database(self, cluster: str) -> str:
        """Return the database of its tables on a cluster."""
        return str(self.document.get("database_of", {}).get(cluster, self.document["database"]))

    @property
    def links(self) -> dict[str, str]:
        """The source of each SQL node that has an applier."""
        names = list(self.servers)
        return dict(self.document.get("links") or {names[0]: names[1], names[1]: names[0]})


@attrs.frozen
class _Before:
    """What is known of each SQL node before the first step."""

    messages: Mapping[str, list[Step]]
    logs: Mapping[str, int]
    counters: Mapping[str, Mapping[str, int]]
    epochs: Mapping[str, Mapping[str, int]]


def record(scenario: Scenario, clusters: Clusters, target: Path) -> None:
    """
    Record a scenario into a new folder, again if what is to fall into one epoch fell apart.

    Where no schedule is to be kept, the last try counts as it is: the epochs in the binlogs decide.

    Raises:
        EpochsFellApartError: A schedule fell apart every time.
        UnknownStepError: A step is of a kind that is not known.
    """
    for left in reversed(range(TRIES)):
        stage, before = _set_up(scenario, clusters)
        try:
            plan = planned(scenario.document, scenario.folder)
            steps = taken(stage, plan, strict=bool(left) or scenario.is_schedule)
        except EpochsFellApartError:
            if not left:
                raise
            continue
        stage.appliers.quiesce()
        beside = new_folder(target, "part")
        try:
            _write(scenario, stage, before, steps, beside)
            beside.rename(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        return


def _set_up(scenario: Scenario, clusters: Clusters) -> tuple[Stage, _Before]:
    """Make clusters empty, then as a scenario begins: its tables are there, its appliers run."""
    nodes = dict(zip(scenario.servers, clusters.nodes, strict=True))
    appliers = Appliers(nodes, {}, scenario.document.get("ignore_server_ids", {}))
    for node in nodes.values():
        _empty(node)
    for name, node in nodes.items():
        _set_variables(scenario, clusters, name, node)
    logs = {name: (node.folder / "error.log").stat().st_size for name, node in nodes.items()}
    messages = {name: _make_tables(scenario, node) for name, node in _firsts(nodes).items()}
    for node in nodes.values():
        node.position()
        node.database = scenario.database(node.cluster)
    for node in nodes.values():
        node.reset_log()
    appliers = attrs.evolve(appliers, starts={name: node.position() for name, node in nodes.items()})
    for replica, source in scenario.links.items():
        appliers.link(replica, source, appliers.starts[source])
        text = scenario.document.get("filters", {}).get(replica)
        if text:
            nodes[replica].rows(text if text.upper().startswith("CHANGE") else f"CHANGE REPLICATION FILTER {text}")
        appliers.start(replica)
    # A channel begins to count when it is made, so after what reset it.
    before = _Before(
        messages,
        logs,
        {name: contents.counters(nodes[name]) for name in scenario.links},
        {name: contents.server_epochs(node) for name, node in nodes.items()},
    )
    return Stage(clusters, appliers), before


def _firsts(nodes: Mapping[str, SqlNode]) -> dict[str, SqlNode]:
    """Return the first SQL node of each cluster, by its name."""
    found = dict[str, tuple[str, SqlNode]]()
    for name, node in nodes.items():
        found.setdefault(node.cluster, (name, node))
    return dict(found.values())


def _empty(node: SqlNode) -> None:
    """Stop the applier of an SQL node, and remove all tables, rows of NDB's own ones, and filters."""
    node.close()
    node.database = None
    node.rows("STOP REPLICA")
    node.rows("RESET REPLICA ALL")
    node.rows("SET GLOBAL ndb_applier_conflict_role = 'NONE'")
    node.rows(
        "CHANGE REPLICATION FILTER REPLICATE_DO_DB=(), REPLICATE_IGNORE_DB=(), REPLICATE_DO_TABLE=(), "
        "REPLICATE_IGNORE_TABLE=(), REPLICATE_WILD_DO_TABLE=(), REPLICATE_WILD_IGNORE_TABLE=(), "
        "REPLICATE_REWRITE_DB=()"
    )
    for (database,) in node.rows("SHOW DATABASES"):
        if database not in _SYSTEM:
            node.rows(f"DROP DATABASE IF EXISTS `{database}`")
    for table in ("ndb_apply_status", "ndb_replication"):
        node.rows(f"DELETE FROM mysql.{table}")


def _set_variables(scenario: Scenario, clusters: Clusters, name: str, node: SqlNode) -> None:
    """Set the variables that a scenario gives; the server is started again for those that cannot change else."""
    given = scenario.document["globals"].get(name, {})
    now = node.variables()
    fixed = dict[str, str]()
    for variable, value in given.items():
        if variable in _OWN or now.get(variable, value) == value:
            continue
        try:
            node.rows(f"SET GLOBAL {variable} = {value if value.isdigit() else repr(value)}")
        except pymysql.err.MySQLError as error:
            if error.args[0] not in (_READ_ONLY, _UNKNOWN):
                raise
            fixed[variable] = value
    if fixed:
        clusters.restart_server(node, {**clusters.options(node), **fixed})
        _set_variables(scenario, clusters, name, node)
    cluster = scenario.servers[name][0]
    role = scenario.document.get("roles", {}).get(cluster, "NONE")
    node.rows(f"SET GLOBAL ndb_applier_conflict_role = '{role}'")


def _make_tables(scenario: Scenario, node: SqlNode) -> list[Step]:
    """Make the tables of a scenario on a cluster; return what the server said of some of them."""
    rows = scenario.document["ndb_replication"]
    for row in rows:
        values = ", ".join(map(_literal, (row[each] for each in ("db", "table_name", "server_id", "binlog_type"))))
        node.rows(f"INSERT INTO mysql.ndb_replication VALUES ({values}, {_literal(row['conflict_fn'])})")
    database, found = scenario.database(node.cluster), []
    node.rows(f"CREATE DATABASE `{database}`")
    node.rows(f"USE `{database}`")
    for table in scenario.document["tables"]:
        for sql in (table.get("ex"), table.get(f"create_{node.cluster}", table["create"])):
            if sql:
                said = node.result(sql, "")
                found += [{"sql": sql, **said}] if {"error", "warnings"} & said.keys() else []
    return found


def _literal(value: str | int | None) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _write(scenario: Scenario, stage: Stage, before: _Before, steps: list[Step], folder: Path) -> None:
    nodes, given = stage.appliers.nodes, scenario.document
    files = {name: list(_copied_log(name, node, folder)) for name, node in nodes.items()}
    recorded = {
        **{name: value for name, value in given.items() if name not in ("steps", "made_by")},
        "globals": {name: node.variables(VARIABLES) for name, node in nodes.items()},
        "start_position": {name: list(place) for name, place in stage.appliers.starts.items()},
        "binlog_files": files,
        "steps": steps,
        "recorded_by": "tests.recorder",
    }
    of_servers = {name: _of_server(stage, name, before, steps) for name in nodes}
    of_clusters = {name: _of_cluster(scenario, node) for name, node in _firsts(nodes).items()}
    if "servers" in given:
        expected: dict[str, Any] = {
            "clusters": {nodes[name].cluster: each for name, each in of_clusters.items()},
            "servers": of_servers,
        }
    else:
        messages = {name: {"setup_messages": before.messages[name]} for name in nodes}
        expected = {name: {**of_clusters[name], **of_servers[name], **messages[name]} for name in nodes}
    for file, document in (("scenario.json", recorded), ("expected.json", expected)):
        (folder / file).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _copied_log(name: str, node: SqlNode, folder: Path) -> Iterable[str]:
    """Copy the binary log of an SQL node into a folder; yield the names of the files there."""
    node.position()
    for file, *_ in node.rows("SHOW BINARY LOGS"):
        copy = f"{name}.binlog.{re.sub('.*[.]', '', file)}"
        shutil.copyfile(node.folder / "data" / file, folder / copy)
        yield copy


def _of_cluster(scenario: Scenario, node: SqlNode) -> dict[str, Any]:
    tables, exceptions = contents.tables_of(node, scenario.database(node.cluster))
    status = contents.table_contents(node, "mysql", "ndb_apply_status")
    return {"tables": tables, "exceptions": exceptions, "ndb_apply_status": status}


def _of_server(stage: Stage, name: str, before: _Before, steps: list[Step]) -> dict[str, Any]:
    node, epochs = stage.node(name), contents.server_epochs(stage.node(name))
    return {
        "status_difference": _counted(stage, name, before, steps),
        "status_epochs": {key: {"before": before.epochs[name].get(key), "after": each} for key, each in epochs.items()},
        "applier": contents.applier_state(node),
        "error_log": contents.error_lines(node, before.logs[name]),
    }


def _counted(stage: Stage, name: str, before: _Before, steps: list[Step]) -> dict[str, int]:
    """Return what an SQL node counted: since the first step, or since its channel was made or its server started."""
    restarted = any(step.get("action") == "restarted" and step.get("server") == name for step in steps)
    counted = {} if restarted else before.counters.get(name, {})
    applies = name in before.counters or name in stage.appliers.links
    after = contents.counters(stage.node(name))
    return {key: each - counted.get(key, 0) if applies else 0 for key, each in after.items()}
