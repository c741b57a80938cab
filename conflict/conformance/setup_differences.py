"""
How a server's messages on the creation of its tables differ from those that the rules predict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from conflict.rules.conflict_fn_text import PARSE_ERROR
from conflict.rules.table_setup import BAD_SCHEMA, SHOWN_CHARACTERS, RefusalKind, TableSetup

__all__ = ["setup_differences", "setup_lines"]

# Lines of the error log on functions and exceptions tables; the others are about applying.
_SETUP_LINE = re.compile(
    r"(?:Replica: Table \S+ (?:: |using conflict_fn |logging exceptions to )|Replica: exceptions table |"
    r"Binlog: Ambiguous matches ).*"
)
_BAD_SCHEMA, _PARSE_ERROR = 1625, 1626


def setup_differences(side: str, want: Mapping[str, Any], setups: Iterable[TableSetup]) -> Iterator[str]:
    """
    Yield every message of a server that the rules do not predict, and every predicted one that is missing.

    Args:
        side: Name of the side.
        want: Its part of `expected.json`.
        setups: How the rules set up each table of the side, at any time.
    """
    messages = {found.group() for line in want["error_log"] if (found := _SETUP_LINE.search(line))}
    messages |= {
        str(text)
        for message in want.get("setup_messages", ())
        for _, number, text in message.get("warnings", ())
        if number in (_BAD_SCHEMA, _PARSE_ERROR)
    }
    predicted = {line for setup in setups for line in setup_lines(setup.table.full_name, setup)}
    for line in sorted(messages - predicted):
        yield f"{side}: a message is not predicted: {line}"
    for line in sorted(predicted - messages):
        yield f"{side}: a predicted message is missing: {line}"


def setup_lines(name: str, setup: TableSetup) -> Iterator[str]:
    """Yield the predicted messages on a table: lines of the error log, and warnings of CREATE TABLE."""
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
