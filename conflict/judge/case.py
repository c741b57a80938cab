"""
Recordings on disk: which folders hold one, of what kind, and the run that one of clusters in conflict describes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.errors import ConfigurationError
from conflict.rules.replication_filter import FILTER_OPTIONS, ReplicationFilter
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.rules.replica.conversions import parse_type_conversions
from ndb_formats.rules.update_format import server_options, switch
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Schema


class RecordingKind(Enum):
    """The kinds of recordings, by the file that marks a folder; if there are several, the first decides."""

    CONFLICT = "scenario.json"  # two clusters that replicate to each other
    FORMAT = "statements.json"  # row events of statements
    LOGGING = "decisions.json"  # which statements are logged, and how
    BINLOG = "result.json"  # mysqlbinlog's text of a file
    SIZES = "sizes.json"  # sizes of events


@attrs.frozen
class Recording:
    """
    A recording on disk.

    Attributes:
        path: Its folder.
        kind: Its kind.
        case: Its folder below the folder that was searched.
    """

    path: Path
    kind: RecordingKind
    case: str

    @property
    def part(self) -> str:
        """The part of the corpus: ``conflict``, ``live``, ``binlogs``, ``formats/ndb``, ..."""
        if self.kind is RecordingKind.CONFLICT:
            return "live" if (self.path / "transactions.jsonl").exists() else "conflict"
        if self.kind is RecordingKind.BINLOG:
            return "binlogs"
        parts = self.path.resolve().parts
        if "formats" not in parts:
            return "formats"
        start = len(parts) - 1 - parts[::-1].index("formats")
        return "/".join(parts[start : start + 2])


def find_recordings(folder: Path) -> list[Recording]:
    """
    Return every recording at or below a folder, in order.

    Raises:
        ConfigurationError: There is none.
    """
    found = [
        Recording(path, kind, path.name if path == folder else path.relative_to(folder).as_posix())
        for path in sorted({marker.parent for kind in RecordingKind for marker in folder.rglob(kind.value)})
        for kind in [next(kind for kind in RecordingKind if (path / kind.value).exists())]
    ]
    if not found:
        markers = ", ".join(kind.value for kind in RecordingKind)
        message = f"{folder} holds no recording; the folder of a recording holds one of {markers}"
        raise ConfigurationError(message)
    return found


@attrs.frozen
class ConflictCase:
    """
    One case: its input, and the recorded result.

    Attributes:
        path: Its folder.
        scenario: Contents of its `scenario.json`.
        expected: Contents of its `expected.json`.
    """

    path: Path
    scenario: dict[str, Any] = attrs.field(repr=False)
    expected: dict[str, Any] = attrs.field(repr=False)

    @classmethod
    def load(cls, path: Path) -> ConflictCase:
        """Read a case from its folder."""
        scenario = json.loads((path / "scenario.json").read_text("utf-8"))
        expected = json.loads((path / "expected.json").read_text("utf-8"))
        return cls(path, scenario, expected)

    @property
    def servers(self) -> dict[str, list[str]]:
        """The SQL nodes of each cluster whose binlogs were recorded; by default one, of the cluster's name."""
        given = self.scenario.get("servers")
        if given is None:
            return {name: [name] for name in sorted(self.scenario["binlog_files"])}
        found: dict[str, list[str]] = {}
        for server, about in sorted(given.items()):
            found.setdefault(about["cluster"], []).append(server)
        return dict(sorted(found.items()))

    @property
    def recorded(self) -> dict[str, dict[str, Any]]:
        """What was recorded of each cluster: the given tables, and counters of each SQL node and of all together."""
        if "servers" not in self.scenario:
            return self.expected
        known = {table["name"] for table in self.scenario["tables"]}
        clusters = {
            name: {**own, "tables": {table: rows for table, rows in own["tables"].items() if table in known}}
            for name, own in self.expected["clusters"].items()
        }
        return {
            name: {
                **clusters[name],
                **_together([self.expected["servers"][each] for each in servers]),
                "servers": {
                    self.scenario["servers"][each]["server_id"]: self.expected["servers"][each]["status_difference"]
                    for each in servers
                },
            }
            for name, servers in self.servers.items()
        }

    @property
    def databases(self) -> dict[str, str]:
        """The database of the tables on each cluster."""
        of_clusters = self.scenario.get("database_of", {})
        return {name: of_clusters.get(name, self.scenario["database"]) for name in self.servers}

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps, in the order in which they ran; none where SQL nodes are recorded, which only have their logs."""
        return [] if "servers" in self.scenario else list(self.scenario.get("steps", ()))

    def configuration(self) -> Configuration:
        """Return the run that the case describes."""
        scenario = self.scenario
        clusters = tuple(self._cluster(name, servers) for name, servers in self.servers.items())
        rows = tuple(
            ReplicationRow(row["db"], row["table_name"], row["server_id"], row["binlog_type"], row["conflict_fn"])
            for row in scenario["ndb_replication"]
        )
        return Configuration(clusters, self._schema("create", scenario["database"]), rows)

    def _cluster(self, name: str, servers: Sequence[str]) -> ClusterConfiguration:
        """Return a cluster with the settings of its first SQL node."""
        scenario, settings = self.scenario, self.scenario["globals"][servers[0]]
        return ClusterConfiguration(
            name,
            tuple(
                LoggingServer(
                    int(scenario["globals"][server]["server_id"]),
                    tuple(self.path / file for file in scenario["binlog_files"][server]),
                )
                for server in servers
            ),
            Role[scenario.get("roles", {}).get(name, "NONE")],
            server_options(settings),
            switch("ndb_log_transaction_id", settings["ndb_log_transaction_id"]),
            schema=self._own_schema(name),
            conversions=parse_type_conversions(settings.get("replica_type_conversions", "")),
            variables={variable: str(value) for variable, value in settings.items()},
            replicates_from=self._sources(name),
            filter=_filter(scenario.get("filters", {}).get(servers[0], "")),
        )

    def _sources(self, name: str) -> tuple[str, ...] | None:
        """Return the clusters from which a cluster replicates; None for the other one of a pair."""
        if len(self.servers) == 2:
            return None
        cluster_of = {server: cluster for cluster, servers in self.servers.items() for server in servers}
        links = {(cluster_of[replica], cluster_of[source]) for replica, source in self.scenario["links"].items()}
        return tuple(sorted(source for replica, source in links if replica == name))

    def _own_schema(self, side: str) -> Schema | None:
        """Return the tables of a side where they differ from the other's; None if none does."""
        own = f"create_{side}"
        if not any(own in table for table in self.scenario["tables"]):
            return None
        return self._schema(own, self.databases[side])

    def _schema(self, create: str, database: str) -> Schema:
        """Return the tables of a database, by the statements of that name where a table has one."""
        scenario = self.scenario
        charset = scenario["globals"][min(scenario["globals"])].get("character_set_server", "utf8mb4")
        definitions = [
            definition
            for table in scenario["tables"]
            for definition in (table.get(create, table["create"]), table.get("ex"))
            if definition
        ]
        return Schema(tuple(parse_create_table(text, database=database, charset=charset) for text in definitions))


def _together(servers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was recorded of some SQL nodes as if they were one; the start of their error logs is not there."""
    counters = Counter[str]()
    for each in servers:
        counters.update(each["status_difference"])
    stopped = next((each["applier"] for each in servers if each.get("applier", {}).get("errno")), servers[0]["applier"])
    return {"status_difference": dict(counters), "applier": stopped}


_FILTER = re.compile(r"REPLICATE_(?P<name>\w+?)\s*=\s*\((?P<values>(?:\([^()]*\)|[^()])*)\)")
_VALUE = re.compile(r"\([^()]*\)|[^,()]+")


def _filter(text: str) -> ReplicationFilter:
    """Return the filters of a CHANGE REPLICATION FILTER statement."""
    given = {f"replicate_{found['name'].lower()}": found["values"] for found in _FILTER.finditer(text)}
    return ReplicationFilter.of(
        {name: _VALUE.findall(re.sub("[`' ]", "", values)) for name, values in given.items() if name in FILTER_OPTIONS}
    )
