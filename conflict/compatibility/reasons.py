"""
Reasons against a deployed conflict function, found by one rule after the other.

The rules read the function's flags and the columns that events carry; only the manual's own list names functions.
Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; error numbers and the server's words as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import attrs

from conflict.compatibility.arriving_changes import ArrivingChange, Handling, arriving_changes
from conflict.compatibility.deployment import Deployment, Policy, TableLogging
from conflict.rules.functions import FUNCTIONS, ConflictFunction
from conflict.rules.roles import Role
from conflict.rules.stops import ROLE_VARIABLE, ServerStop, active_function
from conflict.rules.table_setup import RefusalKind, refusal_of
from conflict.shown_text import capitalized, listed
from ndb_formats.schema.tables import ForeignKey

__all__ = [
    "Reason",
    "ReasonKind",
    "changes_of",
    "foreign_key_stops",
    "lacking",
    "reasons_of",
    "unique_key_stops",
]

# The manual: with types 8 and 9, algorithms that need old values, "such as" these two, do not work correctly.
_NAMED_IN_MANUAL = ("NDB$OLD", "NDB$MAX")
_TRANSACTION_IDS = "ndb_log_transaction_id"


class ReasonKind(Enum):
    """
    The kinds of reasons; the text of each is its short description.

    Attributes:
        refuses: Whether it rules the function out.
        stop: How the applier stops; None if nothing stops.
        error: Server error number of the applier's stop; None if nothing stops.
        server: The server's words; None if it says nothing.
    """

    # CREATE TABLE is refused; its error and words are those of the refusal.
    CREATE_REFUSED = ("create refused", True)
    POLICY = ("not allowed by policy manual", True)
    NO_KEY = ("no primary key", True)
    NOT_LOGGED = ("nothing is logged", True)
    NO_ROLE = ("no role", True, ServerStop.NO_ROLE)
    NO_TRANSACTION_IDS = ("no transaction ids", True, ServerStop.NO_TRANSACTION_IDS)
    NO_UPDATE = ("no update can be judged", True, ServerStop.MISSING_INFORMATION)
    LACKING = ("some changes cannot be judged", False, ServerStop.MISSING_INFORMATION)
    AS_WRITES = ("updates arrive as writes", False)
    ROLE_PASS = ("the function is ignored", False)
    SAME_ROLES = ("both clusters have the same role", False)
    BOTH_PRIMARY = ("both clusters are primary", False)
    NO_REFRESH = ("refreshes are not logged", False)
    BLOBS_IN_REACH = ("a transaction may change blobs", False, ServerStop.BLOB_REFRESH)
    UNIQUE_KEYS = ("further unique keys", False, ServerStop.DUPLICATE_VALUE)
    FOREIGN_KEYS = ("foreign keys", False, ServerStop.PARENT_MISSING)

    def __init__(self, _about: str, refuses: bool, stop: ServerStop | None = None) -> None:
        self.refuses = refuses
        self.stop = stop
        self.error = None if stop is None else stop.error
        self.server = None if stop is None else stop.words


@attrs.frozen
class Reason:
    """
    One reason against a deployment.

    Attributes:
        kind: Its kind.
        message: A sentence without its full stop.
        at: Column or option at fault, if one is.
        advice: What to do, a sentence without its full stop; None if the column or option at fault says it.
        error: Server error number of the failing statement or of the applier's stop; None if nothing stops.
        server: The server's words; None if it says nothing.
    """

    kind: ReasonKind
    message: str
    at: str | None = None
    advice: str | None = None
    error: int | None = attrs.field(default=attrs.Factory(lambda self: self.kind.error, takes_self=True))
    server: str | None = attrs.field(default=attrs.Factory(lambda self: self.kind.server, takes_self=True))


def changes_of(deployment: Deployment) -> tuple[ArrivingChange, ...]:
    """Return each kind of change as it arrives; none if the function's column does not exist."""
    column = deployment.function.column
    if column is not None and deployment.table.find(column) is None:
        return ()
    return arriving_changes(deployment.function, deployment.table, deployment.source.format)


def reasons_of(deployment: Deployment, policy: Policy) -> tuple[Reason, ...]:
    """Return all reasons against a deployment: those that rule it out first, and stops as the server finds them."""
    found = [
        *_creation(deployment),
        *_policy(deployment, policy),
        *_not_logged(deployment),
        *_roles(deployment),
        *_transaction_ids(deployment),
        *_changes(deployment),
        *_refreshes(deployment),
        *_blobs(deployment),
        *_unique_keys(deployment),
        *_foreign_keys(deployment),
    ]
    return tuple(sorted(found, key=lambda reason: not reason.kind.refuses))


def _creation(deployment: Deployment) -> Iterator[Reason]:
    table = deployment.table
    refusal = refusal_of(table, deployment.function, deployment.own_logging.format)
    if refusal is not None:
        at = refusal.column
        if refusal.kind is RefusalKind.BLOB:
            at = next(column.name for column in table.columns if column.is_blob)
        elif refusal.kind is RefusalKind.UPDATES_AS_WRITES:
            at = _type_or_option(deployment.own_logging, "ndb_log_update_as_write")
        message = f"The server does not create the table, because {refusal.kind.value}"
        yield Reason(ReasonKind.CREATE_REFUSED, message, at, error=refusal.error, server=refusal.message)
    if not table.primary_key:
        message = (
            "The table has no primary key. Its hidden key is in no image and differs between the clusters, so the "
            "applier looks for the row by its values, and stops if there is none"
        )
        yield Reason(ReasonKind.NO_KEY, message, "PRIMARY KEY")


def _type_or_option(logging: TableLogging, option: str) -> str:
    """Return which setting decides: the option under type 0, else the type."""
    return option if logging.binlog_type == 0 else "binlog_type"


def _policy(deployment: Deployment, policy: Policy) -> Iterator[Reason]:
    """Policy manual: a before image that holds the key alone is enough only for functions that need no more."""
    spec, column = deployment.function.spec, deployment.function.column
    if policy is not Policy.MANUAL or not deployment.source.format.minimal or spec not in FUNCTIONS:
        return  # the manual cannot name a user's function; its author says what it needs
    at = _type_or_option(deployment.source, "ndb_log_update_minimal")
    if spec.name in _NAMED_IN_MANUAL:
        message = (
            f"The manual says that {' and '.join(_NAMED_IN_MANUAL)} do not work correctly with types 8 and 9: the "
            "before image of an update holds the key alone, so old values cannot be checked"
        )
        yield Reason(ReasonKind.POLICY, message, at)
    elif spec.needs and column not in deployment.table.primary_key:
        message = (
            f"The manual does not name {spec.name} among the functions that work with types 8 and 9, and the function "
            f"compares {column}, which is not a column of the primary key"
        )
        yield Reason(ReasonKind.POLICY, message, at)


def _not_logged(deployment: Deployment) -> Iterator[Reason]:
    if not deployment.source.format.logged:
        message = "The other cluster logs no change of the table, so nothing arrives that could be judged"
        yield Reason(ReasonKind.NOT_LOGGED, message, "binlog_type")


def _transaction_ids(deployment: Deployment) -> Iterator[Reason]:
    spec, source = deployment.function.spec, deployment.source
    active = active_function(deployment.function, deployment.role) is not None
    if active and source.format.logged and source.transaction_ids is False and spec.transactional:
        why = ServerStop.NO_TRANSACTION_IDS.because(function=spec.name)
        yield Reason(ReasonKind.NO_TRANSACTION_IDS, f"{why}; the applier stops at the first event", _TRANSACTION_IDS)


def _changes(deployment: Deployment) -> Iterator[Reason]:
    """Compare the images that arrive with those that the function needs."""
    function, changes = deployment.function, changes_of(deployment)
    stopping = [change for change in changes if change.handling is Handling.STOPS]
    updates = [change for change in changes if change.is_update]
    if updates and all(update in stopping for update in updates):
        message = f"{lacking(function, updates[0], 'Every update')}; the first one stops the applier"
        yield Reason(ReasonKind.NO_UPDATE, message, function.column)
        stopping = [change for change in stopping if not change.is_update]
    for change in stopping:
        article = "An" if change.name[0] in "aeiou" else "A"
        message = f"{lacking(function, change, f'{article} {change.name}')}; it stops the applier"
        yield Reason(ReasonKind.LACKING, message, function.column)
    if any(change.handling is Handling.AS_INSERT for change in changes):
        message = (
            "Updates arrive as writes and are applied as inserts: an update of an existing row is rejected as "
            f"ROW_ALREADY_EXISTS, whatever {function.column or 'the row'} holds"
        )
        yield Reason(ReasonKind.AS_WRITES, message, _type_or_option(deployment.source, "ndb_log_update_as_write"))


def lacking(function: ConflictFunction, change: ArrivingChange, name: str) -> str:
    """Return what a kind of change lacks that stops the applier; it goes by a name."""
    return ServerStop.MISSING_INFORMATION.because(
        change=name, column=function.column, image=change.needed, function=function.spec.name
    )


def _roles(deployment: Deployment) -> Iterator[Reason]:
    spec, role = deployment.function.spec, deployment.role
    if not spec.uses_role:
        return
    if role is Role.NONE:
        why = ServerStop.NO_ROLE.because(function=spec.name)
        message = f"{why}; the applier stops at the first change of the table"
        yield Reason(ReasonKind.NO_ROLE, message, ROLE_VARIABLE)
    elif role is Role.PASS:
        message = "With role PASS the function is ignored: every change is applied, and no conflict is found"
        yield Reason(ReasonKind.ROLE_PASS, message, ROLE_VARIABLE)
    elif role is not None and role is deployment.peer_role:
        effect = "each rejects changes of the other" if role is Role.PRIMARY else "neither finds a conflict"
        message = f"Both clusters have role {role}, and one PRIMARY and one SECONDARY are needed: {effect}"
        yield Reason(ReasonKind.SAME_ROLES, message, ROLE_VARIABLE)


def _refreshes(deployment: Deployment) -> Iterator[Reason]:
    spec = deployment.function.spec
    if not spec.refreshes:
        return
    if not spec.uses_role and deployment.on_both:
        message = (
            f"{spec.name} is set on both clusters, so both are primary: each refreshes its rows on the other, without "
            "end"
        )
        yield Reason(ReasonKind.BOTH_PRIMARY, message, "conflict_fn")
    if deployment.source.format.logged and not deployment.own_logging.format.logged:
        message = "Refreshes go through this cluster's own binlog, and it logs no change of the table"
        yield Reason(ReasonKind.NO_REFRESH, message, "binlog_type")


def _blobs(deployment: Deployment) -> Iterator[Reason]:
    names = [
        other.full_name
        for other in deployment.others
        if other != deployment.table and any(column.is_blob for column in other.columns)
    ]
    if deployment.function.spec.transactional and names:
        stop = ServerStop.BLOB_REFRESH
        message = f"The applier stops where {stop.because(table=listed(names, 'or'))}"
        yield Reason(ReasonKind.BLOBS_IN_REACH, message, names[0], capitalized(stop.advice))


def _unique_keys(deployment: Deployment) -> Iterator[Reason]:
    for key in deployment.table.unique_keys:
        columns = ", ".join(key)
        yield Reason(ReasonKind.UNIQUE_KEYS, unique_key_stops(columns), columns)


def _foreign_keys(deployment: Deployment) -> Iterator[Reason]:
    for key in deployment.table.foreign_keys:
        yield Reason(ReasonKind.FOREIGN_KEYS, foreign_key_stops(key), ", ".join(key.columns))


def unique_key_stops(columns: str) -> str:
    """Return when a unique key on some columns stops the applier."""
    why = ServerStop.DUPLICATE_VALUE.because(table="the table")
    return f"The unique key on {columns} is not compared: the applier stops where {why}"


def foreign_key_stops(key: ForeignKey) -> str:
    """Return when a foreign key stops the applier."""
    why = ServerStop.PARENT_MISSING.because(child="the table", parent=key.parent, key=", ".join(key.columns))
    return f"The foreign key {key.name} is not compared: the applier stops where {why}"
