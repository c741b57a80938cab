"""
The sizes of a log in every format, on the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conflict.whatif.sizing.document import KINDS, configured_bounds, orm_costs
from ndb_formats.rules.formats import FORMATS
from ndb_formats.sizes.report import SizeBounds, SizeReport
from ndb_formats.sizes.tables import CHANGES

__all__ = ["print_sizes"]

_COSTLY = 10


def print_sizes(console: Console, report: SizeReport, types: Mapping[str, str]) -> None:
    """
    Print totals by format, sizes by table and kind of change, and what else the bytes go to.

    Args:
        console: Where to print.
        report: The sizes.
        types: By table, the binlog type that rows of ``mysql.ndb_replication`` give it; empty without rows.
    """
    console.print(_totals(report, types))
    if types:
        listed = ", ".join(f"{name} {number}" for name, number in types.items())
        console.print(f"configured: each table with its binlog type: {escape(listed)}.", soft_wrap=True)
    _print_notes(console, report)
    for of_ndb in (False, True):
        console.print(_by_table(report, of_ndb=of_ndb))
    console.print(_costly_columns(report))
    _print_orm(console, report)
    _print_compression(console, report)


def _totals(report: SizeReport, types: Mapping[str, str]) -> Table:
    table = _table("Bytes by format", ("format", "inserts", "updates", "deletes", "whole log", "of the log"), text=1)
    kinds = [report.by_kind(kind) for kind in range(len(CHANGES))]
    table.add_row("as logged", *(_short(each.logged.bytes) for each in kinds), f"{report.total:,}", "100%")
    table.add_section()
    for number in range(len(FORMATS)):
        table.add_row(_name(number), *_cells(report, [each.formats[number] for each in kinds]))
    if types:
        table.add_section()
        table.add_row("configured", *_cells(report, configured_bounds(report, types)))
    return table


def _cells(report: SizeReport, bounds: Sequence[SizeBounds]) -> list[str]:
    """Return the cells of a format: the bytes by kind of change, of the whole log, and their part of it."""
    total, frame = sum(bounds, SizeBounds()), report.frame.bytes
    ends = total.least.bytes + frame, total.most.bytes + frame
    whole, share = (_marked(_span(*map(form, ends)), total) for form in ("{:,}".format, _percent(report)))
    return [*map(_cell, bounds), whole, share]


def _percent(report: SizeReport) -> Callable[[int], str]:
    return lambda size: f"{size / report.total:.0%}"


def _by_table(report: SizeReport, *, of_ndb: bool) -> Table:
    numbers = [number for number, form in enumerate(FORMATS) if form.of_ndb == of_ndb]
    names = [FORMATS[number].name for number in numbers]
    title = f"Rows events by table in bytes, {'NDB binlog types' if of_ndb else 'binlog_row_image'}"
    headings = ("table", "change", *(() if of_ndb else ("rows", "logged")), *names)
    table = _table(title, headings, text=2)
    for each in report.tables:
        for kind, changes in zip(KINDS, each.changes, strict=True):
            if changes.rows:
                cells = [_cell(changes.formats[number]) for number in numbers]
                facts = () if of_ndb else (f"{changes.rows:,}", _short(changes.logged.bytes))
                table.add_row(escape(each.name), kind, *facts, *cells)
    return table


def _costly_columns(report: SizeReport) -> Table:
    headings = ("column", "before images", "after images", "both", "of the log")
    table = _table("The columns that cost most, bytes as logged", headings, text=1)
    for cost in report.columns[:_COSTLY]:
        cells = f"{cost.before:,}", f"{cost.after:,}", f"{cost.bytes:,}", f"{cost.bytes / report.total:.1%}"
        table.add_row(escape(f"{cost.table}.{cost.column}"), *cells)
    return table


def _table(title: str, headings: Sequence[str], *, text: int) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, heading in enumerate(headings):
        is_text = number < text
        table.add_column(heading, justify="left" if is_text else "right", overflow="fold", no_wrap=is_text)
    return table


def _name(number: int) -> str:
    return f"type {FORMATS[number].name}" if FORMATS[number].of_ndb else FORMATS[number].name


def _cell(bounds: SizeBounds) -> str:
    # Rows of inserts and updates can share events, whose heads count for the first; so the least can be the larger one.
    ends = sorted((bounds.least.bytes, bounds.most.bytes))
    return _marked(_span(*map(_short, ends)), bounds)


def _short(size: int) -> str:
    """Return bytes with three or more digits, and a unit if they are many."""
    for unit, name in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if size >= 10 * unit:
            return f"{size / unit:,.0f}{name}"
    return f"{size:,}"


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least}-{most}"


def _marked(text: str, bounds: SizeBounds) -> str:
    """Mark sizes that lack values which are not in the log."""
    return f"≥{text}" if bounds.lacking else text


def _print_notes(console: Console, report: SizeReport) -> None:
    changes = report.changes
    console.print(
        f"The whole log has {report.frame.bytes:,} bytes besides the rows events of tables: frames of transactions, "
        "epochs and table maps, the same in every format.",
        soft_wrap=True,
    )
    if changes.hidden:
        console.print(
            f"A range: the log does not tell all columns that {changes.hidden:,} of {changes.rows:,} changes set; "
            "it goes from those that changed value to all.",
            soft_wrap=True,
        )
    if any(bounds.lacking for bounds in changes.formats):
        console.print("≥: the log lacks values that this format has; the rows count without them.", soft_wrap=True)
    unknown = [table.name for table in report.tables if not table.known]
    if unknown:
        names = escape(", ".join(unknown))
        console.print(
            f"[yellow]No definition of {names}: their rows count in every format as they are; give --schema.[/yellow]",
            soft_wrap=True,
        )


def _print_orm(console: Console, report: SizeReport) -> None:
    costs = {number: cost for number, cost in enumerate(orm_costs(report).values()) if cost}
    if not costs:
        return
    console.print("What it costs if every update sets all columns, as many ORMs do, and not only those that change:")
    totals = report.changes.formats
    for number, cost in costs.items():
        least = totals[number].least.bytes + report.frame.bytes
        console.print(f"  {_name(number)}: {cost:,} bytes more (+{cost / least:.1%})", soft_wrap=True)


def _print_compression(console: Console, report: SizeReport) -> None:
    if report.file_bytes < report.total:
        console.print(
            f"Transactions are compressed: the files have {report.file_bytes:,} bytes, "
            f"{report.file_bytes / report.total:.1%} of what their events take.",
            soft_wrap=True,
        )
    found = report.compression
    if found is not None:
        console.print(
            f"Transaction compression would leave {found.ratio:.1%} of the transactions: {found.compressed:,} "
            f"of {found.plain:,} bytes, measured with zstd on {found.transactions:,} transactions of this log.",
            soft_wrap=True,
        )
