"""
The requirements of every table of a run, on all clusters, from its configuration alone.
"""

from __future__ import annotations

import attrs

from conflict.compatibility.deployment import Deployment, Policy, TableLogging
from conflict.compatibility.reasons import ReasonKind
from conflict.compatibility.requirements import Answer, Status, requirements
from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.errors import ConfigurationError
from conflict.history.network import refuse_network
from conflict.history.run import Run
from conflict.rules.functions import ConflictFunction, parse_conflict_function
from conflict.rules.replication_table import ReplicationRow, best_match
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.tables import Table

__all__ = ["CheckedTable", "check_run", "refuse_by_policy"]


@attrs.frozen
class CheckedTable:
    """
    One table on one cluster.

    Attributes:
        cluster: The cluster.
        setup: How its server sets the table up.
        logging: How its server logs the table.
        answer: Whether its function can judge what a source of the cluster logs; None if it has no function.
    """

    cluster: str
    setup: TableSetup
    logging: TableLogging
    answer: Answer | None = None

    @property
    def status(self) -> Status:
        """The answer's status; without an answer, refused if ``conflict_fn`` cannot be parsed, else usable."""
        if self.answer is not None:
            return self.answer.status
        return Status.USABLE if self.setup.refusal is None else Status.REFUSED


def check_run(run: Run, policy: Policy) -> tuple[CheckedTable, ...]:
    """
    Check, for every table on all clusters, whether its conflict function can work; no binlog is read.

    A cluster with several sources is checked with each.

    Raises:
        ConfigurationError: A function cannot work with so many clusters.
    """
    refuse_network(run)
    return tuple(
        _checked(run, cluster, source, setup, policy)
        for cluster, source in run.links.channels()
        for setup in run.setups.at_end[cluster.name].values()
    )


def refuse_by_policy(run: Run, policy: Policy, *, created: bool = False) -> None:
    """
    Make sure that the policy allows every function of a run under the binlog type of its table.

    Tables that the server refuses and appliers that stop do not matter here; they are results of the run.

    Args:
        run: The run.
        policy: The policy.
        created: Leave out functions with which the server does not create the table, of which there is more to say.

    Raises:
        ConfigurationError: A function is not allowed; the message says which, why, and what would work.
    """
    for checked in check_run(run, policy):
        answer = checked.answer
        if answer is not None and answer.by_policy and not (created and _is_not_created(answer)):
            message = f"{checked.cluster}: {_sentences(answer)}"
            raise ConfigurationError(message)


def _is_not_created(answer: Answer) -> bool:
    return any(reason.kind is ReasonKind.CREATE_REFUSED for reason in answer.reasons)


def _sentences(answer: Answer) -> str:
    """Say that a function is refused, what to do with logs that are there, why, and what would work in others."""
    reasons = ". ".join(reason.message for reason in answer.reasons if reason.kind.refuses)
    works = f" What would work from now on: {'; or '.join(map(str, answer.nearest))}." if answer.nearest else ""
    return (
        f"{answer.deployment} is {answer.status.value} by policy manual. If it was in force nevertheless, add "
        "--policy needs: the run is resolved as the server does it. If not, give the function that was. "
        f"{reasons}.{works}"
    )


def _checked(
    run: Run,
    cluster: ClusterConfiguration,
    peer: ClusterConfiguration,
    setup: TableSetup,
    policy: Policy,
) -> CheckedTable:
    table = setup.table
    function, own = _as_configured(run.configuration, cluster, table)
    if function is None:
        return CheckedTable(cluster.name, setup, own)
    peer_function, source = _as_configured(run.configuration, peer, table)
    deployment = Deployment(
        function,
        table,
        source,
        own,
        role=cluster.role,
        peer_role=peer.role,
        on_both=peer_function is not None and peer_function.spec.argument is function.spec.argument,
        others=tuple(other for other in run.data_schema.tables if other != table),
    )
    return CheckedTable(cluster.name, setup, own, requirements(deployment, policy))


def _as_configured(
    configuration: Configuration, cluster: ClusterConfiguration, table: Table
) -> tuple[ConflictFunction | None, TableLogging]:
    """Return a table's function, even if the server refuses it for the table, and how the table is logged."""
    match = best_match(configuration.replication_of(cluster), table.database, table.name, cluster.server_id)
    row = match if isinstance(match, ReplicationRow) else ReplicationRow(table.database, table.name)
    logging = TableLogging(row.binlog_type or 0, cluster.options, cluster.transaction_ids)
    if row.conflict_fn is None:
        return None, logging
    try:
        return parse_conflict_function(row.conflict_fn, configuration.functions), logging
    except ConfigurationError:
        return None, logging  # `TableSetup.refusal` says why the text cannot be parsed
