"""
The result of `resolve`, on the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from conflict.cli.views.doubts import print_doubts
from conflict.history.run import Run
from conflict.history.scheduling.placing import Inference
from conflict.results.careful import said_of
from conflict.results.doubts import convergence_words, doubts_of, not_what_happened
from conflict.results.model import Stop
from conflict.results.run_document import ResolvedRun
from conflict.results.summary import RunSummary
from conflict.rules.decision import Cause, Compared, Decision, Verdict, explain, operation_word
from conflict.rules.functions import Argument
from conflict.rules.table_setup import RefusalKind
from conflict.shown_text import counted
from conflict.telling.terminal import table_of
from ndb_formats.events.rows_event import Operation

__all__ = ["print_run"]

MOST_SIZES = 8  # of rounds that are printed; run.json has all
MOST_KINDS = 12  # of contradictions; contradictions/ has all
_SHOWN_TITLE = "What the binlogs show otherwise"

Tallies = Sequence[tuple[str, str, Mapping[str, int]]]


def print_run(console: Console, resolved: ResolvedRun, examples: Sequence[Mapping[str, Any]], where: str) -> None:
    """
    Print the summary of a result.

    Args:
        console: Where to print.
        resolved: What was resolved, and its figures.
        examples: Some rejected operations (see `conflict.results.files.rejected_examples`).
        where: Folder of the result.
    """
    run, checks = resolved.run, resolved.checks()
    doubts = doubts_of(checks)
    if resolved.errors and not resolved.changes:  # all else would be nothing, or follow from a wrong definition
        print_doubts(console, (doubt for doubt in doubts if doubt.serious))
        console.print(f"Nothing was resolved. Results are in [bold]{escape(where)}[/bold].", soft_wrap=True)
        return
    alarms = [doubt for doubt in doubts if doubt.alarm]
    print_doubts(console, alarms)
    _print_setups(console, run)
    _print_contradictions(console, resolved.summary)
    mark = ", which is not what happened" if not_what_happened(checks) else ""
    tallies = [
        (cluster, name, tally)
        for cluster, tables in resolved.summary.tables.items()
        for name, tally in tables.items()
        if _operations(tally)
    ]
    console.print(_outcomes(tallies, mark))
    rare = _rare_outcomes(tallies, mark)
    if rare is not None:
        console.print(rare)
    causes = [cause.name for cause in Cause if any(tally.get(cause.name) for _, _, tally in tallies)]
    if causes:
        console.print(_conflicts(tallies, causes, mark))
        console.print(f"For example{mark}:")
        for example in examples:
            console.print(Padding(_example(run, example), (0, 0, 0, 2)))
    console.print(_final_rows(run, resolved.summary, mark))
    _print_convergence(console, run, resolved)
    _print_appliers(console, resolved)
    _print_engine(console, resolved)
    _print_start(console, resolved)
    _print_open_questions(console, resolved)
    _print_agreement(console, resolved)
    print_doubts(console, (doubt for doubt in doubts if not doubt.alarm))
    if alarms:
        console.print(f"[red]{alarms[0].label}:[/red] see the first lines.")
    console.print(f"Results are in [bold]{escape(where)}[/bold].", soft_wrap=True)


def _print_setups(console: Console, run: Run) -> None:
    """Print each refusal and warning once, with the tables that it holds for."""
    places: dict[tuple[str, str], list[str]] = {}
    for cluster, setups in run.setups.at_end.items():
        for table, setup in setups.items():
            said = [("yellow", warning) for warning in setup.warnings]
            if setup.refusal is not None and setup.refusal.kind is not RefusalKind.DROPPED:
                said.insert(0, ("red", f"refused: {setup.refusal.message}"))
            for each in said:
                places.setdefault(each, []).append(f"{table} on {cluster}")
    for (style, text), where in places.items():
        console.print(f"[{style}]{escape(', '.join(where))}:[/{style}] {escape(text)}")


# -----------------------------------------------------------------------------------------------------------
# Tables
# -----------------------------------------------------------------------------------------------------------


def _operations(tally: Mapping[str, int]) -> int:
    return sum(tally.get(verdict.name.lower(), 0) for verdict in Verdict)


def _outcomes(tallies: Tallies, mark: str) -> Table:
    """One row per applier and table that had operations."""
    keys = ("applied", "ignored", "rejected", "refreshes")
    rows = [
        [cluster, name, _operations(tally), *(tally.get(key, 0) for key in keys)] for cluster, name, tally in tallies
    ]
    headings = ["received", "applied", "ignored", "conflicts", "refreshed"]
    return table_of(f"What the appliers did{mark}", ["applier", "table"], headings, rows)


def _rare_outcomes(tallies: Tallies, mark: str) -> Table | None:
    """Verdicts that are rare; a table of their own, because one of all would not fit into 80 columns."""
    rare = [name for name in ("discarded", "skipped", "cannot_tell") if any(tally.get(name) for _, _, tally in tallies)]
    rows = [
        [cluster, name, *(tally.get(each, 0) for each in rare)]
        for cluster, name, tally in tallies
        if any(tally.get(each) for each in rare)
    ]
    headings = [name.replace("_", " ") for name in rare]
    return table_of(f"What else became of changes{mark}", ["applier", "table"], headings, rows) if rare else None


def _conflicts(tallies: Tallies, causes: Sequence[str], mark: str) -> Table:
    """One row per applier and table that had conflicts, by cause."""
    headings = [cause.lower().replace("_", " ") for cause in causes]
    rows = [
        [cluster, name, *(tally[cause] for cause in causes)] for cluster, name, tally in tallies if tally["rejected"]
    ]
    return table_of(f"Conflicts by cause{mark}", ["applier", "table"], headings, rows)


def _contradictions(summary: RunSummary) -> list[tuple[str, str, str, int]]:
    """Return each applier, table and kind of contradiction, with the number of rows, the most frequent first."""
    found = [
        (applier, name, kind, number)
        for applier, tables in summary.contradictions.items()
        for name, kinds in tables.items()
        for kind, number in kinds.items()
    ]
    return sorted(found, key=lambda each: -each[3])


def _final_rows(run: Run, summary: RunSummary, mark: str) -> Table:
    names = [cluster.name for cluster in run.clusters]
    headings = [*(f"rows on {name}" for name in names), "differing"]
    rows = [
        [table, *(summary.rows[name].get(table, 0) for name in names), _differing(differing)]
        for table, differing in summary.differing_rows.items()
    ]
    return table_of(f"What the tables hold at the end{mark}", ["table"], headings, rows)


def _differing(rows: int | None) -> Text:
    return Text("?") if rows is None else Text(f"{rows:,}", style="red" if rows else "")


# -----------------------------------------------------------------------------------------------------------
# Sentences
# -----------------------------------------------------------------------------------------------------------


def _example(run: Run, outcome: Mapping[str, Any]) -> str:
    """Return a sentence on a rejected operation."""
    functions = [each.function for each in run.setups.over_time[outcome["applier"]][outcome["table"]]]
    function = next(filter(None, reversed(functions)), None)
    decision = Decision(Verdict.REJECTED, Cause[outcome["cause"]], outcome["incoming"], outcome["stored"])
    by_epoch = function is not None and function.spec.argument is Argument.GCI_BITS
    sentence = explain(decision, operation_word(Operation[outcome["operation"]]), Compared(by_epoch))
    place = "a refresh" if outcome["refresh"] else "sent on by its applier"
    if outcome["file"] is not None:
        place = f"{outcome['file'].rsplit('/', 1)[-1]}, position {outcome['position']}"
    operation = f"{outcome['source']} → {outcome['applier']}, {escape(outcome['table'])} {escape(outcome['key'])}"
    return f"{operation} ({escape(place)}): {escape(sentence)}."


def _print_convergence(console: Console, run: Run, resolved: ResolvedRun) -> None:
    converged, under_way = resolved.summary.converged, bool(resolved.under_way)
    style = "green" if converged else "yellow" if converged is None or under_way else "red"
    answer = convergence_words(converged=converged, under_way=under_way)
    which = ", on the rows that the logs touch" if resolved.starts else ""
    if resolved.unrelated:
        return  # what each of them holds at the end says nothing of the other
    if not resolved.changes and not any(resolved.summary.differing_rows.values()):
        console.print("[yellow]The binlogs hold no row change of the clusters' own[/yellow], of tables that are known.")
        return
    console.print(
        f"The clusters [{style}]{answer}[/{style}]{which}, "
        f"after {counted(resolved.changes, 'row change')} of their own."
    )
    if resolved.summary.contradicted:
        return
    for table, differing in resolved.summary.differing_rows.items():
        if differing:
            what = f"{counted(differing, 'row')} {'differs' if differing == 1 else 'differ'}"
            console.print(f"[red]{escape(table)}: {what}[/red]; {escape(_resolved_by(run, table))}.")


def _resolved_by(run: Run, table: str) -> str:
    """Return by which functions a table is resolved, on either cluster and at any time."""
    over_time = [setups.get(table, []) for setups in run.setups.over_time.values()]
    functions = dict.fromkeys(str(each.function) for own in over_time for each in own if each.function)
    if not functions:
        return "no conflict function is set for it"
    lost = all(own[-1].function is None for own in over_time if own)
    return f"resolved by {', '.join(functions)}" + (" until a statement in the binlogs took it away" if lost else "")


def _print_appliers(console: Console, resolved: ResolvedRun) -> None:
    summary = resolved.summary
    for name, stop in summary.stops.items():
        console.print(f"[red]The applier of {name} stopped[/red] with error {stop.error}: {escape(_stop_text(stop))}")
    for name, assumed in resolved.assumed.items():
        if assumed:
            console.print(
                f"[yellow]Assumed:[/yellow] {counted(assumed, 'epoch')} left no trace in the binlog of {name}. "
                "When they were applied, or whether, decides on counters and exceptions alone; the first possible "
                "place is taken."
            )
    if summary.rounds and (summary.rounds[-1].in_conflict or _judges_transactions(resolved.run)):
        sizes = ", ".join(f"{each.rows:,}" for each in summary.rounds[:MOST_SIZES])
        sizes += ", …" * (len(summary.rounds) > MOST_SIZES)
        console.print(
            f"{counted(summary.rounds[-1].in_conflict, 'transaction')} in conflict, found in "
            f"{counted(len(summary.rounds), 'round')} over {sizes} row changes."
        )


def _judges_transactions(run: Run) -> bool:
    """Whether a function rejects whole transactions, on either cluster and at any time."""
    setups = (each for tables in run.setups.over_time.values() for own in tables.values() for each in own)
    return any(each.function is not None and each.function.spec.transactional for each in setups)


def _stop_text(stop: Stop) -> str:
    """Return where and why an applier stopped, and what the server says."""
    place = "" if stop.origin is None else f"{stop.origin.file}, position {stop.origin.position}, "
    column = "" if stop.column is None else f", column {stop.column}"
    server = "" if stop.server is None else f' The server says: "{stop.server}"'
    return f"{place}table {stop.table}{column}: {stop.message}. Epoch {stop.foreign_epoch} was undone.{server}"


def _print_engine(console: Console, resolved: ResolvedRun) -> None:
    """Print which engine resolved the run, or some of its rows, if it is not the one that was asked for."""
    if resolved.engine:
        console.print(f"The {resolved.engine} engine resolved this: {escape(resolved.engine_reason)}.")
    if resolved.summary.careful:
        console.print(f"Resolved with care, by the reference engine: {said_of(resolved.summary.careful)}.")


def _print_start(console: Console, resolved: ResolvedRun) -> None:
    """Print what is not known, because rows are older than the log."""
    if not resolved.starts:
        return
    places = " and ".join(f"at epoch {epoch} of {name}" for name, epoch in resolved.starts.items())
    console.print(
        f"The logs start in the middle, {places}. Older rows are not known until the logs show them. Final rows are "
        "those whose columns are all known; counters start with the logs."
    )
    for name, tables in resolved.summary.not_known.items():
        rows, part, columns = (
            sum(each[what] for each in tables.values()) for what in ("rows", "rows_in_part", "columns")
        )
        if rows:
            console.print(f"[yellow]Not known on {name}:[/yellow] whether the row exists, for {counted(rows, 'key')}.")
        if part:
            console.print(
                f"[yellow]Not known on {name}:[/yellow] {counted(columns, 'column')} of {counted(part, 'row')} that "
                f"{'exists' if part == 1 else 'exist'}."
            )


def _print_open_questions(console: Console, resolved: ResolvedRun) -> None:
    """Print the questions that the binlogs leave open."""
    if resolved.other_readings:
        console.print(
            f"[yellow]The binlogs can be read in {len(resolved.other_readings) + 1} ways[/yellow] that agree with them "
            "equally well; readings/ holds the results of the others."
        )
    if resolved.settled:
        console.print(
            "[yellow]The binlogs leave open[/yellow] when some rows were judged: own changes of the cluster came in "
            "between. The answer is chosen that agrees with its binlog and judges the fewest rows earlier:"
        )
    for each in resolved.settled:
        console.print(Padding(_settled_text(each), (0, 0, 0, 2)))
    for name, undecided in resolved.summary.undecided.items():
        tallies = resolved.summary.tables[name].values()
        open_outcomes = sum(tally.get("cannot_tell", 0) for tally in tallies)
        if open_outcomes:
            console.print(
                f"[yellow]Cannot tell:[/yellow] {counted(open_outcomes, 'decision')} of {name}, because older rows are "
                f"not known; the candidates are in undecided/applier={name}."
            )
        if undecided > open_outcomes:
            console.print(
                f"[yellow]The binlogs leave open[/yellow] how {name} judged "
                f"{counted(undecided - open_outcomes, 'operation')}: it changed their rows in between. No row "
                f"depends on it; {_ranges(resolved.summary.counter_ranges.get(name, {}))}."
            )


def _settled_text(settled: Inference) -> str:
    """Return which rows of an applied epoch were judged early, and what tells so."""
    return (
        f"{settled.cluster}, epoch {settled.foreign_epoch}: {counted(settled.judged_earlier, 'row')}, one of "
        f"{counted(settled.candidates, 'possible answer')}; otherwise {counted(settled.rows, 'row')} would differ."
    )


def _ranges(ranges: Mapping[str, tuple[int, int]]) -> str:
    texts = [f"{counter} is between {least:,} and {most:,}" for counter, (least, most) in ranges.items()]
    return ", ".join(texts) if texts else "neither does a counter"


def _print_agreement(console: Console, resolved: ResolvedRun) -> None:
    """Print that the result agrees with the appliers' changes in the binlogs."""
    summary = resolved.summary
    if summary.compared and not summary.contradicted and not resolved.unrelated:
        changes = counted(summary.compared, "row change")
        console.print(f"The binlogs show {changes} by appliers; the result [green]agrees with all of them[/green].")


def _print_contradictions(console: Console, summary: RunSummary) -> None:
    """Print what the binlogs show otherwise, the most frequent kinds first."""
    kinds = _contradictions(summary)
    if not kinds:
        return
    console.print(table_of(_SHOWN_TITLE, ["applier", "table", "contradiction"], ["rows"], kinds[:MOST_KINDS]))
    rest = kinds[MOST_KINDS:]
    if rest:
        rows = counted(sum(number for *_, number in rest), "row")
        console.print(f"{counted(len(rest), 'more kind')}, of {rows}, {'is' if len(rest) == 1 else 'are'} rarer.")
    console.print(
        "The figures below are not what happened: counters, ranges and rows do not hold where rows differ. "
        "contradictions/ lists them."
    )
