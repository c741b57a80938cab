"""
The SQL file of a cluster: what it says at its head, its settings, and its transactions.

The file is text in UTF-8. Its settings make it mean the same on every server; whatever names and values hold, comments
stay on their lines and literals end where they should.

Values do not tell whether a statement was done: a row that it inserted and a user deleted since is missing as before.
So the file notes each transaction that is done in a table, and does none twice. The table is no NDB table, so that no
conflict function and no rejection touches it, and it is in no log, so that nothing of it reaches the other cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.operating.repairing.sql_values import table_in_sql
from conflict.operating.repairing.statements import RepairedRow
from conflict.telling.shown_text import counted, one_line

# Backslashes are letters; a value that does not fit is an error; 0 is no next number of AUTO_INCREMENT; dates are as
# they are stored, and TIMESTAMP is in UTC.
SETTINGS = (
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "SET SESSION time_zone = '+00:00'",
)
_CALL = "mysql --default-character-set=utf8mb4 --binary-mode"
_LEFT = "@ndb_conflict_left"  # numbers of the statements that left their rows alone, each after a space
_DONE = "@ndb_conflict_done"  # whether an earlier run did the transaction
_LOG_OFF, _LOG_ON = (f"SET SESSION sql_log_bin = {state};" for state in ("OFF", "ON"))
_NOTES = "ndb_conflict_repairs"
_COLUMNS = (
    "plan_id CHAR(32) CHARACTER SET ascii NOT NULL, transaction_number INT UNSIGNED NOT NULL, "
    "done_at TIMESTAMP(6) NOT NULL, PRIMARY KEY (plan_id, transaction_number)"
)
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
        statements: Its statements, in order; there is one.
        plan_id: What tells the plan from others, 32 hexadecimal digits.
    """

    cluster: str
    name: str
    head: Sequence[str]
    statements: Sequence[Numbered]
    plan_id: str

    @property
    def notes(self) -> str:
        """Name, in SQL, of the table that notes which transactions are done: in the database of the first statement."""
        return table_in_sql(self.statements[0].repaired.table.database, _NOTES)

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from map(_comment, self.head)
        yield from map(_comment, self._about_notes())
        yield _comment(f"Call: {_CALL} < {self.name}")
        yield from (f"{setting};" for setting in SETTINGS)
        yield _LOG_OFF
        yield f"CREATE TABLE IF NOT EXISTS {self.notes} ({_COLUMNS}) ENGINE=InnoDB;"
        yield _LOG_ON
        transactions: dict[int, list[Numbered]] = {}
        for each in self.statements:
            transactions.setdefault(each.transaction, []).append(each)
        for number, statements in transactions.items():
            yield ""
            yield from self._transaction(number, statements)

    def _about_notes(self) -> Iterator[str]:
        yield f"It notes each transaction that is done in {self.notes}, a table that it makes on"
        yield "this SQL node without a log, and does none twice: call it again, on the same node, if it ended early."
        yield "Through another SQL node, or without that table, values alone tell what is done: a row that it inserted"
        yield "and a user deleted since would be inserted again."
        yield f"Remove the table without a log, too: {_LOG_OFF} DROP TABLE {self.notes};"

    def _transaction(self, number: int, statements: Sequence[Numbered]) -> Iterator[str]:
        yield _comment(f"Transaction {number}: {counted(len(statements), 'row')}")
        noted = f"{self.notes} WHERE plan_id = '{self.plan_id}' AND transaction_number = {number}"
        yield f"SET {_LEFT} = '', {_DONE} = (SELECT COUNT(*) FROM {noted});"  # noqa: S608  # its name is quoted
        yield "START TRANSACTION;"
        for each in statements:
            yield _comment(f"{each.number}: {each.repaired.name} {each.key}: {each.repaired.why}")
            yield f"{each.sql} AND {_DONE} = 0;"
            yield f"SET {_LEFT} = CONCAT_WS(' ', {_LEFT}, IF(ROW_COUNT() = 1, NULL, {each.number}));"
        yield "COMMIT;"
        yield _LOG_OFF
        note = f"{self.notes} VALUES ('{self.plan_id}', {number}, CURRENT_TIMESTAMP(6))"
        yield f"INSERT IGNORE INTO {note};"
        yield _LOG_ON
        yield (
            f"SELECT {number} AS `transaction`, {len(statements)} - {_COUNT} AS rows_changed, {_COUNT} AS left_alone, "
            f"IF({_DONE}, 'all: done by an earlier run', TRIM({_LEFT})) AS statements_left_alone;"
        )


def _comment(text: str) -> str:
    """Return a text as a comment; nothing in it ends the line, and no program takes it for something else."""
    return f"-- {one_line(text)}".rstrip()
