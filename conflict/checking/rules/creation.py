"""
What the server refuses when a table is created, because of its conflict function.

Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; error numbers and words as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from conflict.checking.codes import code
from conflict.checking.findings import Finding, Fix
from conflict.checking.statements import quoted, set_in_row
from conflict.checking.subject import PlacedTable, Subject
from conflict.rules.functions import FUNCTIONS, PARSE_ERROR, Argument
from conflict.rules.table_setup import Refusal, RefusalKind

__all__ = ["refused_tables"]

_NUMBERS = {
    RefusalKind.PARSE: 1,
    RefusalKind.NO_COLUMN: 2,
    RefusalKind.WRONG_TYPE: 3,
    RefusalKind.BLOB: 4,
    RefusalKind.UPDATES_AS_WRITES: 5,
}


def refused_tables(subject: Subject) -> Iterator[Finding]:
    """Yield every CREATE TABLE that fails."""
    for placed in subject.tables:
        refusal = placed.setup.refusal
        if refusal is not None and refusal.kind in _NUMBERS:
            kind = code(_NUMBERS[refusal.kind])
            sentence = f"CREATE TABLE fails with error {refusal.error}: {_reason(placed, refusal)}."
            server = refusal.message.removeprefix(PARSE_ERROR).replace(placed.table.full_name, "TABLE")
            yield Finding(kind, (placed.place,), sentence, _fix(placed, refusal), server)


def _reason(placed: PlacedTable, refusal: Refusal) -> str:
    if refusal.kind is RefusalKind.PARSE:
        text = "" if placed.row is None else placed.row.conflict_fn
        return f"the server cannot read conflict_fn {text!r}"
    function, name = placed.function, refusal.column
    if refusal.kind is RefusalKind.NO_COLUMN:
        return f"{function} compares column {name}, which the table does not have (letter case counts)"
    if refusal.kind is RefusalKind.WRONG_TYPE:
        column = placed.table.find(name or "")
        declared = "" if column is None else f", which is {column.sql_type}"
        return f"{function} compares column {name}{declared}; it must be INT UNSIGNED or BIGINT UNSIGNED"
    name = "" if function is None else function.spec.name
    if refusal.kind is RefusalKind.BLOB:
        blobs = ", ".join(column.name for column in placed.table.columns if column.is_blob)
        return f"{name} refreshes rows, and blobs cannot be refreshed (columns {blobs})"
    return f"{name} judges updates, and the table logs them as writes ({placed.logging})"


def _fix(placed: PlacedTable, refusal: Refusal) -> Fix:
    name, table = refusal.column or "", placed.table
    if refusal.kind is RefusalKind.PARSE:
        return set_in_row(placed, "conflict_fn", quoted(_readable(placed.row.conflict_fn or "" if placed.row else "")))
    if refusal.kind is RefusalKind.NO_COLUMN:
        alike = [each.name for each in table.columns if each.name.lower() == name.lower()]
        if alike and placed.function is not None:
            return set_in_row(placed, "conflict_fn", quoted(f"{placed.function.spec.name}({alike[0]})"))
        return Fix(f"give the table the column `{name}` BIGINT UNSIGNED NOT NULL.")
    if refusal.kind is RefusalKind.WRONG_TYPE:
        column = table.find(name)
        kind = "INT" if column is not None and column.type == "int" else "BIGINT"
        return Fix(f"declare the column as `{name}` {kind} UNSIGNED NOT NULL.")
    if refusal.kind is RefusalKind.BLOB:
        return Fix("move these columns to a table of their own, or declare them VARCHAR or VARBINARY.")
    return set_in_row(placed, "binlog_type", "6")


def _readable(text: str) -> str:
    """Return the text that was probably meant, as the server can read it."""
    name, _, rest = text.strip().partition("(")
    names = {spec.name: spec for spec in FUNCTIONS}
    found = get_close_matches(name.strip().upper(), names, n=1, cutoff=0.5)
    spec = names[found[0]] if found else FUNCTIONS[1]
    argument = rest.split(")", maxsplit=1)[0].split(",", maxsplit=1)[0].strip().split(" ", maxsplit=1)[0]
    if spec.argument is Argument.COLUMN:
        return f"{spec.name}({argument or 'version'})"
    return f"{spec.name}({argument if argument.isdecimal() and int(argument) < 32 else ''})"
