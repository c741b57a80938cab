"""
The conflicts of a result: on the terminal, and as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conflict.cli.views.doubts import print_doubts
from conflict.config.option_values import By
from conflict.results.conflicts import ALL, UNITS, Beside, Chosen, Totals
from conflict.results.doubts import Doubt
from conflict.rules.decision import Cause
from conflict.shown_text import counted, one_line
from conflict.telling.terminal import table_of

__all__ = ["print_conflicts"]

_TITLES = {
    By.TABLE: "By table",
    **{unit: f"Busiest {unit}s" for unit in UNITS},
    By.KEY: "Hottest rows",
    By.CAUSE: "By cause",
    By.TRANSACTION: "Largest transactions",
}
_THINGS = {**{by: by.value for by in By}, By.KEY: "row"}
# Headings and columns of texts, and of numbers.
_TEXTS: dict[By, dict[str, str]] = {
    By.TABLE: {"table": "table", "rejected by": "applier"},
    **{unit: {f"{unit} (UTC)": unit} for unit in UNITS},
    By.KEY: {"table": "table", "key": "key"},
    By.CAUSE: {"cause": "cause", "rejected by": "applier"},
    By.TRANSACTION: {
        "transaction": "transaction_id",
        "of": "source",
        "time (UTC)": "time",
        "in conflict through": "root",
    },
}
_NUMBERS: dict[By, dict[str, str]] = {
    By.TABLE: {"conflicts": "conflicts", "rows": "keys", "transactions": "transactions"},
    **{unit: {"conflicts": "conflicts", "rows": "keys", "transactions": "transactions"} for unit in UNITS},
    By.KEY: {"conflicts": "conflicts"},
    By.CAUSE: {"conflicts": "conflicts"},
    By.TRANSACTION: {"conflicts": "conflicts"},
}
_SECONDS, _MINUTES = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"


def print_conflicts(
    console: Console,
    totals: Totals,
    counts: Mapping[By, pa.Table],
    top: int,
    which: Chosen = ALL,
    doubts: Sequence[Doubt] = (),
    other_times: Totals | None = None,
    beside: Beside | None = None,
) -> None:
    """
    Print how many conflicts there are, and where.

    Args:
        console: Where to print.
        totals: The conflicts in all.
        counts: What `count_conflicts` returned.
        top: Rows of each table to print.
        which: Which of them were counted.
        doubts: What makes the result doubtful.
        other_times: If none committed in the times that were chosen: those of all times.
        beside: What the result counts beside all of them; None if some were chosen.
    """
    print_doubts(console, doubts)
    chosen = escape(one_line(which.words(_SECONDS)))
    if not totals.conflicts:
        console.print(f"There are no conflicts{chosen}.")
        if other_times is not None:
            whose = "" if which.table is None else escape(f" of {one_line(which.table)}")
            console.print(f"At other times the result has {counted(other_times.conflicts, 'conflict')}{whose}.")
            _print_times(console, other_times)
        _print_beside(console, totals, beside)
        return
    appliers = escape(" and ".join(map(one_line, totals.appliers)))
    console.print(
        f"{counted(totals.conflicts, 'conflict')}{chosen}: changes that {appliers} rejected, in "
        f"{counted(totals.tables, 'table')}, on {counted(totals.keys, 'row')}, of "
        f"{counted(totals.transactions, 'transaction')}."
    )
    _print_times(console, totals)
    _print_beside(console, totals, beside)
    for by, table in counts.items():
        console.print(_table(by, _first(by, table, top)))
        left = len(table) - top
        if left > 0:
            console.print(f"and {counted(left, _THINGS[by])} more.")
    if any(len(table) > top for table in counts.values()):
        console.print("--top shows more of each table, --json FILE all.")


def _print_times(console: Console, totals: Totals) -> None:
    if totals.first is not None and totals.last is not None:
        console.print(f"They committed from {totals.first:{_SECONDS}} to {totals.last:{_SECONDS}} UTC.")


def _print_beside(console: Console, totals: Totals, beside: Beside | None) -> None:
    """Print how other figures of a result, and of `compare`, differ from the number of conflicts."""
    said = []
    if totals.conflicts:
        said.append("Each is an operation, as in the column conflicts of resolve; a row can have several.")
    if totals.of_gone_rows:
        deletes = "deletes" if totals.of_gone_rows == 1 else "delete"
        said.append(
            f"{totals.of_gone_rows:,} {deletes} a row that was gone already, which loses and refreshes nothing."
        )
    for name, rows in ({} if beside is None else beside.refreshed).items():
        if rows:
            each = "a row once for all its conflicts of one epoch"
            said.append(f"{escape(one_line(name))} refreshed {counted(rows, 'row')}: {each}.")
    if beside is not None and beside.open_decisions:
        left = beside.open_decisions - beside.open_conflicts
        said.append(
            f"The binlogs leave {counted(beside.open_decisions, 'decision')} open (undecided/): "
            f"{beside.open_conflicts:,} counted here as the result decides, {left:,} not."
        )
    if said:
        console.print(" ".join(said), highlight=False)


def _first(by: By, table: pa.Table, top: int) -> list[dict[str, Any]]:
    """Return the rows with most conflicts; of times these are shown in their order."""
    if by in UNITS:
        table = table.sort_by([("conflicts", "descending"), (by, "ascending")])
    table = table.slice(0, top)
    rows: list[dict[str, Any]] = (table.sort_by(by) if by in UNITS else table).to_pylist()
    return rows


def _table(by: By, rows: Sequence[Mapping[str, Any]]) -> Table:
    told = any(row.get("root_table") for row in rows)
    texts = {heading: name for heading, name in _TEXTS[by].items() if told or name != "root"}
    cells = (
        [*(_cell(by, row, name) for name in texts.values()), *(row[name] for name in _NUMBERS[by].values())]
        for row in rows
    )
    return table_of(_TITLES[by], [*texts], [*_NUMBERS[by]], cells)


def _cell(by: By, row: Mapping[str, Any], name: str) -> str:
    """Return a text of a row."""
    if name == "root":
        root = row["root_table"]
        return "" if root is None else one_line(f"{root} {row['root_key']}: {_words(row['root_cause'])}")
    value = row[name]
    if name == "cause" and value == Cause.TRANS_IN_CONFLICT.name:
        itself = row["own_cause"]
        return f"{_words(value)}, " + ("through others" if itself is None else f"itself {_words(itself)}")
    if name == "cause":
        return _words(value)
    if isinstance(value, datetime):
        return value.strftime(_MINUTES if by in (By.HOUR, By.MINUTE) else _SECONDS)
    return "not known" if value is None else one_line(str(value))


def _words(cause: str) -> str:
    return cause.lower().replace("_", " ")
