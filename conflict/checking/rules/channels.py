"""
What is wrong with running servers now: threads of channels that are stopped, behind or wait, and conflicts.

Source: MySQL manual, "SHOW REPLICA STATUS Statement", "Delayed Replication", "Server System Variables".
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, Fix, TablePlace, quoted, set_variable
from conflict.checking.rules.kept_logs import NOT_SERVED
from conflict.checking.subject import Subject
from conflict.checking.thread_errors import StoppedApplier, receiver_remedy
from conflict.config.configuration import ClusterConfiguration
from conflict.config.replica_status import ReplicaChannel

_STATUS = "show-replica-status"
_BEHIND_SECONDS = 60  # a burst of changes takes less
_READ_ONLY = ("super_read_only", "read_only")  # the first one turns on the second


def stopped_channels(subject: Subject) -> Iterator[Finding]:
    """Yield channels with a thread that does not work; a source that cannot send has a finding of its own."""
    for applier, source in subject.links.channels():
        channel = applier.channels.get(source.name)
        if channel is None:
            continue
        if channel.applier == "No":
            yield _stopped_applier(subject, applier, source.name, channel)
        if channel.receiver in ("No", "Connecting") and channel.receiver_error not in NOT_SERVED:
            yield _stopped_receiver(applier, source.name, channel)


def _stopped_applier(subject: Subject, applier: ClusterConfiguration, source: str, channel: ReplicaChannel) -> Finding:
    stopped = StoppedApplier(channel, applier.name, source)
    table = subject.by_place.get(TablePlace(applier.name, stopped.table or ""))
    remedy = stopped.remedy(
        has_key=table is None or bool(table.table.primary_key),
        transactional=table is not None and table.function is not None and table.function.spec.transactional,
    )
    sentence = (
        f"The applier of the channel from {source} is stopped (Replica_SQL_Running = No{_error(channel.applier_error)})"
        f"{_because(remedy.why)}. No change that is made there arrives, and the clusters differ more and more."
    )
    place, words = (TablePlace(applier.name, stopped.table or ""),), channel.applier_words or None
    fix = remedy.on(applier.name)
    return Finding(Code.APPLIER_STANDS, sentence, place, fix, server=words, page=_STATUS, number=channel.applier_error)


def _stopped_receiver(applier: ClusterConfiguration, source: str, channel: ReplicaChannel) -> Finding:
    remedy = receiver_remedy(channel, applier.name, source)
    to = f" to {channel.host}:{channel.port} as {quoted(channel.user)}" if channel.host and channel.port else ""
    sentence = (
        f"The receiver of the channel from {source} has no connection{to} (Replica_IO_Running = {channel.receiver}"
        f"{_error(channel.receiver_error)}){_because(remedy.why)}. Nothing that is changed there arrives, and the logs "
        "there are purged one day."
    )
    place, words = (TablePlace(applier.name),), channel.receiver_words or None
    fix = remedy.on(applier.name)
    return Finding(
        Code.RECEIVER_STANDS, sentence, place, fix, server=words, page=_STATUS, number=channel.receiver_error
    )


def _error(number: int) -> str:
    return f", error {number}" if number else ""


def _because(why: str) -> str:
    return f": {why}" if why else ""


def late_appliers(subject: Subject) -> Iterator[Finding]:
    """Yield appliers that are behind their source, beyond the delay that they are given."""
    for applier, source in subject.links.channels():
        channel = applier.channels.get(source.name)
        if channel is not None and channel.behind is not None and channel.behind - channel.delay >= _BEHIND_SECONDS:
            sentence = (
                f"The applier of the channel from {source.name} is {channel.behind:,} seconds behind "
                "(Seconds_Behind_Source): what both clusters change within that time is in conflict, or is read old."
            )
            before = "see whether it waits for a lock or for large epochs (SHOW PROCESSLIST; ndb-conflict sizes); on "
            fix = Fix(before, (applier.name,), ".")
            yield Finding(Code.BEHIND, sentence, (TablePlace(applier.name),), fix, page=_STATUS)


def conflicts_now(subject: Subject) -> Iterator[Finding]:
    """Yield clusters whose counters of conflicts rose between two reads."""
    for cluster in subject.clusters:
        if cluster.counted is not None and cluster.counted.risen:
            risen = cluster.counted.risen
            listed = ", ".join(
                f"{each} by {rise:,} to {cluster.counted.second[each]:,}" for each, rise in risen.items()
            )
            sentence = (
                f"The applier finds conflicts now: within about {cluster.counted.seconds:g} seconds, of all that the "
                f"server has counted since its start, there rose {listed}."
            )
            fix = Fix("fetch the binlogs, and ask ndb-conflict resolve and conflicts which rows and why.")
            page = "mysql-cluster-replication-conflict-resolution"
            yield Finding(Code.CONFLICTS_NOW, sentence, (TablePlace(cluster.name),), fix, page=page)


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
