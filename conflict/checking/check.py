"""
The check of a configuration: every rule over the same subject, and the report, as rows that a DataFrame takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from conflict.checking.deployment import Handling
from conflict.checking.findings import Code, Finding, merged
from conflict.checking.read_logs import ReadLog
from conflict.checking.reasons import CREATION, rules_out
from conflict.checking.report import Report, TableReport
from conflict.checking.requirements import marks
from conflict.checking.rules import (
    appliers,
    channels,
    clocks,
    epoch_sizes,
    filters,
    functions,
    kept_logs,
    releases,
    replicas,
    servers,
    settings,
    sql_nodes,
    tables,
)
from conflict.checking.subject import PlacedTable, Subject, subject_of
from conflict.checking.suggestions import nearest_settings
from conflict.config.arguments import DeploymentPolicy
from conflict.config.configuration import Configuration
from conflict.config.schema_file import version_of_logs
from conflict.errors import ConfigurationError
from conflict.history.reading.network import refuse_network
from conflict.history.run import Run
from conflict.rules.replication_table import rows_without_table
from conflict.rules.server_variables import Release, is_release, parse_release

Rule = Callable[[Subject], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    tables.refused_tables,
    tables.ambiguous_rows,
    tables.rows_without_table,
    tables.rows_for_other_servers,
    tables.other_engines,
    tables.tables_without_function,
    tables.unlogged_tables,
    tables.unknown_types,
    functions.reasons,
    functions.resolve_columns,
    functions.one_sided_functions,
    functions.different_functions,
    functions.refreshed_deletes,
    functions.more_than_two_clusters,
    functions.epoch_facts,
    servers.no_applied_epochs,
    servers.no_replica_updates,
    servers.no_binlog,
    servers.compressed_epochs,
    servers.few_gci_bits,
    servers.useless_reads,
    servers.unknown_variables,
    servers.row_slices,
    sql_nodes.without_ndb,
    sql_nodes.different_nodes,
    settings.single_settings,
    appliers.skipped_epochs,
    appliers.idle_workers,
    appliers.commit_order,
    appliers.kept_relay_logs,
    kept_logs.purged_early,
    kept_logs.never_purged,
    kept_logs.purged_before_read,
    kept_logs.sources_that_do_not_serve,
    channels.stopped_channels,
    channels.late_appliers,
    channels.conflicts_now,
    channels.delayed_appliers,
    channels.missing_channels,
    channels.refused_changes,
    epoch_sizes.large_epochs,
    epoch_sizes.too_large_epochs,
    clocks.clocks_differ,
    appliers.server_ids,
    appliers.roles_without_use,
    appliers.letter_case,
    appliers.generated_keys,
    settings.unknown_names,
    filters.apply_status,
    filters.functions_filtered,
    filters.one_way,
    filters.default_databases,
    filters.renamed_databases,
    filters.lists_of_names,
    releases.lacking_in_release,
    releases.not_recorded,
    tables.keys,
    tables.malformed_exceptions,
    tables.lower_case_exceptions,
    tables.keyless_exceptions,
    tables.useless_exceptions,
    tables.missing_exceptions,
    replicas.missing_tables,
    replicas.different_definitions,
)


def check_configuration(
    configuration: Configuration,
    policy: DeploymentPolicy = DeploymentPolicy.MANUAL,
    release: Release | None = None,
    logs: Sequence[ReadLog] = (),
) -> Report:
    """
    Return what the servers will do with a configuration, and what they will refuse.

    Of binlogs that are there, the version of the server is read; what else they show is in `logs`.

    Args:
        configuration: The run; its binlogs need not be there.
        policy: With MANUAL, what the manual advises against is a warning. NEEDS leaves that out.
        release: The release of all servers; None for the one that they or their binlogs say, if that is the same one.
        logs: What the binlogs show, as `conflict.checking.read_logs.read_logs` reads them.
    """
    placed = configuration.in_databases(_named_tables(configuration)).with_database_names({})
    release = release or _release_of(configuration)
    subject = attrs.evolve(subject_of(placed, policy), release=release, logs=tuple(logs))
    found = merged(finding for rule in RULES for finding in rule(subject))
    return Report(policy, tuple(_table_report(subject, placed) for placed in subject.tables), found)


def _release_of(configuration: Configuration) -> Release | None:
    """Return the release that servers say (``version``), or their last binlogs; None if none does, or they differ."""
    versions = {
        cluster.given_variables.get("version") or version_of_logs(reversed(cluster.files)) or ""
        for cluster in configuration.clusters
    }
    found = {parse_release(each) for each in versions if is_release(each)}
    return next(iter(found)) if len(found) == 1 else None


def _named_tables(configuration: Configuration) -> set[tuple[str, str]]:
    """Return the tables of the schemas that rows of mysql.ndb_replication name with a whole database."""
    tables = {table.name for cluster in configuration.clusters for table in configuration.schema_of(cluster).tables}
    given = {row for cluster in configuration.clusters for row in configuration.replication_of(cluster)}
    databases = {row: row.db.replace("\\", "") for row in given if "%" not in row.db.replace("\\%", "")}
    return {
        (database, table)
        for row, database in databases.items()
        for table in tables
        if rows_without_table([row], [(database, table)]) == []
    }


def _table_report(subject: Subject, placed: PlacedTable) -> TableReport:
    changes = tuple(
        change
        for arrival in subject.arrivals
        if arrival.here is placed and placed.setup.refusal is None
        for change in arrival.changes
    )
    unjudged = (change.name for change in changes if change.handling is not Handling.JUDGED)
    exceptions = placed.setup.exceptions
    return TableReport(
        placed.place.cluster,
        placed.place.table,
        placed.logging.binlog_type,
        str(placed.logging),
        None if placed.function is None else str(placed.function),
        None if exceptions is None else exceptions.table.full_name.removeprefix("."),
        placed.setup.refusal is None,
        tuple(dict.fromkeys(unjudged)),
        tuple(marks(changes)),
    )


def refuse_by_policy(run: Run, policy: DeploymentPolicy, *, created: bool = False) -> None:
    """
    Make sure that the policy allows every function of a run under the binlog type of its table.

    Tables that the server refuses and appliers that stop do not matter here; they are results of the run.

    Args:
        run: The run.
        policy: The policy.
        created: Leave out functions with which the server does not create the table; more is said of these elsewhere.

    Raises:
        ConfigurationError: A function is not allowed; the message says which, why, and what would work.
    """
    refuse_network(run)
    for arrival in subject_of(run.configuration, policy, run.setups.at_end).arrivals:
        kinds = {reason.kind for reason in arrival.reasons}
        if Code.POLICY not in kinds or (created and kinds & CREATION):
            continue
        why = " ".join(reason.sentence for reason in arrival.reasons if rules_out(reason))
        nearest = "; or ".join(map(str, nearest_settings(arrival.deployment, policy)))
        message = (
            f"{arrival.here.cluster.name}: {arrival.deployment} is refused by policy manual. If it was in force "
            "nevertheless, add --policy needs: the run is resolved as the server does it. If not, give the function "
            f"that was. {why}{f' What would work from now on: {nearest}.' if nearest else ''}"
        )
        raise ConfigurationError(message)
