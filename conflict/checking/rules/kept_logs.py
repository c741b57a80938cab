"""
How long servers keep their logs, against how long channels stand still.

Source: MySQL manual, "Binary Logging Options and Variables" (how the variables go together), "PURGE BINARY LOGS
Statement" (no replica may be further behind than logs are kept).
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, TablePlace, set_variable
from conflict.checking.subject import Subject
from conflict.checking.thread_errors import unserved_remedy
from conflict.config.configuration import ClusterConfiguration
from ndb_formats.cursor import whole_number

_LOG = "replication-options-binary-log"
_AUTOMATIC, _SECONDS, _DAYS = "binlog_expire_logs_auto_purge", "binlog_expire_logs_seconds", "expire_logs_days"
_DAY, _DEFAULT = 86_400, "2592000"
_MICROSECONDS = 1_000_000
NOT_SERVED = (13114, 1236)  # the receiver's error where a source cannot send on, and its number in 5.7


def horizon(subject: Subject, cluster: ClusterConfiguration) -> int | None:
    """Return after how many seconds a cluster's logs are purged; 0 for never, None if it is not known."""
    given = cluster.variables
    if given is None:
        return None
    if subject.is_on(cluster, _AUTOMATIC) is False:
        return 0
    seconds, days = (whole_number(subject.value(cluster, name) or "") for name in (_SECONDS, _DAYS))
    if days is not None and _DAYS in given and _SECONDS not in given:
        return days * _DAY
    if seconds == 0 and days is None:
        return 0 if given.complete or given.are_all else None  # later servers have no days
    return seconds or (None if seconds is None else (days or 0) * _DAY)


def purged_early(subject: Subject) -> Iterator[Finding]:
    """Yield clusters whose logs are purged within a day."""
    for cluster in _logging(subject):
        seconds = horizon(subject, cluster)
        if seconds is not None and 0 < seconds < _DAY:
            sentence = (
                f"Logs are purged after {seconds} seconds ({_SECONDS}): a channel that stands still for longer cannot "
                "go on, and its cluster has to be copied anew."
            )
            fix = set_variable(cluster.name, _SECONDS, _DEFAULT)
            yield Finding(Code.PURGED_LOGS, sentence, (TablePlace(cluster.name),), fix, page=_LOG)


def never_purged(subject: Subject) -> Iterator[Finding]:
    """Yield clusters whose logs no server removes."""
    for cluster in _logging(subject):
        if horizon(subject, cluster) == 0:
            off = subject.is_on(cluster, _AUTOMATIC) is False
            name, value, better = (_AUTOMATIC, "OFF", "ON") if off else (_SECONDS, "0", _DEFAULT)
            sentence = (
                f"The server never purges its logs ({name} = {value}): they fill its disk, unless somebody gives PURGE "
                "BINARY LOGS."
            )
            fix = set_variable(cluster.name, name, better)
            yield Finding(Code.NEVER_PURGED, sentence, (TablePlace(cluster.name),), fix, page=_LOG)


def purged_before_read(subject: Subject) -> Iterator[Finding]:
    """
    Yield clusters whose logs are purged sooner than they are read, by binlogs or by what a channel says of itself.

    What an epoch took longer than the fastest one does not depend on whether clocks agree.
    """
    for each in subject.travels:
        longest = int(each.took.max() - each.took.min()) // _MICROSECONDS
        what = f"An epoch in the binlogs took {longest:,} seconds longer than others until {each.applier.cluster} "
        yield from _behind(subject, each.source.cluster, longest, f"{what}applied it")
    for applier, source in subject.links.channels():
        channel = applier.channels.get(source.name)
        if channel is not None and channel.behind is not None:
            what = f"{applier.name} is {channel.behind:,} seconds behind (Seconds_Behind_Source)"
            yield from _behind(subject, source.name, channel.behind, what)


def _behind(subject: Subject, name: str, behind: int, what: str) -> Iterator[Finding]:
    """Yield that a cluster keeps its logs for no longer than a channel is, or was, behind."""
    source = next(cluster for cluster in subject.clusters if cluster.name == name)
    seconds = horizon(subject, source)
    if seconds and behind >= seconds:
        sentence = (
            f"{what}, and logs are purged after {seconds:,} seconds: a channel whose receiver stands still for so long "
            "cannot go on, and its cluster has to be copied anew."
        )
        fix = set_variable(name, _SECONDS, str(-(-2 * behind // _DAY) * _DAY))
        yield Finding(Code.PURGED_BEFORE_READ, sentence, (TablePlace(name),), fix, page="purge-binary-logs")


def sources_that_do_not_serve(subject: Subject) -> Iterator[Finding]:
    """Yield channels whose receivers stopped because the source cannot send what comes next."""
    for applier, source in subject.links.channels():
        channel = applier.channels.get(source.name)
        if channel is not None and channel.receiver_error in NOT_SERVED:
            remedy = unserved_remedy(channel)
            sentence = (
                f"The receiver is stopped (error {channel.receiver_error}): {source.name} cannot send what comes next, "
                f"{remedy.why}. Nothing that is changed there arrives any more."
            )
            fix = remedy.on(applier.name)
            place, page, words = (
                (TablePlace(applier.name),),
                "mysql-cluster-replication-failover",
                channel.receiver_words,
            )
            number = channel.receiver_error
            yield Finding(Code.NOT_SERVED, sentence, place, fix, server=words or None, page=page, number=number)


def _logging(subject: Subject) -> list[ClusterConfiguration]:
    """Return the clusters whose changes others apply."""
    return [cluster for cluster in subject.clusters if subject.links.replicas(cluster.name)]
