"""
Which conflict function can work with which update format on which table, told before any data is read.

`requirements` answers for one pair, `requirements_table` for all functions and binlog types on one small table.
What the answer cannot show is what arrives: the applier checks every event again.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import attrs

from conflict.compatibility.arriving_changes import Fate, JudgedChange, marks
from conflict.compatibility.pairing import Pairing, Policy, TableLogging
from conflict.compatibility.reasons import Concern, Reason, changes_of, notes_of, reasons_of
from conflict.compatibility.suggestions import NearestSetting, nearest_settings
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction, FunctionSpec
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table

__all__ = [
    "MARKS",
    "TABLE_TYPES",
    "Answer",
    "Status",
    "example_function",
    "example_table",
    "mark",
    "requirements",
    "requirements_table",
]

# The types of the table: those with a meaning of their own, and those that mean the same as another one.
TABLE_TYPES = (0, 2, 3, 4, 6, 7, 8, 9)
MARKS = {
    "ok": "every change can be judged",
    "W!": "updates arrive as writes, and are rejected as ROW_ALREADY_EXISTS where the row exists",
    "U?": "an update that does not set the column lacks the value to compare, and stops the applier with 1296",
    "U!": "every update lacks the value to compare, and stops the applier with 1296",
    "D!": "a delete lacks the value to compare, and stops the applier with 1296",
    "I!": "an insert lacks the value to compare, and stops the applier with 1296",
    "refused": "the server does not create the table, no update can be judged, or the policy does not allow the pair",
}


class Status(Enum):
    """What an answer comes to."""

    USABLE = "usable"
    USABLE_BUT = "usable, but"
    REFUSED = "refused"


@attrs.frozen
class Answer:
    """
    Whether a function can work with a way of logging.

    Attributes:
        pairing: What was asked.
        policy: How strictly.
        reasons: What speaks against it; what refuses it first.
        changes: What arrives of each kind of change, and what becomes of it.
        nearest: The nearest settings that would work, where something speaks against these.
        notes: What else is good to know.
    """

    pairing: Pairing
    policy: Policy
    reasons: tuple[Reason, ...] = ()
    changes: tuple[JudgedChange, ...] = ()
    nearest: tuple[NearestSetting, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Refused for one reason that refuses; usable, but, for any other."""
        if any(reason.concern.refuses for reason in self.reasons):
            return Status.REFUSED
        return Status.USABLE_BUT if self.reasons else Status.USABLE

    @property
    def by_policy(self) -> bool:
        """Whether the policy alone refuses it, where the server would go on."""
        return any(reason.concern is Concern.POLICY for reason in self.reasons)

    @property
    def not_judged(self) -> tuple[JudgedChange, ...]:
        """The changes that cannot be judged."""
        return tuple(change for change in self.changes if change.fate is not Fate.JUDGED)


def requirements(pairing: Pairing, policy: Policy = Policy.MANUAL) -> Answer:
    """
    Say whether a function can work with a way of logging, why not, and what would work.

    Args:
        pairing: Function, table, logging, roles.
        policy: How strictly the manual is taken.
    """
    return Answer(
        pairing,
        policy,
        reasons_of(pairing, policy),
        changes_of(pairing),
        nearest_settings(pairing, policy),
        notes_of(pairing),
    )


# -----------------------------------------------------------------------------------------------------------
# The table of functions and types
# -----------------------------------------------------------------------------------------------------------

_EXAMPLE_COLUMN = "version"


def example_table(column: str = _EXAMPLE_COLUMN) -> Table:
    """Return a table that any function can stand on: a key, the column to compare, and another one."""
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


def requirements_table(policy: Policy = Policy.NEEDS, types: Iterable[int] = TABLE_TYPES) -> str:
    """Return what each function can judge under each binlog type, as a Markdown table."""
    columns = list(types)
    lines = [["function", *(str(number) for number in columns)], ["---"] * (len(columns) + 1)]
    table = example_table()
    for spec in FUNCTIONS:
        pairs = [Pairing(example_function(spec), table, TableLogging(number)) for number in columns]
        lines.append([f"`{spec.name}`", *(mark(requirements(pair, policy)) for pair in pairs)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
