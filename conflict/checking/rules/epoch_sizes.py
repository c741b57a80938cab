"""
How large the epochs of binlogs are, against what a server keeps of one before it logs it.

A server collects the changes of an epoch in the cache of a transaction of its log: in memory up to
``ndb_log_cache_size``, which was ``binlog_cache_size`` in earlier releases, then in a temporary file, and of
``max_binlog_cache_size`` at the most.

Source: MySQL manual, "The Binary Log"; "Binary Logging Options and Variables"; "MySQL Server Options and Variables for
NDB Cluster"; release notes of NDB Cluster 8.4.3.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, TablePlace, set_variable
from conflict.checking.read_logs import ReadLog
from conflict.checking.subject import Subject
from conflict.config.configuration import ClusterConfiguration
from conflict.config.server_settings import ServerVariables
from conflict.rules.server_variables import VARIABLE_OF
from conflict.telling.shown_text import counted
from ndb_formats.cursor import whole_number

_CACHE, _OLDER_CACHE, _LIMIT = "ndb_log_cache_size", "binlog_cache_size", "max_binlog_cache_size"
_UNITS = "KMGTPE"
_LATEST = (9, 99, 99)
_HIGHEST = 1 << 32  # bytes; the manual recommends no higher limit, because of positions in files


def large_epochs(subject: Subject) -> Iterator[Finding]:
    """Yield servers that write epochs of their binlogs to a temporary file first."""
    for cluster, log, given in _logs(subject):
        own = given.are_all and _CACHE not in given
        name = _OLDER_CACHE if own or not VARIABLE_OF[_CACHE].is_in(subject.release or _LATEST) else _CACHE
        bytes_kept = _size(subject.value_of(given, name))
        number = 0 if bytes_kept is None else int((log.size > bytes_kept).sum())
        if number and bytes_kept is not None:
            largest = int(log.size.max())
            sentence = (
                f"{counted(number, 'epoch')} of {len(log.number):,} in the binlogs, the largest of {largest:,} bytes, "
                f"are larger than the cache ({name} = {bytes_kept:,}): the server writes them to a temporary file "
                "before it logs them."
            )
            fix = set_variable(cluster.name, name, str(_power_of_two(largest)))
            page = "mysql-cluster-options-variables" if name == _CACHE else "binary-log"
            yield Finding(Code.LARGE_EPOCHS, sentence, (TablePlace(cluster.name),), fix, page=page)


def too_large_epochs(subject: Subject) -> Iterator[Finding]:
    """Yield servers that would not log an epoch that is as large as the largest one of their binlogs."""
    for cluster, log, given in _logs(subject):
        limit = _size(subject.value_of(given, _LIMIT))
        largest = int(log.size.max(initial=0))
        if limit is not None and largest > limit:
            sentence = (
                f"The largest epoch in the binlogs has {largest:,} bytes, and the server logs no transaction that is "
                f"larger than {limit:,} bytes ({_LIMIT}): such an epoch is committed in the cluster, and does not "
                "arrive elsewhere."
            )
            fix = set_variable(cluster.name, _LIMIT, str(max(_HIGHEST, _power_of_two(largest))))
            page = "replication-options-binary-log"
            yield Finding(Code.TOO_LARGE_EPOCHS, sentence, (TablePlace(cluster.name),), fix, page=page)


def _logs(subject: Subject) -> Iterator[tuple[ClusterConfiguration, ReadLog, ServerVariables]]:
    """Yield logs with the variables of their servers, where these are given."""
    for cluster in subject.clusters:
        nodes = [each for each in (cluster.variables, *cluster.other_nodes) if each is not None]
        by_id = {each.get("server_id"): each for each in nodes}
        for log in (each for each in subject.logs if each.cluster == cluster.name):
            alone = cluster.variables if len(cluster.servers) == 1 else None
            given = by_id.get(str(log.server_id), alone)
            if given is not None:
                yield cluster, log, given


def _size(value: str | None) -> int | None:
    """Return the bytes of a value, which in an option file can end in K, M, G, T, P or E; None if it is no number."""
    text = (value or "").strip().upper()
    unit = _UNITS.find(text[-1:]) + 1 if text else 0
    number = whole_number(text[:-1] if unit else text)
    return None if number is None else number << 10 * unit


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
