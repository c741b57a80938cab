"""A configuration without fault, and changes that plant one in it."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from conflict.checking.check import check_configuration
from conflict.checking.report import Report
from conflict.config.arguments import DeploymentPolicy
from conflict.config.run_file import load_run_file

FIRST_COLUMNS = (
    "`NDB$server_id` INT UNSIGNED NOT NULL, `NDB$source_server_id` INT UNSIGNED NOT NULL, "
    "`NDB$source_epoch` BIGINT UNSIGNED NOT NULL, `NDB$count` INT UNSIGNED NOT NULL"
)
KEY = "PRIMARY KEY (`NDB$server_id`, `NDB$source_server_id`, `NDB$source_epoch`, `NDB$count`)"
EXCEPTIONS = f"CREATE TABLE `t$EX` ({FIRST_COLUMNS}, k INT NOT NULL, {KEY}) ENGINE=NDB;\n"
TABLE = "CREATE TABLE t (k INT NOT NULL, x INT UNSIGNED NOT NULL, v INT, PRIMARY KEY (k)) ENGINE=NDB;\n"
VARIABLES = {
    "log_bin": "ON",
    "ndb_log_bin": "ON",
    "log_replica_updates": "ON",
    "ndb_log_apply_status": "ON",
    "ndb_log_transaction_id": "ON",
}


@attrs.frozen
class Planned:
    """
    A configuration of two clusters with one table.

    Attributes:
        function: The conflict function of the table; None for none.
        binlog_type: Its binlog type.
        server_id: The server id of its row.
        table: Its definition.
        exceptions: The definition of its exceptions table.
        more: Further definitions.
        rows: Further rows of mysql.ndb_replication, as TOML.
        slices: Entries on slices in the row of the table, as TOML.
        table_b: The definition on B, if it is another one.
        a: Variables of A.
        b: Variables of B.
        roles: The roles of A and B.
        clusters: Further clusters, as TOML.
        entries: Further entries of A and B.
        config_ini: The config.ini of both clusters.
    """

    function: str | None = "NDB$OLD(x)"
    binlog_type: int = 7
    server_id: int = 0
    table: str = TABLE
    exceptions: str = EXCEPTIONS
    more: str = ""
    rows: str = ""
    slices: str = ""
    table_b: str | None = None
    a: Mapping[str, str] = attrs.field(factory=dict)
    b: Mapping[str, str] = attrs.field(factory=dict)
    roles: tuple[str, str] = ("NONE", "NONE")
    clusters: str = ""
    entries: tuple[str, str] = ("", "")
    config_ini: str = "[ndbd default]\n"

    def report(self, folder: Path, policy: DeploymentPolicy = DeploymentPolicy.MANUAL) -> Report:
        """Write the files of the configuration, and check it."""
        (folder / "config.ini").write_text(self.config_ini)
        lines = ['schema = "schema.sql"', 'database = "shop"']
        (folder / "schema.sql").write_text(self.table + self.exceptions + self.more)
        (folder / "schema_b.sql").write_text((self.table_b or self.table) + self.exceptions + self.more)
        for name, server_id, own, role, entries in zip(
            "AB", (1, 2), (self.a, self.b), self.roles, self.entries, strict=True
        ):
            variables = {**VARIABLES, **own, "server_id": str(server_id), "ndb_applier_conflict_role": role}
            text = "".join(f"{variable}\t{value}\n" for variable, value in variables.items())
            (folder / f"{name}.txt").write_text(f"Variable_name\tValue\n{text}")
            lines += [f"[clusters.{name}]", f'variables = "{name}.txt"', 'config_ini = "config.ini"', entries]
            lines += ['schema = "schema_b.sql"'] if name == "B" and self.table_b else []
        lines += [self.clusters, row("t", self.server_id, self.binlog_type, self.function) + self.slices, self.rows]
        (folder / "run.toml").write_text("\n".join(lines))
        return check_configuration(load_run_file(folder / "run.toml", binlogs=False).configuration, policy)


def row(table: str, server_id: int, binlog_type: int, function: str | None, database: str = "shop") -> str:
    """Return a row of mysql.ndb_replication as TOML."""
    text = (
        f'[[ndb_replication]]\ndb = "{database}"\ntable_name = "{table}"\n'
        f"server_id = {server_id}\nbinlog_type = {binlog_type}\n"
    )
    return text if function is None else f'{text}conflict_fn = "{function}"\n'
