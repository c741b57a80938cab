"""
What speaks against a conflict function with a way of logging: one rule after the other, each with its source.

Every rule reads the function's row in `FUNCTIONS` and the columns that events carry; none names a pair.
Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; error numbers and the server's words as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import attrs

from conflict.compatibility.arriving_changes import Fate, JudgedChange, judged_changes
from conflict.compatibility.pairing import Pairing, Policy, TableLogging
from conflict.rules.functions import FUNCTIONS, ConflictFunction
from conflict.rules.roles import Role
from conflict.rules.stop_messages import StopError
from conflict.rules.table_setup import RefusalKind, refusal_of
from ndb_formats.rules.update_format import UpdateFormat
from ndb_formats.schema.tables import Table

__all__ = ["Concern", "Reason", "changes_of", "notes_of", "reasons_of"]

# The manual: with types 8 and 9 algorithms that need old values, "such as" these two, do not work correctly.
_NAMED_AS_UNFIT = ("NDB$OLD", "NDB$MAX")
# Extra GCI bits that tell the epochs of one global checkpoint apart at the default 2000 ms and 100 ms: 20 epochs.
_ENOUGH_GCI_BITS = 5
# What the server's error log says, as recorded.
_SAYS_MISSING = (
    "Binlog event missing info necessary for conflict detection.  Check binlog format options on upstream cluster."
)
_SAYS_NO_ROLE = "Conflict function requires ndb_applier_conflict_role variable to be set. Stopping SQL thread."
_SAYS_NO_TRANSACTION_IDS = (
    "Transactional conflict detection defined, but events received without transaction ids.  "
    "Check --ndb-log-transaction-id setting on upstream Cluster."
)
_SAYS_BLOBS = "Transaction conflict handling failed as table has Blobs which cannot be refreshed."
_SAYS_DUPLICATE = "Can't write; duplicate key in table"


class Concern(Enum):
    """What a reason is about, and whether the pair is refused for it."""

    CREATE_REFUSED = ("the server does not create the table", True)
    POLICY = ("policy manual does not allow the pair", True)
    NO_KEY = ("the table has no primary key", True)
    NOT_LOGGED = ("nothing is logged", True)
    NO_ROLE = ("the applier has no role", True)
    NO_TRANSACTION_IDS = ("events do not name their transaction", True)
    NO_UPDATE = ("no update can be judged", True)
    LACKING = ("some changes cannot be judged", False)
    AS_WRITES = ("updates arrive as writes", False)
    ROLE_PASS = ("the function is ignored", False)
    SAME_ROLES = ("both clusters have the same role", False)
    BOTH_PRIMARY = ("both clusters are primary", False)
    NO_REFRESH = ("refreshes are not logged", False)
    BLOBS_IN_REACH = ("a transaction may touch blobs", False)
    UNIQUE_KEYS = ("the table has further unique keys", False)

    def __init__(self, summary: str, refuses: bool) -> None:  # the members read like a table
        self.summary = summary
        self.refuses = refuses


@attrs.frozen
class Reason:
    """
    One thing that speaks against a pair.

    Attributes:
        concern: What it is about.
        message: What happens, in a sentence.
        error: Server error number of the failing statement or of the applier's stop; None if nothing stops.
        at: Column or option at fault, if one is.
        server: What the server itself says; None if it says nothing.
    """

    concern: Concern
    message: str
    error: int | None = None
    at: str | None = None
    server: str | None = None


def changes_of(pairing: Pairing) -> tuple[JudgedChange, ...]:
    """Return what arrives of each kind of change; nothing where the function's column does not exist."""
    column = pairing.function.column
    if column is not None and pairing.table.find(column) is None:
        return ()
    return judged_changes(pairing.function, pairing.table, pairing.source.format)


def reasons_of(pairing: Pairing, policy: Policy) -> tuple[Reason, ...]:
    """Return all that speaks against a pair, what refuses it first."""
    found = [
        *_at_creation(pairing),
        *_by_policy(pairing, policy),
        *_by_arrival(pairing),
        *_by_role(pairing),
        *_by_table(pairing),
    ]
    return tuple(sorted(found, key=lambda reason: not reason.concern.refuses))


def _at_creation(pairing: Pairing) -> Iterator[Reason]:
    refusal = refusal_of(pairing.table, pairing.function, pairing.own_logging.format)
    if refusal is not None:
        at = refusal.column
        if refusal.kind is RefusalKind.BLOB:
            at = next(column.name for column in pairing.table.columns if column.is_blob)
        elif refusal.kind is RefusalKind.UPDATES_AS_WRITES:
            at = _write_setting(pairing.own_logging)
        message = f"The server does not create the table, because {refusal.kind.value}"
        yield Reason(Concern.CREATE_REFUSED, message, refusal.error, at, refusal.message)
    if not pairing.table.primary_key:
        message = (
            "The table has no primary key. Its hidden key is in no image and is each cluster's own, so the applier "
            "cannot tell which row a change is about"
        )
        yield Reason(Concern.NO_KEY, message, at="PRIMARY KEY")


def _write_setting(logging: TableLogging) -> str:
    return "ndb_log_update_as_write" if logging.binlog_type == 0 else "binlog_type"


def _by_policy(pairing: Pairing, policy: Policy) -> Iterator[Reason]:
    """Policy manual: a before image that holds the key alone serves only functions that need no more than that."""
    spec, column = pairing.function.spec, pairing.function.column
    if policy is not Policy.MANUAL or not pairing.source.format.minimal or spec not in FUNCTIONS:
        return  # the manual cannot name a user's function, and its author says what it needs
    at = "ndb_log_update_minimal" if pairing.source.binlog_type == 0 else "binlog_type"
    if spec.name in _NAMED_AS_UNFIT:
        message = (
            f"The manual says that {' and '.join(_NAMED_AS_UNFIT)} do not work correctly with types 8 and 9: the "
            "before image of an update holds the key alone, so old values cannot be checked"
        )
        yield Reason(Concern.POLICY, message, at=at)
    elif spec.needs and column not in pairing.table.primary_key:
        message = (
            f"The manual does not name {spec.name} among the functions that work with types 8 and 9, and it "
            f"compares {column}, which is no column of the primary key"
        )
        yield Reason(Concern.POLICY, message, at=at)


def _by_arrival(pairing: Pairing) -> Iterator[Reason]:
    """Judge what arrives of each kind of change."""
    function, column = pairing.function, pairing.function.column
    changes = changes_of(pairing)
    if not pairing.source.format.logged:
        message = "The other cluster logs no change of the table, so nothing arrives that could be judged"
        yield Reason(Concern.NOT_LOGGED, message, at="binlog_type")
        return
    if function.spec.transactional and pairing.source.transaction_ids is False:
        message = (
            f"{function.spec.name} judges transactions, and the other cluster logs no transaction ids; the applier "
            "stops at the first event"
        )
        yield Reason(
            Concern.NO_TRANSACTION_IDS, message, StopError.FROM_NDB, "ndb_log_transaction_id", _SAYS_NO_TRANSACTION_IDS
        )
    updates = [change for change in changes if change.change.is_update]
    stopping = [change for change in changes if change.fate is Fate.STOPS]
    if updates and all(update in stopping for update in updates):
        message = f"No update has {_lacked(function, updates[0])}; the first one stops the applier"
        yield Reason(Concern.NO_UPDATE, message, StopError.FROM_NDB, column, _SAYS_MISSING)
        stopping = [change for change in stopping if change not in updates]
    for change in stopping:
        message = f"{_article(change.name)} lacks {_lacked(function, change)}; it stops the applier"
        yield Reason(Concern.LACKING, message, StopError.FROM_NDB, column, _SAYS_MISSING)
    if any(change.fate is Fate.AS_INSERT for change in changes):
        message = (
            "Updates arrive as writes and are applied as inserts: an update of a row that exists is rejected as "
            f"ROW_ALREADY_EXISTS, whatever {column or 'the row'} holds"
        )
        yield Reason(Concern.AS_WRITES, message, at=_write_setting(pairing.source))


def _lacked(function: ConflictFunction, change: JudgedChange) -> str:
    assert change.needed is not None
    return f"{function.column} in its {change.needed.value} image, where {function.spec.name} looks for it"


def _article(name: str) -> str:
    return f"{'An' if name[0] in 'aeiou' else 'A'} {name}"


def _by_role(pairing: Pairing) -> Iterator[Reason]:
    spec = pairing.function.spec
    option = "ndb_applier_conflict_role"
    if spec.uses_role and pairing.role is Role.NONE:
        message = (
            f"{spec.name} needs {option} to be PRIMARY, SECONDARY or PASS, and it is NONE; the applier stops at the "
            "first change of the table"
        )
        yield Reason(Concern.NO_ROLE, message, StopError.FROM_NDB, option, _SAYS_NO_ROLE)
    if spec.uses_role and pairing.role is Role.PASS:
        message = "With role PASS the function is ignored: every change is applied, and no conflict is found"
        yield Reason(Concern.ROLE_PASS, message, at=option)
    if spec.uses_role and pairing.role == pairing.peer_role and pairing.role in (Role.PRIMARY, Role.SECONDARY):
        what = "each rejects changes of the other" if pairing.role is Role.PRIMARY else "no conflict is found on either"
        message = f"Both clusters have role {pairing.role}, and one of each kind is needed: {what}"
        yield Reason(Concern.SAME_ROLES, message, at=option)
    if spec.refreshes and not spec.uses_role and pairing.on_both:
        message = (
            f"{spec.name} stands on both clusters, so both are primary: each sends its rows again to the other, "
            "and this never settles"
        )
        yield Reason(Concern.BOTH_PRIMARY, message, at="conflict_fn")
    if spec.refreshes and not pairing.own_logging.format.logged and pairing.source.format.logged:
        message = "A row in conflict is sent again through this cluster's own binlog, and it logs nothing of the table"
        yield Reason(Concern.NO_REFRESH, message, at="binlog_type")


def _by_table(pairing: Pairing) -> Iterator[Reason]:
    table, spec = pairing.table, pairing.function.spec
    if spec.transactional:
        names = [other.full_name for other in pairing.others if other != table and _has_blobs(other)]
        if names:
            message = (
                f"A rejected transaction that also touched {_listed(names)} stops the applier: blobs cannot be "
                "refreshed (1627). Keep such tables out of transactions that can be in conflict"
            )
            yield Reason(Concern.BLOBS_IN_REACH, message, StopError.FROM_NDB, names[0], _SAYS_BLOBS)
    for key in table.unique_keys:
        message = (
            f"The unique key on {', '.join(key)} is not compared: where two rows meet in its value, the applier stops"
        )
        yield Reason(Concern.UNIQUE_KEYS, message, StopError.DUPLICATE_VALUE, ", ".join(key), _SAYS_DUPLICATE)


def _has_blobs(table: Table) -> bool:
    return any(column.is_blob for column in table.columns)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


# -----------------------------------------------------------------------------------------------------------
# What is good to know and speaks against nothing
# -----------------------------------------------------------------------------------------------------------


def notes_of(pairing: Pairing) -> tuple[str, ...]:
    """Return what the settings at hand do not show, or what they mean."""
    return (*_column_notes(pairing), *_epoch_notes(pairing))


def _column_notes(pairing: Pairing) -> Iterator[str]:
    name = pairing.function.column
    column = None if name is None else pairing.table.find(name)
    if column is None:
        return
    if name in pairing.table.primary_key:
        yield f"{name} is a column of the primary key and so the same on both sides of every update."
    elif column.nullable:
        yield f"{name} can be NULL, which compares as 0."
    if pairing.function.spec.python is not None:
        yield "The function does not say which images it needs; what an image does not carry it finds as None."
    if pairing.on_both is False:
        yield (
            "Only one of the clusters has the function: it rejects what the other one keeps, and nothing is sent "
            "again, so they can end different."
        )


def _epoch_notes(pairing: Pairing) -> Iterator[str]:
    function, spec = pairing.function, pairing.function.spec
    if not spec.refreshes:
        return
    yield "The row of mysql.ndb_replication must be there before the table is created."
    yield "The other cluster needs ndb_log_apply_status=ON: it says which epochs have reached it."
    if not spec.uses_role:
        yield "The primary, whose changes win, is the cluster whose server id the function's row names."
        yield "A row that both clusters delete may stay different when it comes again: delete-delete is not refreshed."
    elif pairing.role is None:
        yield "Both clusters need ndb_applier_conflict_role: one PRIMARY, the other SECONDARY."
    if spec.transactional and pairing.source.transaction_ids is None:
        yield "The other cluster needs ndb_log_transaction_id=ON; without ids the applier stops with 1296."
    if spec.transactional and _reads_are_empty(pairing.source.format):
        yield "Reads that ndb_log_exclusive_reads logs arrive without an after image, and have no effect."
    if function.gci_bits < _ENOUGH_GCI_BITS:
        yield (
            f"{function.gci_bits} extra GCI bits do not tell all epochs of a global checkpoint apart, so that more "
            "conflicts are found than there are."
        )


def _reads_are_empty(update_format: UpdateFormat) -> bool:
    return update_format.minimal and update_format.updated_only
