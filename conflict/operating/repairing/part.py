"""
The part of a report on a plan that `repair` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from conflict.config.text_file import read_text
from conflict.errors import ConfigurationError
from conflict.operating.repairing.plan_files import PLAN, REVIEW, STATEMENTS
from conflict.operating.repairing.running_a_plan import outcome_table
from conflict.telling.part import Part
from conflict.telling.shown_text import counted, one_line
from conflict.telling.value import Entry, Listing, Table, Telling

_MOST_ROWS = 20  # of each list
_ROW = {"table": "table", "key": "key"}
_NOT_PROVED = "The proof of this plan failed: it does not do what it is for."


def repair_part(folder: Path) -> Part:
    """
    Return the part of a report on the folder of a plan.

    Raises:
        ConfigurationError: It is damaged.
    """
    try:
        document = json.loads(read_text(folder / PLAN))
        statements, reviewed = (pq.read_table(folder / name).to_pylist() for name in (STATEMENTS, REVIEW))
        return Part(_told(document, statements, reviewed), str(folder), _asked(document), document)
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"the plan in {folder} is damaged ({error}); plan the repair again"
        raise ConfigurationError(message) from error


def _asked(document: Mapping[str, Any]) -> dict[str, str]:
    return {
        "question": "Which SQL makes the rows equal that differ, and applies lost changes again?",
        "rules": "; ".join(document["rules"]) or "none",
    }


def _told(
    document: Mapping[str, Any], statements: Sequence[Mapping[str, Any]], reviewed: Sequence[Mapping[str, Any]]
) -> Telling:
    tables = [outcome_table(document["tables"])]
    if statements:
        tables.append(_first("Statements", statements, {"file": "file", "number": "statement", **_ROW, "why": "why"}))
    if reviewed:
        tables.append(_first("Left to review", reviewed, {"what": "kind", **_ROW, "why": "reason"}))
    return Telling(
        "Repair",
        f"{counted(len(statements), 'statement')} in {counted(len(document['files']), 'file')}; "
        f"{counted(len(reviewed), 'row or lost change', 'rows or lost changes')} left to review.",
        tables=tables,
        alarms=[] if document["proved"] else [_NOT_PROVED],
        warnings=[*document["not_listed"], *document["doubts"]],
        listings=[Listing("What to do", [Entry("", one_line(step)) for step in document["steps"]])],
    )


def _first(title: str, found: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Return the first rows of a list; `columns` has what is shown by heading."""
    left = len(found) - _MOST_ROWS
    rows = [[_cell(each[name]) for name in columns.values()] for each in found[:_MOST_ROWS]]
    note = f"{left:,} more are in the folder of the plan." if left > 0 else ""
    return Table(title, tuple(columns), rows, note=note, texts=len(columns))


def _cell(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value
