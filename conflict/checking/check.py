"""
The check of a configuration: every rule over the same subject, and the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from conflict.checking.findings import Finding, merged
from conflict.checking.report import Report, table_rows
from conflict.checking.rules import creation, exceptions, judging, matching, roles, schemas, settings, stops
from conflict.checking.subject import Subject, subject_of
from conflict.compatibility.deployment import Policy
from conflict.config.configuration import Configuration
from conflict.rules.replication_table import rows_without_table

__all__ = ["RULES", "check_configuration"]

Rule = Callable[[Subject], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    creation.refused_tables,
    matching.ambiguous_rows,
    matching.rows_without_table,
    matching.rows_for_other_servers,
    matching.other_engines,
    matching.tables_without_function,
    judging.lacking_changes,
    judging.changes_as_writes,
    judging.advised_against,
    judging.resolve_columns,
    judging.one_sided_functions,
    judging.refreshed_deletes,
    settings.no_transaction_ids,
    settings.no_applied_epochs,
    settings.no_replica_updates,
    settings.no_binlog,
    settings.few_gci_bits,
    settings.useless_reads,
    settings.unknown_variables,
    roles.clusters_and_roles,
    roles.one_sided_roles,
    roles.more_than_two_clusters,
    roles.epoch_facts,
    stops.no_primary_key,
    stops.unique_keys,
    stops.foreign_keys,
    stops.blobs_in_reach,
    stops.row_slices,
    exceptions.malformed_tables,
    exceptions.lower_case_tables,
    exceptions.useless_tables,
    exceptions.missing_tables,
    schemas.missing_tables,
    schemas.different_definitions,
)


def check_configuration(configuration: Configuration, policy: Policy = Policy.MANUAL) -> Report:
    """
    Return what the servers will do with a configuration, and what they will refuse; no binlog is read.

    Args:
        configuration: The run; its binlogs need not be there.
        policy: With MANUAL, what the manual advises against is a warning. NEEDS leaves that out.
    """
    subject = subject_of(configuration.in_databases(_named_tables(configuration)), policy)
    return Report(policy, table_rows(subject), merged(finding for rule in RULES for finding in rule(subject)))


def _named_tables(configuration: Configuration) -> set[tuple[str, str]]:
    """Return the tables of the schemas that rows of mysql.ndb_replication name with a whole database."""
    tables = {table.name for cluster in configuration.clusters for table in configuration.schema_of(cluster).tables}
    rows = {row for cluster in configuration.clusters for row in configuration.replication_of(cluster)}
    databases = {row: row.db.replace("\\", "") for row in rows if "%" not in row.db.replace("\\%", "")}
    return {
        (database, table)
        for row, database in databases.items()
        for table in tables
        if rows_without_table([row], [(database, table)]) == []
    }
