"""
What ALTER TABLE makes of the values that a table holds. Computes docs/definitions.md, "Values that a statement gives".

A new column gets its default, and a column of another type the value that the server converts. Where an expression, the
time, or a rule that is not known here decides, and where the server would have refused the statement, the value is
`NOT_KNOWN`.

Source: MySQL manual, "Data Type Default Values", "Server SQL Modes"; `ndb_formats.schema.value_conversions`.
"""

from __future__ import annotations

from ndb_formats.errors import FormatError
from ndb_formats.schema.default_values import implied_value, zero_value
from ndb_formats.schema.session import SqlMode
from ndb_formats.schema.tables import Column
from ndb_formats.schema.value_conversions import (
    BYTES,
    INTEGER_BITS,
    NOT_KNOWN,
    TEXTS,
    KnownValue,
    NotKnown,
    converted,
    room,
    type_of,
)
from ndb_formats.types.values import Value


def added_value(column: Column) -> KnownValue:
    """
    Return what rows have in a column that a statement adds: its default, the zero of its type, or NULL.

    A default that the server computes, a generated column and a number that it counts are not known. An ENUM without a
    default that may not be NULL has its first member.
    """
    if column.is_computed:
        return NOT_KNOWN
    value = implied_value(column)
    if value is None or column.type not in ("enum", "json", "geometry", "vector"):
        return value
    if column.type != "enum":
        return NOT_KNOWN
    return value or (column.members[0] if column.members else NOT_KNOWN)


def keeps_values(before: Column, after: Column, mode: SqlMode) -> bool:
    """
    Whether a column of a new definition holds every value that it held, in the same form.

    In strict mode, integers and bytes can also get a narrower type: a value that does not fit refuses the statement. A
    text can lose blanks at its end then.
    """
    if before.nullable and not after.nullable and (not mode.strict or after.type == "timestamp"):
        return False  # NULL becomes the zero of the type, or the time of the statement
    if after.generated is not None and (before.generated, before.expression) != (after.generated, after.expression):
        return False
    if before.generated == "virtual" and after.generated is None:
        return False
    if type_of(before) == type_of(after):
        return True
    if before.unsigned != after.unsigned or before.charset != after.charset or before.members or after.members:
        return False
    if before.type in INTEGER_BITS and after.type in INTEGER_BITS:
        return mode.strict or INTEGER_BITS[before.type] <= INTEGER_BITS[after.type]
    if before.type in TEXTS and after.type in TEXTS:
        # CHAR has no blanks at the end.
        same = "char" not in (before.type, after.type) or before.type == after.type
        bytes_each = 1 if after.type in ("char", "varchar") or before.type not in ("char", "varchar") else _MOST_BYTES
        return same and room(before) * bytes_each <= room(after)
    wide = before.type in BYTES and after.type in BYTES and "binary" not in (before.type, after.type)
    return wide and (mode.strict or room(before) <= room(after))


_MOST_BYTES = 4  # of a character


def altered_value(value: Value, before: Column, after: Column, mode: SqlMode) -> KnownValue:
    """
    Return what a statement makes of a value that a column holds.

    Args:
        value: The value.
        before: The column that holds it.
        after: The column afterwards.
        mode: ``sql_mode`` of the statement.
    """
    if after.generated is not None:
        kept = (before.generated, before.expression, type_of(before)) == (
            after.generated,
            after.expression,
            type_of(after),
        )
        return value if kept else NOT_KNOWN
    if value is None:
        return _of_null(after, mode)
    if type_of(before) == type_of(after):
        return value
    try:
        found = converted(value, before, after, mode)
    except (FormatError, ValueError, ArithmeticError, KeyError):
        return NOT_KNOWN
    if isinstance(found, NotKnown):
        return found
    return NOT_KNOWN if found.refused and mode.strict else found.value


def _of_null(after: Column, mode: SqlMode) -> KnownValue:
    if after.nullable:
        return None
    if mode.strict or after.type in ("json", "geometry", "vector", "timestamp"):
        return NOT_KNOWN
    return zero_value(after)
