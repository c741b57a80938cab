"""
The requirements of a whole run: every table on both clusters, from the configuration alone.
"""

from __future__ import annotations

import attrs

from conflict.compatibility.pairing import Pairing, Policy, TableLogging
from conflict.compatibility.requirements import Answer, Status, requirements
from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.errors import ConfigurationError
from conflict.rules.conflict_fn_text import parse_conflict_function
from conflict.rules.functions import ConflictFunction
from conflict.rules.replication_table import ReplicationRow, best_match
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.tables import Table

__all__ = ["CheckedTable", "check_run", "refuse_by_policy", "sentence"]


@attrs.frozen
class CheckedTable:
    """
    One table on one cluster.

    Attributes:
        cluster: The cluster.
        setup: What its server makes of the table.
        logging: How it logs the table.
        answer: Whether its function can judge what the other cluster logs; None if it has no function.
    """

    cluster: str
    setup: TableSetup
    logging: TableLogging
    answer: Answer | None = None

    @property
    def status(self) -> Status:
        """The answer's; a table whose function cannot even be read is refused, one without a function is usable."""
        if self.answer is not None:
            return self.answer.status
        return Status.USABLE if self.setup.refusal is None else Status.REFUSED


def check_run(configuration: Configuration, policy: Policy) -> tuple[CheckedTable, ...]:
    """Say of every table on both clusters whether its conflict function can work; no binlog is read."""
    setups = configuration.setups()
    return tuple(
        _checked(configuration, cluster, setup, policy)
        for cluster in configuration.clusters
        for setup in setups[cluster.name].values()
    )


def refuse_by_policy(configuration: Configuration, policy: Policy) -> None:
    """
    Make sure that the policy allows every pair of a run.

    What the server itself refuses, and what stops an applier, is no concern of the policy but a result of the run.

    Raises:
        ConfigurationError: A pair is not allowed; the message says which, why, and what would work.
    """
    for checked in check_run(configuration, policy):
        if checked.answer is not None and checked.answer.by_policy:
            message = (
                f"{checked.cluster}: {sentence(checked.answer)} With --policy needs the run is resolved as the "
                "server would do it."
            )
            raise ConfigurationError(message)


def sentence(answer: Answer) -> str:
    """Say in a few sentences why a pair is refused, or what is wrong with it, and what would work."""
    head = f"{answer.pairing} is {answer.status.value}"
    if not answer.reasons:
        return f"{head}."
    shown = [reason for reason in answer.reasons if reason.concern.refuses] or answer.reasons
    reasons = ". ".join(reason.message for reason in shown)
    works = f" What would work: {'; or '.join(map(str, answer.nearest))}." if answer.nearest else ""
    return f"{head}: {reasons}.{works}"


def _checked(
    configuration: Configuration, cluster: ClusterConfiguration, setup: TableSetup, policy: Policy
) -> CheckedTable:
    peer = configuration.peer(cluster.name)
    table = setup.table
    function, own = _as_configured(configuration, cluster, table)
    if function is None:
        return CheckedTable(cluster.name, setup, own)
    theirs, source = _as_configured(configuration, peer, table)
    pairing = Pairing(
        function,
        table,
        source,
        own,
        role=cluster.role,
        peer_role=peer.role,
        on_both=theirs is not None and theirs.spec.argument is function.spec.argument,
        others=tuple(other for other in configuration.data_schema.tables if other != table),
    )
    return CheckedTable(cluster.name, setup, own, requirements(pairing, policy))


def _as_configured(
    configuration: Configuration, cluster: ClusterConfiguration, table: Table
) -> tuple[ConflictFunction | None, TableLogging]:
    """Return a table's function, also where the server refuses it for the table, and how the table is logged."""
    row = best_match(configuration.replication, table.database, table.name, cluster.server_id)
    matched = row if isinstance(row, ReplicationRow) else ReplicationRow(table.database, table.name)
    logging = TableLogging(matched.binlog_type or 0, cluster.options, cluster.transaction_ids)
    try:
        function = (
            None
            if matched.conflict_fn is None
            else parse_conflict_function(matched.conflict_fn, configuration.functions)
        )
    except ConfigurationError:
        function = None  # `TableSetup.refusal` says what is wrong with its text
    return function, logging
