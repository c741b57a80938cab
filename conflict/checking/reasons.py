"""
Reasons against a deployed conflict function, found by one rule after the other: findings without a place.

The rules read the function's flags and the columns that events carry; only the manual's own list names functions.
Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; error numbers and the server's words as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import filterfalse

from conflict.checking.deployment import ArrivingChange, Change, Deployment, Handling, TableLogging
from conflict.checking.findings import Code, Finding, Fix, Severity
from conflict.config.arguments import DeploymentPolicy
from conflict.rules.functions import FUNCTIONS, ConflictFunction
from conflict.rules.replication_table import Role
from conflict.rules.stops import ROLE_VARIABLE, ServerStop
from conflict.rules.table_setup import Refusal, RefusalKind
from conflict.telling.shown_text import listed
from ndb_formats.schema.tables import Table

# CREATE TABLE is refused.
CREATION = frozenset({Code.PARSE, Code.NO_COLUMN, Code.WRONG_TYPE, Code.BLOB, Code.UPDATES_AS_WRITES})
_RULE_OUT = CREATION | {
    Code.POLICY,
    Code.NO_KEY,
    Code.NOT_LOGGED,
    Code.NO_ROLE,
    Code.NO_TRANSACTION_IDS,
    Code.NO_UPDATE,
}
# The manual: with types 8 and 9, algorithms that need old values, "such as" these two, do not work correctly.
_NAMED_IN_MANUAL = ("NDB$OLD", "NDB$MAX")
_TRANSACTION_IDS = "ndb_log_transaction_id"


def rules_out(reason: Finding) -> bool:
    """Whether a reason rules the function out."""
    return reason.kind in _RULE_OUT


def weight_of(reason: Finding) -> Severity:
    """Return how much a reason matters to the one function that was asked about: one that rules it out refuses it."""
    return Severity.REFUSED if rules_out(reason) else reason.severity


def reasons_of(deployment: Deployment, policy: DeploymentPolicy) -> tuple[Finding, ...]:
    """Return all reasons against a deployment: those that rule it out first, and stops as the server finds them."""
    refusal, table = deployment.refusal, deployment.table
    keys = [*key_stops(table, deployment.function)]
    found = [
        *([] if refusal is None else [creation_refused(refusal, table, deployment.function, deployment.own_logging)]),
        *_policy(deployment, policy),
        *_not_logged(deployment),
        *filter(rules_out, keys),
        *_roles(deployment),
        *_transaction_ids(deployment),
        *_changes(deployment),
        *_refreshes(deployment),
        *_blobs(deployment),
        *filterfalse(rules_out, keys),
    ]
    return tuple(sorted(found, key=lambda reason: not rules_out(reason)))


def creation_refused(
    refusal: Refusal, table: Table, function: ConflictFunction | None, logging: TableLogging, text: str | None = None
) -> Finding:
    """
    Return that the server refuses to create a table.

    Args:
        refusal: Why.
        table: The table.
        function: Its function; None if the server cannot read it.
        logging: How the server logs the table.
        text: The function as it is given.
    """
    column, name = refusal.column, "" if function is None else function.spec.name
    blobs = [each.name for each in table.columns if each.is_blob]
    at = column
    match refusal.kind:
        case RefusalKind.NO_COLUMN:
            why = f"{function} compares column {column}, which the table does not have (letter case counts)"
        case RefusalKind.WRONG_TYPE:
            found = table.find(column or "")
            declared = "" if found is None else f", which is {found.sql_type}"
            why = f"{function} compares column {column}{declared}; it must be INT UNSIGNED or BIGINT UNSIGNED"
        case RefusalKind.BLOB:
            at, why = blobs[0], f"{name} refreshes rows, and blobs cannot be refreshed (columns {', '.join(blobs)})"
        case RefusalKind.UPDATES_AS_WRITES:
            at = _type_or_option(logging, "ndb_log_update_as_write")
            why = f"{name} judges updates, and the table logs them as writes ({logging})"
        case _:
            why = f"the server cannot read conflict_fn {text!r}"
    sentence = f"CREATE TABLE fails with error {refusal.error}: {why}."
    return Finding(Code[refusal.kind.name], sentence, at=at, server=refusal.words)


def key_stops(table: Table, function: ConflictFunction | None) -> Iterator[Finding]:
    """Yield the keys, or the lack of one, that can stop an applier whatever the function of the table."""
    if not table.primary_key:
        stop, judged = ServerStop.ROW_NOT_FOUND, "" if function is None else f", and {function} judges nothing"
        sentence = f"The applier stops where {stop.because(table='the table')} (error {stop.error:d}){judged}."
        yield Finding(Code.NO_KEY, sentence, at="PRIMARY KEY")
    for columns in map(", ".join, table.unique_keys):
        stop = ServerStop.DUPLICATE_VALUE
        sentence = (
            f"The unique key on {columns} is not compared: the applier stops where {stop.because(table='the table')} "
            f"(error {stop.error:d})."
        )
        fix = Fix(f"give each cluster its own range of values of {columns}.")
        yield Finding(Code.UNIQUE_KEYS, sentence, fix=fix, at=columns)
    for key in table.foreign_keys:
        stop = ServerStop.PARENT_MISSING
        names = {"child": "the table", "parent": key.parent, "key": ", ".join(key.columns)}
        stops = (f"{each.because(**names)} (error {each.error:d})" for each in (stop, ServerStop.PARENT_NEEDED))
        sentence = f"The foreign key {key.name} is not compared: the applier stops where {', or where '.join(stops)}."
        yield Finding(Code.FOREIGN_KEYS, sentence, fix=Fix(f"{stop.advice}."), at=", ".join(key.columns))


def _type_or_option(logging: TableLogging, option: str) -> str:
    """Return which setting decides: the option under type 0, else the type."""
    return option if logging.binlog_type == 0 else "binlog_type"


def _policy(deployment: Deployment, policy: DeploymentPolicy) -> Iterator[Finding]:
    """Policy manual: a before image that holds the key alone is enough only for functions that need no more."""
    spec, column = deployment.function.spec, deployment.function.column
    if policy is not DeploymentPolicy.MANUAL or not deployment.source.format.minimal or spec not in FUNCTIONS:
        return  # the manual cannot name a user's function; its author says what it needs
    at = _type_or_option(deployment.source, "ndb_log_update_minimal")
    if spec.name in _NAMED_IN_MANUAL:
        sentence = (
            f"The manual says that {' and '.join(_NAMED_IN_MANUAL)} do not work correctly with types 8 and 9: the "
            "before image of an update holds the key alone, so old values cannot be checked."
        )
        yield Finding(Code.POLICY, sentence, at=at)
    elif spec.needs and column not in deployment.table.primary_key:
        sentence = (
            f"The manual does not name {spec.name} among the functions that work with types 8 and 9, and the function "
            f"compares {column}, which is not a column of the primary key."
        )
        yield Finding(Code.POLICY, sentence, at=at)


def _not_logged(deployment: Deployment) -> Iterator[Finding]:
    if not deployment.source.format.logged:
        sentence = "The other cluster logs no change of the table, so nothing arrives that could be judged."
        yield Finding(Code.NOT_LOGGED, sentence, at="binlog_type")


def _roles(deployment: Deployment) -> Iterator[Finding]:
    deployed, role = deployment.deployed, deployment.role
    if deployed.lacks_role:
        why = ServerStop.NO_ROLE.because(function=deployment.function.spec.name)
        sentence = f"{why}; the applier stops at the first change of the table."
        yield Finding(Code.NO_ROLE, sentence, at=ROLE_VARIABLE)
    elif deployed.ignored:
        sentence = "With role PASS the function is ignored: every change is applied, and no conflict is found."
        yield Finding(Code.ROLE_PASS, sentence, at=ROLE_VARIABLE)
    elif deployment.function.spec.uses_role and role is not None and role is deployment.peer_role:
        effect = "each rejects changes of the other" if role is Role.PRIMARY else "neither finds a conflict"
        sentence = f"Both clusters have role {role}, and one PRIMARY and one SECONDARY are needed: {effect}."
        yield Finding(Code.SAME_ROLES, sentence, at=ROLE_VARIABLE)


def _transaction_ids(deployment: Deployment) -> Iterator[Finding]:
    """Yield that transactions are judged without their ids; the applier of a secondary stops as well, as recorded."""
    spec, source = deployment.function.spec, deployment.source
    if source.format.logged and source.transaction_ids is False and deployment.deployed.needs_transaction_ids:
        stop = ServerStop.NO_TRANSACTION_IDS
        sentence = (
            f"{stop.because(function=spec.name)} ({_TRANSACTION_IDS} = OFF): the first change stops the applier with "
            f"error {stop.error:d}."
        )
        yield Finding(Code.NO_TRANSACTION_IDS, sentence, at=_TRANSACTION_IDS)


def _changes(deployment: Deployment) -> Iterator[Finding]:
    """Compare the images that arrive with those that the function needs."""
    changes = deployment.changes
    stopping = [change for change in changes if change.handling is Handling.STOPS]
    updates = [change for change in changes if change.is_update]
    if updates and all(update in stopping for update in updates):
        yield _lacking(Code.NO_UPDATE, deployment, updates[0], "every update")
        stopping = [change for change in stopping if not change.is_update]
    for change in stopping:
        article = "an" if change.name[0] in "aeiou" else "a"
        kind = Code.DELETES_LACKING if change.change is Change.DELETE else Code.LACKING
        yield _lacking(kind, deployment, change, f"{article} {change.name}")
    if any(change.handling is Handling.AS_INSERT for change in changes):
        sentence = (
            "Updates arrive as writes and are applied as inserts: an update of an existing row is rejected as "
            f"ROW_ALREADY_EXISTS, whatever {deployment.function.column or 'the row'} holds."
        )
        at = _type_or_option(deployment.source, "ndb_log_update_as_write")
        yield Finding(Code.AS_WRITES, sentence, at=at)


def _lacking(kind: Code, deployment: Deployment, change: ArrivingChange, what: str) -> Finding:
    stop, column = ServerStop.MISSING_INFORMATION, change.lacks
    why = stop.because(change=what, column=column, image=change.needed, function=deployment.function.spec.name)
    sentence = f"Under {deployment.source}, {why}; the first one stops the applier with error {stop.error:d}."
    return Finding(kind, sentence, at=column)


def _refreshes(deployment: Deployment) -> Iterator[Finding]:
    spec = deployment.function.spec
    if not spec.refreshes:
        return
    if spec.on_primary_alone and deployment.on_both:
        sentence = (
            f"{spec.name} is set on both clusters, so both are primary: each refreshes its rows on the other, without "
            "end."
        )
        yield Finding(Code.BOTH_PRIMARY, sentence, at="conflict_fn")
    if deployment.source.format.logged and not deployment.own_logging.format.logged:
        sentence = "Refreshes go through this cluster's own binlog, and it logs no change of the table."
        yield Finding(Code.NO_REFRESH, sentence, at="binlog_type")


def _blobs(deployment: Deployment) -> Iterator[Finding]:
    names = [
        other.full_name
        for other in deployment.others
        if other != deployment.table and any(column.is_blob for column in other.columns)
    ]
    if deployment.function.spec.transactional and names:
        stop = ServerStop.BLOB_REFRESH
        sentence = f"The applier stops where {stop.because(table=listed(names, 'or'))}."
        yield Finding(Code.BLOBS_IN_REACH, sentence, fix=Fix(f"{stop.advice}."), at=names[0])
