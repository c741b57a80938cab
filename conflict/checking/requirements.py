"""
Whether a conflict function can work as deployed, why not, and what would work; no data is read.

An answer cannot show which events will arrive, so the applier checks each event again.
Source: MySQL manual, "NDB Cluster Replication Conflict Resolution".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

import attrs

from conflict.checking.deployment import ArrivingChange, Change, Deployment, Handling, TableLogging
from conflict.checking.findings import Code, Finding
from conflict.checking.reasons import reasons_of, rules_out
from conflict.checking.suggestions import NearestSetting, nearest_settings
from conflict.config.arguments import DeploymentPolicy
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction, FunctionSpec
from conflict.rules.stops import ServerStop
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table


def _stopping(change: str) -> str:
    """Return that a change stops the applier."""
    stop = ServerStop.MISSING_INFORMATION
    return f"{change} is logged without the value that the function compares, and stops the applier with {stop.error:d}"


# The types that log something and that the server knows; 0 depends on the server options, and 4 means the same as 6.
TABLE_TYPES = (0, 2, 3, 4, 6, 7, 8, 9)
MARKS = {
    "ok": "every change can be judged",
    "W!": "updates arrive as writes, and are rejected as ROW_ALREADY_EXISTS where the row exists",
    "U?": _stopping("an update that does not set the column"),
    "U!": _stopping("every update"),
    "D!": _stopping("a delete"),
    "I!": _stopping("an insert"),
    "refused": (
        "the server does not create the table, no update can be judged, or the policy (--policy) does not allow the "
        "function with the type"
    ),
}
_EXAMPLE_COLUMN = "version"


# Extra GCI bits that distinguish the epochs of a global checkpoint at the default 2000 ms and 100 ms: 20 epochs.
_ENOUGH_GCI_BITS = 5


class Status(Enum):
    """The verdict of an answer."""

    USABLE = "usable"
    USABLE_BUT = "usable, but"
    REFUSED = "refused"


@attrs.frozen
class Answer:
    """
    Whether a function can work as deployed.

    Attributes:
        deployment: The function and its settings.
        policy: Which functions are allowed with which binlog types.
        reasons: The reasons against it, those that rule it out first.
        changes: Each kind of change as it arrives, and how the applier handles it.
        nearest: The nearest settings that would work, if there are reasons against these.
        notes: Facts to know that are no reason against it.
    """

    deployment: Deployment
    policy: DeploymentPolicy
    reasons: tuple[Finding, ...] = ()
    changes: tuple[ArrivingChange, ...] = ()
    nearest: tuple[NearestSetting, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Refused for one reason that rules the function out; usable, but, for any other."""
        if any(map(rules_out, self.reasons)):
            return Status.REFUSED
        return Status.USABLE_BUT if self.reasons else Status.USABLE

    @property
    def by_policy(self) -> bool:
        """Whether the policy refuses it."""
        return any(reason.kind is Code.POLICY for reason in self.reasons)


def requirements(deployment: Deployment, policy: DeploymentPolicy = DeploymentPolicy.MANUAL) -> Answer:
    """Return whether a function can work as deployed, why not, and what would work."""
    return Answer(
        deployment,
        policy,
        reasons_of(deployment, policy),
        deployment.changes,
        nearest_settings(deployment, policy),
        (*_column_notes(deployment), *_epoch_notes(deployment)),
    )


def _column_notes(deployment: Deployment) -> Iterator[str]:
    name, spec = deployment.function.column, deployment.function.spec
    column = None if name is None else deployment.table.find(name)
    if column is None:
        return
    if name in deployment.table.primary_key:
        yield f"{name} is a column of the primary key, so it is the same before and after every update."
    elif column.nullable:
        yield f"{name} can be NULL, which compares as 0."
    if spec not in FUNCTIONS and not spec.needs and not spec.needs_changed:
        yield "The function does not say which images it needs; a value that the image lacks is None for it."
    if deployment.on_both is False:
        yield (
            "Only one of the clusters has the function: it rejects changes that the other one keeps, and no row is "
            "refreshed, so the clusters can diverge."
        )


def _epoch_notes(deployment: Deployment) -> Iterator[str]:
    function, spec, source = deployment.function, deployment.function.spec, deployment.source
    if not spec.by_epoch:
        return
    yield "The row of mysql.ndb_replication must exist before the table is created."
    yield "The other cluster needs ndb_log_apply_status=ON, which shows which epochs have reached it."
    if spec.on_primary_alone:
        yield "The primary, whose changes win, is the cluster whose server id the function's row names."
        yield "Delete-delete is not refreshed: a row that both clusters delete can differ when it is inserted again."
    elif deployment.role is None:
        yield "Both clusters need ndb_applier_conflict_role: one PRIMARY, the other SECONDARY."
    if spec.transactional and source.transaction_ids is None:
        stop = ServerStop.NO_TRANSACTION_IDS
        why = stop.because(function=spec.name)
        yield f"The other cluster needs ndb_log_transaction_id=ON; the applier stops with {stop.error:d} where {why}."
    if spec.transactional and source.format.minimal and source.format.updated_only:
        yield "Reads that ndb_log_exclusive_reads logs arrive without an after image, and have no effect."
    if function.gci_bits < _ENOUGH_GCI_BITS:
        yield (
            f"{function.gci_bits} extra GCI bits do not distinguish all epochs of a global checkpoint, so more "
            "conflicts are found than there are."
        )


# -----------------------------------------------------------------------------------------------------------
# All functions and binlog types in one table, with marks for the changes that cannot be judged
# -----------------------------------------------------------------------------------------------------------


def example_table(column: str = _EXAMPLE_COLUMN) -> Table:
    """Return a table that any function can have: a key, the column to compare, and another one."""
    return parse_create_table(
        f"CREATE TABLE item (id INT PRIMARY KEY, `{column}` INT UNSIGNED NOT NULL, price INT) ENGINE=NDB"
    )


def example_function(spec: FunctionSpec, column: str = _EXAMPLE_COLUMN) -> ConflictFunction:
    """Return a function as `example_table` can have it."""
    return ConflictFunction(spec, column if spec.argument is Argument.COLUMN else None)


def mark(answer: Answer) -> str:
    """Return an answer as a cell of the table: ``ok``, ``refused``, or the marks of what cannot be judged."""
    if answer.status is Status.REFUSED:
        return "refused"
    return " ".join(marks(answer.changes)) or "ok"


def marks(changes: Sequence[ArrivingChange]) -> list[str]:
    """Return the marks of the changes that cannot be judged."""
    updates = [change.handling for change in changes if change.is_update]
    stopping = {change.change for change in changes if change.handling is Handling.STOPS}
    every_update = bool(updates) and all(handling is Handling.STOPS for handling in updates)
    found = {
        "W!": Handling.AS_INSERT in updates,
        "U!": every_update,
        "U?": not every_update and Handling.STOPS in updates,
        "D!": Change.DELETE in stopping,
        "I!": Change.INSERT in stopping,
    }
    return [word for word, applies in found.items() if applies]


def requirements_table(policy: DeploymentPolicy = DeploymentPolicy.NEEDS) -> str:
    """Return what each function can judge under each binlog type, as a Markdown table."""
    lines = [["function", *map(str, TABLE_TYPES)], ["---"] * (len(TABLE_TYPES) + 1)]
    for spec in FUNCTIONS:
        function, table = example_function(spec), example_table()
        deployments = [Deployment(function, table, TableLogging(number)) for number in TABLE_TYPES]
        lines.append([f"`{spec.name}`", *(mark(requirements(each, policy)) for each in deployments)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
