"""
Server variables and epochs that functions and clusters need, and slices of the rows.

A variable that is not given is not checked; one finding names those.

Source: MySQL manual, "NDB Cluster System Variables", "NDB$EPOCH()".
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, Fix, TablePlace, quoted, set_in_my_cnf
from conflict.checking.subject import Arrival, Subject
from conflict.config.configuration import ClusterConfiguration
from conflict.config.server_settings import EpochTimes
from conflict.rules.gci_bits import cost_of_few_gci_bits, needed_gci_bits
from conflict.rules.stops import ServerStop
from ndb_formats.rules.update_format import switch

_IDS, _STATUS, _UPDATES = "ndb_log_transaction_id", "ndb_log_apply_status", "log_replica_updates"
_READS, _BINLOG = "ndb_log_exclusive_reads", ("log_bin", "ndb_log_bin")
# Started with the first one, a server turns on the second, which alone decides on epochs.
_COMPRESSION = ("binlog_transaction_compression", "ndb_log_transaction_compression")


def no_applied_epochs(subject: Subject) -> Iterator[Finding]:
    """Yield functions by epoch, where the other cluster does not log which epochs it has applied."""
    for arrival in _judging(subject):
        if arrival.function.spec.by_epoch and _is_on(arrival.source.cluster, _STATUS) is False:
            sentence = (
                f"{arrival.function.spec.name} learns from the other cluster which epochs have reached it, and that "
                f"one does not log them ({_STATUS} = OFF): the max replicated epoch stays 0, and every change of a row "
                "that was ever changed here is a conflict."
            )
            fix = set_in_my_cnf(arrival.source.cluster.name, _STATUS, "ON")
            yield Finding(Code.NO_APPLIED_EPOCHS, sentence, (arrival.here.place,), fix)


def no_replica_updates(subject: Subject) -> Iterator[Finding]:
    """Yield clusters that do not log what they apply, where others or a function by epoch need it."""
    for cluster in subject.clusters:
        if _is_on(cluster, _UPDATES) is not False:
            continue
        fix = set_in_my_cnf(cluster.name, _UPDATES, "ON")
        applied, replicas = subject.links.sources(cluster.name), subject.links.replicas(cluster.name)
        if any(source.name != replica.name for source in applied for replica in replicas):
            sentence = (
                f"The server does not log what its applier applies ({_UPDATES} = OFF), so the changes of other "
                "clusters go no further from here."
            )
            yield Finding(Code.NO_REPLICA_UPDATES, sentence, (TablePlace(cluster.name),), fix)
        by_epoch = [each for each in _judging(subject) if each.function.spec.by_epoch]
        for arrival in by_epoch:
            if cluster.name in (arrival.here.cluster.name, arrival.source.cluster.name):
                sentence = (
                    f"{arrival.function.spec.name} goes by what both clusters log of each other's changes, and one "
                    f"does not log what its applier applies ({_UPDATES} = OFF): what it refreshed and which epochs it "
                    "applied may be missing from its binlog."
                )
                yield Finding(Code.NO_REPLICA_UPDATES, sentence, (arrival.here.place,), fix)


def no_binlog(subject: Subject) -> Iterator[Finding]:
    """Yield clusters that others replicate from, and that log no change of an NDB table."""
    for cluster in subject.clusters:
        if not subject.links.replicas(cluster.name):
            continue
        for name in _BINLOG:
            if _is_on(cluster, name) is False:
                sentence = f"The server logs no change of an NDB table ({name} = OFF), so nothing arrives elsewhere."
                yield Finding(
                    Code.NO_BINLOG, sentence, (TablePlace(cluster.name),), set_in_my_cnf(cluster.name, name, "ON")
                )


def compressed_epochs(subject: Subject) -> Iterator[Finding]:
    """
    Yield clusters whose compressed log brings the changes of a replica back to it, or its own epochs.

    The replica skips neither, because the server ids stand within the compressed transaction. Recorded from MySQL NDB
    Cluster 9.7.2: the applier stopped with error 1296 in each of four runs.
    """
    for cluster in subject.clusters:
        on = next((name for name in _COMPRESSION if _is_on(cluster, name)), None)
        if on is None:
            continue
        for replica in subject.links.replicas(cluster.name):
            if replica.name not in _origins(subject, cluster.name):
                continue
            stops = all(_is_on(each, _STATUS) is not False for each in (cluster, replica))
            if not stops and _is_on(cluster, _UPDATES) is False:
                continue
            sentence = (
                f"The log is compressed ({on} = ON) and holds what {replica.name} logged, which replicates from here. "
                "It does not skip its own changes in compressed transactions, and "
            )
            stop, place = ServerStop.RETURNED_EPOCH, (TablePlace(cluster.name),)
            why = stop.because(later="an epoch", older="an older epoch", cluster=replica.name)
            sentence += (
                f"its applier stops where {why} (error {stop.error:d})."
                if stops
                else "its applier applies them again, over later ones."
            )
            words = stop.words_of_any if stops else None
            fix = set_in_my_cnf(cluster.name, on, "OFF")
            yield Finding(Code.COMPRESSED_EPOCHS, sentence, place, fix, server=words)


def _origins(subject: Subject, name: str) -> set[str]:
    """Return the clusters whose changes arrive at one, through others as well."""
    found, waiting = set[str](), [name]
    while waiting:
        new = {source.name for source in subject.links.sources(waiting.pop())} - found
        found |= new
        waiting += new
    return found


def few_gci_bits(subject: Subject) -> Iterator[Finding]:
    """Yield functions by epoch whose extra GCI bits do not tell the epochs of a global checkpoint apart."""
    for arrival in _judging(subject):
        function, cluster = arrival.function, arrival.here.cluster
        times = cluster.epoch_times or EpochTimes()
        known = "" if cluster.epoch_times is not None else ", the defaults"
        words = (
            f"{times.between_checkpoints:,} ms between global checkpoints, {times.between_epochs:,} ms between "
            f"epochs{known}"
        )
        sentence = cost_of_few_gci_bits(function, times.epochs, words)
        if sentence is not None:
            needed = quoted(f"{function.spec.name}({needed_gci_bits(times.epochs)})")
            fix = arrival.here.set_in_row("conflict_fn", needed)
            yield Finding(Code.FEW_GCI_BITS, sentence, (arrival.here.place,), fix)


def useless_reads(subject: Subject) -> Iterator[Finding]:
    """Yield tables whose logged reads arrive without an after image."""
    for arrival in _judging(subject):
        form, spec = arrival.source.logging.format, arrival.function.spec
        reads = _is_on(arrival.source.cluster, _READS)
        if reads and spec.transactional and form.minimal and form.updated_only:
            sentence = (
                f"Reads that the other cluster logs ({_READS} = ON) arrive under {arrival.source.logging} without an "
                "after image, and have no effect."
            )
            fix = arrival.source.set_in_row("binlog_type", "6")
            yield Finding(Code.USELESS_READS, sentence, (arrival.here.place,), fix)


def unknown_variables(subject: Subject) -> Iterator[Finding]:
    """Yield clusters whose variables are not given, where they matter."""
    by_epoch = any(arrival.function.spec.by_epoch for arrival in _judging(subject))
    transactional = any(arrival.function.spec.transactional for arrival in _judging(subject))
    needed = [*_BINLOG, _UPDATES, *((_STATUS,) if by_epoch else ())]
    for cluster in subject.clusters:
        unknown = [name for name in needed if name not in cluster.given_variables]
        if transactional and cluster.transaction_ids is None:
            unknown.append(_IDS)
        if cluster.variables is not None and cluster.variables.lack_ndb:
            unknown = [name for name in unknown if not name.startswith("ndb_")]
        if unknown:
            sentence = f"Not checked, because these variables of the server are not given: {', '.join(unknown)}."
            fix = Fix('give a file with what SHOW GLOBAL VARIABLES prints, as variables = "FILE" of the cluster.')
            yield Finding(Code.UNKNOWN_VARIABLES, sentence, (TablePlace(cluster.name),), fix)


def row_slices(subject: Subject) -> Iterator[Finding]:
    """Yield tables where a server logs only some rows."""
    for placed in subject.tables:
        row = placed.row
        if row is not None and (row.binlog_row_slice_count or 1) > 1:
            sentence = (
                f"The server logs one of {row.binlog_row_slice_count} slices of the rows (binlog_row_slice_count): "
                "changes of other rows do not arrive, unless other servers log the other slices and are replicated, "
                "too."
            )
            fix = placed.set_in_row("binlog_row_slice_count", "NULL, binlog_row_slice_id = NULL")
            yield Finding(Code.ROW_SLICES, sentence, (placed.place,), fix)
    for cluster in subject.clusters:
        count = cluster.given_variables.get("ndb_log_row_slice_count", "1")
        if count.isdecimal() and int(count) > 1:
            sentence = (
                f"The server logs one of {count} slices of the rows (ndb_log_row_slice_count): changes of other rows "
                "do not arrive, unless other servers log the other slices and are replicated, too."
            )
            fix = Fix("set ndb_log_row_slice_count = 1 under [mysqld] in the my.cnf of ", (cluster.name,), ".")
            yield Finding(Code.ROW_SLICES, sentence, (TablePlace(cluster.name),), fix)


def _judging(subject: Subject) -> list[Arrival]:
    """Return what arrives at tables that exist, on appliers that judge."""
    return [
        arrival
        for arrival in subject.arrivals
        if arrival.here.setup.refusal is None and arrival.deployment.deployed.judges
    ]


def _is_on(cluster: ClusterConfiguration, name: str) -> bool | None:
    """Return whether a variable of a cluster is on; None if it is not given."""
    value = cluster.given_variables.get(name)
    return None if value is None else switch(name, value)
