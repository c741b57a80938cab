"""
A recording of two clusters in conflict: its files, and the run that they describe.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.roles import Role
from ndb_formats.rules.replica.conversions import parse_type_conversions
from ndb_formats.rules.update_format import server_options, switch
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Schema

__all__ = ["ConflictCase"]


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
    def steps(self) -> list[dict[str, Any]]:
        """The steps, in the order in which they ran."""
        return list(self.scenario.get("steps", ()))

    def configuration(self) -> Configuration:
        """Return the run that the case describes."""
        scenario = self.scenario
        sides = sorted(scenario["binlog_files"])
        clusters = tuple(
            ClusterConfiguration(
                side,
                (
                    LoggingServer(
                        int(scenario["globals"][side]["server_id"]),
                        tuple(self.path / name for name in scenario["binlog_files"][side]),
                    ),
                ),
                Role[scenario.get("roles", {}).get(side, "NONE")],
                server_options(scenario["globals"][side]),
                switch("ndb_log_transaction_id", scenario["globals"][side]["ndb_log_transaction_id"]),
                schema=self._own_schema(side),
                conversions=parse_type_conversions(scenario["globals"][side].get("replica_type_conversions", "")),
                variables={name: str(value) for name, value in scenario["globals"][side].items()},
            )
            for side in sides
        )
        rows = tuple(
            ReplicationRow(row["db"], row["table_name"], row["server_id"], row["binlog_type"], row["conflict_fn"])
            for row in scenario["ndb_replication"]
        )
        return Configuration(clusters, self._schema("create"), rows)

    def _own_schema(self, side: str) -> Schema | None:
        """Return the tables of a side where they differ from the other's; None if none does."""
        own = f"create_{side}"
        return self._schema(own) if any(own in table for table in self.scenario["tables"]) else None

    def _schema(self, create: str) -> Schema:
        """Return the tables, by the statements of that name where a table has one."""
        scenario = self.scenario
        charset = scenario["globals"][min(scenario["binlog_files"])].get("character_set_server", "utf8mb4")
        definitions = [
            definition
            for table in scenario["tables"]
            for definition in (table.get(create, table["create"]), table.get("ex"))
            if definition
        ]
        return Schema(
            tuple(parse_create_table(text, database=scenario["database"], charset=charset) for text in definitions)
        )
