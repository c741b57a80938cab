"""
The conflicts of a result, counted: what is told of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from conflict.config.option_values import By
from conflict.results.conflicts import ALL, UNITS, Beside, Chosen, Totals
from conflict.results.doubts import Doubt, alarms_of, warnings_of
from conflict.rules.decision import Cause
from conflict.telling.shown_text import counted, one_line
from conflict.telling.value import Table, Telling

_TITLES = {
    By.TABLE: "Conflicts by table",
    **{unit: f"Busiest {unit}s" for unit in UNITS},
    By.KEY: "Hottest rows",
    By.CAUSE: "Conflicts by cause",
    By.TRANSACTION: "Largest transactions",
}
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
_NUMBERS = {"conflicts": "conflicts", "rows": "keys", "transactions": "transactions"}
_SAME_TEXT = "rows whose keys have the same text are different rows; --json has their identities"
_SECONDS, _MINUTES = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"


def tell_conflicts(
    totals: Totals,
    counts: Mapping[By, pa.Table],
    top: int,
    source: str,
    which: Chosen = ALL,
    doubts: Sequence[Doubt] = (),
    other_times: Totals | None = None,
    beside: Beside | None = None,
) -> Telling:
    """
    Return how many conflicts there are, and where.

    Args:
        totals: The conflicts in all.
        counts: What `count_conflicts` returned.
        top: Rows of each table.
        source: The result, as it was given.
        which: Which of them were counted.
        doubts: What makes the result doubtful.
        other_times: If none committed in the times that were chosen: those of all times.
        beside: What the result counts beside all of them; None if some were chosen.
    """
    chosen = one_line(which.words(_SECONDS))
    headline = f"There are no conflicts{chosen}."
    if totals.conflicts:
        headline = (
            f"{counted(totals.conflicts, 'conflict')}{chosen}: changes that {' and '.join(totals.appliers)} rejected, "
            f"in {counted(totals.tables, 'table')}, on {counted(totals.keys, 'row')}, of "
            f"{counted(totals.transactions, 'transaction')}."
        )
    shown = [conflicts_table(by, table, top, source) for by, table in counts.items()] if totals.conflicts else []
    return Telling(
        "Conflicts",
        headline,
        tuple(_times(totals, other_times, which)),
        (*shown, *_beside(totals, beside)),
        alarms=alarms_of(doubts),
        warnings=warnings_of(doubts),
    )


def _times(totals: Totals, other_times: Totals | None, which: Chosen) -> Iterator[str]:
    if other_times is not None and not totals.conflicts:
        whose = "" if which.table is None else f" of {which.table}"
        yield f"At other times the result has {counted(other_times.conflicts, 'conflict')}{whose}."
    told = totals if totals.conflicts or other_times is None else other_times
    if told.first is not None and told.last is not None:
        yield f"The conflicts committed from {told.first:{_SECONDS}} to {told.last:{_SECONDS}} UTC."


def _beside(totals: Totals, beside: Beside | None) -> Iterator[Table]:
    """Yield how other figures of a result, and of `compare`, differ from the number of conflicts."""
    rows = [("conflicts that delete a row that was gone already", totals.of_gone_rows)]
    if beside is not None:
        rows += [(f"rows that {name} refreshed, once per epoch", number) for name, number in beside.refreshed.items()]
        left = beside.open_decisions - beside.open_conflicts
        rows += [("open decisions (undecided/), counted as conflicts", beside.open_conflicts)]
        rows += [("open decisions (undecided/), not counted", left)]
    rows = [row for row in rows if row[1]]
    if rows:
        yield Table("Beside the number of conflicts", ("what", "number"), rows)


def conflicts_table(by: By, table: pa.Table, top: int, source: str) -> Table:
    """Return the rows of a count with most conflicts; of times these are shown in their order."""
    whole = len(table)
    if by in UNITS:
        table = table.sort_by([("conflicts", "descending"), (by, "ascending")])
    table = table.slice(0, top)
    rows = (table.sort_by(by) if by in UNITS else table).to_pylist()
    told = any(row.get("root_table") for row in rows)
    texts = {heading: name for heading, name in _TEXTS[by].items() if told or name != "root"}
    numbers = {heading: name for heading, name in _NUMBERS.items() if name in table.column_names}
    cells = [
        [*(_cell(by, row, name) for name in texts.values()), *(row[name] for name in numbers.values())] for row in rows
    ]
    left = whole - len(rows)
    thing = counted(left, "row" if by is By.KEY else by.value)
    note = f"and {thing} more: ndb-conflict conflicts {shlex.quote(source)} --by {by} --top {whole}" if left else ""
    if by is By.KEY and len({(row["table"], row["key"]) for row in rows}) < len(rows):
        note = f"{_SAME_TEXT}; {note}" if note else _SAME_TEXT
    return Table(_TITLES[by], (*texts, *numbers), cells, note=note, texts=len(texts))


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
