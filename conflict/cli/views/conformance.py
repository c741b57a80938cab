"""
Verdicts on recordings, on the terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from conflict.judge.judge import CaseStatus, CaseVerdict
from conflict.telling.shown_text import counted
from conflict.telling.terminal import table_of

_STYLES = {CaseStatus.PASS: "green", CaseStatus.FAIL: "red", CaseStatus.NOT_YET: "yellow"}


def print_conformance(console: Console, verdicts: Sequence[CaseVerdict]) -> None:
    """Print counts by part and folder, what is counted in a case, and the first difference of each failed case."""
    console.print(_counts(verdicts))
    undecided = [verdict.undecided for verdict in verdicts if verdict.undecided]
    if undecided:
        console.print(
            f"The binlogs leave {counted(sum(undecided), 'decision')} in {counted(len(undecided), 'case')} open, "
            "judged by what may have been decided."
        )
    by_candidates = sum(verdict.by_candidates for verdict in verdicts)
    if by_candidates:
        console.print(
            f"By candidates, with other answers than those that were chosen: {counted(by_candidates, 'case')}."
        )
    for reason, times in Counter(each.detail for each in verdicts if each.status is CaseStatus.NOT_YET).most_common():
        console.print(f"[yellow]not yet[/yellow] ({times}): {escape(reason)}")
    for verdict in verdicts:
        if verdict.status is CaseStatus.PASS and verdict.detail:
            console.print(f"[green]pass[/green] {escape(verdict.case)}: {escape(verdict.detail)}")
        if verdict.status is CaseStatus.FAIL:
            console.print(f"[red]fail[/red] {escape(verdict.case)}: {escape(verdict.detail)}")


def _counts(verdicts: Sequence[CaseVerdict]) -> Table:
    counts: dict[tuple[str, str], Counter[CaseStatus]] = {}
    for verdict in verdicts:
        folder = verdict.case.rpartition("/")[0]
        counts.setdefault((verdict.part, folder), Counter())[verdict.status] += 1
    total = Counter(verdict.status for verdict in verdicts)
    rows = [[*place, *_figures(each)] for place, each in counts.items()] + [["all", "", *_figures(total)]]
    return table_of(f"Conformance of engine {verdicts[0].engine}", ["part", "folder"], list(CaseStatus), rows)


def _figures(counts: Counter[CaseStatus]) -> list[Text]:
    return [Text(f"{counts[status]:,}", style=_STYLES[status] if counts[status] else "") for status in CaseStatus]
