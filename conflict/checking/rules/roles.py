"""
Roles, and how many clusters a function works between.

Source: MySQL manual, "NDB$EPOCH()", "NDB$EPOCH2()"; what the server says as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from conflict.checking.codes import code
from conflict.checking.findings import Finding, Fix
from conflict.checking.statements import quoted, set_in_row, set_role, update_rows
from conflict.checking.subject import Arrival, Subject
from conflict.compatibility.reasons import Reason, ReasonKind
from conflict.rules.functions import Argument
from conflict.rules.roles import Role

__all__ = ["clusters_and_roles", "epoch_facts", "more_than_two_clusters", "one_sided_roles"]

_NUMBERS = {
    ReasonKind.NO_ROLE: 30,
    ReasonKind.ROLE_PASS: 31,
    ReasonKind.SAME_ROLES: 32,
    ReasonKind.BOTH_PRIMARY: 33,
    ReasonKind.NO_REFRESH: 35,
}


def clusters_and_roles(subject: Subject) -> Iterator[Finding]:
    """Yield roles that are missing or equal, functions that are primary on both sides, and lost refreshes."""
    for arrival in _by_epoch(subject):
        for reason in arrival.reasons:
            if reason.kind in _NUMBERS:
                sentence = f"{reason.message}."
                kind, fix = code(_NUMBERS[reason.kind]), _fix(arrival, reason)
                yield Finding(kind, (arrival.here.place,), sentence, fix, reason.server)


def _fix(arrival: Arrival, reason: Reason) -> Fix:
    here, other = arrival.here, arrival.source
    if reason.kind is ReasonKind.BOTH_PRIMARY:
        return _on_one_cluster_alone(arrival)
    if reason.kind is ReasonKind.NO_REFRESH:
        return set_in_row(here, "binlog_type", "6")
    if reason.kind is ReasonKind.SAME_ROLES:
        role = Role.SECONDARY if here.cluster.role is Role.PRIMARY else Role.PRIMARY
        return Fix(f"{set_role(role)} on one of the two clusters.")
    by_none = here.cluster.role is Role.PASS
    if other.cluster.role in (Role.PRIMARY, Role.SECONDARY):
        role = Role.SECONDARY if other.cluster.role is Role.PRIMARY else Role.PRIMARY
        return Fix(f"{set_role(role, by_none=by_none)} on ", (here.cluster.name,), ".")
    primary = set_role(Role.PRIMARY, by_none=by_none)
    return Fix(f"{primary} on the cluster whose changes are to win, and the same with 'SECONDARY' on the other one.")


def _on_one_cluster_alone(arrival: Arrival) -> Fix:
    """Return how to leave the function to the cluster with the smaller server id."""
    first, second = sorted((arrival.here, arrival.source), key=lambda each: each.cluster.server_id)
    meant = f" if {first.cluster.name} is to be primary"
    if first.row is not None and first.row == second.row:
        fix = update_rows("server_id", str(first.cluster.server_id), first.row)
        meant += f"; then give {second.cluster.name} rows with this binlog_type and no conflict_fn"
    else:
        fix = set_in_row(second, "conflict_fn", "NULL")
    return attrs.evolve(fix, after=f"{fix.after}{meant}.")


def one_sided_roles(subject: Subject) -> Iterator[Finding]:
    """Yield functions with roles that the other cluster does not have."""
    for arrival in _by_epoch(subject):
        theirs = arrival.source.function
        if arrival.function.spec.uses_role and (theirs is None or not theirs.spec.uses_role):
            sentence = (
                f"{arrival.function.spec.name} is set on one cluster alone: the other one applies reflected changes "
                "like its own, and rows that both deleted can end different."
            )
            fix = set_in_row(arrival.source, "conflict_fn", quoted(str(arrival.function)))
            yield Finding(code(36), (arrival.here.place,), sentence, fix)


def more_than_two_clusters(subject: Subject) -> Iterator[Finding]:
    """Yield functions by epoch in a run of more than two clusters: they know one other cluster."""
    count = len(subject.clusters)
    if count <= 2:
        return
    for placed in subject.tables:
        if placed.function is not None and placed.function.spec.refreshes:
            sentence = (
                f"{placed.function.spec.name} works between two clusters, and here are {count}: epochs of a third "
                "cluster are not compared, and resolve refuses the run."
            )
            fix = set_in_row(placed, "conflict_fn", "NULL")
            fix = attrs.evolve(fix, after=f"{fix.after} or give it a function by column, such as NDB$MAX.")
            yield Finding(code(34), (placed.place,), sentence, fix)


def epoch_facts(subject: Subject) -> Iterator[Finding]:
    """Yield what is to be known of functions by epoch in any case."""
    for arrival in _by_epoch(subject):
        sentence = (
            "Functions by epoch keep author and epoch of each row in hidden columns, which a table gets when it is "
            "created: the row of mysql.ndb_replication must be there before."
        )
        fix = Fix("after a change of mysql.ndb_replication, create the table anew and load its rows.")
        yield Finding(code(37), (arrival.here.place,), sentence, fix)
        if not arrival.function.spec.uses_role and arrival.here.table.primary_key:
            sentence = (
                f"{arrival.function.spec.name} does not refresh a row that both clusters delete at a time, so the row "
                "can end different if it is inserted again."
            )
            name = arrival.function.spec.name.replace("EPOCH", "EPOCH2")
            yield Finding(code(38), (arrival.here.place,), sentence, Fix(f"use {name} with roles if that matters."))


def _by_epoch(subject: Subject) -> Iterator[Arrival]:
    """Yield what arrives at tables that exist and have a function by epoch, in a run of two clusters."""
    for arrival in subject.arrivals:
        by_epoch = arrival.function.spec.argument is Argument.GCI_BITS
        if by_epoch and arrival.here.setup.refusal is None and len(subject.clusters) == 2:
            yield arrival
