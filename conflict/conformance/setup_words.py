"""
Judges what a server makes of its tables by what its error log and its warnings said when they were created.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from conflict.rules.conflict_fn_text import PARSE_ERROR
from conflict.rules.table_setup import BAD_SCHEMA, SHOWN_CHARACTERS, RefusalKind, TableSetup

__all__ = ["setup_differences"]

# Lines of the error log on functions and exceptions tables; all others are about applying.
_SETUP_LINE = re.compile(
    r"(?:Replica: Table \S+ (?:: |using conflict_fn |logging exceptions to )|Replica: exceptions table |"
    r"Binlog: Ambiguous matches ).*"
)
_BAD_SCHEMA, _PARSE_ERROR = 1625, 1626


def setup_differences(side: str, want: Mapping[str, Any], setups: Mapping[str, TableSetup]) -> Iterator[str]:
    """
    Yield every difference between what a server said when its tables were created, and what it should have said.

    Args:
        side: Name of the side.
        want: What `expected.json` has of it.
        setups: How the side set up each table.
    """
    said = {found.group() for line in want["error_log"] if (found := _SETUP_LINE.search(line))}
    said |= {
        str(text)
        for message in want.get("setup_messages", ())
        for _, number, text in message.get("warnings", ())
        if number in (_BAD_SCHEMA, _PARSE_ERROR)
    }
    expected = {line for name, setup in setups.items() for line in _lines(name, setup)}
    for line in sorted(said - expected):
        yield f"{side}: the server said, and the set-up does not: {line}"
    for line in sorted(expected - said):
        yield f"{side}: the set-up says, and the server did not: {line}"


def _lines(name: str, setup: TableSetup) -> Iterator[str]:
    """Yield what is said of one table, in the error log and as warnings of CREATE TABLE."""
    if setup.refusal is not None:
        parse = "Parse error on conflict fn : " if setup.refusal.kind is RefusalKind.PARSE else ""
        yield f"Replica: Table {name} : {parse}{setup.refusal.message.removeprefix(PARSE_ERROR)}"
        yield setup.refusal.warning
    if setup.function is not None:
        column = "" if setup.function.column is None else f" on attribute {setup.function.column}"
        yield f"Replica: Table {name} using conflict_fn {setup.function.spec.name}{column}."
    if setup.exceptions is not None:
        yield f"Replica: Table {name} logging exceptions to {setup.exceptions.table.full_name}"
    for warning in setup.warnings:
        if warning.startswith(BAD_SCHEMA):
            message = warning.removeprefix(BAD_SCHEMA)
            yield f"Binlog: {message}"
            yield BAD_SCHEMA + message[:SHOWN_CHARACTERS]
        else:
            yield f"Replica: {warning}"
