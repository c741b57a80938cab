"""
What servers say of the moment: appliers and receivers that stand still or wait, and channels that are not there.

Source: MySQL manual, "SHOW REPLICA STATUS Statement", "Delayed Replication", "Server System Variables".
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, Fix, TablePlace, set_variable
from conflict.checking.rules.kept_logs import NOT_SERVED
from conflict.checking.subject import Subject

_STATUS = "show-replica-status"
_READ_ONLY = ("super_read_only", "read_only")  # the first one turns on the second


def standing_channels(subject: Subject) -> Iterator[Finding]:
    """Yield channels with a thread that stands still; a receiver that its source does not serve has its own finding."""
    for applier, source in subject.links.channels():
        channel, place = applier.channels.get(source.name), (TablePlace(applier.name),)
        if channel is None:
            continue
        if channel.applier == "No":
            error = f", error {channel.applier_error}" * bool(channel.applier_error)
            sentence = (
                f"The applier of the channel from {source.name} stands still (Replica_SQL_Running = No{error}): no "
                "change that is made there arrives, and the clusters go apart the longer it lasts."
            )
            before = "mend what stopped it, then START REPLICA; on " if channel.applier_error else "START REPLICA; on "
            fix, words = Fix(before, (applier.name,), "."), channel.applier_words or None
            yield Finding(Code.APPLIER_STANDS, sentence, place, fix, server=words, page=_STATUS)
        if channel.receiver in ("No", "Connecting") and channel.receiver_error not in NOT_SERVED:
            error = f", error {channel.receiver_error}" * bool(channel.receiver_error)
            sentence = (
                f"The receiver of the channel from {source.name} has no connection (Replica_IO_Running = "
                f"{channel.receiver}{error}): nothing that is changed there arrives, and its logs are purged one day."
            )
            before = "mend the connection (CHANGE REPLICATION SOURCE TO), then START REPLICA; on "
            fix = Fix(before if channel.receiver_error else "START REPLICA; on ", (applier.name,), ".")
            words = channel.receiver_words or None
            yield Finding(Code.RECEIVER_STANDS, sentence, place, fix, server=words, page=_STATUS)


def delayed_appliers(subject: Subject) -> Iterator[Finding]:
    """Yield appliers that wait before they apply a change."""
    for applier, source in subject.links.channels():
        channel = applier.channels.get(source.name)
        if channel is not None and channel.delay:
            sentence = (
                f"The applier of the channel from {source.name} waits {channel.delay:,} seconds before it applies a "
                "change (SOURCE_DELAY): whatever both clusters change within that time is in conflict, or is read old."
            )
            before = "STOP REPLICA SQL_THREAD; CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0; START REPLICA; on "
            fix = Fix(before, (applier.name,), ".")
            yield Finding(Code.DELAYED, sentence, (TablePlace(applier.name),), fix, page="replication-delayed")


def missing_channels(subject: Subject) -> Iterator[Finding]:
    """Yield servers without a channel that have functions, which then judge nothing; all, if nobody has a channel."""
    silent = [cluster for cluster in subject.clusters if cluster.has_channels is False]
    nobody = not any(cluster.has_channels for cluster in subject.clusters) and len(subject.clusters) > 1
    judging = {placed.cluster.name for placed in subject.tables if placed.function is not None}
    for cluster in silent:
        if nobody or cluster.name in judging:
            sentence = (
                "The server has no channel (SHOW REPLICA STATUS is empty): no change of another cluster arrives, and "
                "no conflict function judges anything here."
            )
            fix = Fix("CHANGE REPLICATION SOURCE TO ...; START REPLICA; on ", (cluster.name,), ".")
            page = "mysql-cluster-replication-starting"
            yield Finding(Code.NO_CHANNEL, sentence, (TablePlace(cluster.name),), fix, page=page)


def refused_changes(subject: Subject) -> Iterator[Finding]:
    """Yield servers that others replicate from and that take no changes of users."""
    for cluster in subject.clusters:
        name = next((each for each in _READ_ONLY if subject.is_on(cluster, each)), None)
        if name is not None and subject.links.replicas(cluster.name):
            whose = "users" if name == _READ_ONLY[0] else "users without the privilege CONNECTION_ADMIN"
            sentence = (
                f"The server refuses changes of {whose} ({name} = ON); it still applies those of other clusters. Rows "
                "of its cluster are changed through other SQL nodes alone."
            )
            fix = set_variable(cluster.name, name, "OFF").then(" That is right if it is to apply and log alone.")
            page = "server-system-variables"
            yield Finding(Code.READ_ONLY, sentence, (TablePlace(cluster.name),), fix, page=page)
