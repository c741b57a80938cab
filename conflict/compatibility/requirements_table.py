"""
All conflict functions and binlog types in one table, with marks for the changes that cannot be judged.
"""

from __future__ import annotations

from conflict.compatibility.arriving_changes import ArrivingChange, Change, Handling
from conflict.compatibility.deployment import Deployment, Policy, TableLogging
from conflict.compatibility.requirements import Answer, Status, requirements
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction, FunctionSpec
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Table

__all__ = ["MARKS", "TABLE_TYPES", "example_function", "example_table", "mark", "marks", "requirements_table"]

# The types that log something and that the server knows; 0 depends on the server options, and 4 means the same as 6.
TABLE_TYPES = (0, 2, 3, 4, 6, 7, 8, 9)
MARKS = {
    "ok": "every change can be judged",
    "W!": "updates arrive as writes, and are rejected as ROW_ALREADY_EXISTS where the row exists",
    "U?": "an update that does not set the column lacks the value to compare, and stops the applier with 1296",
    "U!": "every update lacks the value to compare, and stops the applier with 1296",
    "D!": "a delete lacks the value to compare, and stops the applier with 1296",
    "I!": "an insert lacks the value to compare, and stops the applier with 1296",
    "refused": (
        "the server does not create the table, no update can be judged, or the policy (--policy) does not allow the "
        "function with the type"
    ),
}
_EXAMPLE_COLUMN = "version"


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


def marks(changes: tuple[ArrivingChange, ...]) -> list[str]:
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


def requirements_table(policy: Policy = Policy.NEEDS) -> str:
    """Return what each function can judge under each binlog type, as a Markdown table."""
    lines = [["function", *map(str, TABLE_TYPES)], ["---"] * (len(TABLE_TYPES) + 1)]
    for spec in FUNCTIONS:
        function, table = example_function(spec), example_table()
        deployments = [Deployment(function, table, TableLogging(number)) for number in TABLE_TYPES]
        lines.append([f"`{spec.name}`", *(mark(requirements(each, policy)) for each in deployments)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
