"""
What `conflict.rewrite` returns: what became of each row change.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from conflict.extras import data_frame
from conflict.telling.shown import Shown
from conflict.telling.shown_text import counted
from conflict.telling.value import Table, Telling, Tone, Toned
from ndb_formats.errors import CutFileError
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.relogging import Basis
from ndb_formats.writing.rewriting_plans import Counts, RewriteOutcome

if TYPE_CHECKING:
    import pandas as pd

_CHANGED = {
    Operation.WRITE_ROW: "columns that are not the default",
    Operation.UPDATE_ROW: "columns that changed value",
}
_NOTES = {
    Operation.WRITE_ROW: "an insert has the columns that differ from their default; the statement may have given more.",
    Operation.UPDATE_ROW: "an update has the columns that changed value; the statement may have set more.",
}


@attrs.frozen(repr=False, eq=False)
class Rewritten(Shown):
    """
    Binlogs that were rewritten in another format. Printed, it is a table of the changes and what became of them.

    Attributes:
        files: The new files.
        counts: Row changes by outcome.
        cut: How the last file ends too early; None if it does not. Its complete transactions were written.
    """

    files: tuple[Path, ...]
    counts: Counts
    cut: CutFileError | None = None

    @property
    def complete(self) -> bool:
        """Whether every change that the format applies to was rewritten."""
        return self.counts.complete

    @property
    def rewritten(self) -> int:
        """How many row changes were rewritten; the others were kept as logged."""
        return sum(rows for outcome, rows in self.counts.rows.items() if outcome.rewritten)

    def document(self) -> dict[str, object]:
        """Return the document of ``--json``."""
        return {"changes": list(self._changes())}

    def telling(self) -> Telling:
        """Return what is told of it."""
        counts = self.counts
        rows = [
            [each.table, each.operation.name, _toned(each, _words(counts, each)), counts.rows[each]]
            for each in _ordered(counts)
        ]
        guessed = {outcome.operation for outcome in counts.rows if outcome.result == Basis.CHANGED_VALUES}
        kept = sum(counts.rows.values()) - self.rewritten
        return Telling(
            "Rewritten binlogs",
            sentences=(
                *(f"The log does not show what its statements named: {_NOTES[each]}" for each in sorted(guessed)),
                f"Rewritten: {counted(self.rewritten, 'row change')}; kept as logged: {kept:,}.",
            ),
            tables=(Table("Row changes", ("table", "operation", "written", "changes"), rows, texts=3),),
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return an outcome a row: table, operation, rewritten, result, lacking (columns), rows."""
        return data_frame(self._changes())

    def _changes(self) -> Iterator[dict[str, Any]]:
        for outcome in _ordered(self.counts):
            yield {
                "table": outcome.table,
                "operation": outcome.operation.name,
                "rewritten": outcome.rewritten,
                "result": outcome.result,
                "lacking": sorted(self.counts.lacking.get(outcome, ())),
                "rows": self.counts.rows[outcome],
            }


def _toned(outcome: RewriteOutcome, words: str) -> str | Toned:
    if outcome.result == Basis.EXACT:
        return words
    return Toned(words, Tone.DOUBTFUL if outcome.rewritten else Tone.BAD)


def _ordered(counts: Counts) -> list[RewriteOutcome]:
    return sorted(counts.rows, key=lambda outcome: (outcome.table, outcome.operation, not outcome.rewritten))


def _words(counts: Counts, outcome: RewriteOutcome) -> str:
    if outcome.rewritten:
        return outcome.result if outcome.result == Basis.EXACT else _CHANGED[outcome.operation]
    lacking = ", ".join(sorted(counts.lacking.get(outcome, ())))
    return f"kept: {outcome.result}{f' ({lacking})' if lacking else ''}"
