"""
Settings of appliers that go together: workers and the log that they read, errors and epochs to pass over, server ids.

Source: MySQL manual; the page stands beside each rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import gcd

from conflict.checking.findings import Code, Finding, Fix, TablePlace, set_in_my_cnf, set_variable
from conflict.checking.subject import Subject
from conflict.config.configuration import ClusterConfiguration
from conflict.rules.replication_table import Role
from conflict.rules.stops import ROLE_VARIABLE
from ndb_formats.cursor import whole_number

_NDB, _WORKERS = "mysql-cluster-options-variables", "mysql-cluster-replication-mta"
_SEVERAL_WORKERS = (8, 0, 33)  # the first release in which NDB supports them
_KEYS = ("auto_increment_increment", "auto_increment_offset")


def workers_of(subject: Subject, cluster: ClusterConfiguration) -> int:
    """Return the number of workers of a cluster's applier; 0 if it is not known."""
    return whole_number(subject.value(cluster, "replica_parallel_workers") or "") or 0


def applying(subject: Subject) -> list[ClusterConfiguration]:
    """Return the clusters that apply changes of others."""
    return [cluster for cluster in subject.clusters if subject.links.sources(cluster.name)]


def skipped_epochs(subject: Subject) -> Iterator[Finding]:
    """Yield appliers that may leave out an epoch; without errors to pass over, the setting has no effect."""
    name = "ndb_applier_allow_skip_epoch"
    for cluster in applying(subject):
        if not subject.is_on(cluster, name):
            continue
        skipped = subject.value(cluster, "replica_skip_errors")
        fix = set_in_my_cnf(cluster.name, name, "OFF")
        if skipped is not None and skipped.strip().upper() in ("OFF", "", "0"):
            sentence = (
                f"It has no effect ({name} = ON), as the applier passes over no errors (replica_skip_errors = OFF)."
            )
            yield _finding(Code.NO_EFFECT, sentence, cluster, fix, _NDB)
        else:
            sentence = (
                f"The applier goes on after an epoch that it did not commit ({name} = ON, with replica_skip_errors): "
                "all changes of that epoch are missing here, and only the error log says so."
            )
            yield _finding(Code.SKIPPED_EPOCHS, sentence, cluster, fix, _NDB)


def idle_workers(subject: Subject) -> Iterator[Finding]:
    """Yield appliers with workers that never work in parallel, as the log that they read has no dependencies."""
    for applier, source in subject.links.channels():
        workers, tracking = (
            workers_of(subject, applier),
            subject.value(source, "binlog_transaction_dependency_tracking"),
        )
        if subject.is_on(source, "ndb_log_transaction_dependency") is False:
            name, value = "ndb_log_transaction_dependency", "ON"
        elif tracking is not None and tracking.strip().upper() not in ("WRITESET", "1"):
            name, value = "binlog_transaction_dependency_tracking", "WRITESET"
        else:
            continue
        if workers > 1 and (subject.release is None or subject.release >= _SEVERAL_WORKERS):
            sentence = (
                f"The applier has {workers} workers (replica_parallel_workers), and the log that it reads does not say "
                f"which epochs depend on each other ({name} is not {value} at the source): they apply one epoch after "
                "the other."
            )
            yield _finding(Code.IDLE_WORKERS, sentence, applier, set_in_my_cnf(source.name, name, value), _WORKERS)


def commit_order(subject: Subject) -> Iterator[Finding]:
    """Yield appliers whose workers commit epochs in another order than the source did."""
    name = "replica_preserve_commit_order"
    for cluster in applying(subject):
        if workers_of(subject, cluster) > 1 and subject.is_on(cluster, name) is False:
            sentence = (
                f"Workers commit epochs as they finish them ({name} = OFF). NDB needs the order of the source: "
                "dependencies in its log leave mysql.ndb_apply_status out of account."
            )
            yield _finding(Code.COMMIT_ORDER, sentence, cluster, set_variable(cluster.name, name, "ON"), _WORKERS)


def kept_relay_logs(subject: Subject) -> Iterator[Finding]:
    """Yield appliers whose recovery can meet relay logs that they should have removed."""
    for cluster in applying(subject):
        if subject.is_on(cluster, "relay_log_purge") is False and subject.is_on(cluster, "relay_log_recovery"):
            sentence = (
                "Relay logs are kept (relay_log_purge = OFF), and a restart fetches them again (relay_log_recovery = "
                "ON): the old ones are not removed, which puts the consistency of data at risk."
            )
            fix = set_variable(cluster.name, "relay_log_purge", "ON")
            yield _finding(Code.RELAY_LOG, sentence, cluster, fix, "replication-options-replica")


def roles_without_use(subject: Subject) -> Iterator[Finding]:
    """Yield clusters with a role, none of whose functions goes by it."""
    name = ROLE_VARIABLE
    for cluster in applying(subject):
        own = [each.function.spec for each in subject.tables if each.cluster is cluster and each.function is not None]
        if cluster.role is not Role.NONE and own and not any(spec.uses_role for spec in own):
            sentence = (
                f"It has no effect ({name} = {cluster.role}): only NDB$EPOCH2 and NDB$EPOCH2_TRANS go by roles, and "
                "no table here has one of them."
            )
            yield _finding(Code.NO_EFFECT, sentence, cluster, set_variable(cluster.name, name, "'NONE'"), _NDB)


def letter_case(subject: Subject) -> Iterator[Finding]:
    """Yield tables with capital letters, which an applier heeds, where the source logs all names in small ones."""
    name = "lower_case_table_names"
    for applier, source in subject.links.channels():
        here, there = (subject.value(each, name) for each in (applier, source))
        if here != "0" or there in (None, "0"):
            continue
        for placed in subject.tables:
            full_name = placed.table.full_name
            if placed.cluster is applier and full_name != full_name.lower():
                sentence = (
                    f"The source logs names in small letters ({name} = {there}), and here their letter case counts "
                    f"({name} = 0): the table is not found, and the applier stops with error 1146."
                )
                fix = Fix("give the table a name in small letters on all clusters.")
                page = "identifier-case-sensitivity"
                yield Finding(Code.LETTER_CASE, sentence, (placed.place,), fix, page=page)


def server_ids(subject: Subject) -> Iterator[Finding]:
    """Yield server ids that a server refuses, or that its ``server_id_bits`` make one with another server's."""
    for cluster in subject.clusters:
        bits = whole_number(subject.value(cluster, "server_id_bits") or "32") or 32
        for own in sorted(cluster.server_ids):
            if own == 0 or own >= 2**bits:
                why = (
                    "no server replicates with it" if own == 0 else f"it does not fit into {bits} bits (server_id_bits)"
                )
                fix = Fix("give the SQL node another server_id in the my.cnf of ", (cluster.name,), ".")
                yield _finding(Code.NO_SERVER_ID, f"Server id {own} cannot be used: {why}.", cluster, fix, _NDB)
        others = {each for other in subject.clusters if other is not cluster for each in other.server_ids}
        for other in sorted(each for each in others if each % 2**bits in cluster.server_ids):
            sentence = (
                f"Of a server id, {bits} bits count (server_id_bits): server {other} counts as {other % 2**bits}, a "
                "server of this cluster, and its changes are left out as if they came back."
            )
            fix = set_in_my_cnf(cluster.name, "server_id_bits", "32")
            yield _finding(Code.MASKED_SERVER_ID, sentence, cluster, fix, _NDB)


def generated_keys(subject: Subject) -> Iterator[Finding]:
    """Yield tables whose generated keys are the same on two clusters that replicate to each other."""
    for one, other in combinations(subject.clusters, 2):
        if not _both_ways(subject, one, other) or not _same_keys(subject, one, other):
            continue
        for placed in subject.tables:
            there = other if placed.cluster is one else one
            if placed.cluster not in (one, other) or subject.on(there, placed) is None:
                continue
            for column in placed.table.columns:
                if column.auto_increment:
                    sentence = (
                        f"Both clusters generate the same keys ({_KEYS[0]} and {_KEYS[1]} do not keep them apart): two "
                        "new rows can get one key, and of these each cluster keeps one."
                    )
                    fix = Fix(f"set {_KEYS[0]} = 2 on both clusters, {_KEYS[1]} = 1 on one and 2 on the other.")
                    page = "replication-options-source"
                    yield Finding(Code.SAME_GENERATED_KEYS, sentence, (placed.place,), fix, at=column.name, page=page)


def _both_ways(subject: Subject, one: ClusterConfiguration, other: ClusterConfiguration) -> bool:
    return one in subject.links.sources(other.name) and other in subject.links.sources(one.name)


def _same_keys(subject: Subject, one: ClusterConfiguration, other: ClusterConfiguration) -> bool:
    """Whether the generated keys meet: the first ones are apart by a multiple of what the steps have in common."""
    given = [whole_number(subject.value(each, name) or "") for each in (one, other) for name in _KEYS]
    if None in given:
        return False
    step, first, other_step, other_first = (each or 1 for each in given)
    return (first - other_first) % gcd(step, other_step) == 0


def _finding(code: Code, sentence: str, cluster: ClusterConfiguration, fix: Fix, page: str) -> Finding:
    return Finding(code, sentence, (TablePlace(cluster.name),), fix, page=page)
