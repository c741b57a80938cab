"""
What running servers show besides settings: that they have no NDB, and SQL nodes of one cluster that differ.

Every SQL node that logs writes each epoch of its cluster into its log, so it matters from which one a channel reads.

Source: MySQL manual, "NDB Cluster Replication: Requirements", "NDB Cluster System Variables".
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, Fix, TablePlace
from conflict.checking.subject import Subject

# What decides which changes a log holds, and how. Slices of the rows are meant to differ.
_OF_LOGS = (
    "binlog_do_db",
    "binlog_ignore_db",
    "binlog_transaction_compression",
    "log_replica_updates",
    "ndb_log_apply_status",
    "ndb_log_bin",
    "ndb_log_empty_epochs",
    "ndb_log_exclusive_reads",
    "ndb_log_transaction_compression",
    "ndb_log_transaction_id",
    "ndb_log_update_as_write",
    "ndb_log_update_minimal",
    "ndb_log_updated_only",
)
_WORDS = {"1": "ON", "TRUE": "ON", "0": "OFF", "FALSE": "OFF"}


def without_ndb(subject: Subject) -> Iterator[Finding]:
    """Yield servers that have no variable of NDB."""
    for cluster in subject.clusters:
        if cluster.variables is not None and cluster.variables.lack_ndb:
            sentence = (
                "The server has no variable of NDB: it is no SQL node of an NDB cluster, or was started without "
                "ndbcluster. No conflict function works on it, and what NDB's variables decide is not checked."
            )
            fix = Fix("give an SQL node, or set ndbcluster under [mysqld] in the my.cnf of ", (cluster.name,), ".")
            yield Finding(Code.NO_NDB, sentence, (TablePlace(cluster.name),), fix)


def different_nodes(subject: Subject) -> Iterator[Finding]:
    """Yield variables in which SQL nodes of a cluster differ that log the same epochs."""
    for cluster in subject.clusters:
        nodes = [each for each in (cluster.variables, *cluster.other_nodes) if each is not None]
        for name in _OF_LOGS:
            values = [(each.get("server_id", "?"), subject.value_of(each, name)) for each in nodes]
            known = [(server, value) for server, value in values if value is not None]
            if len({_WORDS.get(value.strip().upper(), value.strip().upper()) for _, value in known}) > 1:
                shown = ", ".join(f"{value or 'none'} on server {server}" for server, value in known)
                sentence = (
                    f"SQL nodes log the same epochs in different ways ({name}: {shown}). What other clusters get "
                    "depends on the one that a channel reads from."
                )
                fix = Fix(f"set {name} to the same value in the my.cnf of all SQL nodes of ", (cluster.name,), ".")
                yield Finding(Code.NODES_DIFFER, sentence, (TablePlace(cluster.name),), fix, at=name)
