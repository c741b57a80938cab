"""
What makes a result doubtful, in sentences. Computes docs/compare.md, "Doubts".

A result is doubtful where the binlogs contradict it, where nothing in them confirms it, and where they end early.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from conflict.shown_text import counted

__all__ = [
    "Doubt",
    "causes_of",
    "doubts_of",
    "missing_parts",
    "not_examined",
    "notes_of",
    "remarks_of",
    "unchecked",
    "unexplained_changes",
]

Document = Mapping[str, Any]


@attrs.frozen
class Doubt:
    """
    One reason to doubt a result.

    Attributes:
        label: What is wrong, in few words.
        text: What is to be said about it, with a full stop.
        serious: Whether a binlog could not be read, or contradicts the result.
    """

    label: str
    text: str
    serious: bool = False

    def __str__(self) -> str:
        return f"{self.label}: {self.text}"


def doubts_of(run: Document) -> tuple[Doubt, ...]:
    """
    Return what makes a result doubtful, the worst first.

    Args:
        run: The document `run.json`, or the part that `conflict.results.run_document.ResolvedRun.checks` returns.
    """
    parts = (_contradiction, causes_of, remarks_of, notes_of, unexplained_changes, not_examined, missing_parts)
    return tuple(doubt for part in parts for doubt in part(run))


def _contradiction(run: Document) -> Iterator[Doubt]:
    compared, differing = run["compared_with_binlogs"], run["contradicted_by_binlogs"]
    if differing:
        text = (
            f"of {counted(compared, 'row change')} by appliers, {differing:,} differ from those found here. "
            "What is shown is not what happened."
        )
        yield Doubt("The binlogs contradict the run as it is configured", text, serious=True)
    else:
        yield from unchecked(run)


def unchecked(run: Document) -> Iterator[Doubt]:
    """Yield that nothing confirms a result, and whether that is because the binlogs do not fit each other."""
    if run.get("unrelated_binlogs"):
        text = (
            "no change by an applier is of an epoch that the other cluster's binlogs hold. They are of different "
            "clusters or times, or their last files are missing."
        )
        yield Doubt("The binlogs do not belong together", text, serious=True)
    elif not run["compared_with_binlogs"]:
        yield Doubt("Nothing is checked", "the binlogs show no row change by an applier.")


def causes_of(run: Document) -> Iterator[Doubt]:
    """Yield why the binlogs may contradict a result, and what they lack."""
    label = "Likely cause" if run["contradicted_by_binlogs"] else "Note"
    for cause in run["likely_causes"]:
        tables = f" ({', '.join(cause['tables'])})" if cause["tables"] else ""
        yield Doubt(f"{label}{tables}", cause["sentence"])


def remarks_of(run: Document) -> Iterator[Doubt]:
    """Yield what the binlogs hold besides rows: a result lacks it."""
    for remark in run["log_remarks"]:
        yield Doubt("Not among the rows", f"{remark['sentence']}.", serious=remark["contradicts"])


def notes_of(run: Document) -> Iterator[Doubt]:
    """Yield what is to be said about the definitions of tables, those that were not read among them."""
    for note in run["definition_notes"]:
        yield Doubt("Note", f"{note}.")


def unexplained_changes(run: Document) -> Iterator[Doubt]:
    """Yield the changes of clusters that found no row."""
    for name, changes in run["unexplained_changes"].items():
        if changes:
            yield Doubt(
                f"{name} changed {counted(changes, 'row')} that should not exist there",
                "older than the binlogs, or made when another function was in force.",
            )


def not_examined(run: Document) -> Iterator[Doubt]:
    """Yield how many applied epochs were too many to look at row by row."""
    epochs = run["epochs_not_examined"]
    if epochs:
        text = "may leave open when their rows were judged, and so may the counters; no row depends on it."
        yield Doubt("Not looked at", f"{counted(epochs, 'applied epoch')} {text}")


def missing_parts(run: Document) -> Iterator[Doubt]:
    """Yield what is left out of a result, because a binlog ends too early or cannot be read."""
    for name, epochs in run["epochs_left_out"].items():
        if epochs:
            text = "built on epochs of the other cluster that its binlogs do not hold."
            yield Doubt("Left out at the end", f"{counted(epochs, 'epoch')} of {name}, {text}")
    for name, error in run["binlog_errors"].items():
        left = counted(run["row_operations_left_out"].get(name, 0), "row operation")
        yield Doubt(
            f"The binlogs of {name} could not be read to the end",
            f"{error}. Every epoch before that is resolved. Left out of an unfinished one: {left}.",
            serious=True,
        )
