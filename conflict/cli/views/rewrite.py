"""
What `rewrite` did, on the terminal and as JSON.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from conflict.telling.shown_text import counted
from conflict.telling.terminal import table_of
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.relogging import Basis
from ndb_formats.writing.rewriting_plans import Counts, RewriteOutcome

_CHANGED = {
    Operation.WRITE_ROW: "columns that are not the default",
    Operation.UPDATE_ROW: "columns that changed value",
}
_NOTES = {
    Operation.WRITE_ROW: "an insert has the columns that differ from their default; the statement may have given more.",
    Operation.UPDATE_ROW: "an update has the columns that changed value; the statement may have set more.",
}


def print_counts(console: Console, counts: Counts) -> None:
    """Print the changes by table, operation and outcome, and what the outcomes mean."""
    rows = [
        [outcome.table, outcome.operation.name, _styled(outcome, _words(counts, outcome)), counts.rows[outcome]]
        for outcome in _ordered(counts)
    ]
    console.print(table_of("Row changes", ["table", "operation", "written"], ["changes"], rows))
    guessed = {outcome.operation for outcome in counts.rows if outcome.result == Basis.CHANGED_VALUES}
    for operation in sorted(guessed):
        console.print(f"The log does not show what its statements named: {_NOTES[operation]}", soft_wrap=True)
    rewritten = sum(rows for outcome, rows in counts.rows.items() if outcome.rewritten)
    kept = sum(counts.rows.values()) - rewritten
    console.print(f"Rewritten: {counted(rewritten, 'row change')}; kept as logged: {kept:,}.", soft_wrap=True)


def _styled(outcome: RewriteOutcome, words: str) -> Text:
    return Text(words, style="" if outcome.result == Basis.EXACT else "yellow" if outcome.rewritten else "red")


def counts_json(counts: Counts) -> dict[str, object]:
    """Return the same as a document."""
    return {
        "changes": [
            {
                "table": outcome.table,
                "operation": outcome.operation.name,
                "rewritten": outcome.rewritten,
                "result": outcome.result,
                "lacking": sorted(counts.lacking.get(outcome, ())),
                "rows": counts.rows[outcome],
            }
            for outcome in _ordered(counts)
        ]
    }


def _ordered(counts: Counts) -> list[RewriteOutcome]:
    return sorted(counts.rows, key=lambda outcome: (outcome.table, outcome.operation, not outcome.rewritten))


def _words(counts: Counts, outcome: RewriteOutcome) -> str:
    if outcome.rewritten:
        return outcome.result if outcome.result == Basis.EXACT else _CHANGED[outcome.operation]
    lacking = ", ".join(sorted(counts.lacking.get(outcome, ())))
    return f"kept: {outcome.result}{f' ({lacking})' if lacking else ''}"
