"""
A sweep on the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conflict.shown_text import counted
from conflict.telling.terminal import table_of
from conflict.whatif.sweeping.border import Border
from conflict.whatif.sweeping.summary import Grid, axis_value, grid_of
from conflict.whatif.sweeping.sweep import Search, Swept
from conflict.whatif.sweeping.sweep_file import Sweep

__all__ = ["print_sweep"]

_PERCENT = 100.0


def print_sweep(console: Console, sweep: Sweep, swept: Swept, search: Search | None, where: str) -> None:
    """
    Print what a sweep found.

    Args:
        console: Where to print.
        sweep: What was asked.
        swept: What was found.
        search: The border that was looked for.
        where: The folder of the results.
    """
    lost = grid_of(swept.results, sweep.axes, "lost_share")
    along = "" if lost.over is None else f", by {lost.over}"
    cells = sum(cell is not None for row in lost.rows.values() for cell in row)
    several = " (median)" if swept.results.num_rows > cells else ""  # runs of a cell: seeds, and axes not shown
    title = f"Lost updates, % of all changes{along}{several}"
    most = grid_of(swept.results, sweep.axes, "lost_share_at_most")
    console.print(table_of(title, _names(lost), _headings(lost), _percent(lost, most)))
    if search is not None:
        console.print(_borders(sweep, swept.borders, search))
        unknown = swept.results[search.condition.figure].null_count
        if unknown:
            runs = counted(unknown, "run")
            told = f"{search.condition.figure} is empty in {runs} of the grid; the condition does not hold there."
            console.print(f"[red]{escape(told)}[/red]", highlight=False)
    stopped = sum(map(bool, swept.results["stopped_appliers"].to_pylist()))
    if stopped:
        console.print(f"[red]In {counted(stopped, 'run')} an applier stopped: see stopped_appliers.[/red]")
    unsettled = sum(map(bool, swept.results["unsettled_changes"].to_pylist()))
    if unsettled:
        console.print(
            f"[yellow]≥: in {counted(unsettled, 'run')} changes were not settled at the end, and more may be lost: see "
            "unsettled_changes.[/yellow]"
        )
    there = swept.runs - swept.new
    console.print(f"{counted(swept.runs, 'run')}; {there:,} from an earlier sweep, {swept.new:,} new.", highlight=False)
    console.print(f"Results are in {escape(where)}.", highlight=False, soft_wrap=True)


def _names(grid: Grid) -> list[str]:
    return list(grid.axes) or [""]


def _headings(grid: Grid) -> list[str]:
    return ["all" if value is None else axis_value(value) for value in grid.values]


def _percent(grid: Grid, most: Grid) -> Iterable[list[object]]:
    """Yield shares that are lost; where more may be, they are marked."""
    for key, cells in grid.rows.items():
        bounds = zip(cells, most.rows[key], strict=True)
        shown = ["-" if cell is None else f"{'≥' * (cell != high)}{_PERCENT * cell:.2f}" for cell, high in bounds]
        yield [*(key or ("",)), *shown]


def _borders(sweep: Sweep, borders: Iterable[Border], search: Search) -> Table:
    axes = [name for name in sweep.axes if name != search.over]
    rows = [
        [
            *(border.point.values() or ("",)),
            *("nowhere" if each is None else axis_value(each) for each in (border.holds, border.fails)),
            "" if border.only else "the first of several",
        ]
        for border in borders
    ]
    runs = "" if sweep.seeds == 1 else "\nin every run"
    headings = [f"holds at{runs}", f"fails at{runs}", ""]
    return table_of(f"{search.condition}, by {search.over}", axes or [""], headings, rows)
