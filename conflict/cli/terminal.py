"""
Summaries on the terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conflict.config.configuration import Configuration
from conflict.conformance.judge import FAIL, NOT_YET, PASS
from conflict.conformance.judge import Verdict as CaseVerdict
from conflict.history.reconcile import Explanation, Inference
from conflict.pipeline import Run
from conflict.results.model import Stop
from conflict.rules.decision import Cause, Decision, Verdict, explain
from conflict.rules.functions import Argument
from ndb_formats.events.rows_event import Operation

__all__ = ["print_conformance", "print_run"]

_STYLES = {PASS: "green", FAIL: "red", NOT_YET: "yellow"}


def print_run(
    console: Console, configuration: Configuration, run: Run, examples: Sequence[dict[str, Any]], where: str
) -> None:
    """
    Print what a run came to.

    Args:
        console: Where to.
        configuration: The run.
        run: Its figures.
        examples: Some rejected outcomes (see `conflict.results.files.rejected_examples`).
        where: Folder of the result.
    """
    _print_setups(console, configuration)
    console.print(_outcomes(run))
    conflicts = _conflicts(run)
    if conflicts is not None:
        console.print(conflicts)
        console.print("For example:")
        _print_examples(console, configuration, examples)
    console.print(_rows(configuration, run))
    _print_findings(console, configuration, run)
    console.print(f"Results are in [bold]{escape(where)}[/bold].")


def _print_setups(console: Console, configuration: Configuration) -> None:
    for cluster, setups in configuration.setups().items():
        for table, setup in setups.items():
            if setup.refusal is not None:
                console.print(f"[red]{cluster}: table {table} is refused:[/red] {escape(setup.refusal.message)}")
            for warning in setup.warnings:
                console.print(f"[yellow]{cluster}: table {table}:[/yellow] {escape(warning)}")


def _table(title: str, texts: Sequence[str], figures: Sequence[str]) -> Table:
    """Return an empty table: texts to the left and never cut, figures to the right."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in texts:
        table.add_column(heading, no_wrap=True)
    for heading in figures:
        table.add_column(heading, justify="right")
    return table


def _outcomes(run: Run) -> Table:
    """One row per applier and table that had anything to do."""
    used = {name for _, _, each in _counts(run) for name, times in each.items() if times}
    rare = ["ignored", *(name for name in ("discarded", "skipped") if name in used)]
    table = _table(
        "What the appliers did",
        ["applier", "table"],
        ["changes", "applied", *rare, "conflicts", "refreshed"],
    )
    for cluster, name, each in _counts(run):
        others = [each.get(verdict, 0) for verdict in rare]
        figures = (_applied(each), each["applied"], *others, each["rejected"], each["refreshes"])
        table.add_row(cluster, name, *(f"{figure:,}" for figure in figures))
    return table


def _conflicts(run: Run) -> Table | None:
    """One row per applier and table that had conflicts, by cause; none if there were none."""
    causes = [cause.name for cause in Cause if any(each.get(cause.name) for _, _, each in _counts(run))]
    if not causes:
        return None
    headings = [cause.lower().replace("_", " ") for cause in causes]
    table = _table("Conflicts by cause", ["applier", "table"], headings)
    for cluster, name, each in _counts(run):
        if each["rejected"]:
            table.add_row(cluster, name, *(f"{each[cause]:,}" for cause in causes))
    return table


def _counts(run: Run) -> list[tuple[str, str, dict[str, int]]]:
    return [
        (cluster, name, each)
        for cluster, tables in run.summary.tables.items()
        for name, each in tables.items()
        if _applied(each)
    ]


def _applied(each: Mapping[str, int]) -> int:
    return sum(each.get(verdict.name.lower(), 0) for verdict in Verdict)


def _rows(configuration: Configuration, run: Run) -> Table:
    names = [cluster.name for cluster in configuration.clusters]
    table = _table("What the tables hold at the end", ["table"], [*(f"rows on {name}" for name in names), "differing"])
    for name, differing in run.summary.differing_rows.items():
        figures = [f"{run.summary.rows[cluster].get(name, 0):,}" for cluster in names]
        table.add_row(name, *figures, "?" if differing is None else f"[red]{differing:,}[/red]" if differing else "0")
    return table


def _print_examples(console: Console, configuration: Configuration, outcomes: Sequence[dict[str, Any]]) -> None:
    """Print some rejected operations as sentences."""
    setups = configuration.setups()
    for outcome in outcomes:
        function = setups[outcome["applier"]][outcome["table"]].function
        decision = Decision(Verdict.REJECTED, Cause[outcome["cause"]], outcome["incoming"], outcome["stored"])
        by_epoch = function is not None and function.spec.argument is Argument.GCI_BITS
        sentence = explain(decision, Operation[outcome["operation"]], by_epoch=by_epoch)
        place = "a refresh"
        if outcome["file"] is not None:
            place = f"{outcome['file'].rsplit('/', 1)[-1]}, position {outcome['position']}"
        console.print(
            f"  {outcome['source']} → {outcome['applier']}, {outcome['table']} {escape(outcome['key'])} "
            f"({escape(place)}): {sentence}."
        )


def _print_findings(console: Console, configuration: Configuration, run: Run) -> None:
    summary = run.summary
    verdict = {
        True: "[green]converged[/green]",
        False: "[red]did not converge[/red]",
        None: "[yellow]may have converged or not[/yellow]",
    }[summary.converged]
    console.print(f"The clusters {verdict}, after {run.changes:,} row changes of their own.")
    for table, differing in summary.differing_rows.items():
        functions = [
            str(setups[table].function) for setups in configuration.setups().values() if setups[table].function
        ]
        why = f"resolved by {', '.join(functions)}" if functions else "no conflict function is set for it"
        if differing:
            console.print(f"[red]{table}: {differing:,} rows differ[/red]; {why}.")
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
    if summary.rounds:
        sizes = ", ".join(f"{each.rows:,}" for each in summary.rounds)
        console.print(
            f"{summary.rounds[-1].in_conflict:,} transactions are in conflict; found in {len(summary.rounds)} rounds "
            f"over {sizes} row changes."
        )
    _print_open_questions(console, run)
    agreement = f"[red]{summary.contradicted:,} differ[/red]" if summary.contradicted else "[green]all agree[/green]"
    console.print(f"The binlogs show {summary.compared:,} row changes by appliers; with those found here {agreement}.")
    for name, epochs in run.epochs_left_out.items():
        if epochs:
            console.print(
                f"[yellow]The last {epochs:,} epochs of {name} are left out:[/yellow] they build on epochs of the "
                "other cluster that its binlogs do not hold."
            )
    for name, error in run.errors.items():
        left_out = run.left_out.get(name, 0)
        console.print(
            f"[red]The binlogs of {name} could not be read to the end:[/red] {escape(error)}. "
            f"Every epoch before that is resolved; {left_out:,} row operations of an unfinished one are left out."
        )


def _print_open_questions(console: Console, run: Run) -> None:
    """Say what the binlogs do not tell."""
    summary = run.summary
    for each in run.settled:
        console.print(f"[yellow]Cannot be told from the order of the binlogs alone:[/yellow] {explain_settled(each)}")
    for name, undecided in summary.undecided.items():
        if undecided:
            console.print(
                f"[yellow]Cannot be told:[/yellow] whether {undecided:,} operations that {name} rejected with their "
                f"transactions were in conflict themselves, for {name} changed their rows meanwhile. No row depends "
                f"on it; {_ranges(summary.counter_ranges.get(name, {}))}."
            )


def explain_settled(settled: Inference) -> str:
    """Say what a binlog leaves open, and what was concluded from what it shows."""
    if settled.explanation is Explanation.NOT_APPLIED:
        return (
            f"whether {settled.cluster} took epoch {settled.foreign_epoch} of the other cluster, the first without a "
            "trace at the end. It would have changed rows, and the binlog shows none of that, so it was not taken."
        )
    return (
        f"when {settled.cluster} judged epoch {settled.foreign_epoch}: its own changes came between. Of "
        f"{settled.candidates} moments the latest is chosen that explains the {settled.rows:,} rows that the "
        "binlog shows otherwise."
    )


def _ranges(ranges: Mapping[str, tuple[int, int]]) -> str:
    texts = [f"{counter} is between {least:,} and {most:,}" for counter, (least, most) in ranges.items()]
    return ", ".join(texts) if texts else "no counter does either"


def stop_place(stop: Stop) -> str:
    """Return where and why an applier stopped."""
    place = "" if stop.origin is None else f"{stop.origin.file}, position {stop.origin.position}, "
    column = "" if stop.column is None else f", column {stop.column}"
    return f"{place}table {stop.table}{column}: {stop.message}. Epoch {stop.foreign_epoch} was undone."


def print_conformance(console: Console, verdicts: Sequence[CaseVerdict]) -> None:
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
    undecided = {verdict.case: verdict.undecided for verdict in verdicts if verdict.undecided}
    if undecided:
        console.print(
            f"{sum(undecided.values()):,} decisions in {len(undecided)} cases cannot be told from the binlogs; "
            "these cases are judged by what may have been decided."
        )
    reasons = Counter(verdict.detail for verdict in verdicts if verdict.status == NOT_YET)
    for reason, times in reasons.most_common():
        console.print(f"[yellow]not yet[/yellow] ({times}): {escape(reason)}")
    for verdict in verdicts:
        if verdict.status == FAIL:
            console.print(f"[red]fail[/red] {escape(verdict.case)}: {escape(verdict.detail)}")
