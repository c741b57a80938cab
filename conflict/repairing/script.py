"""
The SQL file of a cluster: what it says at its head, its settings, and its transactions.

The file is text in UTF-8. Its settings make it mean the same on every server; whatever names and values hold, comments
stay on their lines and literals end where they should.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.repairing.statements import RepairedRow
from conflict.shown_text import counted, one_line

__all__ = ["SETTINGS", "Numbered", "Script"]

# Backslashes are letters; a value that does not fit is an error; 0 is no next number of AUTO_INCREMENT; dates are as
# they are stored, and TIMESTAMP is in UTC.
SETTINGS = (
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "SET SESSION time_zone = '+00:00'",
)
_CALL = "mysql --default-character-set=utf8mb4 --binary-mode"
_LEFT = "@ndb_conflict_left"  # numbers of the statements that left their rows alone, each after a space
_COUNT = f"(LENGTH({_LEFT}) - LENGTH(REPLACE({_LEFT}, ' ', '')))"


@attrs.frozen(eq=False)
class Numbered:
    """
    A statement of a file.

    Attributes:
        number: Its number in the file, from 1.
        transaction: Number of its transaction, from 1.
        kind: ``equal`` or ``reapply``.
        repaired: The row that it repairs.
        key: The key of the row as text.
        sql: The statement.
        changes: How many lost changes it applies again.
    """

    number: int
    transaction: int
    kind: str
    repaired: RepairedRow
    key: str
    sql: str
    changes: int = 0


@attrs.frozen(eq=False)
class Script:
    """
    The file of a cluster.

    Attributes:
        cluster: The cluster.
        name: Name of the file.
        head: What it says first, a line each.
        statements: Its statements, in order.
    """

    cluster: str
    name: str
    head: Sequence[str]
    statements: Sequence[Numbered]

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from map(_comment, self.head)
        yield _comment(f"Call: {_CALL} < {self.name}")
        yield from (f"{setting};" for setting in SETTINGS)
        transactions: dict[int, list[Numbered]] = {}
        for each in self.statements:
            transactions.setdefault(each.transaction, []).append(each)
        for number, statements in transactions.items():
            yield ""
            yield from self._transaction(number, statements)

    def _transaction(self, number: int, statements: Sequence[Numbered]) -> Iterator[str]:
        yield _comment(f"Transaction {number}: {counted(len(statements), 'row')}")
        yield "START TRANSACTION;"
        yield f"SET {_LEFT} = '';"
        for each in statements:
            yield _comment(f"{each.number}: {each.repaired.name} {each.key}: {each.repaired.why}")
            yield f"{each.sql};"
            yield f"SET {_LEFT} = CONCAT_WS(' ', {_LEFT}, IF(ROW_COUNT() = 1, NULL, {each.number}));"
        yield "COMMIT;"
        yield (
            f"SELECT {number} AS `transaction`, {len(statements)} - {_COUNT} AS rows_changed, "
            f"{_COUNT} AS left_alone, TRIM({_LEFT}) AS statements_left_alone;"
        )


def _comment(text: str) -> str:
    """Return a text as a comment; nothing in it ends the line, and no program takes it for something else."""
    return f"-- {one_line(text)}".rstrip()
