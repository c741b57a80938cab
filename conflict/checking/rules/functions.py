"""
What a function gets to compare, its roles, and how many clusters it works between.

Source: MySQL manual, "NDB$EPOCH()", "NDB$EPOCH2()"; what the server says as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from conflict.checking.findings import Code, Finding, Fix, ReplicaCode, quoted, set_in_my_cnf, update_rows
from conflict.checking.reasons import CREATION
from conflict.checking.subject import Arrival, Subject
from conflict.checking.suggestions import nearest_type
from conflict.config.arguments import DeploymentPolicy
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction
from conflict.rules.replication_table import Role
from conflict.rules.stops import ServerStop
from ndb_formats.events.rows_event import Operation

_FULL = 7  # every image has all columns, so every function can judge every change
_OF_TABLES = CREATION | {Code.NO_KEY, Code.UNIQUE_KEYS, Code.FOREIGN_KEYS}  # also without a function
_OF_PAIRS = {Code.NO_ROLE, Code.ROLE_PASS, Code.SAME_ROLES, Code.BOTH_PRIMARY, Code.NO_REFRESH}


def reasons(subject: Subject) -> Iterator[Finding]:
    """Yield what speaks against each function that changes arrive at."""
    for arrival in _created(subject):
        kinds = {reason.kind for reason in arrival.reasons}
        for reason in arrival.reasons:
            if reason.kind in _OF_TABLES or (reason.kind in _OF_PAIRS and len(subject.clusters) != 2):
                continue
            if reason.kind is Code.POLICY:
                if Code.NO_UPDATE in kinds:
                    continue
                accepted = f"{reason.sentence} The server accepts it, and resolve with --policy needs does."
                reason = attrs.evolve(reason, sentence=accepted)  # noqa: PLW2901  # the same reason, and more
            fix = _FIXES[reason.kind](arrival) if reason.kind in _FIXES else reason.fix
            yield attrs.evolve(reason, places=(arrival.here.place,), fix=fix)


def _nearest_type(arrival: Arrival) -> Fix:
    """Return the nearest binlog type under which the function judges everything."""
    policy = DeploymentPolicy.MANUAL if arrival.function.spec in FUNCTIONS else DeploymentPolicy.NEEDS
    found = nearest_type(arrival.deployment, policy)
    return arrival.source.set_in_row("binlog_type", str(_FULL if found is None else found))


def _other_role(arrival: Arrival) -> Fix:
    role = Role.SECONDARY if arrival.here.cluster.role is Role.PRIMARY else Role.PRIMARY
    return Fix(f"{_set_role(role)} on one of the two clusters.")


def _role(arrival: Arrival) -> Fix:
    here, other = arrival.here.cluster, arrival.source.cluster
    by_none = here.role is Role.PASS
    if other.role in (Role.PRIMARY, Role.SECONDARY):
        role = Role.SECONDARY if other.role is Role.PRIMARY else Role.PRIMARY
        return Fix(f"{_set_role(role, by_none=by_none)} on ", (here.name,), ".")
    primary = _set_role(Role.PRIMARY, by_none=by_none)
    return Fix(f"{primary} on the cluster whose changes are to win, and the same with 'SECONDARY' on the other one.")


def _set_role(role: Role, *, by_none: bool = False) -> str:
    """Return the statements that give an applier a role; PASS is left by way of NONE alone."""
    before = "SET PERSIST ndb_applier_conflict_role = 'NONE'; " if by_none else ""
    return f"STOP REPLICA; {before}SET PERSIST ndb_applier_conflict_role = '{role}'; START REPLICA;"


def _on_one_cluster_alone(arrival: Arrival) -> Fix:
    """Return how to leave the function to the cluster with the smaller server id."""
    first, second = sorted((arrival.here, arrival.source), key=lambda each: each.cluster.server_id)
    meant = f" if {first.cluster.name} is to be primary"
    if first.row is not None and first.row == second.row:
        fix = update_rows("server_id", str(first.cluster.server_id), first.row)
        return fix.then(f"{meant}; then give {second.cluster.name} rows with this binlog_type and no conflict_fn.")
    return second.set_in_row("conflict_fn", "NULL").then(f"{meant}.")


_FIXES: dict[Code | ReplicaCode, Callable[[Arrival], Fix]] = {
    Code.POLICY: _nearest_type,
    Code.NOT_LOGGED: _nearest_type,
    Code.NO_UPDATE: _nearest_type,
    Code.LACKING: _nearest_type,
    Code.DELETES_LACKING: _nearest_type,
    Code.AS_WRITES: _nearest_type,
    Code.NO_TRANSACTION_IDS: lambda each: set_in_my_cnf(each.source.cluster.name, "ndb_log_transaction_id", "ON"),
    Code.NO_ROLE: _role,
    Code.ROLE_PASS: _role,
    Code.SAME_ROLES: _other_role,
    Code.BOTH_PRIMARY: _on_one_cluster_alone,
    Code.NO_REFRESH: lambda each: each.here.set_in_row("binlog_type", "6"),
}


def resolve_columns(subject: Subject) -> Iterator[Finding]:
    """Yield resolve columns that can be NULL, or never change."""
    for placed in subject.tables:
        name = None if placed.function is None else placed.function.column
        column = None if name is None else placed.table.find(name)
        if column is None or placed.setup.refusal is not None:
            continue
        if name in placed.table.primary_key:
            sentence = (
                f"{placed.function} compares {name}, a column of the primary key: it is the same before and after "
                "every update, so it does not say which update is the newer one."
            )
            fix = Fix("compare a column that every update increases.")
            yield Finding(Code.COLUMN_IN_KEY, sentence, (placed.place,), fix)
        elif column.nullable:
            sentence = f"Column {name} can be NULL, which {placed.function} compares as 0."
            yield Finding(Code.NULLABLE, sentence, (placed.place,), Fix(f"declare `{name}` NOT NULL."))


def one_sided_functions(subject: Subject) -> Iterator[Finding]:
    """Yield functions by column, or with roles, that one side has alone."""
    for arrival in _created(subject):
        function, theirs = arrival.function, arrival.source.function
        places, fix = (arrival.here.place,), arrival.source.set_in_row("conflict_fn", quoted(str(function)))
        if function.spec.argument is Argument.COLUMN:
            if theirs is None:
                sentence = (
                    f"{function} is set on one cluster alone: it rejects changes that the other one keeps, and "
                    "refreshes no row, so the clusters end different."
                )
                yield Finding(Code.ONE_SIDED_COLUMN, sentence, places, fix)
        elif function.spec.uses_role and len(subject.clusters) == 2 and not (theirs and theirs.spec.uses_role):
            sentence = (
                f"{function.spec.name} is set on one cluster alone: the other one applies reflected changes like its "
                "own, and rows that both deleted can end different."
            )
            yield Finding(Code.ONE_SIDED_ROLES, sentence, places, fix)


def different_functions(subject: Subject) -> Iterator[Finding]:
    """Yield functions that are not those of the other cluster: of two changes of a row, each side keeps another."""
    for arrival in _created(subject):
        function, theirs = arrival.function, arrival.source.function
        if theirs is None or not _contradict(function, theirs):
            continue
        sentence = (
            f"{function} is set here and {theirs} on the other cluster: of two changes of one row, each cluster keeps "
            "what its own function says, and the row ends different."
        )
        if function.spec.uses_role:
            sentence = (
                f"{function.spec.name} is set here and {theirs.spec.name} on the other cluster: one of them goes by "
                "rows and the other by transactions, and the two roles belong to one function."
            )
        fix = arrival.here.set_in_row("conflict_fn", quoted(str(theirs)))
        yield Finding(Code.DIFFERENT_FUNCTIONS, sentence, (arrival.here.place,), fix)


def _contradict(function: ConflictFunction, theirs: ConflictFunction) -> bool:
    """Whether two functions decide in different ways; what else follows of functions by epoch other findings say."""
    if function.spec.argument is not Argument.COLUMN:
        return function.spec.uses_role and theirs.spec.uses_role and function.spec != theirs.spec
    if theirs.spec.argument is Argument.COLUMN:
        return (function.spec, function.column) != (theirs.spec, theirs.column)
    return theirs.spec.refreshes and Operation.DELETE_ROW not in function.spec.needs


def refreshed_deletes(subject: Subject) -> Iterator[Finding]:
    """
    Yield functions that need the before image of a delete, where the other cluster refreshes rows.

    It refreshes a row that does not exist there with a delete of the key alone, as recorded.
    """
    for arrival in _created(subject):
        function, theirs = arrival.function, arrival.source.function
        if theirs is not None and theirs.spec.refreshes and Operation.DELETE_ROW in function.spec.needs:
            stop = ServerStop.MISSING_INFORMATION
            why = stop.because(change="it", column=function.column, image="before", function=function.spec.name)
            sentence = (
                f"{theirs.spec.name} on the other cluster refreshes rows, and one that does not exist there with a "
                f"delete of the key alone: {why}; the first one stops the applier with error {stop.error:d}."
            )
            fix = arrival.here.set_in_row("conflict_fn", "NULL")
            yield Finding(Code.REFRESHES_LACKING, sentence, (arrival.here.place,), fix)


def more_than_two_clusters(subject: Subject) -> Iterator[Finding]:
    """Yield functions by epoch in a run of more than two clusters: they know one other cluster."""
    count = len(subject.clusters)
    for placed in subject.tables if count > 2 else ():
        if placed.function is not None and placed.function.spec.refreshes:
            sentence = (
                f"{placed.function.spec.name} works between two clusters, and here are {count}: epochs of a third "
                "cluster are not compared, and resolve refuses the run."
            )
            fix = placed.set_in_row("conflict_fn", "NULL").then(" or give it a function by column, such as NDB$MAX.")
            yield Finding(Code.MANY_CLUSTERS, sentence, (placed.place,), fix)


def epoch_facts(subject: Subject) -> Iterator[Finding]:
    """Yield what is to be known of functions by epoch in any case."""
    for arrival in _created(subject):
        spec, places = arrival.function.spec, (arrival.here.place,)
        if spec.argument is not Argument.GCI_BITS or spec.own is not None or len(subject.clusters) != 2:
            continue
        sentence = (
            "Functions by epoch keep author and epoch of each row in hidden columns, which a table gets when it is "
            "created: the row of mysql.ndb_replication must be there before."
        )
        fix = Fix("after a change of mysql.ndb_replication, create the table anew and load its rows.")
        yield Finding(Code.HIDDEN_COLUMNS, sentence, places, fix)
        if spec.on_primary_alone and arrival.here.table.primary_key:
            sentence = (
                f"{spec.name} does not refresh a row that both clusters delete at a time, so the row can end "
                "different if it is inserted again."
            )
            fix = Fix(f"use {spec.name.replace('EPOCH', 'EPOCH2')} with roles if that matters.")
            yield Finding(Code.DELETE_DELETE, sentence, places, fix)


def _created(subject: Subject) -> Iterator[Arrival]:
    """Yield what arrives at tables that the server creates."""
    for arrival in subject.arrivals:
        if arrival.here.setup.refusal is None:
            yield arrival
