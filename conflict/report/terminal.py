"""
Summaries on the terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conflict.configuration import Configuration
from conflict.conformance.judge import FAIL, NOT_YET, PASS, Verdict
from conflict.decision import Cause
from conflict.pipeline import Run
from conflict.resolution import Stop

__all__ = ["print_conformance", "print_run"]

_STYLES = {PASS: "green", FAIL: "red", NOT_YET: "yellow"}


def print_run(console: Console, configuration: Configuration, run: Run, where: str) -> None:
    """Print what a run came to."""
    _print_setups(console, configuration)
    console.print(_outcomes(run))
    console.print(_rows(configuration, run))
    _print_findings(console, run)
    console.print(f"Results are in [bold]{escape(where)}[/bold].")


def _print_setups(console: Console, configuration: Configuration) -> None:
    for cluster, setups in configuration.setups().items():
        for table, setup in setups.items():
            if setup.refusal is not None:
                console.print(f"[red]{cluster}: table {table} is refused:[/red] {escape(setup.refusal.message)}")
            for warning in setup.warnings:
                console.print(f"[yellow]{cluster}: table {table}:[/yellow] {escape(warning)}")


def _outcomes(run: Run) -> Table:
    """One row per applier and table that had anything to do, conflicts by cause."""
    causes = [cause.name for cause in Cause if cause]
    counts = [each for tables in run.summary.tables.values() for each in tables.values()]
    shown = [cause for cause in causes if any(each[cause] for each in counts)]
    table = Table(title="What the appliers did", title_justify="left")
    for heading in ("applier", "table"):
        table.add_column(heading)
    for heading in ("changes", "applied", "ignored", "rejected", *(_words(cause) for cause in shown), "refreshes sent"):
        table.add_column(heading, justify="right")
    for cluster, tables in run.summary.tables.items():
        for name, each in tables.items():
            taken = each["applied"] + each["ignored"] + each["rejected"]
            if taken:
                figures = [taken, each["applied"], each["ignored"], each["rejected"]]
                figures += [*(each[cause] for cause in shown), each["refreshes"]]
                table.add_row(cluster, name, *(f"{figure:,}" for figure in figures))
    return table


def _words(cause: str) -> str:
    return cause.lower().replace("_", " ").removeprefix("row ")


def _rows(configuration: Configuration, run: Run) -> Table:
    table = Table(title="What the tables hold at the end", title_justify="left")
    table.add_column("table")
    for cluster in configuration.clusters:
        table.add_column(f"rows on {cluster.name}", justify="right")
    table.add_column("differing", justify="right")
    for name, differing in run.summary.differing_rows.items():
        figures = [f"{run.summary.rows[cluster.name].get(name, 0):,}" for cluster in configuration.clusters]
        table.add_row(name, *figures, f"[red]{differing:,}[/red]" if differing else "0")
    return table


def _print_findings(console: Console, run: Run) -> None:
    summary = run.summary
    verdict = "[green]converged[/green]" if summary.converged else "[red]did not converge[/red]"
    console.print(f"The clusters {verdict}. {run.changes:,} row changes were made by the clusters themselves.")
    for name, stop in summary.stops.items():
        console.print(f"[red]The applier of {name} stopped[/red] with error {stop.error}: {escape(stop_place(stop))}")
    for name, assumed in run.assumed.items():
        if assumed:
            console.print(
                f"[yellow]Assumed:[/yellow] {assumed:,} epochs left no trace on {name}, and changes of its own lie "
                "where they may have been taken; they are placed as early as possible."
            )
    for name, unexplained in summary.unexplained.items():
        if unexplained:
            console.print(
                f"[yellow]{name} itself changed {unexplained:,} rows that should not be there:[/yellow] they are older "
                "than the binlogs, or another function was in force when these were written."
            )
    agreement = f"[red]{summary.contradicted:,} differ[/red]" if summary.contradicted else "[green]all agree[/green]"
    console.print(f"Compared with what the binlogs show of the appliers: {summary.compared:,} rows, {agreement}.")
    for name, error in run.errors.items():
        left_out = run.left_out.get(name, 0)
        console.print(
            f"[red]The binlogs of {name} could not be read to the end:[/red] {escape(error)}. "
            f"Every epoch before that is resolved; {left_out:,} row operations of an unfinished one are left out."
        )


def stop_place(stop: Stop) -> str:
    """Return where and why an applier stopped."""
    place = "" if stop.origin is None else f"{stop.origin.file}, position {stop.origin.position}, "
    column = "" if stop.column is None else f", column {stop.column}"
    return f"{place}table {stop.table}{column}: {stop.message}. Epoch {stop.foreign_epoch} was undone."


def print_conformance(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print counts by part and first folder, and the first difference of each failure."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for verdict in verdicts:
        folder = verdict.case.rsplit("/", 1)[0] if "/" in verdict.case else ""
        counts.setdefault((verdict.part, folder), Counter())[verdict.status] += 1
    table = Table(title=f"Conformance of engine {verdicts[0].engine}" if verdicts else "No cases", title_justify="left")
    for heading in ("part", "folder"):
        table.add_column(heading)
    for status, style in _STYLES.items():
        table.add_column(status, justify="right", style=style)
    for (part, folder), each in counts.items():
        table.add_row(part, folder, *(str(each[status]) for status in _STYLES))
    total = Counter(verdict.status for verdict in verdicts)
    table.add_section()
    table.add_row("all", "", *(str(total[status]) for status in _STYLES))
    console.print(table)
    reasons = Counter(verdict.detail for verdict in verdicts if verdict.status == NOT_YET)
    for reason, times in reasons.most_common():
        console.print(f"[yellow]not yet[/yellow] ({times}): {escape(reason)}")
    for verdict in verdicts:
        if verdict.status == FAIL:
            console.print(f"[red]fail[/red] {escape(verdict.case)}: {escape(verdict.detail)}")
