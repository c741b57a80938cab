"""
The figures of simulated runs, on the terminal and as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from rich.console import Console

from conflict.cli.views.tables import counted, table_of
from conflict.rules.decision import Cause
from conflict.whatif.simulating.configuration import MOST_EPOCHS, Model, followers_of
from conflict.whatif.simulating.report import Interval, intervals_of
from conflict.whatif.simulating.theory import predictions

__all__ = ["print_kept", "print_learnt", "print_simulation", "simulation_json"]

SECOND = 1_000_000
_USERS = {
    "transactions": "transactions",
    "tried again": "tried_again",
    "failed": "failed",
    "row changes": "changes",
    "found no row": "found_no_row",
    "reads of rows that differed": "stale_reads",
    "changes rejected": "rejected",
    "changes overwritten": "overwritten",
    "changes not settled at the end": "unsettled",
    "transactions with a rejected change": "rejected_transactions",
    "  of these, rejected in part": "partly_rejected_transactions",
}
_APPLIER = {
    "changes received": "received",
    "applied": "applied",
    "conflicts": "conflicts",
    **{f"  {cause.name.lower().replace('_', ' ')}": cause.name.lower() for cause in Cause if cause},
    "conflicts per second": "conflicts_per_second",
    "% of changes in conflict": "share_in_conflict",
    "rows refreshed": "refreshes",
    "rows reflected": "reflected",
    "reflected rows discarded": "discarded",
}
_WINDOW = {
    "until the epoch ends": "epoch",
    "on the link": "link",
    "behind other epochs": "queue",
    "being applied": "apply",
    "in all: the conflict window": "mean",
    "  median": "p50",
    "  99 %": "p99",
    "  longest": "max",
    "until known to have arrived": "back",
}
_NAMES_ROOM, _FIGURE_ROOM = 30, 25  # columns of a terminal: for names, and for a median beside its extremes
_SCALES = {"share_in_conflict": 100.0}
_UNITS = {"bytes": 1.0, "kB": 1e-3, "MB": 1e-6}
_MOST_DIGITS = 1e5  # of a figure with its extremes; two of them fit beside each other
_EVERYWHERE = {"median": "p50", "99 %": "p99", "longest": "max"}
_ALWAYS = {"transactions", "changes", "received", "conflicts", "rejected", "overwritten", "mean"}


def print_simulation(console: Console, model: Model, runs: Sequence[Mapping[str, Any]]) -> None:
    """
    Print the figures of some runs; of several, the median and the extremes.

    Args:
        console: Where to print.
        model: What was simulated.
        runs: The figures of each run.
    """
    found = intervals_of(runs)
    names = [site.name for site in model.sites]
    headings, width = _headings(names, runs), console.width
    users = {name: found["clusters"][name] for name in names}
    console.print(table_of("What users did, and what they lost", [""], headings, _rows(_USERS, users, width)))
    appliers = {name: found["clusters"][name]["applier"] for name in names}
    console.print(table_of("What the appliers did", [""], headings, _rows(_APPLIER, appliers, width)))
    _print_windows(console, model, found, runs)
    _print_bytes(console, found, names, runs)
    _print_predictions(console, model, found)
    _print_common(console, model, found, runs)


def _print_windows(console: Console, model: Model, found: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> None:
    """Print how long changes of each cluster took to the next one, and, of more than two, to all others."""
    next_to = [followers_of(model, side) for side in range(len(model.sites))]
    names = [site.name for site in model.sites]
    ways = {
        f"{name} → {', '.join(names[each] for each in others)}": _measured(found["clusters"][name]["window_ms"])
        for name, others in zip(names, next_to, strict=True)
        if others
    }
    title = f"How long changes took to reach the {'other' if model.is_pair else 'next'} cluster, ms"
    console.print(table_of(title, ["on average"], _headings(list(ways), runs), _rows(_WINDOW, ways, console.width)))
    everywhere = {name: found["clusters"][name].get("everywhere_ms", {}) for name in names}
    reached = {name: each for name, each in everywhere.items() if each and each["max"].high}
    if rows := _rows(_EVERYWHERE, reached, console.width):
        console.print(table_of("How long until all clusters had them, ms", [""], _headings(list(reached), runs), rows))


def _measured(window: Mapping[str, Interval]) -> Mapping[str, Interval]:
    """Return a conflict window, or nothing if no change arrived."""
    return window if window["max"].high else {}


def _headings(names: Sequence[str], runs: Sequence[object]) -> list[str]:
    return [f"{name} median (extremes)" if len(runs) > 1 else name for name in names]


def _rows(lines: Mapping[str, str], columns: Mapping[str, Mapping[str, Any]], width: int) -> list[list[object]]:
    """Return a row per line that holds anything; extremes stand below the median where the terminal is too narrow."""
    between = " " if width >= _NAMES_ROOM + _FIGURE_ROOM * len(columns) else "\n"
    found: list[list[object]] = []
    for words, name in lines.items():
        cells = [column.get(name) for column in columns.values()]
        if name in _ALWAYS or any(cell is not None and cell.high for cell in cells):
            found.append([words, *(_shown(cell, _SCALES.get(name, 1.0), between) for cell in cells)])
    return found


def _shown(interval: Interval | None, scale: float = 1.0, between: str = " ") -> str:
    if interval is None:
        return "-"
    middle, low, high = (_figure(scale * each) for each in (interval.median, interval.low, interval.high))
    return middle if low == high else f"{middle}{between}({low} to {high})"


def _figure(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _print_bytes(
    console: Console, found: Mapping[str, Any], names: Sequence[str], runs: Sequence[Mapping[str, Any]]
) -> None:
    """Print how long the log of each cluster gets in every format, where that was counted."""
    sizes = {name: found["clusters"][name].get("row_event_bytes", {}) for name in names}
    most = max((each.high for own in sizes.values() for each in own.values()), default=0.0)
    if not most:
        return
    unit = next((name for name, scale in _UNITS.items() if scale * most < _MOST_DIGITS), "MB")
    numbers = next(own for own in sizes.values() if own)
    lines = [[number, *(_shown(own.get(number), _UNITS[unit]) for own in sizes.values())] for number in numbers]
    title = f"Row events, those of the applier among them, had all tables this binlog type: {unit}"
    console.print(table_of(title, ["binlog type"], _headings(names, runs), lines))


def _print_predictions(console: Console, model: Model, found: Mapping[str, Any]) -> None:
    """Print the closed form beside what was simulated, where there is one."""
    predicted = predictions(model, found)
    if not predicted:
        return
    rows = [
        [each.applier, each.table, _figure(each.simulated), _figure(each.expected), f"{each.ratio:.2f}"]
        for each in predicted
    ]
    headings = ["simulated", "closed form", "ratio"]
    console.print(table_of("Conflicts against the closed form", ["applier", "table"], headings, rows))


def _print_common(console: Console, model: Model, found: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> None:
    stale, different = found["stale_ms"], found["rows_that_end_different"]
    if stale["max"].high:
        console.print(
            f"A row that differed did so for {_shown(stale['p50'])} ms in the median, "
            f"{_shown(stale['p99'])} ms at 99 %, {_shown(stale['max'])} ms at most"
            f"{', but for those that end different' if different.high else ''}."
        )
    share = found["share_of_time_different"]
    console.print(
        f"The clusters differed for {100 * share.median:.1f} % of the time, "
        f"in {_shown(found['rows_different_on_average'])} rows on average."
    )
    if not different.high:
        console.print("At the end no row differs.")
    else:
        tables = {name: each for name, each in found["different_by_table"].items() if each.high}
        where = ", ".join(f"{_shown(each)} of {name}" for name, each in tables.items())
        console.print(f"[yellow]At the end rows differ: {where}.[/yellow]")
    if found["quiet_at_the_end"].low < 1:
        console.print(f"[yellow]{_unsettled(model, found)}[/yellow]")
    for name, site in found["clusters"].items():
        stopped = site["applier"]["stopped_at_ms"]
        if stopped is not None:
            console.print(
                f"[red]The applier of {name} stopped after {_shown(stopped)} ms: "
                "an operation lacks the value that its function compares; use another binlog_type.[/red]"
            )
    seeds = f"seed {model.seed}" if len(runs) == 1 else f"seeds {model.seed} to {model.seed + len(runs) - 1}"
    console.print(f"{counted(len(runs), 'run')} of {model.duration / SECOND:g} s, {seeds}.")


def _unsettled(model: Model, found: Mapping[str, Any]) -> str:
    """Return what is not settled at the end, and why."""
    sites = found["clusters"]
    if not any(site["unsettled"].high for site in sites.values()):
        return "Not settled at the end: rows that appliers refreshed or reflected were still on their way."
    changes = ", ".join(f"{_shown(site['unsettled'])} of {name}" for name, site in sites.items())
    return (
        f"Not settled at the end: changes of users that were not applied or rejected everywhere, {changes}. "
        f"They do not count as lost, so more may be lost. {_why_unsettled(model, sites)}"
    )


def _why_unsettled(model: Model, sites: Mapping[str, Any]) -> str:
    if model.endless:
        return f"In the model, {' and '.join(model.endless)}."
    if any(site["applier"]["stopped_at_ms"] is not None for site in sites.values()):
        return "An applier stopped."
    if model.drain is not None:
        return (
            f"drain_seconds ends the run {model.drain / SECOND:g} s after the last transaction; without it, a run goes "
            "on until all is applied."
        )
    return f"To apply all would take more than {MOST_EPOCHS:,} epochs."


def print_kept(console: Console, model: Model, binlogs: Path | None, out: Path | None) -> None:
    """Print where binlogs and result of the first run are, if they were asked for."""
    if binlogs is not None:
        text = f"Binlogs of seed {model.seed} and their run file are in {binlogs}."
        console.print(text, highlight=False, markup=False)
    if out is not None:
        text = f"Its result is in {out}; `ndb-conflict conflicts` and `ndb-conflict explain` take it."
        console.print(text, highlight=False, markup=False)


def print_learnt(console: Console, document: Mapping[str, Any], where: str) -> None:
    """
    Print what was learnt from binlogs.

    Args:
        console: Where to print.
        document: What was learnt; see `conflict.whatif.simulating.learning.learn`.
        where: The file that it was written to.
    """
    rows: list[list[object]] = []
    for name, cluster in document["clusters"].items():
        work, trace = cluster["workload"], sorted(took for _, took in cluster["link"]["trace_ms"])
        rate = sum(work["transactions_per_second"]) * work["slot_seconds"] / document["seconds"]
        sizes = {int(size): weight for size, weight in work["rowspertransaction"].items()}
        mean = sum(size * weight for size, weight in sizes.items()) / max(sum(sizes.values()), 1)
        median, most = trace[len(trace) // 2], trace[-1]
        rows.append([name, _figure(rate), _figure(mean), _figure(cluster["epoch_ms"]), _figure(median), _figure(most)])
    headings = ["transactions per second", "rows each", "epoch, ms", "median travel, ms", "longest, ms"]
    console.print(table_of("What users change, and how long epochs are on their way", ["cluster"], headings, rows))
    tables = ", ".join(f"{each['name']} ({each['recordcount']:,} rows at first)" for each in document["tables"])
    console.print(
        f"Learnt from {document['seconds']:g} s of the logs; tables: {tables}.", highlight=False, markup=False
    )
    console.print(f"Written to {where}; `ndb-conflict simulate` takes it.", highlight=False, markup=False)


def simulation_json(model: Model, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures as a document: of each run, and their intervals."""
    found = intervals_of(runs)
    return {
        "seconds": model.duration / SECOND,
        "seeds": list(range(model.seed, model.seed + len(runs))),
        "intervals": _plain(found),
        "closed_form": [attrs.asdict(each) | {"ratio": each.ratio} for each in predictions(model, found)],
        "runs": list(runs),
    }


def _plain(found: Any) -> Any:
    if isinstance(found, Interval):
        return attrs.asdict(found)
    return {name: _plain(each) for name, each in found.items()} if isinstance(found, Mapping) else found
