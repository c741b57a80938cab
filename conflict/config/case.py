"""
The run that the folder of a recording describes by its `scenario.json`: docs/cases.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.config.text_file import plain_path
from conflict.documents import read
from conflict.errors import ConfigurationError, ConflictError
from conflict.rules.replication_filter import FILTER_OPTIONS, ReplicationFilter
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.errors import FormatError
from ndb_formats.rules.replica.conversions import parse_type_conversions
from ndb_formats.rules.update_format import server_options, switch
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Schema

SCENARIO = "scenario.json"


@attrs.frozen
class Case:
    """
    A recording of clusters as a run.

    Attributes:
        path: Its folder.
        scenario: Contents of its `scenario.json`.
    """

    path: Path
    scenario: dict[str, Any] = attrs.field(repr=False)

    @classmethod
    def parse(cls, text: str, path: Path) -> Case:
        """
        Return the case that the text of a `scenario.json` describes.

        Args:
            text: The text.
            path: The folder.

        Raises:
            ConfigurationError: It is no JSON object.
        """
        try:
            scenario = json.loads(text)
        except (ValueError, RecursionError) as error:
            message = f"no JSON ({error})"
            raise ConfigurationError(message) from error
        return Case(path, read(dict[str, Any], scenario, "the scenario"))

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
    def databases(self) -> dict[str, str]:
        """The database of the tables on each cluster."""
        of_clusters = self.scenario.get("database_of", {})
        return {name: of_clusters.get(name, self.scenario["database"]) for name in self.servers}

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps, in the order in which they ran; none where SQL nodes are recorded, which only have their logs."""
        return [] if "servers" in self.scenario else list(self.scenario.get("steps", ()))

    def configuration(self, *, binlogs: bool = True) -> Configuration:
        """
        Return the run that the case describes.

        Args:
            binlogs: Whether the binlogs must be there; else those that are not there are left out.

        Raises:
            ConfigurationError: A binlog is missing, or the scenario is not what docs/cases.md says.
        """
        try:
            return self._configuration(binlogs=binlogs)
        except (ConflictError, FormatError):
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            message = f"it is not what docs/cases.md says ({error!r})"
            raise ConfigurationError(message) from error

    def _configuration(self, *, binlogs: bool) -> Configuration:
        scenario = self.scenario
        files = {server: self._files(names, binlogs=binlogs) for server, names in scenario["binlog_files"].items()}
        clusters = tuple(self._cluster(name, servers, files) for name, servers in self.servers.items())
        rows = tuple(
            ReplicationRow(row["db"], row["table_name"], row["server_id"], row["binlog_type"], row["conflict_fn"])
            for row in scenario["ndb_replication"]
        )
        return Configuration(clusters, self._schema("create", scenario["database"]), rows)

    def _files(self, names: Sequence[str], *, binlogs: bool) -> tuple[Path, ...]:
        files = [plain_path(self.path / name) for name in names]
        missing = [file for file in files if not file.is_file()]
        if missing and binlogs:
            message = f"{missing[0]}: no such binlog"
            raise ConfigurationError(message)
        return tuple(file for file in files if file not in missing)

    def _cluster(
        self, name: str, servers: Sequence[str], files: Mapping[str, tuple[Path, ...]]
    ) -> ClusterConfiguration:
        """Return a cluster with the settings of its first SQL node."""
        scenario, settings = self.scenario, self.scenario["globals"][servers[0]]
        return ClusterConfiguration(
            name,
            tuple(LoggingServer(int(scenario["globals"][each]["server_id"]), files[each]) for each in servers),
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


_FILTER = re.compile(r"REPLICATE_(?P<name>\w+?)\s*=\s*\((?P<values>(?:\([^()]*\)|[^()])*)\)")
_VALUE = re.compile(r"\([^()]*\)|[^,()]+")


def _filter(text: str) -> ReplicationFilter:
    """Return the filters of a CHANGE REPLICATION FILTER statement."""
    given = {f"replicate_{found['name'].lower()}": found["values"] for found in _FILTER.finditer(text)}
    return ReplicationFilter.of(
        {name: _VALUE.findall(re.sub("[`' ]", "", values)) for name, values in given.items() if name in FILTER_OPTIONS}
    )
