"""
What a function gets to compare, and which changes go unjudged: its needs against the images of the other cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.codes import code
from conflict.checking.findings import Finding, Fix
from conflict.checking.statements import quoted, set_in_row
from conflict.checking.subject import Arrival, Subject
from conflict.compatibility.arriving_changes import ArrivingChange, Change, Handling
from conflict.compatibility.deployment import Policy
from conflict.compatibility.reasons import Reason, ReasonKind, lacking
from conflict.compatibility.suggestions import nearest_type
from conflict.rules.functions import FUNCTIONS, Argument
from ndb_formats.events.rows_event import Operation

__all__ = [
    "advised_against",
    "changes_as_writes",
    "lacking_changes",
    "one_sided_functions",
    "refreshed_deletes",
    "resolve_columns",
]

_FULL = 7  # every image has all columns, so every function can judge every change


def lacking_changes(subject: Subject) -> Iterator[Finding]:
    """Yield changes that arrive without the value that the function compares, and stop the applier."""
    for arrival in _set_up(subject):
        stopping = [change for change in arrival.changes if change.handling is Handling.STOPS]
        updates = [change for change in arrival.changes if change.is_update]
        if updates and all(update in stopping for update in updates):
            yield _lacking(11, arrival, updates[0], "every update")
            stopping = [change for change in stopping if not change.is_update]
        for change in stopping:
            article = "an" if change.name[0] in "aeiou" else "a"
            number = 13 if change.change is Change.DELETE else 12
            yield _lacking(number, arrival, change, f"{article} {change.name}")


def _lacking(number: int, arrival: Arrival, change: ArrivingChange, what: str) -> Finding:
    function = arrival.function
    sentence = (
        f"Under {arrival.source.logging}, {lacking(function, change, what)}; the first one stops the applier with "
        f"error {ReasonKind.LACKING.error:d}."
    )
    server = ReasonKind.LACKING.server
    return Finding(code(number), (arrival.here.place,), sentence, _type_fix(arrival), server)


def changes_as_writes(subject: Subject) -> Iterator[Finding]:
    """Yield functions that updates reach as writes, and functions that nothing reaches."""
    for arrival in _set_up(subject):
        for reason in _of_kind(arrival, ReasonKind.AS_WRITES):
            yield _finding(14, arrival, reason)
        for reason in _of_kind(arrival, ReasonKind.NOT_LOGGED):
            yield _finding(16, arrival, reason)


def advised_against(subject: Subject) -> Iterator[Finding]:
    """Yield functions that the manual advises against under a binlog type, and that judge some updates there."""
    for arrival in _set_up(subject):
        for reason in () if _of_kind(arrival, ReasonKind.NO_UPDATE) else _of_kind(arrival, ReasonKind.POLICY):
            sentence = f"{reason.message}. The server accepts it, and resolve with --policy needs does."
            yield Finding(code(15), (arrival.here.place,), sentence, _type_fix(arrival))


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
            yield Finding(code(18), (placed.place,), sentence, Fix("compare a column that every update increases."))
        elif column.nullable:
            sentence = f"Column {name} can be NULL, which {placed.function} compares as 0."
            yield Finding(code(17), (placed.place,), sentence, Fix(f"declare `{name}` NOT NULL."))


def one_sided_functions(subject: Subject) -> Iterator[Finding]:
    """Yield functions by column that one side has alone."""
    for arrival in _set_up(subject):
        function, theirs = arrival.function, arrival.source.function
        if function.spec.argument is Argument.COLUMN and theirs is None:
            sentence = (
                f"{function} is set on one cluster alone: it rejects changes that the other one keeps, and refreshes "
                "no row, so the clusters end different."
            )
            fix = set_in_row(arrival.source, "conflict_fn", quoted(str(function)))
            yield Finding(code(19), (arrival.here.place,), sentence, fix)


def refreshed_deletes(subject: Subject) -> Iterator[Finding]:
    """
    Yield functions that need the before image of a delete, where the other cluster refreshes rows.

    It refreshes a row that does not exist there with a delete of the key alone, as recorded.
    """
    for arrival in _set_up(subject):
        function, theirs = arrival.function, arrival.source.function
        if theirs is not None and theirs.spec.refreshes and Operation.DELETE_ROW in function.spec.needs:
            sentence = (
                f"{theirs.spec.name} on the other cluster refreshes rows, and one that does not exist there with a "
                f"delete of the key alone: it lacks {function.column}, which {function} compares, and stops the "
                "applier with error 1296."
            )
            fix = set_in_row(arrival.here, "conflict_fn", "NULL")
            yield Finding(code(39), (arrival.here.place,), sentence, fix, ReasonKind.LACKING.server)


def _set_up(subject: Subject) -> Iterator[Arrival]:
    """Yield what arrives at tables that the server creates."""
    for arrival in subject.arrivals:
        if arrival.here.setup.refusal is None:
            yield arrival


def _of_kind(arrival: Arrival, kind: ReasonKind) -> list[Reason]:
    return [reason for reason in arrival.reasons if reason.kind is kind]


def _finding(number: int, arrival: Arrival, reason: Reason) -> Finding:
    error = "" if reason.error is None else f" (error {int(reason.error)})"
    sentence = f"{arrival.function}: {reason.message[0].lower()}{reason.message[1:]}{error}."
    return Finding(code(number), (arrival.here.place,), sentence, _type_fix(arrival), reason.server)


def _type_fix(arrival: Arrival) -> Fix:
    """Return the nearest binlog type under which the function judges everything."""
    policy = Policy.MANUAL if arrival.function.spec in FUNCTIONS else Policy.NEEDS
    found = nearest_type(arrival.deployment, policy)
    return set_in_row(arrival.source, "binlog_type", str(_FULL if found is None else found))
