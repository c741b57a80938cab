"""
The decision as text: the tables of `docs/logging.md`, printed from those of the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from ndb_formats.rules.statement_logging.decision import DECISIONS, DecisionRow
from ndb_formats.rules.statement_logging.messages import UnsafeReason

__all__ = ["COLUMNS", "decision_markdown", "decision_rows", "reasons_markdown"]

# The heading of each property in the table.
COLUMNS = {
    "kind": "statement",
    "binlog_format": "`binlog_format`",
    "tables": "writes to tables that are",
    "capability": "their engines log",
    "safety": "the statement is",
    "rows": "rows change",
    "ndb_cascade": "NDB changes others",
    "binary_log": "`sql_log_bin`",
}
_ON_OFF = {"binary_log": ("OFF", "ON")}


def decision_rows() -> list[list[str]]:
    """Return the decision as rows of text: number, each property (empty: any), what is logged, and the message."""
    return [
        [str(number), *(_cell(row, name) for name in COLUMNS), _logged(row), _message(row)]
        for number, row in enumerate(DECISIONS, 1)
    ]


def _cell(row: DecisionRow, name: str) -> str:
    values = row.when.get(name, ())
    if name == "binary_log" and values == (True,):
        return ""  # every row but the first
    return ", ".join(_value(name, value) for value in values)


def _value(name: str, value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return _ON_OFF.get(name, ("no", "yes"))[bool(value)]


def _logged(row: DecisionRow) -> str:
    return ", then ".join(each.value for each in row.logged) or "nothing"


def _message(row: DecisionRow) -> str:
    if row.message is None:
        return ""
    return f"{row.level.value.lower()} {int(row.message)} `{row.message.name}`"


def decision_markdown() -> str:
    """Return the decision as a table of a page."""
    return _markdown(["row", *COLUMNS.values(), "logged", "message"], decision_rows())


def reasons_markdown() -> str:
    """Return the reasons for which a statement is unsafe as a table of a page."""
    rows = [[str(int(reason)), f"`{reason.name}`", reason.text] for reason in UnsafeReason]
    return _markdown(["number", "reason", "the server's text"], rows)


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
