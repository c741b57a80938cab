"""
The server's messages on the logging of statements: reasons why one is unsafe, warnings and errors.

Source: MySQL's `LEX::enum_binlog_stmt_unsafe` and its messages to clients; numbers and texts of MySQL 9.7.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Self

import attrs


class Level(Enum):
    """Whether the server refuses the statement, or runs it and says something."""

    NOTE = "Note"
    WARNING = "Warning"
    ERROR = "Error"


class _Numbered(IntEnum):
    """Messages by the server's number; `text` is the message, with ``{}`` for its details."""

    text: str

    def __new__(cls, number: int, text: str) -> Self:
        """Make a member of a number and a text."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.text = text
        return member


class ServerMessage(_Numbered):
    """Warnings and errors of the decision."""

    ER_CHECK_NOT_IMPLEMENTED = 1178, "The storage engine for the table doesn't support {}"
    ER_SP_DOES_NOT_EXIST = 1305, "SAVEPOINT {} does not exist"
    ER_BINLOG_UNSAFE_STATEMENT = (
        1592,
        ("Unsafe statement written to the binary log using statement format since BINLOG_FORMAT = STATEMENT. {}"),
    )
    ER_BINLOG_ROW_ENGINE_AND_STMT_ENGINE = (
        1661,
        (
            "Cannot execute statement: impossible to write to binary log since both row-incapable engines and "
            "statement-incapable engines are involved."
        ),
    )
    ER_BINLOG_ROW_MODE_AND_STMT_ENGINE = (
        1662,
        (
            "Cannot execute statement: impossible to write to binary log since BINLOG_FORMAT = ROW and at least "
            "one table uses a storage engine limited to statement-based logging."
        ),
    )
    ER_BINLOG_UNSAFE_AND_STMT_ENGINE = (
        1663,
        (
            "Cannot execute statement: impossible to write to binary log since statement is unsafe, storage "
            "engine is limited to statement-based logging, and BINLOG_FORMAT = MIXED. {}"
        ),
    )
    ER_BINLOG_ROW_INJECTION_AND_STMT_ENGINE = (
        1664,
        (
            "Cannot execute statement: impossible to write to binary log since statement is in row format and at "
            "least one table uses a storage engine limited to statement-based logging."
        ),
    )
    ER_BINLOG_STMT_MODE_AND_ROW_ENGINE = (
        1665,
        (
            "Cannot execute statement: impossible to write to binary log since BINLOG_FORMAT = STATEMENT and at "
            "least one table uses a storage engine limited to row-based logging.{}"
        ),
    )
    ER_BINLOG_ROW_INJECTION_AND_STMT_MODE = (
        1666,
        (
            "Cannot execute statement: impossible to write to binary log since statement is in row format and "
            "BINLOG_FORMAT = STATEMENT."
        ),
    )
    ER_BINLOG_UNSAFE_SYSTEM_FUNCTION = (
        1674,
        ("Statement is unsafe because it uses a system function that may return a different value on the replica."),
    )
    ER_BINLOG_STMT_MODE_AND_NO_REPL_TABLES = (
        1844,
        (
            "Cannot execute statement: impossible to write to binary log since BINLOG_FORMAT = STATEMENT, and "
            "both replicated and non replicated tables are written to."
        ),
    )


_ORDER_DECIDES = (
    "is unsafe because the order in which rows are retrieved by the SELECT determines which (if any) rows are {}. "
    "This order cannot be predicted and may differ on source and the replica."
)


class UnsafeReason(_Numbered):
    """Why a statement is unsafe, in the order in which the server reports several reasons."""

    LIMIT = (
        1668,
        (
            "The statement is unsafe because it uses a LIMIT clause. This is unsafe because the set of rows "
            "included cannot be predicted."
        ),
    )
    SYSTEM_TABLE = (
        1670,
        (
            "The statement is unsafe because it uses the general log, slow query log, or performance_schema "
            "table(s). This is unsafe because system tables may differ on replicas."
        ),
    )
    AUTOINC_COLUMNS = (
        1671,
        (
            "Statement is unsafe because it invokes a trigger or a stored function that inserts into an "
            "AUTO_INCREMENT column. Inserted values cannot be logged correctly."
        ),
    )
    UDF = 1672, "Statement is unsafe because it uses a UDF which may not return the same value on the replica."
    SYSTEM_VARIABLE = (
        1673,
        ("Statement is unsafe because it uses a system variable that may have a different value on the replica."),
    )
    SYSTEM_FUNCTION = (
        1674,
        ("Statement is unsafe because it uses a system function that may return a different value on the replica."),
    )
    NONTRANS_AFTER_TRANS = (
        1675,
        (
            "Statement is unsafe because it accesses a non-transactional table after accessing a transactional "
            "table within the same transaction."
        ),
    )
    MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE = (
        1692,
        "Mixing self-logging and non-self-logging engines in a statement is unsafe.",
    )
    MIXED_STATEMENT = (
        1693,
        (
            "Statement accesses nontransactional table as well as transactional or temporary table, and writes to"
            " any of them."
        ),
    )
    INSERT_IGNORE_SELECT = 1714, "INSERT IGNORE... SELECT " + _ORDER_DECIDES.format("ignored")
    INSERT_SELECT_UPDATE = 1715, "INSERT... SELECT... ON DUPLICATE KEY UPDATE " + _ORDER_DECIDES.format("updated")
    WRITE_AUTOINC_SELECT = (
        1722,
        (
            "Statements writing to a table with an auto-increment column after selecting from another table are "
            "unsafe because the order in which rows are retrieved determines what (if any) rows will be written. "
            "This order cannot be predicted and may differ on source and the replica."
        ),
    )
    REPLACE_SELECT = 1716, "REPLACE... SELECT " + _ORDER_DECIDES.format("replaced")
    CREATE_IGNORE_SELECT = 1717, "CREATE... IGNORE SELECT " + _ORDER_DECIDES.format("ignored")
    CREATE_REPLACE_SELECT = 1718, "CREATE... REPLACE SELECT " + _ORDER_DECIDES.format("replaced")
    CREATE_SELECT_AUTOINC = (
        1723,
        "CREATE TABLE... SELECT...  on a table with an auto-increment column " + _ORDER_DECIDES.format("inserted"),
    )
    UPDATE_IGNORE = (
        1719,
        (
            "UPDATE IGNORE is unsafe because the order in which rows are updated determines which (if any) rows "
            "are ignored. This order cannot be predicted and may differ on source and the replica."
        ),
    )
    INSERT_TWO_KEYS = 1724, "INSERT... ON DUPLICATE KEY UPDATE  on a table with more than one UNIQUE KEY is unsafe"
    AUTOINC_NOT_FIRST = (
        1727,
        "INSERT into autoincrement field which is not the first part in the composed primary key is unsafe.",
    )
    FULLTEXT_PLUGIN = (
        3006,
        (
            "Statement is unsafe because it uses a fulltext parser plugin which may not return the same value on "
            "the replica."
        ),
    )
    SKIP_LOCKED = (
        3570,
        "Statement is unsafe because it uses SKIP LOCKED. The set of inserted values is non-deterministic.",
    )
    NOWAIT = (
        3571,
        ("Statement is unsafe because it uses NOWAIT. Whether the command will succeed or fail is not deterministic."),
    )
    XA = (
        3199,
        (
            "Statement is unsafe because it is being used inside a XA transaction. Concurrent XA transactions may"
            " deadlock on replicas when replicated using statements."
        ),
    )
    DEFAULT_EXPRESSION_IN_SUBSTATEMENT = (
        13425,
        (
            "The statement is unsafe because it invokes a trigger or a stored function that modifies a table that"
            " has a column with a DEFAULT expression that may return a different value on the replica."
        ),
    )
    ACL_TABLE_READ_IN_DML_DDL = (
        4010,
        (
            "The statement is unsafe because it updates a table depending on ACL table read operation. As storage"
            " engine row locks are skipped for ACL table, it may not have same effect on source and replica."
        ),
    )


@attrs.frozen
class LoggingMessage:
    """
    A warning or an error as the server gives it.

    Attributes:
        level: Its level.
        message: Its number and name.
        text: Its text.
        reason: Why the statement is unsafe, for a warning or an error that says so.
    """

    level: Level
    message: ServerMessage
    text: str
    reason: UnsafeReason | None = None
